// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/layer_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/read_together.h"
#include "capture/model/read_pieces.h"
#include "capture/model/read_weights.h"
#include "core/error.h"

namespace sinkscope {

at::Tensor LayerReader::matrix(std::initializer_list<Role> wanted) {
  std::vector<Role> roles;
  for (const Role role : wanted)
    if (has(role)) roles.push_back(role);
  std::int64_t rows = 0, cols = 0;
  for (Role role : roles) {
    rows += model_.rows(role, layer_);
    cols = model_.cols(role, layer_);
  }
  at::Tensor all = at::empty({rows, cols}, dtype_);
  const bool is_whole =
      dtype_ == at::kFloat || std::any_of(roles.begin(), roles.end(), [&](Role r) {
        return is_read_whole(model_.stored_as(r, layer_).packing);
      });
  const std::int64_t n = is_whole ? 1 : 1 + 4 * rows * cols / kPieceBytes;
  for (std::int64_t piece = 0; piece < n; ++piece) fill(all, roles, piece, n);
  return place(all, dtype_);
}

at::Tensor LayerReader::vector(std::initializer_list<std::pair<Role, Role>> bias_and_matrix) {
  std::int64_t n = 0;
  bool any = false;
  for (const auto& [bias, matrix] : bias_and_matrix) any = any || model_.has(bias, layer_);
  if (!any) return {};
  for (const auto& [bias, matrix] : bias_and_matrix) n += rows_of(matrix);
  at::Tensor host = at::zeros({n}, at::kFloat);
  float* into = host.data_ptr<float>();
  for (const auto& [bias, matrix] : bias_and_matrix) {
    if (model_.has(bias, layer_)) model_.read_rows(bias, layer_, 0, 1, into);
    into += rows_of(matrix);
  }
  return place(host, dtype_);
}

Norm LayerReader::norm(Role role) { return read_norm(model_, role, layer_, device_); }

at::Tensor LayerReader::plain(Role role) {
  if (!model_.has(role, layer_)) return {};
  at::Tensor values = at::tensor(model_.read_vector(role, layer_), at::kFloat);
  if (model_.rows(role, layer_) > 1) values = values.view({model_.rows(role, layer_), -1});
  return place(values, at::kFloat);
}

at::Tensor LayerReader::plain_rows(Role role) {
  const at::Tensor values = plain(role);
  return values.defined() ? values.view({-1, model_.cols(role, layer_)}) : values;
}

at::Tensor LayerReader::whole_numbers(Role role, std::int64_t end) {
  if (!has(role)) return {};
  const std::vector<std::int64_t> values = model_.read_integers(role, layer_);
  for (const std::int64_t value : values)
    if (value < 0 || value >= end)
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: tensor {} holds {}, expected 0 to {}", model_.path(),
                              model_.tensor_name(role, layer_), value, end - 1));
  const at::Tensor host = at::tensor(values, at::kLong).view({model_.rows(role, layer_), -1});
  n_bytes_ += static_cast<std::int64_t>(host.nbytes());
  return host.to(device_);
}

CompressorWeights LayerReader::compressor(Role first) {
  const auto role = [first](int n) { return static_cast<Role>(static_cast<int>(first) + n); };
  if (!has(first)) return {};
  return {matrix({role(0)}), matrix({role(1)}), plain(role(2)), norm(role(3))};
}

StreamMixer LayerReader::mixer(Role first) {
  StreamMixer mixer = read_stream_mixer(model_, first, layer_, device_, dtype_);
  n_bytes_ += mixer.n_bytes();
  return mixer;
}

std::shared_ptr<const Ngrams> LayerReader::ngrams() {
  if (!has(Role::ngram_table)) return nullptr;
  auto ngrams = std::make_shared<const Ngrams>(model_, layer_, device_, dtype_);
  n_bytes_ += ngrams->n_bytes();
  return ngrams;
}

void LayerReader::fill(at::Tensor& all, const std::vector<Role>& roles, std::int64_t piece,
                       std::int64_t n) {
  std::vector<Stretch> stretches;
  std::vector<std::pair<at::Tensor, at::Tensor>> parts;  // what is read, and its place
  std::int64_t first = 0;                                // row of the role in `all`
  for (const Role role : roles) {
    const std::int64_t rows = model_.rows(role, layer_), begin = rows * piece / n,
                       end = rows * (piece + 1) / n;
    const at::Tensor there = all.narrow(0, first + begin, end - begin);
    parts.emplace_back(
        dtype_ == at::kFloat ? there : at::empty(there.sizes(), at::TensorOptions(at::kFloat)),
        there);
    stretches.push_back({role, begin, end, parts.back().first.data_ptr<float>()});
    first += rows;
  }
  read_together(model_, layer_, stretches);
  if (dtype_ == at::kFloat) return;
  for (const auto& [read, there] : parts) there.copy_(read);
}

at::Tensor LayerReader::place(const at::Tensor& host, at::ScalarType dtype) {
  n_bytes_ += host.numel() * static_cast<std::int64_t>(at::elementSize(dtype));
  return host.to(device_, dtype);
}

}  // namespace sinkscope
