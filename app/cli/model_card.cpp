// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/model_card.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/gguf_file.h"
#include "capture/tokenizer/tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// ArchSpec does not say where its head_dim came from; the config does.
std::string head_dim_source(const ModelFiles& model) {
  if (model.gguf() != nullptr) {
    const std::string key = model.spec().architecture + ".attention.key_length";
    return model.gguf()->find_key(key) != nullptr ? "config" : "inferred";
  }
  const auto config = nlohmann::json::parse(model.config_text(), nullptr, false);
  const bool is_given =
      config.is_object() && config.contains("head_dim") && config["head_dim"].is_number();
  return is_given ? "config" : "inferred";
}

void count_tensors(const Checkpoint& checkpoint, ModelCard& card) {
  std::map<std::string, DtypeRow> rows;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    DtypeRow& row = rows[tensor.dtype];
    row.dtype = tensor.dtype;
    row.n_tensors += 1;
    row.n_elements += tensor.n_elements();
    row.n_bytes += static_cast<std::int64_t>(tensor.n_bytes);
    row.readable = row.readable && tensor.readable;
  }
  for (const auto& [dtype, row] : rows) {
    card.dtypes.push_back(row);
    card.n_tensors += row.n_tensors;
    card.n_parameters += row.n_elements;
    card.n_bytes += row.n_bytes;
  }
  std::stable_sort(card.dtypes.begin(), card.dtypes.end(),
                   [](const DtypeRow& a, const DtypeRow& b) { return a.n_bytes > b.n_bytes; });
}

void describe_tokenizer(const ModelFiles& model, ModelCard& card) {
  try {
    const auto tokenizer = open_tokenizer(model);
    card.tokenizer = tokenizer->name();
    card.tokenizer_vocab = tokenizer->vocab_size();
    card.bos_id = tokenizer->bos_id();
    if (card.bos_id < 0) return;
    card.bos_piece = tokenizer->raw_piece(card.bos_id);
    // What the rule comes to, whatever it is made of.
    const std::vector<int> ids = tokenizer->encode("a").ids;
    card.adds_bos = !ids.empty() && ids.front() == card.bos_id;
  } catch (const Error& error) {
    card.tokenizer.clear();
    card.tokenizer_reason = error.what();
  }
}

}  // namespace

ModelCard model_card(const ModelFiles& model) {
  ModelCard card;
  card.spec = model.spec();
  card.container = model.container();
  card.path = model.path();
  card.is_known_family = model.has(Role::o, 0);
  card.head_dim_source = head_dim_source(model);
  card.warnings = model.warnings();
  card.obstacles = model.obstacles();
  count_tensors(model.checkpoint(), card);
  describe_tokenizer(model, card);
  return card;
}

}  // namespace sinkscope
