// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/attention_sinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The attention statistics that scores are made of. Shapes are checked on reading.
struct Stored {
  std::vector<int> layers;  // [A]
  int n_heads = 0, seq_len = 0;
  std::vector<float> key_mass;  // [A,H,T]
  std::vector<int> visible;     // [A,T]
  std::vector<float> null0;     // [A,H,1] null mass of query 0
  std::vector<float> window;    // [A,H,W,W]; empty without a cut
  int window_side = 0;

  int n_layers() const { return static_cast<int>(layers.size()); }
  std::size_t cell(int a, int h) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(n_heads) +
           static_cast<std::size_t>(h);
  }
  std::span<const float> mass(int a, int h) const {
    const auto t = static_cast<std::size_t>(seq_len);
    return {key_mass.data() + cell(a, h) * t, t};
  }
  std::span<const int> seen(int a) const {
    const auto t = static_cast<std::size_t>(seq_len);
    return {visible.data() + static_cast<std::size_t>(a) * t, t};
  }
  // Queries see later keys, too: of a causal map only the last query sees the last key.
  bool is_encoder(int a) const { return seq_len > 1 && seen(a).back() > 1; }
  ConstMapF first_rows(int a, int h) const {  // the exact window
    const auto side = static_cast<std::size_t>(window_side);
    return {window.data() + cell(a, h) * side * side, window_side, window_side};
  }
};

void require_dims(const CaptureReader& reader, const std::string& run, const std::string& path,
                  const std::vector<std::int64_t>& expected) {
  const auto found = reader.dims(run, path);
  if (found == expected) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("{}::{}/{}: expected [{}], found [{}]", reader.path(), run, path,
                          fmt::join(expected, ", "), fmt::join(found, ", ")));
}

Stored read_statistics(const CaptureReader& reader, const std::string& run, int seq_len,
                       bool with_window) {
  Stored s;
  s.seq_len = seq_len;
  s.layers = reader.read_i32(run, "attention/layers");
  const auto n_layers = static_cast<std::int64_t>(s.layers.size());
  const auto dims = reader.dims(run, "attention/key_mass");
  const std::int64_t n_heads = dims.size() == 3 ? dims[1] : 0;
  require_dims(reader, run, "attention/key_mass", {n_layers, n_heads, seq_len});
  require_dims(reader, run, "attention/visible", {n_layers, seq_len});
  require_dims(reader, run, "attention/null_mass", {n_layers, n_heads, seq_len});
  s.n_heads = static_cast<int>(n_heads);
  s.key_mass = reader.read_f32(run, "attention/key_mass");
  s.visible = reader.read_i32(run, "attention/visible");
  s.null0 = reader.read_f32(run, "attention/null_mass", {0, 0, 0}, {n_layers, n_heads, 1});
  bool has_encoder = false;
  for (int a = 0; a < s.n_layers(); ++a) has_encoder = has_encoder || s.is_encoder(a);
  if (with_window || has_encoder) {
    const std::int64_t side = std::min(seq_len, 64);
    require_dims(reader, run, "attention/window", {n_layers, n_heads, side, side});
    s.window = reader.read_f32(run, "attention/window");
    s.window_side = static_cast<int>(side);
  }
  return s;
}

// The blocks that are not yet in the file come last.
void drop_layers_from(Stored& s, int layers_end) {
  while (!s.layers.empty() && s.layers.back() >= layers_end) s.layers.pop_back();
}

// Scores of all keys of one head. Padding (NaN) stays NaN.
VectorD head_scores(const Stored& s, int a, int h, std::optional<int> length) {
  if (!length) return gu_scores(s.mass(a, h), s.seen(a));
  const ConstMapF window = s.first_rows(a, h);
  if (!s.is_encoder(a)) return gu_scores_cut(window, s.seen(a), *length);
  const auto n = static_cast<std::size_t>(*length);
  std::vector<float> mass(n);
  for (int q = 0; q < *length; ++q)
    for (int key = 0; key < *length; ++key) mass[static_cast<std::size_t>(key)] += window(q, key);
  return gu_scores(mass, std::vector<int>(n, *length));
}

bool is_special(const RunInput& input, int token) {
  const auto& bos = input.bos_positions;
  if (std::find(bos.begin(), bos.end(), token) != bos.end()) return true;
  const std::string& text = input.token_text[static_cast<std::size_t>(token)];
  return text.size() > 2 && text.front() == '<' && text.back() == '>';
}

void first_token_scores(const Stored& s, AttentionSinks& out) {
  out.with_row0 = MatrixD::Constant(s.n_layers(), s.n_heads, kNaN);
  out.without_row0 = out.with_row0;
  double with = 0, without = 0;
  int cells = 0;
  for (int a = 0; a < s.n_layers(); ++a) {
    for (int h = 0; h < s.n_heads; ++h) {
      // What query 0 gives to key 0: all that is left, where it sees no other.
      const double a00 =
          s.is_encoder(a) ? double{s.first_rows(a, h)(0, 0)} : 1.0 - double{s.null0[s.cell(a, h)]};
      const auto score = first_token_score(s.mass(a, h)[0], a00, s.seq_len);
      out.with_row0(a, h) = score.with_row0;
      out.without_row0(a, h) = score.without_row0;
      if (std::isnan(score.with_row0)) continue;
      with += score.with_row0;
      without += score.without_row0;
      ++cells;
    }
  }
  out.mean_map =
      cells > 0 ? FirstTokenScore{with / cells, without / cells} : FirstTokenScore{kNaN, kNaN};
}

