// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/element_type.h"

namespace sinkscope {

// Everything that fixes the shape of a capture file before the first layer has run. A layout is a
// value: the size table of --dry-run, the writer and the tests all derive from it.
// The file itself is specified in core/FORMAT.md.

// One prompt, as it is fed.
struct RunInput {
  std::string name;            // "run0" is the group; this is the user's name for it, may be empty
  std::string text;            // empty when token ids were given
  std::vector<int> token_ids;  // [T]
  std::vector<std::string> token_text;  // [T] readable labels; empty strings without a tokenizer
  std::vector<int> bos_positions;
  std::string tokenizer;  // what made the ids; "" = given as ids
  // An edited twin of runs[edit_of]: the same tokens under a what-if, as JSON text. −1 = a run as
  // it is. Twins come after all runs that they belong to.
  int edit_of = -1;
  std::string what_if;
  // Of a twin whose baseline lies in another capture, as that capture's run{edit_of}: its path,
  // relative to this file's folder; "" = in this file. A capture holds twins of one kind only.
  std::string baseline_file;
  // Of the token ids that means were taken over (whatif --calibration); "" = none.
  std::string calibration_sha256;
  int seq_len() const { return static_cast<int>(token_ids.size()); }
  bool operator==(const RunInput&) const = default;
};

// The same prompt without its what-if.
RunInput as_it_is(RunInput run);

struct ModelFacts {
  std::string name, source, fingerprint, architecture, config_text;
  int n_layers = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, d_model = 0, vocab_size = 0;
  int n_streams = 1;  // residual streams of d_model each
  // Width of a residual state: dimension s·d_model + d is dimension d of stream s.
  int state_width() const { return n_streams * d_model; }
};

// One norm role over its layers. gain, gain_raw: [N, width]; bias [N, width] or empty.
struct NormFacts {
  std::string role;  // "ln1", "ln2", "ln_final", "q_norm", "k_norm"
  std::string kind;  // "rms", "layer_norm"
  double eps = 0, offset = 0;
  std::vector<int> layers;  // [N] block indices, -1 = after the last block
  int width = 0;
  std::vector<float> gain, gain_raw, bias;
  std::vector<float> pre_gain;  // [N, width] or empty: the norm reads pre_gain ⊙ x
};

// A site whose streamed statistics are kept: hook name without "blocks.N.", its layers, its width.
struct StatsSite {
  std::string hook;          // "hook_resid_pre", "ln1.hook_out", …
  std::vector<int> layers;   // [N]
  int width = 0;             // D; per-head norms: heads * head_dim
  bool is_norm = false;      // also gets token/{input_rms,input_max_dim,input_r2}
  bool is_residual = false;  // also gets median_abs [N]
};

// A recorded tensor under taps/<hook>/values [N, dims…]; a dimension of kSeqLen means this run's T,
// −m for m > 1 the T/m whole windows of m tokens in it, at least one.
inline constexpr int kSeqLen = -1;
struct TapRecord {
  std::string hook;
  std::vector<int> layers;
  std::vector<int> dims;  // e.g. {n_heads, kSeqLen, head_dim}
};

// One map in place of many: over the recorded heads of a layer, or over the recorded layers of a
// head (which all of the file's layers must have been run for).
enum class Reduce { none, mean, max };
enum class ReduceOver { heads, layers };

struct PatternRecord {
  std::vector<int> layers, heads;  // block indices, query heads
  std::vector<int> rows;           // query positions; empty = all of each run
  Reduce reduce = Reduce::none;
  ReduceOver over = ReduceOver::heads;  // pattern_heads = [-1], or pattern_layers = [-1]
  bool reduces(ReduceOver what) const { return reduce != Reduce::none && over == what; }
  bool operator==(const PatternRecord&) const = default;
};

struct Provenance {
  std::string device, dtype, torch, kernel, command, tile;
  int threads = 0;
  std::int64_t seed = 0;
};

struct CaptureLayout {
  ModelFacts model;
  std::vector<RunInput> runs;
  std::vector<int> attention_layers;  // [A] blocks with softmax attention
  bool has_compressed_keys = false;   // attention/compressed_mass
  bool parallel_blocks = false;       // no resid_mid
  // Attention over depth: blocks before whose attention the stream restarts; empty = it never does.
  std::vector<int> block_layers;
  std::vector<NormFacts> norms;
  std::vector<StatsSite> sites;
  bool stream = true;     // residual/stream, residual/final_norm
  PatternRecord pattern;  // layers empty = no maps
  std::vector<TapRecord> taps;
  bool has_head = true;  // logits/loss, top_ids, top_logprob
  bool logits_full = false;
  int top_k = 10;
  Provenance provenance;
  std::string creator = "sinkscope";
};

// SHA-256, in hex, of token ids as little-endian 32-bit integers; of several runs, one after the
// other. Names what was fed, whatever text it came from.
std::string input_sha256(const std::vector<int>& token_ids);

// "run3"; the k-th twin of it: "run3_edit0", "run3_edit1", …
std::string run_group_name(const std::vector<RunInput>& runs, int run);

struct DatasetSpec {
  std::string path;  // below the run's group, e.g. "attention/key_mass"
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> chunk;  // empty = contiguous
  std::int64_t n_bytes() const;     // text counts as 0
};

// Every dataset of the group of run `run`, in creation order. model/, norm/ and provenance/ are the
// same objects in every run and listed with run 0 only.
// Throws Error{invalid_argument} for a layout that contradicts itself: a name with '/', a gain
// whose size is not layers × width, no tokens.
std::vector<DatasetSpec> datasets_of(const CaptureLayout& layout, int run);

// Names of the S residual sites: "blocks.0.hook_resid_pre", "blocks.0.hook_resid_mid", …
std::vector<std::string> residual_sites(int n_layers, bool parallel_blocks);

// Chunk side along tokens: c = ceil(T / ceil(T/256)), so that T = 257 is two chunks of 129.
int token_chunk_side(int seq_len);

// Chunk side of attention maps: token_chunk_side doubled until a layer (of `heads` maps T × T)
// has at most 16,000 chunks; at most T.
int pattern_chunk_side(int seq_len, int heads);

}  // namespace sinkscope
