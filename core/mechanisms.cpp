// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mechanisms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/capture_values.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class MechanismReader {
 public:
  MechanismReader(const CaptureReader& reader, const std::string& run, int layers_end)
      : reader_(reader), run_(run), layers_end_(layers_end) {}

  Mechanisms read() {
    for (const char* role : {"ln1", "ln2"}) read_norm_gates(role);
    read_attention_gate();
    read_sinks();
    if (reader_.has(run_, "residual/block_layers"))
      out_.block_layers = reader_.read_i32(run_, "residual/block_layers");
    for (const char* place : {"depth_attn", "depth_mlp", "depth_final"}) read_depth(place);
    std::stable_sort(out_.depth.begin(), out_.depth.end(), [](const auto& a, const auto& b) {
      return static_cast<unsigned>(a.layer) < static_cast<unsigned>(b.layer);  // −1 at the end
    });
    read_states();
    return std::move(out_);
  }

 private:
  // Blocks of a group that are whole, with their rows.
  std::vector<std::pair<int, std::int64_t>> rows(const std::string& group) const {
    std::vector<std::pair<int, std::int64_t>> found;
    if (!reader_.has(run_, group + "/layers")) return found;
    const std::vector<int> layers = reader_.read_i32(run_, group + "/layers");
    for (std::size_t row = 0; row < layers.size(); ++row)
      if (layers[row] < layers_end_ && (layers[row] >= 0 || reader_.complete()))
        found.emplace_back(layers[row], static_cast<std::int64_t>(row));
    return found;
  }

  // One row of a dataset [N, …].
  std::vector<double> row(const std::string& path, std::int64_t at) const {
    std::vector<std::int64_t> count = reader_.dims(run_, path), start(count.size(), 0);
    if (count.empty() || at >= count.front())
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: {}/{}: no row {}", reader_.path(), run_, path, at));
    start.front() = at;
    count.front() = 1;
    return reader_.read_f64(run_, path, start, count);
  }

  // Of a tap [N, n, T] or [N, n, T, sources]: the format leaves the shape of taps open, what is
  // counted out below is held to what a model has.
  std::vector<std::int64_t> tap_dims(const std::string& path, std::size_t rank,
                                     std::int64_t most) const {
    std::vector<std::int64_t> dims = reader_.dims(run_, path);
    const std::int64_t T = reader_.dims(run_, "input/token_ids").front(),
                       most_sources = reader_.model(run_).n_layers + 1;  // and the stream
    if (dims.size() != rank || dims[1] > most || dims[2] != T || T == 0 ||
        (rank == 4 && dims[3] > most_sources))
      throw Error(
          ErrorKind::corrupt,
          fmt::format("{}: {}/{}: expected [N, {} at most, {}{}], found [{}]", reader_.path(), run_,
                      path, most, T, rank == 4 ? fmt::format(", {} at most", most_sources) : "",
                      fmt::join(dims, ", ")));
    return dims;
  }

  // Mean over the first token and the rest together, by dimension.
  std::vector<double> mean_of(const std::string& stats, std::int64_t at) const {
    const std::vector<double> n1 = row(stats + "/dim_first/count", at),
                              m1 = row(stats + "/dim_first/mean", at),
                              n2 = row(stats + "/dim_rest/count", at),
                              m2 = row(stats + "/dim_rest/mean", at);
    std::vector<double> mean;
    for (std::size_t d = 0; d < n1.size(); ++d) {
      const double n = n1[d] + n2[d];
      mean.push_back(n > 0 ? (n1[d] * m1[d] + n2[d] * m2[d]) / n : kNaN);
    }
    return mean;
  }

  void read_norm_gates(const std::string& role) {
    const std::string stats = "stats/" + role + ".hook_gate";
    for (const auto& [layer, at] : rows(stats)) {
      NormGate gate{role, layer, mean_of(stats, at), {}};
      gate.corr = reader_.has(run_, stats + "/corr") ? row(stats + "/corr", at)
                                                     : std::vector<double>(gate.mean.size(), kNaN);
      out_.norm_gates.push_back(std::move(gate));
    }
  }

  // Rows of [N, H] as a matrix.
  static MatrixD matrix(const std::vector<std::vector<double>>& lines) {
    MatrixD m(static_cast<Eigen::Index>(lines.size()),
              lines.empty() ? 0 : static_cast<Eigen::Index>(lines.front().size()));
    for (Eigen::Index i = 0; i < m.rows(); ++i)
      for (Eigen::Index j = 0; j < m.cols(); ++j)
        m(i, j) = lines[static_cast<std::size_t>(i)].at(static_cast<std::size_t>(j));
    return m;
  }

  // Blocks may have narrower heads than the widest one: a block's heads stand first, without gaps.
  void read_attention_gate() {
    const std::string stats = "stats/attn.hook_gate";
    const auto H = static_cast<std::size_t>(reader_.model(run_).n_heads);
    std::vector<std::vector<double>> lines;
    for (const auto& [layer, at] : rows(stats)) {
      std::vector<double> mean = mean_of(stats, at);
      while (!mean.empty() && std::isnan(mean.back())) mean.pop_back();
      const std::size_t width = H > 0 ? mean.size() / H : 0;
      std::vector<double> heads;
      for (std::size_t h = 0; h < H; ++h) {
        double sum = 0;
        for (std::size_t d = 0; d < width; ++d) sum += mean[h * width + d];
        heads.push_back(width > 0 ? sum / static_cast<double>(width) : kNaN);
      }
      out_.gate_layers.push_back(layer);
      lines.push_back(std::move(heads));
    }
    out_.attn_gate = matrix(lines);
  }

  // Means over tokens of rows [heads, T]; NaN heads are not there.
  static std::vector<double> head_means(const std::vector<double>& values, std::size_t heads) {
    const std::size_t T = heads > 0 ? values.size() / heads : 0;
    std::vector<double> means;
    for (std::size_t h = 0; h < heads; ++h) {
      double sum = 0;
      for (std::size_t t = 0; t < T; ++t) sum += values[h * T + t];
      means.push_back(T > 0 ? sum / static_cast<double>(T) : kNaN);
    }
    return means;
  }

  void read_sinks() {
    const std::string path = "attention/null_mass";
    std::vector<std::vector<double>> lines;
    std::vector<int> layers;
    bool any = false;
    for (const auto& [layer, at] : rows("attention")) {
      const auto heads = static_cast<std::size_t>(reader_.dims(run_, path).at(1));
      layers.push_back(layer);
      lines.push_back(head_means(row(path, at), heads));
      for (const double mean : lines.back()) any = any || mean > 0;
    }
    if (!any) return;
    out_.sink_layers = std::move(layers);
    out_.sink_share = matrix(lines);
  }

  void read_depth(const std::string& place) {
    const std::string group = "taps/" + place + ".hook_weights", path = group + "/values";
    if (!reader_.has(run_, path)) return;
    static const char* const kInputs[] = {" (queries)", " (keys)", " (values)"};
    const std::vector<std::int64_t> dims = tap_dims(path, 4, std::ssize(kInputs));  // [N,Q,T,S]
    const auto T = static_cast<int>(dims[2]), S = static_cast<int>(dims[3]);
    for (const auto& [layer, at] : rows(group)) {
      const std::string name = layer < 0 ? place : fmt::format("blocks.{}.{}", layer, place);
      int n_inputs = 0;
      for (std::int64_t q = 0; q < dims[1]; ++q) {
        const std::vector<float> all =
            reader_.read_f32(run_, path, {at, q, 0, 0}, {1, 1, dims[2], dims[3]});
        int sources = S;  // padding is NaN
        while (sources > 0 && T > 0 && std::isnan(all[static_cast<std::size_t>(sources) - 1]))
          --sources;
        if (sources == 0) continue;
        ++n_inputs;
        std::vector<float> weights;
        for (int t = 0; t < T; ++t)
          weights.insert(weights.end(), all.begin() + std::int64_t{t} * S,
                         all.begin() + std::int64_t{t} * S + sources);
        out_.depth.push_back({name + kInputs[q], layer, depth_use(weights, T, sources)});
      }
      if (n_inputs == 1) out_.depth.back().target = name;
    }
  }

  void read_states() {
    const std::string group = "taps/linear.hook_state_norm", path = group + "/values";
    std::vector<std::vector<double>> means, last;
    for (const auto& [layer, at] : rows(group)) {
      const std::vector<std::int64_t> dims = tap_dims(path, 3, kMostHeads);
      const auto heads = static_cast<std::size_t>(dims[1]), T = static_cast<std::size_t>(dims[2]);
      const std::vector<double> values = row(path, at);
      out_.linear_layers.push_back(layer);
      means.push_back(head_means(values, heads));
      last.emplace_back();
      for (std::size_t h = 0; h < heads; ++h) last.back().push_back(values[(h + 1) * T - 1]);
    }
    out_.state_norm = matrix(means);
    out_.last_state_norm = matrix(last);
  }

  const CaptureReader& reader_;
  const std::string& run_;
  const int layers_end_;
  Mechanisms out_;
};

}  // namespace

int Mechanisms::n_sources() const {
  std::size_t most = 0;
  for (const DepthMixUse& mix : depth) most = std::max(most, mix.use.mean.size());
  return static_cast<int>(most);
}

Mechanisms read_mechanisms(const CaptureReader& reader, const std::string& run, int layers_end) {
  return MechanismReader(reader, run, layers_end).read();
}

}  // namespace sinkscope
