// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/plain_loops.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/engine/captured.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace fs = std::filesystem;

// The folder's model with another config.json.
std::unique_ptr<ModelFiles> with_config(const std::string& folder,
                                        const std::function<void(nlohmann::json&)>& change) {
  const std::string changed = scratch_folder() + "/model";
  fs::create_directory(changed);
  fs::create_symlink(fs::absolute(folder + "/model.safetensors"), changed + "/model.safetensors");
  std::ifstream in(folder + "/config.json");
  nlohmann::json config = nlohmann::json::parse(in);
  change(config);
  std::ofstream(changed + "/config.json") << config;
  return open_model(changed);
}

CaptureRequest everything_of(const std::string& folder) {
  CaptureRequest request = request_for(H5Reference(folder + "/expected.h5").ints("/input_ids"));
  request.record.maps = request.record.all = request.record.logits = true;
  return request;
}

// One layer of a tap as rows of `width`.
Rows tap_rows(const H5Reference& file, const std::string& hook, int layer, std::size_t width) {
  const std::string group = "/run0/taps/" + hook;
  const std::vector<std::int64_t> layers = file.integers(group + "/layers");
  const auto row =
      static_cast<std::size_t>(std::find(layers.begin(), layers.end(), layer) - layers.begin());
  const std::vector<float> all = file.floats(group + "/values");
  const std::size_t size = all.size() / layers.size();
  Rows rows(size / width, Row(width));
  for (std::size_t i = 0; i < size; ++i) rows[i / width][i % width] = all[row * size + i];
  return rows;
}

Rows matrix(const ModelFiles& model, Role role, int layer) {
  const std::vector<float> values = model.read_vector(role, layer);
  const auto width = static_cast<std::size_t>(model.cols(role, layer));
  Rows rows(values.size() / width, Row(width));
  for (std::size_t i = 0; i < values.size(); ++i) rows[i / width][i % width] = values[i];
  return rows;
}

Rows times(const Rows& x, const Rows& w) {  // x [T][in], w [out][in]
  Rows y(x.size(), Row(w.size(), 0.0));
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t o = 0; o < w.size(); ++o)
      for (std::size_t i = 0; i < w[o].size(); ++i) y[t][o] += x[t][i] * w[o][i];
  return y;
}

Row normed(const Row& x, const std::vector<float>& gain, double eps) {
  double square = 0;
  for (const double v : x) square += v * v / static_cast<double>(x.size());
  Row y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = gain[i] * x[i] / std::sqrt(square + eps);
  return y;
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Of the `seen` first scores the n best.
std::set<int> best_of(const Row& scores, int seen, int n) {
  std::vector<int> order(at(seen));
  for (int i = 0; i < seen; ++i) order[at(i)] = i;
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return scores[at(a)] > scores[at(b)]; });
  if (seen > n) order.resize(at(n));
  return {order.begin(), order.end()};
}

// Rotate-half on the first n dims of x from `first` on.
void rotate_half(Row& x, std::size_t first, std::size_t n, double position, double theta) {
  for (std::size_t i = 0; i < n / 2; ++i) {
    const double angle =
        position * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(n));
    const double a = x[first + i], b = x[first + i + n / 2];
    x[first + i] = a * std::cos(angle) - b * std::sin(angle);
    x[first + i + n / 2] = b * std::cos(angle) + a * std::sin(angle);
  }
}

}  // namespace sinkscope::test
