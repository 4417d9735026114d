// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/fake_capture.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"

namespace sinkscope::test {
namespace {

std::string key(const std::string& run, const std::string& path) { return run + '/' + path; }

[[noreturn]] void missing(const std::string& what) {
  throw Error(ErrorKind::not_found, "fake.h5: no " + what);
}

}  // namespace

void FakeCapture::add_run(const std::string& run, RunInput input) {
  if (input.token_text.empty()) {
    for (int t = 0; t < input.seq_len(); ++t) input.token_text.push_back('t' + std::to_string(t));
  }
  (run.find("_edit") == std::string::npos ? runs_ : twins_).push_back(run);
  put(run, "input/token_ids", {input.seq_len()}, {input.token_ids.begin(), input.token_ids.end()});
  inputs_[run] = std::move(input);
}

std::vector<std::string> FakeCapture::edits(const std::string& run) const {
  std::vector<std::string> found;
  for (const std::string& twin : twins_)
    if (twin.starts_with(run + "_edit")) found.push_back(twin);
  return found;
}

void FakeCapture::put(const std::string& run, const std::string& path,
                      std::vector<std::int64_t> dims, std::vector<double> values) {
  arrays_[key(run, path)] = {std::move(dims), std::move(values)};
}

void FakeCapture::put_texts(const std::string& run, const std::string& path,
                            std::vector<std::string> texts) {
  texts_[key(run, path)] = std::move(texts);
}

const FakeCapture::Array& FakeCapture::array(const std::string& run,
                                             const std::string& path) const {
  const auto found = arrays_.find(key(run, path));
  if (found == arrays_.end()) missing(key(run, path));
  return found->second;
}

bool FakeCapture::has(const std::string& run, const std::string& path) const {
  return arrays_.contains(key(run, path)) || texts_.contains(key(run, path)) ||
         !children(run, path).empty();
}

std::vector<std::int64_t> FakeCapture::dims(const std::string& run, const std::string& path) const {
  return array(run, path).dims;
}

std::vector<std::string> FakeCapture::children(const std::string& run,
                                               const std::string& group) const {
  std::set<std::string> names;
  const std::string prefix = key(run, group) + '/';
  for (const auto& [path, array] : arrays_) {
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    if (name.find('@') == std::string::npos) names.insert(name.substr(0, name.find('/')));
  }
  return {names.begin(), names.end()};
}

std::vector<double> FakeCapture::read_f64(const std::string& run, const std::string& path) const {
  return array(run, path).values;
}

std::vector<float> FakeCapture::read_f32(const std::string& run, const std::string& path) const {
  std::vector<float> out;
  for (const double v : array(run, path).values) out.push_back(static_cast<float>(v));
  return out;
}

std::vector<double> FakeCapture::read_f64(const std::string& run, const std::string& path,
                                          const std::vector<std::int64_t>& start,
                                          const std::vector<std::int64_t>& count) const {
  const Array& a = array(run, path);
  std::vector<double> out;
  std::vector<std::int64_t> at = start;
  for (bool inside = true; inside;) {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < at.size(); ++i) index = index * a.dims[i] + at[i];
    out.push_back(a.values.at(static_cast<std::size_t>(index)));
    inside = false;
    for (std::size_t i = at.size(); i-- > 0 && !inside;) {
      inside = ++at[i] < start[i] + count[i];
      if (!inside) at[i] = start[i];
    }
  }
  return out;
}

std::vector<float> FakeCapture::read_f32(const std::string& run, const std::string& path,
                                         const std::vector<std::int64_t>& start,
                                         const std::vector<std::int64_t>& count) const {
  const std::vector<double> box = read_f64(run, path, start, count);
  return {box.begin(), box.end()};
}

bool FakeCapture::is_dataset(const std::string& run, const std::string& path) const {
  return arrays_.contains(key(run, path)) || texts_.contains(key(run, path));
}

ElementType FakeCapture::type(const std::string& run, const std::string& path) const {
  return arrays_.contains(key(run, path)) ? ElementType::f64 : ElementType::text;
}

std::vector<int> FakeCapture::read_i32(const std::string& run, const std::string& path) const {
  std::vector<int> out;
  for (const double v : array(run, path).values) out.push_back(static_cast<int>(v));
  return out;
}

std::vector<std::string> FakeCapture::read_texts(const std::string& run,
                                                 const std::string& path) const {
  const auto found = texts_.find(key(run, path));
  if (found == texts_.end()) missing(key(run, path));
  return found->second;
}

std::string FakeCapture::read_text(const std::string& run, const std::string& path) const {
  return read_texts(run, path).at(0);
}

