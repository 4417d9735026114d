// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/site_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/stream_blocks.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// dim_first or dim_rest of a hook, as stored: [N,D] each.
struct StoredPart {
  std::vector<double> count, mean, m2, m3, m4, mean_abs, max_abs;
  std::vector<int> max_token, argmax_count;
};

PartStats slice(const StoredPart& stored, int row, int width) {
  PartStats part(width);
  for (int d = 0; d < width; ++d) {
    const auto i = static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
                   static_cast<std::size_t>(d);
    const auto j = static_cast<std::size_t>(d);
    const double n = stored.count[i];
    if (!(n > 0)) continue;
    part.moments[j] = {n, stored.mean[i], stored.m2[i], stored.m3[i], stored.m4[i]};
    part.mean_abs[j] = stored.mean_abs[i];
    part.max_abs[j] = stored.max_abs[i];
    part.max_token[j] = stored.max_token[i];
    part.argmax_count[j] = stored.argmax_count[i];
  }
  return part;
}

}  // namespace

PartStats::PartStats(int width)
    : moments(static_cast<std::size_t>(width)),
      mean_abs(moments.size(), kNaN),
      max_abs(moments.size(), 0.0),
      max_token(moments.size(), -1),
      argmax_count(moments.size(), 0.0) {}

void PartStats::add_row(int position, std::span<const float> x) {
  assert(static_cast<int>(x.size()) == width());
  double peak = -1;
  std::size_t peak_dim = 0;
  for (std::size_t d = 0; d < x.size(); ++d) {
    const double a = std::abs(double{x[d]});
    if (!std::isfinite(a)) continue;
    const double n = moments[d].count;
    mean_abs[d] = n > 0 ? mean_abs[d] + (a - mean_abs[d]) / (n + 1) : a;
    moments[d].add(x[d]);
    if (max_token[d] < 0 || a > max_abs[d]) {
      max_abs[d] = a;
      max_token[d] = position;
    }
    if (a > peak) {
      peak = a;
      peak_dim = d;
    }
  }
  if (peak >= 0) argmax_count[peak_dim] += 1;
}

PartStats join(const PartStats& a, const PartStats& b) {
  if (a.width() == 0) return b;
  if (b.width() == 0) return a;
  assert(a.width() == b.width());
  PartStats both = a;
  for (std::size_t d = 0; d < both.moments.size(); ++d) {
    const double na = a.moments[d].count, nb = b.moments[d].count;
    if (nb == 0) continue;
    both.moments[d] = merge(a.moments[d], b.moments[d]);
    both.mean_abs[d] =
        na == 0 ? b.mean_abs[d] : (na * a.mean_abs[d] + nb * b.mean_abs[d]) / (na + nb);
    both.argmax_count[d] += b.argmax_count[d];
    if (na == 0 || b.max_abs[d] > a.max_abs[d]) {
      both.max_abs[d] = b.max_abs[d];
      both.max_token[d] = b.max_token[d];
    }
  }
  return both;
}

Moments tensor_moments(const PartStats& part) {
  return std::accumulate(part.moments.begin(), part.moments.end(), Moments{}, merge);
}

Peak largest(const PartStats& part) {
  Peak peak;
  for (int d = 0; d < part.width(); ++d) {
    const auto j = static_cast<std::size_t>(d);
    if (part.max_token[j] < 0) continue;
    if (peak.token < 0 || part.max_abs[j] > peak.value) {
      peak = {part.max_abs[j], part.max_token[j], d};
    }
  }
  return peak;
}

struct RunStats::Hook {
  std::vector<int> layers;  // [N]
  int width = 0;
  StoredPart first, rest;
  std::vector<double> median_abs;     // [N] or empty
  std::vector<double> token_max_abs;  // [N,T]
  std::vector<int> token_max_dim;     // [N,T]
};

RunStats::RunStats(const CaptureReader& reader, std::string run, const PositionFilter& filter)
    : reader_(reader), run_(std::move(run)), filter_(filter), input_(reader.input(run_)) {
  if (filter_.kind == PositionFilter::Kind::ids && !reader_.has(run_, "residual/stream")) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}::{}: positions {} need residual/stream, which is not recorded; "
                            "expected a capture made with --record stream (or maps, all)",
                            reader_.path(), run_, filter_.text()));
  }
}

