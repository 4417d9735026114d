// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/text_heap.h"

#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace sinkscope::h5 {

static_assert(std::endian::native == std::endian::little);

namespace {

// Little-endian number of `size` bytes; at most 2^62, which is beyond any file.
std::int64_t number(const unsigned char* bytes, int size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, static_cast<std::size_t>(size));
  return static_cast<std::int64_t>(std::min(value, std::uint64_t{1} << 62));
}

constexpr std::int64_t round_up_8(std::int64_t n) { return (n + 7) / 8 * 8; }

constexpr std::size_t kMostRecent = 16;
constexpr int kAttributeMessage = 0x0c, kContinuationMessage = 0x10;

}  // namespace

TextHeap::TextHeap(const Handle& object, std::string where) : where_(std::move(where)) {
  const Call call;
  const Handle file = own(H5Iget_file_id(object.id()), ErrorKind::corrupt, where_);
  const Handle creation = own(H5Fget_create_plist(file.id()), ErrorKind::corrupt, where_);
  hsize_t user_block = 0, size = 0;
  std::size_t address_size = 0, length_size = 0;
  void* descriptor = nullptr;
  H5Pget_userblock(creation.id(), &user_block);
  H5Pget_sizes(creation.id(), &address_size, &length_size);
  check(H5Fget_filesize(file.id(), &size), ErrorKind::corrupt, where_);
  check(H5Fget_vfd_handle(file.id(), H5P_DEFAULT, &descriptor), ErrorKind::corrupt, where_);
  if (user_block != 0 || address_size != 8 || length_size != 8) {
    throw Error(ErrorKind::unsupported,
                where_ + ": expected a file without user block and with 8-byte addresses");
  }
  descriptor_ = *static_cast<int*>(descriptor);
  file_size_ = static_cast<std::int64_t>(size);
  left_to_read_ = 32 * file_size_;
}

void TextHeap::corrupt(const std::string& what) const {
  throw Error(ErrorKind::corrupt, where_ + ": " + what);
}

std::vector<unsigned char> TextHeap::bytes(std::int64_t offset, std::int64_t n) {
  left_to_read_ -= n;
  if (offset < 0 || n < 0 || n > file_size_ || offset > file_size_ - n || left_to_read_ < 0) {
    corrupt(fmt::format("expected {} bytes at {}, found a file of {}", n, offset, file_size_));
  }
  std::vector<unsigned char> out(static_cast<std::size_t>(n));
  if (::pread(descriptor_, out.data(), out.size(), offset) != static_cast<ssize_t>(n)) {
    corrupt(fmt::format("cannot read {} bytes at {}", n, offset));
  }
  return out;
}

// Of several with one index, the last.
const TextHeap::Object* TextHeap::Collection::find(std::int64_t index) const {
  const auto after = std::ranges::upper_bound(objects, index, {}, &Object::index);
  return after == objects.begin() || (after - 1)->index != index ? nullptr : &*(after - 1);
}

const TextHeap::Collection& TextHeap::collection(std::int64_t address) {
  if (const auto known = recent_.find(address); known != recent_.end()) return known->second;
  const auto header = bytes(address, 16);
  if (std::memcmp(header.data(), "GCOL\x01", 5) != 0) {
    corrupt(fmt::format("expected a heap of texts at {}, found something else", address));
  }
  Collection heap;
  heap.bytes = bytes(address, number(header.data() + 8, 8));
  const auto size = static_cast<std::int64_t>(heap.bytes.size());
  std::int64_t at = 16;
  while (at + 16 <= size) {
    const unsigned char* object = heap.bytes.data() + at;
    const std::int64_t index = number(object, 2), length = number(object + 8, 8);
    if (index == 0) break;  // the free rest
    if (length > size - at - 16) {
      corrupt(fmt::format("text {} of the heap at {} reaches out of it", index, address));
    }
    heap.objects.push_back({index, at + 16, length});
    at += 16 + round_up_8(length);
  }
  // HDF5 writes them in order, others need not.
  if (!std::ranges::is_sorted(heap.objects, {}, &Object::index))
    std::ranges::stable_sort(heap.objects, {}, &Object::index);
  if (recent_.size() >= kMostRecent) recent_.clear();
  return recent_.emplace(address, std::move(heap)).first->second;
}

std::string TextHeap::text(const Reference& reference) {
  const std::int64_t length = number(reference.data(), 4);
  const std::int64_t address = number(reference.data() + 4, 8);
  if (length == 0) return {};
  const Collection& heap = collection(address);
  const Object* found = heap.find(number(reference.data() + 12, 4));
  if (found == nullptr || found->size < length) {
    corrupt(fmt::format("a text of {} bytes is not in the heap at {}", length, address));
  }
  left_to_read_ -= length;
  if (left_to_read_ < 0) corrupt("the texts are larger than their file");
  const auto* begin = heap.bytes.data() + found->begin;
  const auto* end = std::find(begin, begin + length, '\0');
  return {begin, end};
}

std::vector<std::string> TextHeap::texts(std::int64_t offset, std::int64_t n) {
  const auto references = bytes(offset, n * 16);
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < n; ++i) {
    Reference reference;
    std::memcpy(reference.data(), references.data() + i * 16, 16);
    out.push_back(text(reference));
  }
  return out;
}

std::optional<TextHeap::Reference> TextHeap::attribute(const Handle& object,
                                                       const std::string& name) {
  const Call call;
  H5O_info_t info;
  check(H5Oget_info2(object.id(), &info, H5O_INFO_BASIC), ErrorKind::corrupt, where_);
  const auto prefix = bytes(static_cast<std::int64_t>(info.addr), 16);
  if (prefix[0] != 1) return std::nullopt;

  struct Block {
    std::int64_t offset, size;
  };
  std::vector<Block> blocks{{static_cast<std::int64_t>(info.addr) + 16, number(&prefix[8], 4)}};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto block = bytes(blocks[b].offset, blocks[b].size);
    const auto size = static_cast<std::int64_t>(block.size());
    for (std::int64_t at = 0; at + 8 <= size;) {
      const std::int64_t type = number(&block[static_cast<std::size_t>(at)], 2);
      const std::int64_t length = number(&block[static_cast<std::size_t>(at) + 2], 2);
      const unsigned char* body = block.data() + at + 8;
      if (length > size - at - 8) corrupt("a header message reaches out of its block");
      at += 8 + length;
      if (type == kContinuationMessage && length >= 16) {
        blocks.push_back({number(body, 8), number(body + 8, 8)});
        continue;
      }
      if (type != kAttributeMessage || length < 8) continue;
      // Version 1 pads each part to 8 bytes; 2 and 3 do not, and 3 has the name's character set.
      const int version = body[0];
      const auto part = [&](int i) {
        const std::int64_t n = number(body + 2 + 2 * i, 2);
        return version == 1 ? round_up_8(n) : n;
      };
      const std::int64_t name_at = version == 3 ? 9 : 8;
      const std::int64_t value_at = name_at + part(0) + part(1) + part(2);
      if (value_at + 16 > length) continue;
      const std::string found(reinterpret_cast<const char*>(body) + name_at,
                              static_cast<std::size_t>(part(0)));
      if (found.c_str() != name) continue;
      Reference reference;
      std::memcpy(reference.data(), body + value_at, 16);
      return reference;
    }
  }
  return std::nullopt;
}

}  // namespace sinkscope::h5
