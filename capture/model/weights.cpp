// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/weights.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "capture/checkpoint/read_together.h"
#include "capture/model/linear.h"
#include "capture/record/background.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// A matrix that is stored transposed has to be read from end to end for any of its rows.
bool is_read_whole(Packing packing) {
  return packing == Packing::transposed || packing == Packing::qkv_columns;
}

class LayerReader {
 public:
  LayerReader(const ModelFiles& model, int layer, at::Device device, at::ScalarType dtype)
      : model_(model), layer_(layer), device_(device), dtype_(dtype) {}

  // The rows of those roles that the layer has.
  at::Tensor matrix(std::initializer_list<Role> wanted) {
    std::vector<Role> roles;
    for (const Role role : wanted)
      if (has(role)) roles.push_back(role);
    std::int64_t rows = 0, cols = 0;
    for (Role role : roles) {
      rows += model_.rows(role, layer_);
      cols = model_.cols(role, layer_);
    }
    at::Tensor all = at::empty({rows, cols}, dtype_);
    // Files are decoded to float32: a type that is narrower is filled in pieces, which keeps that
    // from being the larger part.
    constexpr std::int64_t kPieceBytes = std::int64_t{32} << 20;
    const bool is_whole =
        dtype_ == at::kFloat || std::any_of(roles.begin(), roles.end(), [&](Role r) {
          return is_read_whole(model_.stored_as(r, layer_).packing);
        });
    const std::int64_t n = is_whole ? 1 : 1 + 4 * rows * cols / kPieceBytes;
    for (std::int64_t piece = 0; piece < n; ++piece) fill(all, roles, piece, n);
    return place(all, dtype_);
  }

