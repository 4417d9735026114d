// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kBlockFloats = std::int64_t{4} << 20;
static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

std::int64_t count(const TensorToWrite& tensor) {
  std::int64_t n = 1;
  for (std::int64_t size : tensor.shape) n *= size;
  return n;
}

// Length of the header, header padded to 8 bytes, as the format wants it.
std::string header_of(const std::vector<TensorToWrite>& tensors) {
  nlohmann::ordered_json json;
  std::int64_t at = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::int64_t end = at + 4 * count(tensor);
    json[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

bool write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::stop_token& stop) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(path, error)) throw Error(ErrorKind::invalid_argument, path + ": exists already");
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << header_of(tensors);
  std::vector<float> block;
  for (const TensorToWrite& tensor : tensors) {
    const std::int64_t rows = tensor.shape.size() < 2 ? 1 : tensor.shape[0];
    const std::int64_t width = count(tensor) / std::max<std::int64_t>(1, rows);
    const std::int64_t step =
        std::max<std::int64_t>(1, kBlockFloats / std::max<std::int64_t>(1, width));
    for (std::int64_t begin = 0; begin < rows && file && !stop.stop_requested(); begin += step) {
      const std::int64_t end = std::min(rows, begin + step);
      block.resize(static_cast<std::size_t>((end - begin) * width));
      tensor.fill(begin, end, block.data());
      file.write(reinterpret_cast<const char*>(block.data()),
                 static_cast<std::streamsize>(block.size() * sizeof(float)));
    }
  }
  file.close();
  if (stop.stop_requested()) {
    fs::remove(part, error);
    return false;
  }
  if (file) fs::rename(part, path, error);
  if (file && !error) return true;
  const std::string reason = error ? error.message() : std::strerror(errno);
  fs::remove(part, error);
  throw Error(ErrorKind::io, fmt::format("{}: cannot be written: {}", path, reason));
}

}  // namespace sinkscope