bool FakeCapture::has_attribute(const std::string& run, const std::string& path,
                                const std::string& name) const {
  return has(run, path + '@' + name);
}

std::string FakeCapture::text_attribute(const std::string& run, const std::string& path,
                                        const std::string& name) const {
  return read_text(run, path + '@' + name);
}

double FakeCapture::number_attribute(const std::string& run, const std::string& path,
                                     const std::string& name) const {
  return array(run, path + '@' + name).values.at(0);
}

void put_norm(FakeCapture& capture, const std::string& run, const std::string& role,
              const std::vector<int>& layers, const std::vector<double>& gains) {
  const auto n = static_cast<std::int64_t>(layers.size());
  const std::string group = "norm/" + role;
  capture.put(run, group + "/layers", {n}, {layers.begin(), layers.end()});
  for (const char* name : {"/gain", "/gain_raw"})
    capture.put(run, group + name, {n, static_cast<std::int64_t>(gains.size()) / n}, gains);
  capture.put_texts(run, group + "@kind", {"rms"});
  capture.put(run, group + "@eps", {}, {1e-5});
  capture.put(run, group + "@offset", {}, {0});
}

RunInput FakeCapture::input(const std::string& run) const {
  const auto found = inputs_.find(run);
  if (found == inputs_.end()) missing(run);
  return found->second;
}

void put_attention(FakeCapture& capture, const std::string& run, const std::vector<int>& layers,
                   int n_heads, const std::vector<float>& pattern) {
  const int n_layers = static_cast<int>(layers.size());
  const int t = capture.input(run).seq_len();
  const int w = std::min(t, 64);
  std::vector<double> key_mass, null_mass, window, visible;
  for (int a = 0; a < n_layers; ++a) {
    for (int k = 0; k < t; ++k) visible.push_back(t - k);
    for (int h = 0; h < n_heads; ++h) {
      const float* map = pattern.data() + std::ptrdiff_t{a * n_heads + h} * t * t;
      for (int k = 0; k < t; ++k) {
        double mass = 0;
        for (int q = k; q < t; ++q) mass += map[q * t + k];
        key_mass.push_back(mass);
      }
      for (int q = 0; q < t; ++q) {
        double row = 0;
        for (int k = 0; k <= q; ++k) row += map[q * t + k];
        null_mass.push_back(1 - row);
      }
      for (int q = 0; q < w; ++q) window.insert(window.end(), map + q * t, map + q * t + w);
    }
  }
  capture.put(run, "attention/layers", {n_layers}, {layers.begin(), layers.end()});
  capture.put(run, "attention/key_mass", {n_layers, n_heads, t}, key_mass);
  capture.put(run, "attention/visible", {n_layers, t}, visible);
  capture.put(run, "attention/null_mass", {n_layers, n_heads, t}, null_mass);
  capture.put(run, "attention/window", {n_layers, n_heads, w, w}, window);
}

namespace {

// Sums of one dimension over positions [begin, end) of a state [T,D].
struct DimSums {
  double count = 0, mean = 0, m2 = 0, m3 = 0, m4 = 0, mean_abs = 0, max_abs = 0;
  int max_token = -1;
};

DimSums sums_of(const float* state, int width, int dim, int begin, int end) {
  DimSums s;
  for (int t = begin; t < end; ++t) {
    const double x = state[std::ptrdiff_t{t} * width + dim];
    if (!std::isfinite(x)) continue;
    s.count += 1;
    s.mean += x;
    s.mean_abs += std::abs(x);
    if (s.max_token < 0 || std::abs(x) > s.max_abs) {
      s.max_abs = std::abs(x);
      s.max_token = t;
    }
  }
  if (s.count > 0) {
    s.mean /= s.count;
    s.mean_abs /= s.count;
  }
  for (int t = begin; t < end; ++t) {
    const double d = state[std::ptrdiff_t{t} * width + dim] - s.mean;
    if (!std::isfinite(d)) continue;
    s.m2 += d * d;
    s.m3 += d * d * d;
    s.m4 += d * d * d * d;
  }
  return s;
}

// −1: no finite value
int argmax_dim(const float* row, int width) {
  int best = -1;
  for (int d = 0; d < width; ++d) {
    if (!std::isfinite(row[d])) continue;
    if (best < 0 || std::abs(row[d]) > std::abs(row[best])) best = d;
  }
  return best;
}

}  // namespace