  // Biases: undefined when no role of the list is filled; zeros where one is missing.
  at::Tensor vector(std::initializer_list<std::pair<Role, Role>> bias_and_matrix) {
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

  Norm norm(Role role) { return read_norm(model_, role, layer_, device_); }

  at::Tensor plain(Role role) {
    if (!model_.has(role, layer_)) return {};
    at::Tensor values = at::tensor(model_.read_vector(role, layer_), at::kFloat);
    if (model_.rows(role, layer_) > 1) values = values.view({model_.rows(role, layer_), -1});
    return place(values, at::kFloat);
  }

  // The same as rows, if there is only one, too.
  at::Tensor table(Role role) {
    const at::Tensor values = plain(role);
    return values.defined() ? values.view({-1, model_.cols(role, layer_)}) : values;
  }

  CompressorWeights compressor(Role first) {
    const auto role = [first](int n) { return static_cast<Role>(static_cast<int>(first) + n); };
    if (!has(first)) return {};
    return {matrix({role(0)}), matrix({role(1)}), plain(role(2)), norm(role(3))};
  }

  // Whole numbers; [rows, cols].
  at::Tensor table(Role role, std::int64_t end) {
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

  StreamMixer mixer(Role first) {
    StreamMixer mixer = read_stream_mixer(model_, first, layer_, device_, dtype_);
    n_bytes_ += mixer.n_bytes();
    return mixer;
  }

  std::shared_ptr<const Ngrams> ngrams() {
    if (!has(Role::ngram_table)) return nullptr;
    auto ngrams = std::make_shared<const Ngrams>(model_, layer_, device_, dtype_);
    n_bytes_ += ngrams->n_bytes();
    return ngrams;
  }

  std::int64_t n_bytes() const { return n_bytes_; }
  bool has(Role role) const { return model_.has(role, layer_); }

 private:
  // The piece-th of n parts of each role's rows, into their place in `all`.
  void fill(at::Tensor& all, const std::vector<Role>& roles, std::int64_t piece, std::int64_t n) {
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

  // 0 where the block has no such matrix.
  std::int64_t rows_of(Role matrix) const { return has(matrix) ? model_.rows(matrix, layer_) : 0; }

  at::Tensor place(const at::Tensor& host, at::ScalarType dtype) {
    n_bytes_ += host.numel() * static_cast<std::int64_t>(at::elementSize(dtype));
    return host.to(device_, dtype);
  }

  const ModelFiles& model_;
  int layer_;
  at::Device device_;
  at::ScalarType dtype_;
  std::int64_t n_bytes_ = 0;
};

void read_attention(LayerReader& from, LayerWeights& w) {
  w.q_norm = from.norm(Role::q_norm);
  w.k_norm = from.norm(Role::k_norm);
  w.qkv = from.matrix({Role::q, Role::k, Role::v, Role::attn_gate});
  w.qkv_bias = from.vector({{Role::q_bias, Role::q},
                            {Role::k_bias, Role::k},
                            {Role::v_bias, Role::v},
                            {Role::attn_gate_bias, Role::attn_gate}});
  if (!from.has(Role::index_q)) return;
  w.index_q = from.matrix({Role::index_q, Role::index_k});
  w.index_q_norm = from.norm(Role::index_q_norm);
  w.index_k_norm = from.norm(Role::index_k_norm);
}

void read_latents(LayerReader& from, LayerWeights& w) {
  if (from.has(Role::q_a)) w.q_a = from.matrix({Role::q_a});
  w.q_a_norm = from.norm(Role::q_a_norm);
  w.qkv = from.matrix({Role::q, Role::attn_gate});
  w.kv_a = from.matrix({Role::kv_a});
  w.kv_a_norm = from.norm(Role::kv_a_norm);
  w.kv_b = from.matrix({Role::k, Role::v});
  if (!from.has(Role::index_q)) return;
  w.index_q = from.matrix({Role::index_q});
  w.index_k = from.matrix({Role::index_k});
  w.index_weights = from.matrix({Role::index_weights});
  w.index_k_norm = from.norm(Role::index_k_norm);
}

void read_shared(LayerReader& from, const ArchSpec& spec, LayerWeights& w) {
  w.q_a = from.matrix({Role::q_a});
  w.q_a_norm = from.norm(Role::q_a_norm);
  w.qkv = from.matrix({Role::q});
  w.kv_a = from.matrix({Role::k});
  w.k_norm = from.norm(Role::k_norm);
  w.compressor = from.compressor(Role::compress_kv);
  w.index_compressor = from.compressor(Role::index_kv);
  if (from.has(Role::index_q)) {
    w.index_q = from.matrix({Role::index_q});
    w.index_weights = from.matrix({Role::index_weights});
  }
  w.o_down = from.matrix({Role::o_down}).unflatten(0, {spec.o_groups, spec.o_rank});
}

void read_delta(LayerReader& from, LayerWeights& w) {
  w.qkv = from.matrix({Role::delta_q, Role::delta_k, Role::delta_v, Role::delta_gate,
                       Role::delta_beta, Role::delta_decay});
  w.delta_conv = from.plain(Role::delta_conv);
  w.delta_log_rate = from.plain(Role::delta_log_rate);
  w.delta_dt_bias = from.plain(Role::delta_dt_bias);
  w.delta_norm = from.norm(Role::delta_norm);
  if (!from.has(Role::delta_gate_up)) return;
  w.delta_gate_up = from.matrix({Role::delta_gate_up});
  w.delta_decay_up = from.matrix({Role::delta_decay_up});
}

void read_relative(LayerReader& from, RelativeWeights& w) {
  w.k_norm = from.norm(Role::ln1_k);
  w.v_norm = from.norm(Role::ln1_v);
  w.query = from.matrix({Role::q, Role::attn_gate, Role::r, Role::sink_proj});
  w.key = from.matrix({Role::k, Role::k_taps_proj});
  w.value = from.matrix({Role::v, Role::v_taps_proj});
  w.k_conv = from.table(Role::k_conv);
  w.v_conv = from.table(Role::v_conv);
  w.k_taps = from.table(Role::k_taps);
  w.v_taps = from.table(Role::v_taps);
  w.q_scale = from.table(Role::q_scale);
  w.r_scale = from.table(Role::r_scale);
  w.profiles = from.table(Role::profiles);
  w.attn_conv = from.table(Role::attn_conv);
  w.mlp_conv = from.table(Role::mlp_conv);
}

void read_mixer(LayerReader& from, const ArchSpec& spec, Mixer mixer, LayerWeights& w) {
  switch (mixer) {
    case Mixer::shared:
      read_shared(from, spec, w);
      break;
    case Mixer::attention:
      read_attention(from, w);
      break;
    case Mixer::latent:
      read_latents(from, w);
      break;
    case Mixer::delta:
      read_delta(from, w);
      break;
    case Mixer::relative:
      read_relative(from, w.relative);
      break;
  }
  w.sink = from.plain(Role::sink);
  w.o = from.matrix({Role::o});
  w.o_bias = from.vector({{Role::o_bias, Role::o}});
}

void read_mlp(LayerReader& from, bool is_gated, LayerWeights& w) {
  w.gate_up = is_gated ? from.matrix({Role::gate, Role::up}) : from.matrix({Role::up});
  w.gate_up_bias = is_gated
                       ? from.vector({{Role::gate_bias, Role::gate}, {Role::up_bias, Role::up}})
                       : from.vector({{Role::up_bias, Role::up}});
  w.down = from.matrix({Role::down});
  w.down_bias = from.vector({{Role::down_bias, Role::down}});
}

void read_mixture(LayerReader& from, std::int64_t n_experts, LayerWeights& w) {
  w.router = from.matrix({Role::router});
  w.router_bias = from.vector({{Role::router_bias, Role::router}});
  w.choice_bias = from.plain(Role::choice_bias);
  w.route_table = from.table(Role::route_table, n_experts);
  if (from.has(Role::shared_up)) {
    w.shared.gate_up = from.matrix({Role::shared_gate, Role::shared_up});
    w.shared.down = from.matrix({Role::shared_down});
  }
  if (from.has(Role::shared_router)) w.shared_router = from.matrix({Role::shared_router});
  w.router_scale = from.plain(Role::router_scale);
  w.expert_scale = from.plain(Role::expert_scale);
  w.ln2_experts = from.norm(Role::ln2_experts);
  w.ln2_post_dense = from.norm(Role::ln2_post_dense);
  w.ln2_post_experts = from.norm(Role::ln2_post_experts);
}

}  // namespace

WeightStore::WeightStore(const ModelFiles& model, at::Device device, at::ScalarType dtype,
                         std::int64_t keep_bytes)
    : model_(model), device_(device), dtype_(dtype), keep_bytes_(keep_bytes) {}

WeightStore::~WeightStore() = default;

void WeightStore::prefetch(int layer) {
  if (layer < 0 || layer >= model_.spec().n_layers) return;
  if (kept_.count(layer) != 0 || pending_.count(layer) != 0) return;
  pending_[layer] = std::async(std::launch::async, [this, layer] {
    run_in_background();
    return read(layer);
  });
}

std::shared_ptr<const LayerWeights> WeightStore::layer(int layer) {
  std::shared_ptr<const LayerWeights> weights;
  settle_experts();
  if (const auto kept = kept_.find(layer); kept != kept_.end()) {
    weights = kept->second;
  } else {
    prefetch(layer);
    auto node = pending_.extract(layer);
    const auto begin = std::chrono::steady_clock::now();
    weights = node.mapped().get();
    seconds_waited_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (kept_bytes_ + weights->n_bytes <= keep_bytes_) {
      kept_[layer] = weights;
      kept_bytes_ += weights->n_bytes;
    }
  }
  if (weights->experts && kept_.count(layer) != 0) {
    kept_bytes_ -= weights->experts->n_bytes();
    in_use_ = layer;
  }
  prefetch(layer + 1);
  return weights;
}

void WeightStore::settle_experts() {
  if (in_use_ < 0) return;
  ExpertSource& experts = *kept_.at(in_use_)->experts;
  experts.shrink(keep_bytes_ - kept_bytes_);
  kept_bytes_ += experts.n_bytes();
  in_use_ = -1;
}

std::shared_ptr<const LayerWeights> WeightStore::read(int layer) {
  const c10::InferenceMode inference;
  const ArchSpec& spec = model_.spec();
  LayerReader from(model_, layer, device_, dtype_);
  auto w = std::make_shared<LayerWeights>();
  w->ln1 = from.norm(Role::ln1);
  w->ln2 = from.norm(Role::ln2);
  w->ln1_post = from.norm(Role::ln1_post);
  w->ln2_post = from.norm(Role::ln2_post);
  w->ln1_pre = from.plain(Role::ln1_pre);
  w->ln2_pre = from.plain(Role::ln2_pre);
  read_mixer(from, spec, spec.mixer(layer), *w);
  if (spec.has_experts(layer)) {
    read_mixture(from, spec.moe.n_experts, *w);
    w->experts = std::make_shared<ExpertSource>(model_, layer, device_, dtype_);
  }
  if (from.has(Role::down)) read_mlp(from, spec.mlp_gated, *w);
  if (from.has(Role::per_layer_gate)) {
    w->per_layer_gate = from.matrix({Role::per_layer_gate});
    w->per_layer_out = from.matrix({Role::per_layer_out});
    w->per_layer_post = from.norm(Role::per_layer_post);
  }
  w->layer_scale = from.plain(Role::layer_scale);
  w->depth_attn_query = from.table(Role::depth_attn_query);
  w->depth_mlp_query = from.table(Role::depth_mlp_query);
  w->mix1 = from.mixer(Role::mix1_norm);
  w->mix2 = from.mixer(Role::mix2_norm);
  w->ngrams = from.ngrams();
  w->n_bytes = from.n_bytes();
  return w;
}

Norm read_norm(const ModelFiles& model, Role role, int layer, at::Device device) {
  const ArchSpec& spec = model.spec();
  Norm norm{spec.norm_kind, norm_eps(spec, role), {}, {}, {}, {}};
  if (!model.has(role, layer)) return norm;
  const auto vector = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).to(device);
  };
  norm.gain = vector(model.norm_gain(role, layer).effective);
  const bool has_own_bias = role == Role::index_k_norm && model.has(Role::index_k_norm_bias, layer);
  if (has_own_bias) norm.kind = NormKind::layer_norm;
  if ((spec.norm_bias || has_own_bias) && model.has(bias_of(role), layer))
    norm.bias = vector(model.read_vector(bias_of(role), layer));
  const Role down = role == Role::ln1 ? Role::ln1_gate_down : Role::ln2_gate_down;
  const Role up = role == Role::ln1 ? Role::ln1_gate_up : Role::ln2_gate_up;
  if ((role == Role::ln1 || role == Role::ln2) && model.has(down, layer)) {
    const auto matrix = [&](Role r) {
      return read_matrix(model, r, layer, 0, model.rows(r, layer), device, at::kFloat);
    };
    norm.gate_down = matrix(down);
    norm.gate_up = matrix(up);
  }
  return norm;
}

