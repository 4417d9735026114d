// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "capture/checkpoint/file_reader.h"
#include "core/error.h"

namespace sinkscope {

// The name in quotation marks, made fit for a message.
std::string quoted_name(const std::string& name);

// Reads the header of a GGUF file from front to back through one buffer. Every length is compared
// with what is left of the file before anything is allocated or read. Little-endian.
// Throws Error{corrupt} that names what was being read (`set_subject`).
class GgufCursor {
 public:
  // The longest texts are chat templates and licenses; a file's tokens come to a few megabytes.
  static constexpr std::uint64_t kMaxText = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMaxAllTexts = std::uint64_t{256} << 20;

  explicit GgufCursor(const FileReader& file);

  std::uint64_t position() const { return buffer_offset_ + begin_; }
  std::uint64_t remaining() const { return file_.size() - position(); }

  // What the following reads belong to, for messages: kind "key" or "tensor", and its name. The
  // name is referred to, not copied: it must outlive the reads.
  void set_subject(const char* kind, const std::string* name) {
    kind_ = kind;
    name_ = name;
  }

  template <class T>
  T number() {
    if (end_ - begin_ < sizeof(T)) refill(sizeof(T));
    T value;
    std::memcpy(&value, buffer_.data() + begin_, sizeof(T));
    begin_ += sizeof(T);
    return value;
  }

  // A u64 length and that many bytes; `max_bytes` at most, kMaxAllTexts over all calls.
  std::string text(std::uint64_t max_bytes = kMaxText);

  // Throws unless `count` entries of at least `min_bytes` bytes can still follow.
  void require(std::uint64_t count, std::uint64_t min_bytes, const char* what) const;

  [[noreturn]] void fail(const std::string& problem, ErrorKind kind = ErrorKind::corrupt) const;

 private:
  void refill(std::uint64_t n_bytes);

  const FileReader& file_;
  std::vector<char> buffer_;
  std::uint64_t buffer_offset_ = 0;    // where buffer_[0] lies in the file
  std::uint64_t begin_ = 0, end_ = 0;  // the unread part of buffer_
  std::uint64_t text_bytes_ = 0;       // of all texts
  const char* kind_ = nullptr;
  const std::string* name_ = nullptr;
};

}  // namespace sinkscope