const RunStats::Hook& RunStats::hook(const std::string& name) {
  if (const auto known = hooks_.find(name); known != hooks_.end()) return *known->second;
  const std::string group = "stats/" + name;
  auto loaded = std::make_shared<Hook>();
  loaded->layers = reader_.read_i32(run_, group + "/layers");
  const auto dims = reader_.dims(run_, group + "/dim_rest/count");
  const auto n_layers = static_cast<std::int64_t>(loaded->layers.size());
  if (dims.size() != 2 || dims[0] != n_layers) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}::{}/{}/dim_rest/count: expected [{}, D], found [{}]",
                            reader_.path(), run_, group, n_layers, fmt::join(dims, ", ")));
  }
  loaded->width = static_cast<int>(dims[1]);
  const auto check = [&](auto values, const std::string& path, std::int64_t expected) {
    if (static_cast<std::int64_t>(values.size()) != expected) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}::{}/{}: expected {} values, found {}", reader_.path(), run_, path,
                              expected, values.size()));
    }
    return values;
  };
  const auto read_part = [&](StoredPart& part, const std::string& folder) {
    const std::int64_t n = dims[0] * dims[1];
    const auto f64 = [&](const char* field) {
      const std::string path = group + folder + field;
      return check(reader_.read_f64(run_, path), path, n);
    };
    const auto i32 = [&](const char* field) {
      const std::string path = group + folder + field;
      return check(reader_.read_i32(run_, path), path, n);
    };
    part = {f64("count"),    f64("mean"),    f64("m2"),        f64("m3"),          f64("m4"),
            f64("mean_abs"), f64("max_abs"), i32("max_token"), i32("argmax_count")};
  };
  read_part(loaded->first, "/dim_first/");
  read_part(loaded->rest, "/dim_rest/");

  const std::int64_t n_tokens = n_layers * input_.seq_len();
  const std::string token = group + "/token/";
  const auto below = [&](const std::vector<int>& indices, int end, const std::string& path) {
    for (const int i : indices) {
      if (i < -1 || i >= end) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("{}::{}/{}: expected indices from -1 to {}, found {}",
                                reader_.path(), run_, path, end - 1, i));
      }
    }
  };
  below(loaded->first.max_token, input_.seq_len(), group + "/dim_first/max_token");
  below(loaded->rest.max_token, input_.seq_len(), group + "/dim_rest/max_token");
  loaded->token_max_abs = check(reader_.read_f64(run_, token + "max_abs"), token, n_tokens);
  loaded->token_max_dim = check(reader_.read_i32(run_, token + "max_dim"), token, n_tokens);
  below(loaded->token_max_dim, loaded->width, token + "max_dim");
  if (const std::string path = group + "/median_abs"; reader_.has(run_, path)) {
    loaded->median_abs = check(reader_.read_f64(run_, path), path, n_layers);
  }
  return *hooks_.emplace(name, std::move(loaded)).first->second;
}

bool RunStats::has(const SiteName& site) {
  if (absent_.contains(site.hook)) return false;
  if (!hooks_.contains(site.hook) && !reader_.has(run_, "stats/" + site.hook + "/layers")) {
    absent_.insert(site.hook);
    return false;
  }
  const auto& layers = hook(site.hook).layers;
  return std::find(layers.begin(), layers.end(), site.layer) != layers.end();
}

SiteStats RunStats::site(const SiteName& site, std::optional<int> stream_index) {
  if (!has(site)) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}::{}: no statistics of {}", reader_.path(), run_, site.text()));
  }
  const Hook& stored = hook(site.hook);
  const auto found = std::find(stored.layers.begin(), stored.layers.end(), site.layer);
  const int row = static_cast<int>(found - stored.layers.begin());
  SiteStats out;
  out.site = site;
  out.first = PartStats(stored.width);
  out.rest = PartStats(stored.width);
  out.median_abs =
      stored.median_abs.empty() ? kNaN : stored.median_abs[static_cast<std::size_t>(row)];
  const int seq_len = input_.seq_len();
  for (int t = 0; t < seq_len; ++t) {
    if (!filter_.matches(t, input_.token_ids[static_cast<std::size_t>(t)])) continue;
    const auto i = static_cast<std::size_t>(row) * static_cast<std::size_t>(seq_len) +
                   static_cast<std::size_t>(t);
    if (stored.token_max_dim[i] < 0) continue;  // nothing finite, or not yet recorded
    out.token_peaks.push_back({stored.token_max_abs[i], t, stored.token_max_dim[i]});
  }
  if (filter_.kind != PositionFilter::Kind::ids) {
    take_parts(stored, row, out);
  } else if (stream_index) {
    reduce_stream(*stream_index, out);
  } else {
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: positions {} exist for residual sites only", site.text(), filter_.text()));
  }
  out.both = join(out.first, out.rest);
  return out;
}

void RunStats::take_parts(const Hook& stored, int row, SiteStats& out) const {
  if (filter_.kind != PositionFilter::Kind::rest)
    out.first = slice(stored.first, row, stored.width);
  if (filter_.kind != PositionFilter::Kind::first) out.rest = slice(stored.rest, row, stored.width);
}

void RunStats::reduce_stream(int stream_index, SiteStats& out) const {
  for_each_stream_block(
      reader_, run_, stream_index, out.rest.width(), [&](int begin, const ConstMapF& rows) {
        for (Eigen::Index i = 0; i < rows.rows(); ++i) {
          const int position = begin + static_cast<int>(i);
          if (!filter_.matches(position, input_.token_ids[static_cast<std::size_t>(position)]))
            continue;
          PartStats& part = position == 0 ? out.first : out.rest;
          part.add_row(position, {rows.row(i).data(), static_cast<std::size_t>(rows.cols())});
        }
      });
}

}  // namespace sinkscope