at::Tensor read_matrix(const ModelFiles& model, Role role, int layer, std::int64_t begin,
                       std::int64_t end, at::Device device, at::ScalarType dtype) {
  at::Tensor host = at::empty({end - begin, model.cols(role, layer)}, at::kFloat);
  model.read_rows(role, layer, begin, end, host.data_ptr<float>());
  return host.to(device, dtype);
}

namespace {

// Rows `of` a role, [T, D]; a row that occurs twice is read once.
at::Tensor gather_rows(const ModelFiles& model, Role role, const std::vector<int>& of) {
  const std::int64_t d = model.cols(role, kNoLayer);
  at::Tensor host = at::empty({1, static_cast<std::int64_t>(of.size()), d}, at::kFloat);
  float* rows = host.data_ptr<float>();
  std::map<int, std::size_t> first_use;
  for (std::size_t t = 0; t < of.size(); ++t) {
    float* row = rows + static_cast<std::int64_t>(t) * d;
    const auto [seen, is_new] = first_use.emplace(of[t], t);
    if (is_new) {
      model.read_rows(role, kNoLayer, of[t], of[t] + 1, row);
    } else {
      std::copy_n(rows + static_cast<std::int64_t>(seen->second) * d, d, row);
    }
  }
  return host;
}

}  // namespace

