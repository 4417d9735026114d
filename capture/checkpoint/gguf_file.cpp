// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/gguf_cursor.h"
#include "capture/checkpoint/gguf_header.h"
#include "capture/checkpoint/gguf_split.h"
#include "capture/checkpoint/gguf_types.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kPieceBytes = 256 << 10;  // read and decoded at once: stays in cache

struct Place {
  int part = 0;
  std::uint32_t type_id = 0;
  std::uint64_t offset = 0;  // from the beginning of its part
};

class GgufParts : public GgufFile, public CountedReads {
 public:
  explicit GgufParts(const std::string& path) {
    FileReader first(path);
    header_ = read_gguf_header(first);
    const auto others = remaining_split_parts(path, header_);
    take_part(std::move(first), header_);
    for (int i = 0; i < static_cast<int>(others.size()); ++i) {
      FileReader file = open_split_part(others[static_cast<std::size_t>(i)]);
      GgufHeader part = read_gguf_header(file);
      check_split_part(file.path(), part, i + 1, static_cast<int>(others.size()) + 1);
      take_part(std::move(file), part);
    }
    check_split_total(path, header_, static_cast<std::int64_t>(infos_.size()));
  }

  const std::vector<TensorInfo>& tensors() const override { return infos_; }
  int find(const std::string& name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? -1 : found->second;
  }
  const std::vector<std::string>& keys() const override { return header_.keys; }
  const GgufValue* find_key(const std::string& key) const override { return header_.find_key(key); }

  void read_rows(int index, std::int64_t begin, std::int64_t end, float* out) const override;
  void read_raw(int index, std::uint64_t offset, std::uint64_t n, void* out) const override;
  std::int64_t bytes_read() const override {
    std::int64_t bytes = 0;
    for (const FileReader& file : files_) bytes += file.bytes_read();
    return bytes;
  }

 private:
  void take_part(FileReader file, GgufHeader& header) {
    for (GgufTensor& tensor : header.tensors) {
      if (!by_name_.try_emplace(tensor.info.name, static_cast<int>(infos_.size())).second) {
        throw Error(ErrorKind::corrupt, fmt::format("{}: tensor {}: is in an earlier part as well",
                                                    file.path(), quoted_name(tensor.info.name)));
      }
      places_.push_back({static_cast<int>(files_.size()), tensor.type_id, tensor.offset});
      infos_.push_back(std::move(tensor.info));
    }
    warnings_.insert(warnings_.end(), header.warnings.begin(), header.warnings.end());
    header.tensors.clear();
    files_.push_back(std::move(file));
  }

  const TensorInfo& info(int index) const {
    if (index < 0 || index >= static_cast<int>(infos_.size())) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("tensor {} of {} asked for", index, infos_.size()));
    }
    return infos_[static_cast<std::size_t>(index)];
  }

  GgufHeader header_;  // of the first part; its tensors have moved to infos_ and places_
  std::vector<FileReader> files_;
  std::vector<TensorInfo> infos_;
  std::vector<Place> places_;  // of infos_
  std::unordered_map<std::string, int> by_name_;
};

