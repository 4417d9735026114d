// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_schema.h"

namespace sinkscope {
namespace {

constexpr ElementType kF32 = ElementType::f32;
constexpr ElementType kF64 = ElementType::f64;
constexpr ElementType kI32 = ElementType::i32;
constexpr ElementType kI64 = ElementType::i64;
constexpr ElementType kText = ElementType::text;

// In creation order. Shapes that open a group ("N", "A", …) come before those that use them.
constexpr DatasetRule kRules[] = {
    {"input/token_ids", kI32, "T", "token id", ""},
    {"input/token_text", kText, "T", "", ""},
    {"input/text", kText, "", "", ""},
    {"input/bos_positions", kI32, "b", "", ""},
    {"model/config", kText, "", "", ""},
    {"attention/layers", kI32, "A", "block", ""},
    {"attention/key_mass", kF32, "A,H,T", "attention probability received by key", ""},
    {"attention/visible", kI32, "A,T", "queries that see the key", ""},
    {"attention/lse", kF32, "A,H,T", "log-sum-exp of the scores", "nats"},
    {"attention/null_mass", kF32, "A,H,T", "attention probability of no key", ""},
    {"attention/compressed_mass", kF32, "A,H,T", "attention probability of compressed entries", ""},
    {"attention/entropy", kF32, "A,H,T", "entropy of attention", "nats"},
    {"attention/max_prob", kF32, "A,H,T", "largest attention probability", ""},
    {"attention/logit_max", kF32, "A,H,T", "largest score", "nats"},
    {"attention/logit_gap", kF32, "A,H,T", "largest score above the median", "nats"},
    {"attention/distance", kF32, "A,H,T", "mean attention distance", "tokens"},
    {"attention/first4", kF32, "A,H,T", "attention probability of keys 0-3", ""},
    {"attention/last8", kF32, "A,H,T", "attention probability of the last 8 keys", ""},
    {"attention/out_norm", kF32, "A,H,T", "norm of the weighted values", ""},
    {"attention/out_norm_sum", kF32, "A,H,T", "weighted norms of the values", ""},
    {"attention/value_norm", kF32, "A,H_v,T", "norm of the values", ""},
    {"attention/window", kF32, "A,H,W,W", "attention probability, first tokens", ""},
    {"attention/thumbnail", kF32, "A,H,B,B", "attention probability, largest in each bin", ""},
    {"attention/pattern_layers", kI32, "L_p", "block", ""},
    {"attention/pattern_heads", kI32, "Q", "head", ""},
    {"attention/pattern_rows", kI32, "R", "query", ""},
    {"attention/pattern", kF32, "L_p,Q,R,T", "attention probability", ""},
    {"residual/sites", kText, "S", "", ""},
    {"residual/window", kF32, "S,W,D_r", "residual stream, first tokens", ""},
    {"residual/abs_mean", kF32, "L+1,D_r", "mean |x|", ""},
    {"residual/abs_mean_rest", kF32, "L+1,D_r", "mean |x| without the first token", ""},
    {"residual/stream", kF32, "S,T,N_r?,D", "residual stream", ""},
    {"residual/final_norm", kF32, "T,D", "output of the final norm", ""},
    {"residual/block_layers", kI32, "m", "block that restarts the stream", ""},
    {"residual/block_states", kF32, "m,T,D", "stream where it restarts", ""},
    {"residual/prenorm", kF32, "2L,T,D", "what the norms of the stream read", ""},
    {"norm/*/layers", kI32, "N", "block", ""},
    {"norm/*/gain", kF32, "N,C", "effective gain", ""},
    {"norm/*/gain_raw", kF32, "N,C", "stored gain", ""},
    {"norm/*/bias", kF32, "N,C", "bias", ""},
    {"norm/*/pre_gain", kF32, "N,C", "gain in front of the norm", ""},
    {"stats/*/layers", kI32, "N", "block", ""},
    {"stats/*/median_abs", kF64, "N", "median |x|", ""},
    {"stats/*/corr", kF64, "N,D_s", "correlation of the gate with |y|", ""},
    {"stats/*/dim_first/count", kF64, "N,D_s", "finite values", ""},
    {"stats/*/dim_first/mean", kF64, "N,D_s", "mean", ""},
    {"stats/*/dim_first/m2", kF64, "N,D_s", "sum of squared deviations", ""},
    {"stats/*/dim_first/m3", kF64, "N,D_s", "sum of cubed deviations", ""},
    {"stats/*/dim_first/m4", kF64, "N,D_s", "sum of deviations to the fourth", ""},
    {"stats/*/dim_first/mean_abs", kF64, "N,D_s", "mean |x|, first token", ""},
    {"stats/*/dim_first/max_abs", kF64, "N,D_s", "max |x|", ""},
    {"stats/*/dim_first/max_token", kI32, "N,D_s", "token of max |x|", ""},
    {"stats/*/dim_first/argmax_count", kI32, "N,D_s", "tokens that peak here", ""},
    {"stats/*/dim_rest/count", kF64, "N,D_s", "finite values", ""},
    {"stats/*/dim_rest/mean", kF64, "N,D_s", "mean", ""},
    {"stats/*/dim_rest/m2", kF64, "N,D_s", "sum of squared deviations", ""},
    {"stats/*/dim_rest/m3", kF64, "N,D_s", "sum of cubed deviations", ""},
    {"stats/*/dim_rest/m4", kF64, "N,D_s", "sum of deviations to the fourth", ""},
    {"stats/*/dim_rest/mean_abs", kF64, "N,D_s", "mean |x| without the first token", ""},
    {"stats/*/dim_rest/max_abs", kF64, "N,D_s", "max |x|", ""},
    {"stats/*/dim_rest/max_token", kI32, "N,D_s", "token of max |x|", ""},
    {"stats/*/dim_rest/argmax_count", kI32, "N,D_s", "tokens that peak here", ""},
    {"stats/*/token/rms", kF64, "N,T", "root mean square", ""},
    {"stats/*/token/max_abs", kF64, "N,T", "max |x|", ""},
    {"stats/*/token/max_dim", kI32, "N,T", "dimension of max |x|", ""},
    {"stats/*/token/r2", kF64, "N,T", "share of the largest square", ""},
    {"stats/*/token/n_nan", kI32, "N,T", "NaN values", ""},
    {"stats/*/token/n_inf", kI32, "N,T", "infinite values", ""},
    {"stats/*/token/input_rms", kF64, "N,T", "root mean square of the norm's input", ""},
    {"stats/*/token/input_max_dim", kI32, "N,T", "dimension of the input's max |x|", ""},
    {"stats/*/token/input_r2", kF64, "N,T", "share of the input's largest square", ""},
    {"taps/*/layers", kI32, "N", "block", ""},
    {"taps/*/values", kF32, "N,…", "value", ""},
    {"logits/loss", kF32, "T-1", "loss of the next token", "nats"},
    {"logits/top_ids", kI32, "T,k", "token id", ""},
    {"logits/top_logprob", kF32, "T,k", "log-probability", "nats"},
    {"logits/full", kF32, "T,V", "logit", ""},
    {"whatif", kText, "", "", ""},
    {"compare/kl", kF32, "T", "KL(baseline || edited) of the next token", "nats"},
    {"compare/loss_delta", kF32, "T-1", "loss minus the baseline's", "nats"},
    {"provenance/device", kText, "", "", ""},
    {"provenance/dtype", kText, "", "", ""},
    {"provenance/torch", kText, "", "", ""},
    {"provenance/threads", kI32, "", "", ""},
    {"provenance/tile", kText, "", "", ""},
    {"provenance/seed", kI64, "", "", ""},
    {"provenance/kernel", kText, "", "", ""},
    {"provenance/command", kText, "", "", ""},
};

constexpr PlotRule kPlots[] = {
    {"attention", "pattern", "pattern_layers,pattern_heads,pattern_rows,.", "", false},
    {"attention", "thumbnail", "layers,.,.,.", "", false},
    {"residual", "abs_mean", ".,.", "abs_mean_rest", true},
    {"norm/*", "gain", "layers,.", "", true},
    {"stats/*/dim_first", "mean_abs", ".,.", "max_abs", true},
    {"stats/*/dim_rest", "mean_abs", ".,.", "max_abs", true},
    {"stats/*/token", "max_abs", ".,.", "rms", true},
    {"taps/*", "values", "layers", "", false},
    {"logits", "loss", ".", "", false},
};

}  // namespace

std::span<const DatasetRule> dataset_rules() { return kRules; }

std::span<const PlotRule> plot_rules() { return kPlots; }

const DatasetRule* find_rule(std::string_view path) {
  for (const DatasetRule& rule : kRules) {
    if (matches_pattern(rule.path, path)) return &rule;
  }
  return nullptr;
}

bool matches_pattern(std::string_view pattern, std::string_view path) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == path;
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (path.size() <= before.size() + after.size()) return false;
  if (!path.starts_with(before) || !path.ends_with(after)) return false;
  const auto name = path.substr(before.size(), path.size() - before.size() - after.size());
  return name.find('/') == std::string_view::npos;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

}  // namespace sinkscope
