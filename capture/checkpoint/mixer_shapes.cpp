// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/mixer_shapes.h"

#include <fmt/format.h>

namespace sinkscope {

ExpectedShape latent_shape(Role role, const ArchSpec& spec) {
  const LatentSpec& latent = spec.latent;
  const std::int64_t D = spec.d_model, H = spec.n_heads;
  const std::int64_t q_in = latent.q_rank == 0       ? D
                            : latent.query_sees_both ? 2 * latent.q_rank
                                                     : latent.q_rank;
  const std::string because =
      fmt::format("q_lora_rank {}, kv_lora_rank {}, heads of {} + {} dims with values of {}",
                  latent.q_rank, latent.kv_rank, latent.nope_dim, latent.rope_dim, spec.d_value());
  switch (role) {
    case Role::q:
      return {{H * (latent.nope_dim + latent.rope_dim), q_in}, because};
    case Role::k:
      return {{H * latent.nope_dim, latent.kv_rank}, because};
    case Role::v:
      return {{H * spec.d_value(), latent.kv_rank}, because};
    case Role::attn_gate:
      return {{H * spec.gate_dim(), q_in}, because};
    case Role::q_a:
      return {{latent.q_rank, D}, because};
    case Role::q_a_norm:
      return {{latent.q_rank}, because};
    case Role::kv_a:
      return {{latent.kv_rank + latent.rope_dim, D}, because};
    default:  // kv_a_norm
      return {{latent.kv_rank}, because};
  }
}

ExpectedShape delta_shape(Role role, const ArchSpec& spec) {
  const DeltaSpec& delta = spec.delta;
  const std::int64_t D = spec.d_model, keys = std::int64_t{1} * delta.n_key_heads * delta.key_dim,
                     values = std::int64_t{1} * delta.n_value_heads * delta.value_dim;
  const std::string because =
      fmt::format("{} key heads of {}, {} value heads of {}", delta.n_key_heads, delta.key_dim,
                  delta.n_value_heads, delta.value_dim);
  switch (role) {
    case Role::delta_q:
    case Role::delta_k:
      return {{keys, D}, because};
    case Role::delta_v:
      return {{values, D}, because};
    case Role::delta_gate:
      return {{delta.narrow > 0 ? delta.narrow : values, D}, because};
    case Role::delta_beta:
      return {{delta.n_value_heads, D}, because};
    case Role::delta_decay:
      return {{delta.narrow > 0 ? delta.narrow : delta.n_value_heads, D}, because};
    case Role::delta_gate_up:
    case Role::delta_decay_up:
      return {{values, delta.narrow}, because};
    case Role::delta_dt_bias:
      return {{delta.narrow > 0 ? values : delta.n_value_heads}, because};
    case Role::delta_conv:
      return {{delta.n_channels(), delta.n_taps}, because};
    case Role::delta_norm:
      return {{delta.value_dim}, because};
    default:  // delta_log_rate
      return {{delta.n_value_heads}, because};
  }
}

ExpectedShape relative_shape(Role role, const ArchSpec& spec, int layer) {
  const RelativeSpec& relative = spec.relative;
  const std::int64_t D = spec.d_model, H = spec.n_heads, K = relative.n_taps,
                     G = spec.kv_heads(layer);
  const std::int64_t extent =
      relative.extents.empty() ? 0 : relative.extents.at(static_cast<std::size_t>(layer));
  const bool of_keys = role == Role::k_conv || role == Role::k_taps;
  const std::int64_t kv = G * (of_keys ? spec.head_dim_of(layer) : spec.d_value_of(layer));
  const std::string because = fmt::format(
      "{} heads of {}, {} key/value heads, d_rel {}, {} distances, {} taps, hidden_size {}", H,
      spec.head_dim_of(layer), G, relative.dim, extent, K, D);
  switch (role) {
    case Role::r:
      return {{H * relative.dim, D}, because};
    case Role::profiles:
      return {{relative.dim, extent}, because};
    case Role::q_scale:
      return {{H, spec.head_dim_of(layer)}, because};
    case Role::r_scale:
      return {{H, relative.dim}, because};
    case Role::k_conv:
    case Role::v_conv:
      return {{kv, K}, because};
    case Role::k_taps:
    case Role::v_taps:
      return {{K, kv}, because};
    case Role::k_taps_proj:
    case Role::v_taps_proj:
      return {{G * K, D}, because};
    default:  // attn_conv, mlp_conv
      return {{D, K}, because};
  }
}

}  // namespace sinkscope
