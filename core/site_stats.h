// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/moments.h"
#include "core/position_filter.h"
#include "core/site_name.h"
#include "core/tensor.h"

namespace sinkscope {

// Statistics of a set of positions of one site, per dimension [D]. A value that is NaN or infinite
// counts nowhere here. Where nothing was counted: mean_abs NaN, max_abs 0, max_token −1.
struct PartStats {
  std::vector<Moments> moments;
  std::vector<double> mean_abs, max_abs;
  std::vector<int> max_token;        // position of max_abs
  std::vector<double> argmax_count;  // tokens whose largest |x| lies in this dimension

  PartStats() = default;
  explicit PartStats(int width);  // of no position
  int width() const { return static_cast<int>(moments.size()); }
  void add_row(int position, std::span<const float> x);  // [D]
};

// Statistics of both sets of positions. Widths must agree.
PartStats join(const PartStats& a, const PartStats& b);

// All dimensions together, as if the positions × dimensions were one flat list.
Moments tensor_moments(const PartStats& part);

// The largest |x| with its place; equal values: the lowest dimension. token −1 = no value.
struct Peak {
  double value = 0;
  int token = -1, dim = -1;
  bool operator==(const Peak&) const = default;
};
Peak largest(const PartStats& part);

// One site of one run under a position filter: of the filter's position 0, of its others, of all.
struct SiteStats {
  SiteName site;
  PartStats first, rest, both;
  double median_abs = 0;          // over all [T,D] whatever the filter; NaN for other sites
  std::vector<Peak> token_peaks;  // the filter's positions, each with its largest |x|
};

// Reads the streamed statistics of one run. all, first and rest need nothing else; ids reduces
// residual/stream and throws Error{invalid_argument} when that is not recorded.
// Errors: those of CaptureReader; corrupt when shapes contradict each other.
class RunStats {
 public:
  RunStats(const CaptureReader& reader, std::string run, const PositionFilter& filter);

  bool has(const SiteName& site);
  // `stream_index`: the site's place in residual/sites, nullopt for a site that is not there.
  // Throws Error{not_found} when the capture has no statistics of this site.
  SiteStats site(const SiteName& site, std::optional<int> stream_index = std::nullopt);

  const RunInput& input() const { return input_; }

 private:
  struct Hook;
  const Hook& hook(const std::string& name);
  void take_parts(const Hook& hook, int row, SiteStats& out) const;
  void reduce_stream(int stream_index, SiteStats& out) const;

  const CaptureReader& reader_;
  std::string run_;
  PositionFilter filter_;
  RunInput input_;
  std::map<std::string, std::shared_ptr<const Hook>> hooks_;
  std::set<std::string> absent_;  // hooks without statistics
};

}  // namespace sinkscope