void GgufParts::read_rows(int index, std::int64_t begin, std::int64_t end, float* out) const {
  const TensorInfo& tensor = info(index);
  const Place& place = places_[static_cast<std::size_t>(index)];
  const FileReader& file = files_[static_cast<std::size_t>(place.part)];
  const GgufType* type = find_gguf_type(place.type_id);
  if (type == nullptr || type->decode == nullptr) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: tensor {}: values of {} cannot be decoded", file.path(),
                            quoted_name(tensor.name), tensor.dtype));
  }
  if (begin < 0 || begin > end || end > tensor.n_rows()) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("tensor {}: rows {} to {} asked for, it has {}",
                            quoted_name(tensor.name), begin, end, tensor.n_rows()));
  }
  const std::int64_t row_blocks = tensor.row_size() / type->block_elements;
  std::int64_t n_blocks = (end - begin) * row_blocks;
  std::uint64_t offset =
      place.offset + static_cast<std::uint64_t>(begin * row_blocks * type->block_bytes);
  if (tensor.dtype == "F32") {  // as it is stored: straight to its place
    file.read(offset, static_cast<std::uint64_t>(n_blocks) * sizeof(float), out);
    return;
  }
  const std::int64_t piece_blocks = std::min(n_blocks, kPieceBytes / type->block_bytes);
  // Not kept per thread: the end of a thread's things is announced to the dynamic loader, which is
  // busy for as long as LibTorch loads.
  const std::unique_ptr<std::uint8_t[]> piece(
      new std::uint8_t[static_cast<std::size_t>(piece_blocks * type->block_bytes)]);
  while (n_blocks > 0) {
    const std::int64_t now = std::min(n_blocks, piece_blocks);
    const auto n_bytes = static_cast<std::uint64_t>(now * type->block_bytes);
    file.read(offset, n_bytes, piece.get());
    type->decode(piece.get(), now, out);
    offset += n_bytes;
    out += now * type->block_elements;
    n_blocks -= now;
  }
}

void GgufParts::read_raw(int index, std::uint64_t offset, std::uint64_t n, void* out) const {
  const TensorInfo& tensor = info(index);
  if (offset > tensor.n_bytes || n > tensor.n_bytes - offset) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("tensor {}: {} bytes at {} asked for, it has {}",
                            quoted_name(tensor.name), n, offset, tensor.n_bytes));
  }
  const Place& place = places_[static_cast<std::size_t>(index)];
  files_[static_cast<std::size_t>(place.part)].read(place.offset + offset, n, out);
}

// The value of `key` as one of the variant's types; null when absent.
template <class T>
const T* value_as(const GgufFile& file, const std::string& key, const char* expected) {
  const GgufValue* value = file.find_key(key);
  if (value == nullptr) return nullptr;
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) {
    throw Error(ErrorKind::corrupt, fmt::format("key {}: its value is of another type, expected {}",
                                                quoted_name(key), expected));
  }
  return typed;
}

template <class T>
std::optional<T> copy_of(const T* value) {
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

}  // namespace

std::unique_ptr<GgufFile> GgufFile::open(const std::string& path) {
  return std::make_unique<GgufParts>(path);
}

std::optional<std::int64_t> GgufFile::integer(const std::string& key) const {
  return copy_of(value_as<std::int64_t>(*this, key, "an integer"));
}

std::optional<double> GgufFile::number(const std::string& key) const {
  if (const GgufValue* value = find_key(key); value != nullptr) {
    if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  }
  return copy_of(value_as<double>(*this, key, "a number"));
}

std::optional<bool> GgufFile::boolean(const std::string& key) const {
  return copy_of(value_as<bool>(*this, key, "true or false"));
}

std::optional<std::string> GgufFile::text(const std::string& key) const {
  return copy_of(value_as<std::string>(*this, key, "a text"));
}

const std::vector<std::string>* GgufFile::texts(const std::string& key) const {
  return value_as<std::vector<std::string>>(*this, key, "a list of texts");
}

const std::vector<std::int64_t>* GgufFile::integers(const std::string& key) const {
  return value_as<std::vector<std::int64_t>>(*this, key, "a list of integers");
}

const std::vector<double>* GgufFile::numbers(const std::string& key) const {
  return value_as<std::vector<double>>(*this, key, "a list of numbers");
}

bool looks_like_gguf(const std::string& path) {
  char magic[4] = {};
  try {
    const FileReader file(path);
    if (file.size() < sizeof magic) return false;
    file.read(0, sizeof magic, magic);
  } catch (const Error&) {  // whoever reads the file says what is wrong with it
    return false;
  }
  return std::memcmp(magic, "GGUF", sizeof magic) == 0;
}

}  // namespace sinkscope
