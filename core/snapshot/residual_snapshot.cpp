// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/residual_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/capture_norms.h"
#include "core/error.h"
#include "core/snapshot/attention_snapshot.h"
#include "core/state_rows.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kAverageBytes = std::int64_t{256} << 20;
constexpr std::int64_t kBlockBytes = std::int64_t{16} << 20;

[[noreturn]] void not_there(const RunFacts& facts, const std::string& what) {
  throw Error(ErrorKind::not_found, fmt::format("{}: {}: {}", facts.path, facts.run, what));
}

bool is_block_state(const std::string& site, std::size_t place) {
  return place == 0 || SiteName::parse(site).hook == "hook_resid_post";
}

// Sites of blocks that are whole; the first one comes before any block.
std::vector<std::string> whole_sites(const CaptureReader& reader, const RunFacts& facts) {
  std::vector<std::string> sites = reader.read_texts(facts.run, "residual/sites");
  std::erase_if(sites, [&](const std::string& site) {
    return SiteName::parse(site).layer >= facts.whole_layers;
  });
  return sites;
}

// Places in residual/sites of what is shown: one, or all block states.
std::vector<int> shown_states(const ResidualSnapshot& out) {
  std::vector<int> places;
  for (std::size_t s = 0; s < out.sites.size(); ++s) {
    const bool is_shown =
        out.request.site ? out.sites[s] == *out.request.site : is_block_state(out.sites[s], s);
    if (is_shown) places.push_back(static_cast<int>(s));
  }
  if (places.empty())
    not_there(out.facts, fmt::format("no site '{}'", out.request.site.value_or("")));
  return places;
}

// Mean over the block states of a per-state mean of |x|. [D]; states are the first rows of the
// dataset, as many as are whole.
std::vector<double> mean_over_states(const CaptureReader& reader, const std::string& run,
                                     const std::string& dataset, std::int64_t n_states) {
  const std::int64_t width = reader.dims(run, dataset).back();
  const std::vector<double> rows = reader.read_f64(run, dataset, {0, 0}, {n_states, width});
  std::vector<double> mean(static_cast<std::size_t>(width), 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    mean[i % mean.size()] += rows[i] / static_cast<double>(n_states);
  return mean;
}

void take_order(const CaptureReader& reader, ResidualSnapshot& out) {
  const ResidualRequest& request = out.request;
  std::int64_t n_states = 0;
  for (std::size_t s = 0; s < out.sites.size(); ++s)
    n_states += is_block_state(out.sites[s], s) ? 1 : 0;
  const auto all = mean_over_states(reader, request.run, "residual/abs_mean", n_states);
  const auto rest = mean_over_states(reader, request.run, "residual/abs_mean_rest", n_states);
  out.first_permille_ratio = first_permille_ratio(all, request.permille);
  out.first_permille_ratio_without_first = first_permille_ratio(rest, request.permille);
  out.first_permille_count = first_permille_count(static_cast<int>(all.size()), request.permille);
  switch (request.order) {
    case DimOrder::natural:
      out.full_order.resize(all.size());
      std::iota(out.full_order.begin(), out.full_order.end(), 0);
      out.order_text = "dimensions in their own order";
      break;
    case DimOrder::sorted:
      out.full_order = sorted_dims(all);
      out.order_text = "dimensions by mean |x| over all tokens and block states";
      break;
    case DimOrder::sorted_without_first:
      out.full_order = sorted_dims(rest);
      out.order_text = "dimensions by mean |x| over all tokens but the first, and block states";
      break;
    case DimOrder::given:
      out.full_order = request.given_order;
      out.order_text = "dimensions in a given order";
      break;
  }
  for (const int dim : out.full_order)
    if (dim < 0 || dim >= static_cast<int>(all.size()))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("dimension {} in the order: expected 0 to {}", dim, all.size() - 1));
  if (out.full_order.empty())
    throw Error(ErrorKind::invalid_argument, "an order without dimensions");
  out.dims = out.full_order;
  if (request.n_dims > 0 && request.n_dims < static_cast<int>(out.dims.size()))
    out.dims.resize(static_cast<std::size_t>(request.n_dims));
}

void take_source(const CaptureReader& reader, std::size_t n_states, ResidualSnapshot& out) {
  const RunFacts& facts = out.facts;
  out.source = out.request.source;
  if (out.source == ResidualSource::automatic) {
    out.source = ResidualSource::window;
    if (facts.has_stream) {
      const std::vector<std::int64_t> dims = reader.dims(facts.run, "residual/stream");
      const std::int64_t bytes =
          static_cast<std::int64_t>(n_states) * dims[1] * facts.model.state_width() * 4;
      if (n_states == 1 || bytes <= kAverageBytes) out.source = ResidualSource::stream;
    }
  }
  if (out.source == ResidualSource::stream && !facts.has_stream)
    not_there(facts, "the residual stream is not recorded (--record stream)");
}

