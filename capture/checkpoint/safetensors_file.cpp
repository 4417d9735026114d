// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/safetensors_header.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// Stored bytes on their way to float32: a piece stays in the second-level cache, and no second copy
// of a tensor ever exists.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 18;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace

std::unique_ptr<SafetensorsCheckpoint> SafetensorsCheckpoint::open(
    const std::vector<std::string>& files, const QuantizationHint& hint) {
  auto checkpoint = std::make_unique<SafetensorsCheckpoint>();
  for (const std::string& file : files) checkpoint->add_shard(file);
  checkpoint->join_mxfp4();
  checkpoint->match_scales(hint);
  return checkpoint;
}

void SafetensorsCheckpoint::add_shard(const std::string& path) {
  const int shard = static_cast<int>(shards_.size());
  const FileReader& file = shards_.emplace_back(path);
  for (SafetensorsEntry& entry : read_safetensors_header(file)) {
    const auto [found, added] =
        by_name_.emplace(entry.info.name, static_cast<int>(tensors_.size()));
    if (!added) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: tensor {} is also in {}", path, printable(entry.info.name),
                              file_of(found->second)));
    }
    Stored& stored = stored_.emplace_back();
    stored.shard = shard;
    stored.begin = entry.begin;
    stored.dtype = entry.dtype;
    if (!entry.info.readable) stored.refusal = "dtype " + entry.info.dtype + " is not supported";
    tensors_.push_back(std::move(entry.info));
  }
}

// Empty, or why the scale cannot be used.
std::string SafetensorsCheckpoint::match_scale(int index, int scale,
                                               const std::vector<std::int64_t>& block) {
  const std::string& name = tensors_[at(index)].name;
  for (const char* other : {"_zero_point", "_scale_2", "_global_scale"}) {
    if (by_name_.count(name + other) != 0)
      return "it has " + name + other + ", which is unsupported";
  }
  const TensorInfo& factors = tensors_[at(scale)];
  if (!factors.readable || stored_[at(scale)].dtype->is_code)
    return "its scale " + factors.name + " is of dtype " + factors.dtype;
  const auto fit = fit_scale(tensors_[at(index)], factors, block);
  if (std::holds_alternative<std::string>(fit)) return std::get<std::string>(fit);
  stored_[at(index)].scale = Scale{scale, std::get<BlockScale>(fit)};
  return "";
}

// GPT-OSS: `X_blocks` U8 [..., n, 16] and `X_scales` U8 [..., n] (in OpenAI's own files `X.blocks`
// and `X.scales`) are a matrix of rows of 32·n values, E2M1 codes with the low nibble first times
// 2^(scale − 127).
void SafetensorsCheckpoint::join_mxfp4() {
  constexpr std::int64_t kBytes = 16;
  for (int index = 0; index < static_cast<int>(tensors_.size()); ++index) {
    TensorInfo& info = tensors_[at(index)];
    const bool is_named_so = info.name.ends_with("_blocks") || info.name.ends_with(".blocks");
    if (info.dtype != "U8" || !is_named_so || info.shape.size() < 3) continue;
    const int scale = find(info.name.substr(0, info.name.size() - 6) + "scales");
    if (scale < 0 || tensors_[at(scale)].dtype != "U8" || info.shape.back() != kBytes) continue;
    std::vector<std::int64_t> factors = info.shape;
    factors.pop_back();
    if (tensors_[at(scale)].shape != factors) continue;
    info.shape = factors;
    info.shape.back() *= 2 * kBytes;
    info.dtype = "MXFP4";
    stored_[at(index)].dtype = find_safetensors_dtype("F4");
    tensors_[at(scale)].dtype = "F8_E8M0";
    stored_[at(scale)].dtype = find_safetensors_dtype("F8_E8M0");
    stored_[at(scale)].is_scale = true;
    const auto fit = fit_scale(info, tensors_[at(scale)], {1, 2 * kBytes});
    if (const auto* layout = std::get_if<BlockScale>(&fit))
      stored_[at(index)].scale = Scale{scale, *layout};
    else
      stored_[at(index)].refusal = std::get<std::string>(fit);
    info.readable = stored_[at(index)].refusal.empty();
  }
}

// MXFP8: codes of eight bits, and beside them an exponent for 32 values of a row, perhaps as plain
// bytes.
bool SafetensorsCheckpoint::read_mx_scale(int index, int scale) {
  TensorInfo& factors = tensors_[at(scale)];
  std::vector<std::int64_t> expected = tensors_[at(index)].shape;
  if (expected.empty() || !tensors_[at(index)].dtype.starts_with("F8_E")) return false;
  expected.back() = (expected.back() + 31) / 32;
  if (factors.shape != expected || (factors.dtype != "U8" && factors.dtype != "F8_E8M0"))
    return false;
  factors.dtype = "F8_E8M0";
  stored_[at(scale)].dtype = find_safetensors_dtype("F8_E8M0");
  return true;
}

