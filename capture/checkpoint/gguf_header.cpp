// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "capture/checkpoint/gguf_cursor.h"
#include "capture/checkpoint/gguf_metadata.h"
#include "capture/checkpoint/gguf_types.h"
#include "core/error.h"

namespace sinkscope {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in the machine's order");

constexpr std::uint64_t kMinKeyBytes = 14;     // length, one letter, type, one byte of value
constexpr std::uint64_t kMinTensorBytes = 24;  // length, no letter, dimensions, type, offset
constexpr std::uint64_t kMaxNameBytes = 63;
constexpr std::uint32_t kMaxDims = 4;
constexpr std::uint64_t kMaxTensors = std::uint64_t{1} << 20;
constexpr auto kMaxInt = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

// a * b when it fits an int64, else nothing.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result > kMaxInt) return std::nullopt;
  return result;
}

// The next multiple of `alignment` (a power of two), unless that overflows an int64.
std::optional<std::uint64_t> round_up(std::uint64_t value, std::uint64_t alignment) {
  if (value > kMaxInt - alignment) return std::nullopt;
  return (value + alignment - 1) & ~(alignment - 1);
}

void check_magic_and_version(GgufCursor& cursor, const std::string& path) {
  if (cursor.remaining() < 4) cursor.fail("the file is shorter than the letters GGUF");
  const auto magic = cursor.number<std::uint32_t>();
  if (magic != 0x46554747u) cursor.fail("does not begin with the letters GGUF");
  const auto version = cursor.number<std::uint32_t>();
  if (version == 2 || version == 3) return;
  if ((version & 0xFFFFu) == 0 && version != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: big-endian GGUF (version reads as {:#010x}); only little-endian "
                            "files can be read",
                            path, version));
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("{}: GGUF version {}, expected 2 or 3", path, version));
}

// Fills in what follows from dimensions and type id, nonsense refused.
void size_tensor(GgufCursor& cursor, GgufTensor& tensor) {
  TensorInfo& info = tensor.info;
  std::uint64_t n_elements = 1;  // zeros aside, so that [0, huge, huge] is nonsense too
  bool is_empty = false;
  for (const std::int64_t dim : info.shape) {
    is_empty = is_empty || dim == 0;
    if (dim == 0) continue;
    const auto grown = product(n_elements, static_cast<std::uint64_t>(dim));
    if (!grown) {
      cursor.fail(fmt::format("the dimensions [{}] multiply to more than 2^63 elements",
                              fmt::join(info.shape, ", ")));
    }
    n_elements = *grown;
  }
  const GgufType* type = find_gguf_type(tensor.type_id);
  info.dtype = gguf_type_name(tensor.type_id);
  info.readable = type != nullptr && type->decode != nullptr;
  if (type == nullptr) return;
  const std::int64_t row = info.shape.empty() ? 1 : info.shape.back();
  if (row % type->block_elements != 0) {
    cursor.fail(fmt::format("rows of {} elements, expected a multiple of {}, the block of {}", row,
                            type->block_elements, info.dtype));
  }
  const auto n_bytes = product(n_elements / static_cast<std::uint64_t>(type->block_elements),
                               static_cast<std::uint64_t>(type->block_bytes));
  if (!n_bytes) {
    cursor.fail(fmt::format("{} elements of {} exceed 2^63 bytes", n_elements, info.dtype));
  }
  info.n_bytes = is_empty ? 0 : *n_bytes;
}

GgufTensor read_tensor_info(GgufCursor& cursor) {
  GgufTensor tensor;
  TensorInfo& info = tensor.info;
  info.name = cursor.text(kMaxNameBytes);
  cursor.set_subject("tensor", &info.name);
  const auto n_dims = cursor.number<std::uint32_t>();
  if (n_dims > kMaxDims) {
    cursor.fail(fmt::format("{} dimensions, at most {} are allowed", n_dims, kMaxDims));
  }
  for (std::uint32_t i = 0; i < n_dims; ++i) {
    const auto dim = cursor.number<std::int64_t>();
    if (dim < 0) cursor.fail(fmt::format("dimension {} is negative: {}", i, dim));
    info.shape.push_back(dim);
  }
  std::reverse(info.shape.begin(), info.shape.end());  // the file says the fastest one first
  tensor.type_id = cursor.number<std::uint32_t>();
  tensor.offset = cursor.number<std::uint64_t>();
  size_tensor(cursor, tensor);
  return tensor;
}

