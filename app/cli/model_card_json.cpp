// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include "app/cli/model_card.h"
#include "capture/checkpoint/spec_fields.h"

namespace sinkscope {
namespace {

const char* head_name(const ArchSpec& spec) {
  return !spec.has_head ? "none" : spec.tied ? "tied" : "untied";
}

}  // namespace

nlohmann::ordered_json card_json(const ModelCard& card) {
  using Json = nlohmann::ordered_json;
  const ArchSpec& spec = card.spec;
  Json tokenizer = nullptr;
  if (!card.tokenizer.empty())
    tokenizer = Json{{"name", card.tokenizer},
                     {"vocab_size", card.tokenizer_vocab},
                     {"bos_id", card.bos_id < 0 ? Json(nullptr) : Json(card.bos_id)},
                     {"bos_piece", card.bos_piece},
                     {"adds_bos", card.adds_bos}};
  Json rope = nullptr, norm = nullptr;
  if (card.is_known_family) {
    rope = Json{{"rotary_dim", spec.rope.rotary_dim},
                {"theta", spec.rope.theta},
                {"scaling", to_string(spec.rope.scaling)},
                {"factor", spec.rope.factor}};
    norm = Json{{"kind", kNormKinds[static_cast<std::size_t>(spec.norm_kind)]},
                {"eps", spec.norm_eps},
                {"offset", spec.norm_offset},
                {"qk", kQkNorms[static_cast<std::size_t>(spec.qk_norm)]}};
  }
  Json dtypes = Json::array();
  for (const DtypeRow& row : card.dtypes)
    dtypes.push_back({{"dtype", row.dtype},
                      {"tensors", row.n_tensors},
                      {"elements", row.n_elements},
                      {"bytes", row.n_bytes},
                      {"readable", row.readable}});
  return Json{{"schema", "sinkscope.info/1"},
              {"conventions",
               {{"parameters", "stored elements of all tensors"},
                {"windows", "keys a query sees, its own included; 0 = all before it"},
                {"gain", "effective = stored + norm_offset"}}},
              {"name", spec.name},
              {"path", card.path},
              {"container", card.container == Container::gguf ? "gguf" : "safetensors"},
              {"architecture", spec.architecture},
              {"n_layers", spec.n_layers},
              {"n_heads", spec.n_heads},
              {"n_kv_heads", spec.n_kv_heads},
              {"head_dim", spec.head_dim},
              {"head_dim_source", card.head_dim_source},
              {"d_model", spec.d_model},
              {"d_mlp", spec.d_mlp},
              {"vocab_size", spec.vocab_size},
              {"n_ctx", spec.n_ctx},
              {"rope", rope},
              {"windows", card.is_known_family ? Json(spec.window) : Json(nullptr)},
              {"norm", norm},
              {"head", card.is_known_family ? Json(head_name(spec)) : Json(nullptr)},
              {"parameters", card.n_parameters},
              {"tensors", card.n_tensors},
              {"bytes", card.n_bytes},
              {"dtypes", dtypes},
              {"tokenizer", tokenizer},
              {"tokenizer_reason", card.tokenizer_reason},
              {"warnings", card.warnings},
              {"obstacles", card.obstacles}};
}

}  // namespace sinkscope