void SafetensorsCheckpoint::match_scales(const QuantizationHint& hint) {
  std::vector<int> without;
  bool any = false;
  int inferred = -1;
  for (int index = 0; index < static_cast<int>(tensors_.size()); ++index) {
    Stored& stored = stored_[at(index)];
    TensorInfo& info = tensors_[at(index)];
    if (!stored.dtype->is_code || !info.readable || stored.scale || stored.is_scale) continue;
    const int blocks = find(info.name + "_scale_inv");
    const int scale = blocks >= 0 ? blocks : find(info.name + "_scale");
    if (scale < 0) {
      without.push_back(index);
      continue;
    }
    any = true;
    stored_[at(scale)].is_scale = true;
    const bool is_mx = read_mx_scale(index, scale);
    stored.refusal = match_scale(index, scale,
                                 is_mx         ? std::vector<std::int64_t>{1, 32}
                                 : blocks >= 0 ? hint.block
                                               : std::vector<std::int64_t>());
    info.readable = stored.refusal.empty();
    if (info.readable && stored.scale->layout.inferred && inferred < 0) inferred = index;
  }
  if (inferred >= 0) {
    const BlockScale& layout = stored_[at(inferred)].scale->layout;
    warnings_.push_back(
        fmt::format("the config gives no weight_block_size; blocks of {} x {} fit the shapes of {} "
                    "and its scale",
                    layout.block_rows, layout.block_cols, printable(tensors_[at(inferred)].name)));
  }
  const bool is_quantized = any || !hint.method.empty();
  int plain = -1;
  for (const int index : without) {
    TensorInfo& info = tensors_[at(index)];
    if (stored_[at(index)].is_scale) continue;
    // Only weights are codes; counters and position ids of an integer type are what they say.
    const bool is_float = info.dtype.front() == 'F';
    if (!is_float && !info.name.ends_with("weight")) continue;
    if (is_float && !is_quantized) {
      plain = plain < 0 ? index : plain;
      continue;
    }
    info.readable = false;
    stored_[at(index)].refusal =
        fmt::format("{} codes without a scale ({}_scale_inv or _scale){}{}", info.dtype,
                    printable(info.name), is_quantized ? " in a quantized checkpoint" : "",
                    hint.method.empty() ? "" : " (quant_method " + hint.method + ")");
  }
  if (plain >= 0)
    warnings_.push_back(fmt::format(
        "{} is {} and has no scale, nor has any other tensor: its values are taken as they are",
        printable(tensors_[at(plain)].name), tensors_[at(plain)].dtype));
}

const SafetensorsCheckpoint::Stored& SafetensorsCheckpoint::stored(int index) const {
  if (index < 0 || index >= static_cast<int>(stored_.size()))
    throw Error(ErrorKind::invalid_argument, fmt::format("no tensor with number {}", index));
  return stored_[at(index)];
}

int SafetensorsCheckpoint::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

const std::string& SafetensorsCheckpoint::file_of(int index) const {
  return shards_[at(stored(index).shard)].path();
}

bool SafetensorsCheckpoint::is_scale(int index) const { return stored(index).is_scale; }

std::string SafetensorsCheckpoint::refusal(int index) const { return stored(index).refusal; }

void SafetensorsCheckpoint::read_elements(int index, std::int64_t first, std::int64_t n,
                                          float* out) const {
  const Stored& from = stored(index);
  const FileReader& file = shards_[at(from.shard)];
  const std::int64_t bits = from.dtype->bits;
  const auto offset_of = [&](std::int64_t element) {
    return from.begin + static_cast<std::uint64_t>(element) * static_cast<std::uint64_t>(bits) / 8;
  };
  if (tensors_[at(index)].dtype == "F32") {
    file.read(offset_of(first), static_cast<std::uint64_t>(n) * sizeof(float), out);
    return;
  }
  const std::int64_t piece = kPieceBytes * 8 / bits;
  // Not kept per thread: the end of a thread's things is announced to the dynamic loader, which is
  // busy for as long as LibTorch loads.
  const std::unique_ptr<std::byte[]> buffer(
      new std::byte[static_cast<std::size_t>(std::min(kPieceBytes, (n * bits + 7) / 8))]);
  for (std::int64_t done = 0; done < n; done += piece) {
    const std::int64_t count = std::min(piece, n - done);
    file.read(offset_of(first + done), static_cast<std::uint64_t>(count * bits / 8), buffer.get());
    from.dtype->decode(buffer.get(), count, out + done);
  }
}

void SafetensorsCheckpoint::read_rows(int index, std::int64_t begin, std::int64_t end,
                                      float* out) const {
  const Stored& from = stored(index);
  const TensorInfo& info = tensors_[at(index)];
  if (!info.readable) {
    throw Error(ErrorKind::unsupported, fmt::format("{}: tensor {}: {}", file_of(index),
                                                    printable(info.name), from.refusal));
  }
  if (begin < 0 || begin > end || end > info.n_rows()) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("tensor {}: rows [{}, {}) of {}", printable(info.name), begin, end,
                            info.n_rows()));
  }
  const std::int64_t row_size = info.row_size();
  if (begin == end || row_size == 0) return;
  read_elements(index, begin * row_size, (end - begin) * row_size, out);
  if (!from.scale) return;
  const BlockScale& layout = from.scale->layout;
  const std::int64_t first = layout.first_factor(begin);
  const std::int64_t n = layout.first_factor(end - 1) + layout.scale_cols - first;
  std::vector<float> factors(static_cast<std::size_t>(n));
  read_elements(from.scale->tensor, first, n, factors.data());
  apply_scale(layout, factors, begin, end - begin, row_size, out);
}

void SafetensorsCheckpoint::read_raw(int index, std::uint64_t offset, std::uint64_t n,
                                     void* out) const {
  const Stored& from = stored(index);
  const TensorInfo& info = tensors_[at(index)];
  if (offset > info.n_bytes || n > info.n_bytes - offset) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("tensor {}: bytes [{}, {}+{}) of {}", printable(info.name), offset,
                            offset, n, info.n_bytes));
  }
  shards_[at(from.shard)].read(from.begin + offset, n, out);
}

std::int64_t SafetensorsCheckpoint::bytes_read() const {
  std::int64_t bytes = 0;
  for (const FileReader& shard : shards_) bytes += shard.bytes_read();
  return bytes;
}

}  // namespace sinkscope