std::vector<GgufTensor> read_tensor_infos(GgufCursor& cursor, std::uint64_t count) {
  std::vector<GgufTensor> tensors;
  std::unordered_set<std::string> names;
  tensors.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string ordinal = fmt::format("#{}", i);
    cursor.set_subject("tensor", &ordinal);
    GgufTensor tensor = read_tensor_info(cursor);
    cursor.set_subject("tensor", &tensor.info.name);
    if (!names.insert(tensor.info.name).second) cursor.fail("the name occurs twice");
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Offsets must be the running padded sum, in file order, and the data must be there. After a
// tensor of unknown size the sum is unknown until the next offset, which says how much room it has.
void place_tensors(GgufCursor& cursor, std::uint64_t alignment, std::uint64_t file_size,
                   GgufHeader& header) {
  cursor.set_subject(nullptr, nullptr);
  const auto data_start = round_up(cursor.position(), alignment);
  if (!data_start) cursor.fail("the beginning of the data overflows");
  std::optional<std::uint64_t> expected = 0;
  GgufTensor* unsized = nullptr;
  std::uint64_t end = *data_start;
  for (GgufTensor& tensor : header.tensors) {
    cursor.set_subject("tensor", &tensor.info.name);
    if (tensor.offset % alignment != 0) {
      cursor.fail(fmt::format("offset {} is no multiple of {}", tensor.offset, alignment));
    }
    if (expected && tensor.offset != *expected) {
      cursor.fail(fmt::format("offset {}, expected {}", tensor.offset, *expected));
    }
    if (tensor.offset > file_size) {
      cursor.fail(fmt::format("offset {} lies behind the end of the file of {} bytes",
                              tensor.offset, file_size));
    }
    tensor.offset += *data_start;
    if (unsized != nullptr) {
      if (tensor.offset < unsized->offset) cursor.fail("lies before the tensor that precedes it");
      unsized->info.n_bytes = tensor.offset - unsized->offset;
    }
    const bool is_sized = find_gguf_type(tensor.type_id) != nullptr;
    end = tensor.offset + tensor.info.n_bytes;
    if (end > file_size && (tensor.info.n_bytes > 0 || !is_sized)) {
      cursor.fail(fmt::format("its {} bytes at {} reach beyond the end of the file of {} bytes",
                              tensor.info.n_bytes, tensor.offset, file_size));
    }
    unsized = is_sized ? nullptr : &tensor;
    expected = is_sized ? round_up(end - *data_start, alignment) : std::nullopt;
    if (is_sized && !expected) cursor.fail("its end overflows");
    if (!is_sized) {
      header.warnings.push_back(
          fmt::format("tensor {} has {}, which is not known here: its values cannot be read, and "
                      "its size is taken from the place of the next tensor",
                      quoted_name(tensor.info.name), tensor.info.dtype));
    }
  }
  if (unsized != nullptr) {
    unsized->info.n_bytes = file_size - unsized->offset;
  } else if (const auto padded = round_up(end, alignment); padded && file_size > *padded) {
    header.warnings.push_back(
        fmt::format("{} bytes follow the last tensor and belong to none", file_size - end));
  }
}

}  // namespace

const GgufValue* GgufHeader::find_key(const std::string& key) const {
  const auto found = key_index.find(key);
  return found == key_index.end() ? nullptr : &values[static_cast<std::size_t>(found->second)];
}

GgufHeader read_gguf_header(const FileReader& file) {
  GgufCursor cursor(file);
  check_magic_and_version(cursor, file.path());
  const auto n_tensors = cursor.number<std::uint64_t>();
  const auto n_keys = cursor.number<std::uint64_t>();
  cursor.require(n_tensors, kMinTensorBytes, "tensor list");
  cursor.require(n_keys, kMinKeyBytes, "key list");
  if (n_tensors > kMaxTensors)
    cursor.fail(fmt::format("{} tensors, at most {} are allowed", n_tensors, kMaxTensors));
  GgufHeader header;
  const std::uint64_t alignment = read_gguf_metadata(cursor, n_keys, header);
  cursor.set_subject(nullptr, nullptr);
  cursor.require(n_tensors, kMinTensorBytes, "tensor list");
  header.tensors = read_tensor_infos(cursor, n_tensors);
  place_tensors(cursor, alignment, file.size(), header);
  return header;
}

}  // namespace sinkscope
