// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/opened_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/checkpoint/file_reader.h"
#include "core/error.h"

namespace sinkscope {
namespace {

std::string place(Role role, int layer) {
  return layer == kNoLayer ? std::string(to_string(role))
                           : fmt::format("{} of blocks.{}", to_string(role), layer);
}

// Stored row, inside its head, of Hugging Face row `row` of that head.
std::int64_t stored_row(const TensorRef& ref, std::int64_t row) {
  const std::int64_t half = ref.rotary_dim / 2;
  return row < 2 * half ? 2 * (row % half) + row / half : row;
}

// Rows [begin, end) in Hugging Face order of a tensor whose heads are stored in pairs. Each head is
// read whole, in one piece, and its rows are put where they belong.
void read_pairs(const Checkpoint& checkpoint, const TensorRef& ref, std::int64_t row_size,
                std::int64_t begin, std::int64_t end, float* out) {
  const std::int64_t dim = ref.head_dim;
  std::vector<float> head(static_cast<std::size_t>(dim * row_size));
  for (std::int64_t first = begin / dim * dim; first < end; first += dim) {
    checkpoint.read_rows(ref.tensor, first, first + dim, head.data());
    const std::int64_t last = std::min(end, first + dim);
    for (std::int64_t row = std::max(begin, first); row < last; ++row) {
      const float* from = head.data() + stored_row(ref, row - first) * row_size;
      std::copy(from, from + row_size, out + (row - begin) * row_size);
    }
  }
}

// The same for a bias: one row, whose elements are permuted.
void permute_bias(const TensorRef& ref, std::int64_t n, float* values) {
  const std::vector<float> stored(values, values + n);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t first = i / ref.head_dim * ref.head_dim;
    values[i] = stored[static_cast<std::size_t>(first + stored_row(ref, i - first))];
  }
}

void undo_minus_exp(float* values, std::int64_t n, const std::string& name) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (!(values[i] <= 0))
      throw Error(ErrorKind::corrupt,
                  fmt::format("tensor {} holds {}, expected -exp(x), which is not above 0", name,
                              values[i]));
    values[i] = std::log(-values[i]);
  }
}

}  // namespace

const TensorRef& OpenedModel::ref(Role role, int layer) const {
  const TensorRef* found = parts_.roles.find(role, layer);
  if (found == nullptr) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: the model has no {}", parts_.path, place(role, layer)));
  }
  return *found;
}

const TensorInfo& OpenedModel::info(Role role, int layer) const {
  return checkpoint().tensors()[static_cast<std::size_t>(ref(role, layer).tensor)];
}

StoredAs OpenedModel::stored_as(Role role, int layer) const {
  const TensorRef& from = ref(role, layer);
  return from.stored_as.name.empty() ? StoredAs{info(role, layer).name} : from.stored_as;
}

void OpenedModel::check_rows(Role role, int layer, std::int64_t begin, std::int64_t end) const {
  const std::int64_t n_rows = rows(role, layer);
  if (begin >= 0 && begin <= end && end <= n_rows) return;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: rows [{}, {}) of the {} rows of {}", parts_.path, begin, end, n_rows,
                          place(role, layer)));
}

void OpenedModel::read_rows(Role role, int layer, std::int64_t begin, std::int64_t end,
                            float* out) const {
  const TensorRef& from = ref(role, layer);
  const TensorInfo& tensor = info(role, layer);
  const bool is_vector = tensor.shape.size() < 2;
  const std::int64_t n = is_vector ? tensor.row_size() : tensor.n_rows();
  check_rows(role, layer, begin, end);
  if (begin == end) return;
  if (from.order == RowOrder::as_stored) {
    read_view(checkpoint(), from, begin, end, out);
    if (from.is_minus_exp) undo_minus_exp(out, (end - begin) * cols(role, layer), tensor.name);
    return;
  }
  if (from.head_dim < 1 || n % from.head_dim != 0) {
    throw Error(ErrorKind::corrupt, fmt::format("{}: {} has {} rows, not whole heads of {}",
                                                parts_.path, tensor.name, n, from.head_dim));
  }
  if (is_vector) {
    checkpoint().read_rows(from.tensor, 0, 1, out);
    permute_bias(from, n, out);
  } else {
    read_pairs(checkpoint(), from, tensor.row_size(), begin, end, out);
  }
}

void OpenedModel::read_together(int layer, const std::vector<Stretch>& wanted) const {
  std::vector<ViewStretch> views;
  for (const Stretch& s : wanted) {
    check_rows(s.role, layer, s.begin, s.end);
    views.push_back({&ref(s.role, layer), s.begin, s.end, s.out});
  }
  if (lie_mixed(views)) return read_mixed(checkpoint(), views);
  for (const Stretch& s : wanted) read_rows(s.role, layer, s.begin, s.end, s.out);
}

std::int64_t OpenedModel::bytes_read() const {
  const auto* files = dynamic_cast<const CountedReads*>(&checkpoint());
  return files != nullptr ? files->bytes_read() : 0;
}

void read_together(const ModelFiles& model, int layer, const std::vector<Stretch>& wanted) {
  if (const auto* opened = dynamic_cast<const OpenedModel*>(&model))
    return opened->read_together(layer, wanted);
  for (const Stretch& s : wanted) model.read_rows(s.role, layer, s.begin, s.end, s.out);
}

std::vector<float> ModelFiles::read_vector(Role role, int layer) const {
  const std::int64_t n_rows = rows(role, layer);
  std::vector<float> values(static_cast<std::size_t>(n_rows * cols(role, layer)));
  read_rows(role, layer, 0, n_rows, values.data());
  return values;
}

std::vector<std::int64_t> ModelFiles::read_integers(Role role, int layer) const {
  const std::string name = tensor_name(role, layer);
  const int index = checkpoint().find(name);
  const TensorInfo& tensor = checkpoint().tensors().at(static_cast<std::size_t>(index));
  if (tensor.dtype != "I64")
    throw Error(ErrorKind::corrupt, fmt::format("{}: tensor {} is of type {}, expected I64", path(),
                                                name, tensor.dtype));
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.n_elements()));
  checkpoint().read_raw(index, 0, tensor.n_bytes, values.data());
  return values;
}

NormGain ModelFiles::norm_gain(Role role, int layer) const {
  NormGain gain;
  gain.raw = read_vector(role, layer);
  gain.effective = gain.raw;
  const auto missing = static_cast<float>(spec().norm_offset) - stored_offset(role, layer);
  for (float& value : gain.effective) value += missing;
  return gain;
}

}  // namespace sinkscope
