// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/non_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

// Taps of a block in the order in which values pass them.
const char* const kForwardOrder[] = {
    "hook_resid_pre",   "ln1.hook_out",     "attn.hook_q_latent", "attn.hook_kv_latent",
    "attn.hook_q_norm", "attn.hook_k_norm", "linear.hook_norm",   "ln1_post.hook_out",
    "hook_attn_out",    "hook_resid_mid",   "ln2.hook_out",       "ln2_post.hook_out",
    "hook_mlp_out",     "hook_resid_post",  "ln_final.hook_out"};

std::pair<int, int> depth_of(const SiteName& site) {
  const auto* hook = std::find(std::begin(kForwardOrder), std::end(kForwardOrder), site.hook);
  return {site.layer < 0 ? std::numeric_limits<int>::max() : site.layer,
          static_cast<int>(hook - std::begin(kForwardOrder))};
}

std::vector<int> read_counts(const CaptureReader& reader, const std::string& run,
                             const std::string& path, std::size_t expected) {
  std::vector<int> counts = reader.read_i32(run, path);
  if (counts.size() != expected) {
    throw Error(ErrorKind::corrupt, fmt::format("{}::{}/{}: expected {} values, found {}",
                                                reader.path(), run, path, expected, counts.size()));
  }
  return counts;
}

// The first dimension in which the part misses a value in each of its `n_bad` tokens.
int first_dim(const CaptureReader& reader, const std::string& run, const std::string& part,
              std::int64_t row, int n_tokens, int n_bad) {
  const auto dims = reader.dims(run, part + "count");
  if (dims.size() != 2 || row >= dims[0]) return -1;
  const auto counts = reader.read_f64(run, part + "count", {row, 0}, {1, dims[1]});
  const auto found = std::find(counts.begin(), counts.end(), static_cast<double>(n_tokens - n_bad));
  return found == counts.end() ? -1 : static_cast<int>(found - counts.begin());
}

}  // namespace

NonFinite find_non_finite(const CaptureReader& reader, const std::string& run, int layers_end) {
  NonFinite found;
  if (!reader.has(run, "stats")) return found;
  const int n_tokens = reader.input(run).seq_len();
  std::string group;
  std::size_t first_row = 0;
  std::vector<std::int64_t> bad;  // [T] of the first site
  for (const std::string& hook : reader.children(run, "stats")) {
    const std::string here = "stats/" + hook;
    if (!reader.has(run, here + "/token/n_nan")) continue;
    const std::vector<int> layers = reader.read_i32(run, here + "/layers");
    const std::size_t n = layers.size() * static_cast<std::size_t>(n_tokens);
    const std::vector<int> n_nan = read_counts(reader, run, here + "/token/n_nan", n);
    const std::vector<int> n_inf = read_counts(reader, run, here + "/token/n_inf", n);
    for (std::size_t i = 0; i < n; ++i) {
      // −1: not yet recorded
      const std::int64_t here_bad = std::int64_t{std::max(n_nan[i], 0)} + std::max(n_inf[i], 0);
      const std::size_t row = i / static_cast<std::size_t>(n_tokens);
      if (here_bad == 0 || layers[row] >= layers_end) continue;
      const SiteName site{hook, layers[row]};
      if (found.count == 0 || depth_of(site) < depth_of(found.site)) {
        found.site = site;
        found.token = static_cast<int>(i % static_cast<std::size_t>(n_tokens));
        group = here;
        first_row = row;
        bad.assign(static_cast<std::size_t>(n_tokens), 0);
      }
      if (site == found.site) bad[i % static_cast<std::size_t>(n_tokens)] = here_bad;
      found.count += here_bad;
    }
  }
  if (found.count == 0) return found;
  const bool is_first = found.token == 0;
  const auto n_bad = is_first ? 1
                              : std::count_if(bad.begin() + 1, bad.end(),
                                              [](std::int64_t count) { return count > 0; });
  found.dim = first_dim(reader, run, group + (is_first ? "/dim_first/" : "/dim_rest/"),
                        static_cast<std::int64_t>(first_row), is_first ? 1 : n_tokens - 1,
                        static_cast<int>(n_bad));
  return found;
}

std::string non_finite_text(const NonFinite& found) {
  const std::string dim = found.dim < 0 ? "" : fmt::format(", dimension {}", found.dim);
  const bool one = found.count == 1;
  return fmt::format("{} {} NaN or infinite, {} at {}, token {}{}", count_text(found.count),
                     one ? "value is" : "values are", one ? "it stands" : "the first",
                     found.site.text(), found.token, dim);
}

std::string non_finite_warning(const std::vector<std::pair<std::string, NonFinite>>& runs) {
  const auto has_any = [](const auto& run) { return run.second.count > 0; };
  const auto first = std::find_if(runs.begin(), runs.end(), has_any);
  if (first == runs.end()) return "";
  const auto n = std::count_if(runs.begin(), runs.end(), has_any);
  const std::string more =
      n == 1 ? "" : fmt::format("; {} more run{} such values", n - 1, n == 2 ? " has" : "s have");
  return fmt::format("{}: {}{}; statistics leave them out", first->first,
                     non_finite_text(first->second), more);
}

}  // namespace sinkscope
