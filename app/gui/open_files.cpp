// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/open_files.h"

#include <fmt/format.h>

#include "app/cli/format_text.h"
#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/model_norms.h"

namespace sinkscope {

OpenModel open_for_window(const std::string& path, const std::string& arch_file) {
  OpenModel model;
  model.files = open_model(path, {.ignore_index = false, .arch_file = arch_file});
  model.card = model_card(*model.files);
  model.fingerprint = fingerprint(model.files->checkpoint());
  ModelNorms norms = read_norms(*model.files);
  for (NamedNorms& role : norms.roles) model.norms.push_back(std::move(role.facts));
  model.unread_norms = std::move(norms.unread);
  return model;
}

std::string model_sentence(const ModelCard& card) {
  const ArchSpec& spec = card.spec;
  const std::string name = spec.name.empty() ? card.path : spec.name;
  const std::string container = card.container == Container::gguf ? "GGUF" : "safetensors";
  const std::string size = fmt::format("{} parameters in {} of {}", format_count(card.n_parameters),
                                       container, format_bytes(card.n_bytes));
  if (spec.n_layers == 0) return fmt::format("{} is a model of an unknown family: {}.", name, size);
  return fmt::format("{} is a {} of {} layers, {} heads and width {}: {}.", name,
                     spec.architecture.empty() ? "model" : spec.architecture, spec.n_layers,
                     spec.n_heads, spec.d_model, size);
}

std::string run_label(const RunFacts& facts) {
  if (facts.input.edit_of < 0) return facts.name();
  const std::string label = facts.name() + " · edited";
  return facts.name() == facts.run ? label : label + " · " + facts.run;
}

std::vector<RunFacts> OpenFiles::open(const std::string& path) {
  readers_.erase(path);
  if (trial_) trial_(path);
  const CaptureReader& file = reader(path);
  std::vector<RunFacts> runs;
  for (const std::string& run : file.runs()) {
    runs.push_back(read_run_facts(file, run));
    for (const std::string& twin : file.edits(run)) runs.push_back(read_run_facts(file, twin));
  }
  return runs;
}

const CaptureReader& OpenFiles::reader(const std::string& path) {
  std::unique_ptr<CaptureReader>& reader = readers_[path];
  if (reader == nullptr) {
    try {
      reader = CaptureReader::open(path);
    } catch (...) {
      readers_.erase(path);
      throw;
    }
  }
  return *reader;
}

}  // namespace sinkscope