void put_stats(FakeCapture& capture, const std::string& run, const std::string& hook,
               const std::vector<int>& layers, int width, const std::vector<float>& values,
               bool is_residual) {
  const int n = static_cast<int>(layers.size());
  const int t_end = capture.input(run).seq_len();
  const std::string group = "stats/" + hook;
  std::vector<double> token_max, token_dim, median_abs, n_nan, n_inf;
  for (int part = 0; part < 2; ++part) {
    std::map<std::string, std::vector<double>> fields;
    for (int i = 0; i < n; ++i) {
      const float* state = values.data() + std::ptrdiff_t{i} * t_end * width;
      const int begin = part, end = part == 0 ? 1 : t_end;
      std::vector<double> argmax_count(static_cast<std::size_t>(width), 0.0);
      for (int t = begin; t < end; ++t) {
        const int d = argmax_dim(state + std::ptrdiff_t{t} * width, width);
        if (d >= 0) argmax_count[static_cast<std::size_t>(d)] += 1;
      }
      for (int d = 0; d < width; ++d) {
        const DimSums s = sums_of(state, width, d, begin, end);
        const std::pair<const char*, double> row[] = {
            {"count", s.count},
            {"mean", s.mean},
            {"m2", s.m2},
            {"m3", s.m3},
            {"m4", s.m4},
            {"mean_abs", s.mean_abs},
            {"max_abs", s.max_abs},
            {"max_token", s.max_token},
            {"argmax_count", argmax_count[static_cast<std::size_t>(d)]}};
        for (const auto& [name, value] : row) fields[name].push_back(value);
      }
    }
    for (auto& [name, field] : fields) {
      capture.put(run, group + (part == 0 ? "/dim_first/" : "/dim_rest/") + name, {n, width},
                  field);
    }
  }
  for (int i = 0; i < n; ++i) {
    const float* state = values.data() + std::ptrdiff_t{i} * t_end * width;
    for (int t = 0; t < t_end; ++t) {
      const float* row = state + std::ptrdiff_t{t} * width;
      const int d = argmax_dim(row, width);
      token_dim.push_back(d);
      token_max.push_back(d < 0 ? std::nan("") : std::abs(row[d]));
      n_nan.push_back(static_cast<double>(
          std::count_if(row, row + width, [](float x) { return std::isnan(x); })));
      n_inf.push_back(static_cast<double>(
          std::count_if(row, row + width, [](float x) { return std::isinf(x); })));
    }
    std::vector<double> sorted;
    for (int j = 0; j < t_end * width; ++j)
      if (std::isfinite(state[j])) sorted.push_back(std::abs(state[j]));
    std::sort(sorted.begin(), sorted.end());
    median_abs.push_back(sorted.empty() ? std::nan("") : sorted[(sorted.size() - 1) / 2]);
  }
  capture.put(run, group + "/layers", {n}, {layers.begin(), layers.end()});
  capture.put(run, group + "/token/max_abs", {n, t_end}, token_max);
  capture.put(run, group + "/token/max_dim", {n, t_end}, token_dim);
  capture.put(run, group + "/token/n_nan", {n, t_end}, n_nan);
  capture.put(run, group + "/token/n_inf", {n, t_end}, n_inf);
  if (is_residual) capture.put(run, group + "/median_abs", {n}, median_abs);
}

void put_residual(FakeCapture& capture, const std::string& run, int n_layers, int width,
                  const std::vector<float>& stream, bool record_stream) {
  const int t = capture.input(run).seq_len();
  const std::ptrdiff_t state = std::ptrdiff_t{t} * width;
  std::vector<std::string> sites = {"blocks.0.hook_resid_pre"};
  std::vector<float> mids, posts;
  std::vector<int> layers;
  for (int layer = 0; layer < n_layers; ++layer) {
    sites.push_back("blocks." + std::to_string(layer) + ".hook_resid_mid");
    sites.push_back("blocks." + std::to_string(layer) + ".hook_resid_post");
    const auto mid = stream.begin() + (2 * layer + 1) * state;
    mids.insert(mids.end(), mid, mid + state);
    posts.insert(posts.end(), mid + state, mid + 2 * state);
    layers.push_back(layer);
  }
  capture.put_texts(run, "residual/sites", sites);
  put_stats(capture, run, "hook_resid_pre", {0}, width, {stream.begin(), stream.begin() + state},
            true);
  put_stats(capture, run, "hook_resid_mid", layers, width, mids, true);
  put_stats(capture, run, "hook_resid_post", layers, width, posts, true);
  if (record_stream) {
    capture.put(run, "residual/stream", {2 * n_layers + 1, t, width},
                {stream.begin(), stream.end()});
  }
}

}  // namespace sinkscope::test