// Adds the shown rows of one state to `sum` [rows, cols]: signed for one site, |x| for an average.
// Rows that hold several tokens keep the value of largest magnitude.
void add_state(const CaptureReader& reader, const ResidualSnapshot& out, int state, double share,
               std::int64_t n_tokens, std::vector<float>& sum) {
  const std::string dataset =
      out.source == ResidualSource::stream ? "residual/stream" : "residual/window";
  const std::int64_t width = out.facts.model.state_width();
  const std::int64_t per_row = out.tokens_per_row;
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kBlockBytes / (width * 4 * per_row)) * per_row;
  std::vector<float> row(out.dims.size());
  for (std::int64_t begin = 0; begin < n_tokens; begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, n_tokens);
    const std::vector<float> block =
        read_state_rows(reader, out.request.run, dataset, state, begin, end - begin);
    for (std::int64_t t = begin; t < end; t += per_row) {
      const std::int64_t stop = std::min(t + per_row, end);
      for (std::size_t c = 0; c < out.dims.size(); ++c) {
        float top = block[static_cast<std::size_t>((t - begin) * width + out.dims[c])];
        for (std::int64_t u = t + 1; u < stop; ++u) {
          const float x = block[static_cast<std::size_t>((u - begin) * width + out.dims[c])];
          if (std::abs(x) > std::abs(top)) top = x;
        }
        row[c] = out.request.site ? top : std::abs(top) * static_cast<float>(share);
      }
      float* target = sum.data() + t / per_row * static_cast<std::int64_t>(out.dims.size());
      for (std::size_t c = 0; c < row.size(); ++c) target[c] += row[c];
    }
  }
}

void take_map(const CaptureReader& reader, const std::vector<int>& states, ResidualSnapshot& out) {
  const std::string dataset =
      out.source == ResidualSource::stream ? "residual/stream" : "residual/window";
  std::int64_t n_tokens = reader.dims(out.request.run, dataset)[1];
  if (out.request.n_tokens > 0) n_tokens = std::min<std::int64_t>(n_tokens, out.request.n_tokens);
  out.tokens_per_row = static_cast<int>((n_tokens + kMaxMapSide - 1) / kMaxMapSide);
  for (std::int64_t t = 0; t < n_tokens; t += out.tokens_per_row) {
    out.tokens.push_back(static_cast<int>(t));
    out.token_labels.push_back(out.facts.input.token_text.at(static_cast<std::size_t>(t)));
  }
  std::vector<float> sum(out.tokens.size() * out.dims.size(), 0.0F);
  for (const int state : states)
    add_state(reader, out, state, 1.0 / static_cast<double>(states.size()), n_tokens, sum);
  out.map =
      Grid(static_cast<int>(out.tokens.size()), static_cast<int>(out.dims.size()), std::move(sum));
  out.source_text = n_tokens == out.facts.seq_len()
                        ? "all tokens"
                        : fmt::format("first {} of {} tokens", n_tokens, out.facts.seq_len());
  if (out.tokens_per_row > 1)
    out.source_text += fmt::format(", largest of each {}", out.tokens_per_row);
  if (const std::string note = streams_note(out.facts.model); !note.empty())
    out.source_text += " · " + note;
}

void take_max(const CaptureReader& reader, const std::vector<int>& states, ResidualSnapshot& out) {
  RunStats stats(reader, out.request.run, PositionFilter{});
  for (const int state : states) {
    const std::string& site = out.sites[static_cast<std::size_t>(state)];
    const SiteStats parts = stats.site(SiteName::parse(site), state);
    for (const PartStats* part : {&parts.first, &parts.rest}) {
      const Peak peak = largest(*part);
      if (peak.token < 0 || (out.max_abs.token >= 0 && peak.value <= out.max_abs.value)) continue;
      out.max_abs = peak;
      out.max_site = site;
    }
  }
}

}  // namespace

ResidualSnapshot read_residual(const CaptureReader& reader, const ResidualRequest& request) {
  ResidualSnapshot out;
  out.request = request;
  out.facts = read_run_facts(reader, request.run);
  if (!out.facts.has_residual) not_there(out.facts, "no residual stream is recorded");
  out.sites = whole_sites(reader, out.facts);
  const std::vector<int> states = shown_states(out);
  out.title =
      request.site ? *request.site : fmt::format("mean |x| over {} block states", states.size());
  if (!norms_read_stream(reader, request.run)) out.title += " · running sum that restarts";
  take_order(reader, out);
  take_source(reader, states.size(), out);
  take_map(reader, states, out);
  take_max(reader, states, out);
  return out;
}

}  // namespace sinkscope