at::Tensor embed(const ModelFiles& model, const std::vector<int>& ids, at::Device device,
                 at::ScalarType dtype) {
  const ArchSpec& spec = model.spec();
  at::Tensor x = gather_rows(model, Role::embed, ids);
  if (spec.embed_scale != 1) {
    // Gemma rounds the factor to the run's type.
    const double scale =
        dtype == at::kFloat
            ? spec.embed_scale
            : at::scalar_tensor(spec.embed_scale, at::kFloat).to(dtype).item<double>();
    x = x * scale;
  }
  if (spec.learned_positions) {
    std::vector<int> positions(ids.size());
    std::iota(positions.begin(), positions.end(), spec.position_offset);
    x = x + gather_rows(model, Role::pos_embed, positions);
  }
  if (spec.n_types > 0) x = x + gather_rows(model, Role::type_embed, {0});
  if (spec.embed_norm)
    x = apply_norm(read_norm(model, Role::embed_norm, kNoLayer, device), x.to(device)).y;
  return x.to(device, dtype);
}

LayerInputs layer_inputs(const ModelFiles& model, const std::vector<int>& ids,
                         const at::Tensor& embedded) {
  const ArchSpec& spec = model.spec();
  if (spec.d_per_layer == 0) return {};
  const at::Device device = embedded.device();
  const at::ScalarType dtype = embedded.scalar_type();
  const std::int64_t rows = model.rows(Role::per_layer_proj, kNoLayer);
  const at::Tensor projection =
      read_matrix(model, Role::per_layer_proj, kNoLayer, 0, rows, device, dtype);
  const auto by_layer = [&](const at::Tensor& x) {
    return x.unflatten(-1, {spec.n_layers, spec.d_per_layer});
  };
  const double width = spec.d_model, narrow = spec.d_per_layer;
  const at::Tensor projected = linear_layer(embedded, projection) / std::sqrt(width);
  const Norm norm = read_norm(model, Role::per_layer_norm, kNoLayer, device);
  const at::Tensor own = gather_rows(model, Role::per_layer_embed, ids).to(device, dtype);
  const at::Tensor normed = apply_norm(norm, by_layer(projected)).y;
  return {(normed + by_layer(own) * std::sqrt(narrow)) / std::sqrt(2.0), normed};
}

}  // namespace sinkscope