// One candidate a key; those without a head above epsilon are dropped at the end.
struct KeyTally {
  int heads = 0, cells = 0, layer = -1, head = -1;
  double sum = 0, max = -1;
  bool reportable = false;
};

std::vector<SinkToken> named_tokens(const std::vector<KeyTally>& keys, const RunInput& input) {
  std::vector<SinkToken> tokens;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const KeyTally& key = keys[k];
    if (!key.reportable || key.heads == 0) continue;
    const int token = static_cast<int>(k);
    tokens.push_back({token, input.token_text[k], is_special(input, token), key.heads, key.max,
                      key.sum / key.cells, key.layer, key.head});
  }
  std::stable_sort(tokens.begin(), tokens.end(), [](const SinkToken& a, const SinkToken& b) {
    return a.heads != b.heads ? a.heads > b.heads : a.max_score > b.max_score;
  });
  return tokens;
}

void all_keys(const Stored& s, const RunInput& input, const SinkOptions& options, int queries,
              AttentionSinks& out) {
  std::vector<KeyTally> keys(static_cast<std::size_t>(queries));
  out.gu.score = MatrixD::Constant(s.n_layers(), s.n_heads, kNaN);
  for (int a = 0; a < s.n_layers(); ++a) {
    for (int k = 0; k < queries; ++k) {
      const int seen = std::min(s.seen(a)[static_cast<std::size_t>(k)], queries - k);
      if (seen - 1 >= options.min_later_queries)
        keys[static_cast<std::size_t>(k)].reportable = true;
    }
    for (int h = 0; h < s.n_heads; ++h) {
      const VectorD score =
          head_scores(s, a, h, options.gu_length ? std::optional(queries) : std::nullopt);
      out.gu.score(a, h) = score[options.gu_key];
      for (int k = 0; k < queries; ++k) {
        KeyTally& key = keys[static_cast<std::size_t>(k)];
        if (std::isnan(score[k])) continue;
        ++key.cells;
        key.sum += score[k];
        if (score[k] > options.epsilon) ++key.heads;
        if (score[k] > key.max) {
          key.max = score[k];
          key.layer = s.layers[static_cast<std::size_t>(a)];
          key.head = h;
        }
      }
    }
  }
  out.sink_tokens = named_tokens(keys, input);
  out.skipped_last_keys = static_cast<int>(
      std::count_if(keys.begin(), keys.end(), [](const KeyTally& k) { return !k.reportable; }));
}

}  // namespace

std::string why_not_judged(const AttentionSinks& attention, const SinkOptions& options) {
  const int queries = attention.gu.queries;
  if (attention.skipped_last_keys < queries) return "no head has a finite score";
  return fmt::format(
      "no key has {} later {} in {} token{} (--min-queries)", options.min_later_queries,
      options.min_later_queries == 1 ? "query" : "queries", queries, queries == 1 ? "" : "s");
}

AttentionSinks attention_sinks(const CaptureReader& reader, const std::string& run,
                               const RunInput& input, const SinkOptions& options, int layers_end) {
  AttentionSinks out;
  const int seq_len = input.seq_len();
  const int queries = options.gu_length ? std::min(*options.gu_length, seq_len) : seq_len;
  out.gu.epsilon = options.epsilon;
  out.gu.key = options.gu_key;
  out.gu.queries = queries;
  if (options.gu_length && (*options.gu_length < 1 || *options.gu_length > 64)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("length of the cut: expected 1 to 64, the exact window that every "
                            "capture has, found {}",
                            *options.gu_length));
  }
  if (options.gu_key < 0 || options.gu_key >= queries) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}::{}: expected a key below {}, found {}", reader.path(), run,
                            queries, options.gu_key));
  }
  if (!reader.has(run, "attention/key_mass")) {
    out.mean_map = {kNaN, kNaN};
    out.gu.sink_ratio.ratio = kNaN;
    return out;
  }
  Stored stored = read_statistics(reader, run, seq_len, options.gu_length.has_value());
  drop_layers_from(stored, layers_end);
  out.layers = stored.layers;
  first_token_scores(stored, out);
  all_keys(stored, input, options, queries, out);
  const MatrixD& score = out.gu.score;
  out.gu.sink_ratio =
      sink_ratio({score.data(), static_cast<std::size_t>(score.size())}, options.epsilon);
  for (Eigen::Index a = 0; a < score.rows(); ++a) {
    out.gu.layers.push_back(
        summarize_heads({score.data() + a * score.cols(), static_cast<std::size_t>(score.cols())},
                        options.epsilon));
  }
  return out;
}

}  // namespace sinkscope
