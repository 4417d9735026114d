// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/write_stats.h"

#include <algorithm>
#include <vector>

namespace sinkscope {
namespace {

// Row `row` of a dataset [N, n].
template <class T>
void write_row(CaptureWriter& writer, int run, const std::string& path, int row,
               const std::vector<T>& values) {
  writer.write(run, path, {row, 0}, {1, static_cast<std::int64_t>(values.size())}, values.data());
}

void write_dims(CaptureWriter& writer, int run, const std::string& group, int row,
                const DimStats& dims) {
  write_row(writer, run, group + "/count", row, dims.count);
  write_row(writer, run, group + "/mean", row, dims.mean);
  write_row(writer, run, group + "/m2", row, dims.m2);
  write_row(writer, run, group + "/m3", row, dims.m3);
  write_row(writer, run, group + "/m4", row, dims.m4);
  write_row(writer, run, group + "/mean_abs", row, dims.mean_abs);
  write_row(writer, run, group + "/max_abs", row, dims.max_abs);
  write_row(writer, run, group + "/max_token", row, dims.max_token);
  write_row(writer, run, group + "/argmax_count", row, dims.argmax_count);
}

}  // namespace

void write_tap_stats(CaptureWriter& writer, int run, const std::string& hook, int row,
                     const TapStats& stats, const TapStats* norm_input,
                     std::optional<double> median) {
  const std::string group = "stats/" + hook;
  write_dims(writer, run, group + "/dim_first", row, stats.first);
  write_dims(writer, run, group + "/dim_rest", row, stats.rest);
  const TokenStats& token = stats.token;
  write_row(writer, run, group + "/token/rms", row, token.rms);
  write_row(writer, run, group + "/token/max_abs", row, token.max_abs);
  write_row(writer, run, group + "/token/max_dim", row, token.max_dim);
  write_row(writer, run, group + "/token/r2", row, token.r2);
  write_row(writer, run, group + "/token/n_nan", row, token.n_nan);
  write_row(writer, run, group + "/token/n_inf", row, token.n_inf);
  if (norm_input != nullptr) {
    write_row(writer, run, group + "/token/input_rms", row, norm_input->token.rms);
    write_row(writer, run, group + "/token/input_max_dim", row, norm_input->token.max_dim);
    write_row(writer, run, group + "/token/input_r2", row, norm_input->token.r2);
  }
  if (median) writer.write(run, group + "/median_abs", {row}, {1}, &*median);
}

void write_attention_stats(CaptureWriter& writer, int run, int row, const AttentionStats& stats) {
  const std::int64_t H = stats.n_heads, G = stats.n_kv_heads, T = stats.seq_len,
                     W = stats.window_side, B = stats.bins;
  const auto per_head = [&](const char* name, const std::vector<float>& values) {
    writer.write(run, std::string("attention/") + name, {row, 0, 0}, {1, H, T}, values.data());
  };
  const std::vector<float> key_mass(stats.key_mass.begin(), stats.key_mass.end());
  per_head("key_mass", key_mass);
  per_head("lse", stats.lse);
  per_head("null_mass", stats.null_mass);
  per_head("entropy", stats.entropy);
  per_head("max_prob", stats.max_prob);
  per_head("logit_max", stats.logit_max);
  per_head("logit_gap", stats.logit_gap);
  per_head("distance", stats.distance);
  per_head("first4", stats.first4);
  per_head("last8", stats.last8);
  per_head("out_norm", stats.out_norm);
  per_head("out_norm_sum", stats.out_norm_sum);
  if (!stats.compressed_mass.empty()) per_head("compressed_mass", stats.compressed_mass);
  write_row(writer, run, "attention/visible", row, stats.visible);
  writer.write(run, "attention/value_norm", {row, 0, 0}, {1, G, T}, stats.value_norm.data());
  writer.write(run, "attention/window", {row, 0, 0, 0}, {1, H, W, W}, stats.window.data());
  writer.write(run, "attention/thumbnail", {row, 0, 0, 0}, {1, H, B, B}, stats.thumbnail.data());
}

}  // namespace sinkscope
