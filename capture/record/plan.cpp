// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "capture/checkpoint/model_norms.h"
#include "capture/engine.h"
#include "capture/prediction.h"
#include "capture/record/site.h"
#include "capture/record/tile_geometry.h"
#include "core/error.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

std::vector<int> all_of(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The chosen indices, sorted and unique, or all n; an index beyond n is named.
std::vector<int> chosen(std::vector<int> wanted, int n, const char* what) {
  if (wanted.empty()) return all_of(n);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (int index : wanted)
    if (index < 0 || index >= n)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("no {} {}: this model has {} 0 to {}", what, index, what, n - 1));
  return wanted;
}

std::vector<StatsSite> statistics_sites(const ArchSpec& spec) {
  std::vector<StatsSite> sites;
  for (Site site : kAllSites) {
    if (!has_statistics(site) || !has_site(spec, site)) continue;
    StatsSite s;
    s.hook = hook_name(site);
    s.layers = site_layers(spec, site);
    s.width = 1;
    for (int n : site_dims(spec, site)) s.width *= n == kSeqLen ? 1 : n;
    s.is_norm = site == Site::ln1_out || site == Site::ln2_out || site == Site::ln_final_out ||
                site == Site::ln1_post_out || site == Site::ln2_post_out;
    s.is_residual = site == Site::resid_pre || site == Site::resid_mid || site == Site::resid_post;
    sites.push_back(s);
  }
  return sites;
}

// What `--record all` adds to the maps: norm outputs, q, k, v, z, gates, routers.
constexpr Site kRecordAll[] = {Site::ln1_out,
                               Site::ln2_out,
                               Site::q_norm,
                               Site::k_norm,
                               Site::q,
                               Site::k,
                               Site::v,
                               Site::z,
                               Site::ln1_post_out,
                               Site::ln2_post_out,
                               Site::ln1_gate,
                               Site::ln2_gate,
                               Site::attn_gate,
                               Site::q_latent,
                               Site::kv_latent,
                               Site::linear_norm,
                               Site::v_norm,
                               Site::per_layer_add,
                               Site::ngram_add,
                               Site::compressed_kv,
                               Site::mlp_router,
                               Site::mlp_router_logits,
                               Site::mlp_shared_gate,
                               Site::ln1_k_out,
                               Site::ln1_v_out,
                               Site::depth_attn_mixed,
                               Site::depth_mlp_mixed,
                               Site::depth_final_mixed,
                               Site::embed_norm,
                               Site::per_layer_proj_norm,
                               Site::ln2_post_dense_out,
                               Site::ln2_experts_out,
                               Site::ln2_post_experts_out,
                               Site::router_norm,
                               Site::ngram_key_norm,
                               Site::ngram_query_norm,
                               Site::ngram_conv_norm};

// Those of the wanted blocks that have the site; none is an error that says so.
std::vector<int> blocks_with(const ArchSpec& spec, Site site, const std::vector<int>& wanted,
                             bool is_named) {
  std::vector<int> layers;
  for (const int layer : wanted)
    if (has_site(spec, site, layer)) layers.push_back(layer);
  if (layers.empty() && is_named)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("none of the chosen layers has the site '{}'", hook_name(site)));
  return layers;
}

// `pattern`: the heads and rows of the maps, which maps of compressed keys have, too.
std::vector<TapRecord> recorded_taps(const ArchSpec& spec, const RecordRequest& record,
                                     const PatternRecord& pattern) {
  std::vector<Site> sites;
  if (record.all)
    for (Site site : kRecordAll)
      if (has_site(spec, site)) sites.push_back(site);
  // What the halves put out cannot be told from a stream that restarts.
  if (record.all && spec.depth_block > 0)
    sites.insert(sites.end(), {Site::attn_out, Site::mlp_out});
  for (Site site : kAllSites)
    if (is_always_recorded(site) && has_site(spec, site)) sites.push_back(site);
  for (Site site : kAllSites)
    if (record.all && is_stream_site(site) && has_site(spec, site)) sites.push_back(site);
  // With one stream they are differences of its states.
  if (record.all && spec.has_streams()) sites.insert(sites.end(), {Site::attn_out, Site::mlp_out});
  if (record.maps && has_site(spec, Site::pattern_compressed))
    sites.push_back(Site::pattern_compressed);
  for (const std::string& hook : record.sites) {
    if (hook.starts_with("blocks."))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("--record {}: expected a hook without its block, '{}'; --layers says "
                              "which blocks",
                              hook, SiteName::parse(hook).hook));
    const std::optional<Site> site = site_of_hook(hook);
    if (!site || !has_site(spec, *site)) {
      std::string known;
      for (Site s : kAllSites)
        if (has_site(spec, s)) known += std::string(known.empty() ? "" : ", ") + hook_name(s);
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("this model has no site '{}'; it has {}", hook, known));
    }
    sites.push_back(*site);
  }
  std::sort(sites.begin(), sites.end());
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  const std::vector<int> blocks = chosen(record.layers, spec.n_layers, "layer");
  std::vector<TapRecord> taps;
  for (Site site : sites) {
    const bool is_named =
        std::find(record.sites.begin(), record.sites.end(), hook_name(site)) != record.sites.end();
    const std::vector<int> layers = is_outside_blocks(site) || is_always_recorded(site)
                                        ? site_layers(spec, site)
                                        : blocks_with(spec, site, blocks, is_named);
    if (layers.empty()) continue;
    taps.push_back({hook_name(site), layers, site_dims(spec, site)});
    if (site == Site::pattern_compressed && record.maps) {
      taps.back().dims[0] = static_cast<int>(pattern.heads.size());
      if (!pattern.rows.empty()) taps.back().dims[1] = static_cast<int>(pattern.rows.size());
    }
  }
  return taps;
}

