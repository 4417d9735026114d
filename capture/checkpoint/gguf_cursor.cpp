// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_cursor.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/printable.h"

namespace sinkscope {
namespace {
constexpr std::uint64_t kBufferBytes = 256 << 10;
}

std::string quoted_name(const std::string& name) { return '"' + printable(name) + '"'; }

GgufCursor::GgufCursor(const FileReader& file)
    : file_(file), buffer_(std::min(kBufferBytes, file.size())) {}

void GgufCursor::fail(const std::string& problem, ErrorKind kind) const {
  const std::string subject =
      name_ == nullptr ? "header" : fmt::format("{} {}", kind_, quoted_name(*name_));
  throw Error(kind, fmt::format("{}: {}: {}", file_.path(), subject, problem));
}

void GgufCursor::refill(std::uint64_t n_bytes) {
  if (n_bytes > remaining()) {
    fail(fmt::format("the file ends at byte {} where {} more bytes are due at {}", file_.size(),
                     n_bytes, position()));
  }
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  buffer_offset_ += begin_;
  end_ -= begin_;
  begin_ = 0;
  const std::uint64_t more =
      std::min<std::uint64_t>(buffer_.size() - end_, file_.size() - (buffer_offset_ + end_));
  file_.read(buffer_offset_ + end_, more, buffer_.data() + end_);
  end_ += more;
}

std::string GgufCursor::text(std::uint64_t max_bytes) {
  const auto n_bytes = number<std::uint64_t>();
  if (n_bytes > max_bytes) {
    fail(fmt::format("text of {} bytes, at most {} are allowed", n_bytes, max_bytes));
  }
  require(n_bytes, 1, "text");
  text_bytes_ += n_bytes;
  if (text_bytes_ > kMaxAllTexts)
    fail(fmt::format("texts of {} bytes up to here, at most {} are allowed", text_bytes_,
                     kMaxAllTexts));
  std::string value(n_bytes, '\0');
  std::uint64_t done = 0;
  while (done < n_bytes) {
    if (begin_ == end_) refill(1);
    const std::uint64_t piece = std::min(n_bytes - done, end_ - begin_);
    std::memcpy(value.data() + done, buffer_.data() + begin_, piece);
    begin_ += piece;
    done += piece;
  }
  return value;
}

void GgufCursor::require(std::uint64_t count, std::uint64_t min_bytes, const char* what) const {
  if (count > remaining() / min_bytes) {
    fail(
        fmt::format("{} of {} entries of at least {} bytes each, and {} bytes of the file are left",
                    what, count, min_bytes, remaining()));
  }
}

}  // namespace sinkscope