void check_sums(const PatternRecord& pattern, const CaptureRequest& request) {
  const std::int64_t bytes = reduced_map_bytes(request, static_cast<int>(pattern.heads.size()));
  if (bytes <= request.activation_budget) return;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("maps reduced over layers take {} MiB of memory, --activation-budget "
                          "allows {} MiB: fewer --heads, --rows or prompts, or a larger budget",
                          (bytes >> 20) + 1, request.activation_budget >> 20));
}

}  // namespace

int resolved_threads(const CaptureRequest& request) {
  if (request.threads > 0) return request.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::int64_t state_bytes(int seq_len, const ArchSpec& spec) {
  const std::int64_t streams = 3 + spec.n_block_states(spec.n_layers);
  return 4 * streams * seq_len * spec.state_width();
}

CaptureLayout plan_capture(const ModelFiles& model, const CaptureRequest& request) {
  const ArchSpec& spec = model.spec();
  if (!model.obstacles().empty())
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: cannot be run: {}", model.path(), model.obstacles().front()));
  if (request.runs.empty()) throw Error(ErrorKind::invalid_argument, "nothing to run: no prompt");
  int shortest = 0;
  for (std::size_t r = 0; r < request.runs.size(); ++r) {
    const int seq_len = request.runs[r].seq_len();
    if (seq_len < 1)
      throw Error(ErrorKind::invalid_argument, fmt::format("run{}: the prompt has no tokens", r));
    shortest = r == 0 ? seq_len : std::min(shortest, seq_len);
    for (int t = 0; t < seq_len; ++t) {
      const int id = request.runs[r].token_ids[static_cast<std::size_t>(t)];
      if (id < 0 || id >= spec.vocab_size)
        throw Error(ErrorKind::invalid_argument,
                    fmt::format("run{}: token id {} at position {}: the vocabulary has ids 0 to {}",
                                r, id, t, spec.vocab_size - 1));
    }
  }
  for (std::size_t r = 0; spec.learned_positions && r < request.runs.size(); ++r)
    if (request.runs[r].seq_len() > spec.n_ctx)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("run{}: {} tokens: this model has {} learned positions", r,
                              request.runs[r].seq_len(), spec.n_ctx));
  if (request.record.logits && !spec.has_head)
    throw Error(ErrorKind::unsupported,
                "logits: this model has no head (no lm_head.weight, embeddings not tied)");

  CaptureLayout layout;
  layout.creator = "sinkscope " SINKSCOPE_VERSION;
  layout.model = {spec.name,         model.path(),        fingerprint(model.checkpoint()),
                  spec.architecture, model.config_text(), spec.n_layers,
                  spec.n_heads,      value_heads(spec),   spec.head_dim,
                  spec.d_model,      spec.head_rows(),    spec.streams.n};
  layout.runs = request.runs;
  layout.attention_layers = spec.attention_layers();
  layout.has_compressed_keys = has_site(spec, Site::pattern_compressed);
  layout.parallel_blocks = spec.parallel;
  for (int layer = 0; layer < spec.n_layers; ++layer)
    if (spec.starts_depth_block(layer)) layout.block_layers.push_back(layer);
  for (NamedNorms& norms : read_norms(model).roles) layout.norms.push_back(std::move(norms.facts));
  layout.sites = statistics_sites(spec);
  layout.stream = request.record.stream;
  if (request.record.maps) {
    for (const int layer : chosen(request.record.layers, spec.n_layers, "layer"))
      if (spec.mixer(layer) != Mixer::delta) layout.pattern.layers.push_back(layer);
    if (layout.pattern.layers.empty())
      throw Error(ErrorKind::invalid_argument,
                  "maps: no softmax attention in the chosen layers, they are linear");
    layout.pattern.heads = chosen(request.record.heads, spec.n_heads, "head");
    if (!request.record.rows.empty())
      layout.pattern.rows = chosen(request.record.rows, shortest, "row");
    layout.pattern.reduce = request.record.reduce;
    layout.pattern.over = request.record.reduce_over;
    if (layout.pattern.reduces(ReduceOver::layers)) check_sums(layout.pattern, request);
  } else {
    chosen(request.record.layers, spec.n_layers, "layer");
    chosen(request.record.heads, spec.n_heads, "head");
  }
  layout.taps = recorded_taps(spec, request.record, layout.pattern);
  layout.has_head = spec.has_head;
  layout.logits_full = request.record.logits;
  layout.top_k = std::min(request.top_k, spec.head_rows());
  layout.provenance.dtype = request.dtype == RunDtype::float32 ? "float32" : "bfloat16";
  layout.provenance.tile = describe_tiles(request.runs, spec.n_heads, value_heads(spec));
  layout.provenance.threads = resolved_threads(request);
  layout.provenance.command = request.command;
  return layout;
}

}  // namespace sinkscope
