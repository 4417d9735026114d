// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/figure_inputs.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "app/cli/capture_runs.h"
#include "app/cli/parse_text.h"
#include "app/cli/prompts.h"
#include "capture/checkpoint/model_files.h"
#include "capture/checkpoint/model_norms.h"
#include "core/run_done.h"

namespace sinkscope {
namespace {

bool all_differ(const std::vector<std::string>& names) {
  const std::set<std::string> distinct(names.begin(), names.end());
  return distinct.size() == names.size() && !distinct.contains("");
}

std::string stem_of(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).lexically_normal();
  const std::string stem = name.stem().string();
  return stem.empty() ? path : stem;
}

// A table that another verb wrote begins like JSON.
bool looks_like_json(const std::string& path) {
  std::ifstream file(path);
  char first = 0;
  return file >> first && first == '{';
}

FigureInput model_input(const std::string& path, const std::string& arch_file, Console& console) {
  const auto model = open_model(path, {.ignore_index = false, .arch_file = arch_file});
  for (const std::string& warning : model->warnings()) console.warn(warning);
  FigureInput input;
  input.model.name = stem_of(path);
  input.model.n_layers = model->spec().n_layers;
  input.model.d_model = model->spec().d_model;
  const ModelNorms norms = read_norms(*model);
  for (const std::string& sentence : norms.unread) console.warn(sentence);
  for (const NamedNorms& role : norms.roles) input.norms.push_back(role.facts);
  return input;
}

}  // namespace

std::vector<std::string> distinct_names(const std::vector<std::string>& models,
                                        const std::vector<std::string>& files,
                                        const std::vector<std::string>& runs) {
  if (all_differ(models)) return models;
  if (all_differ(files)) return files;
  std::vector<std::string> both;
  for (std::size_t i = 0; i < files.size(); ++i)
    both.push_back(runs[i].empty() ? files[i] : files[i] + " · " + runs[i]);
  if (all_differ(both)) return all_differ(runs) ? runs : both;
  std::map<std::string, int> seen;
  for (std::string& name : both)
    if (const int n = ++seen[name]; n > 1) name += fmt::format(" ({})", n);
  return both;
}

OpenedInputs open_figure_inputs(const FigureRequest& request, Console& console) {
  OpenedInputs opened;
  std::vector<std::string> models, files, runs;
  const std::optional<std::string> run =
      request.run.empty() ? std::nullopt : std::optional(request.run);
  for (const std::string& word : request.inputs) {
    const RunPath place = parse_run_path(word);
    if (looks_like_capture(place.path)) {
      opened.captures.push_back(CaptureReader::open(place.path));
      const CaptureReader& capture = *opened.captures.back();
      FigureInput input;
      input.capture = &capture;
      input.run = pick_run(capture, place.run, run, console);
      input.model = capture.model(input.run);
      if (!is_run_done(capture, input.run))
        console.warn(fmt::format("{}: incomplete, {} whole layers", place.path,
                                 capture.whole_layers(input.run)));
      opened.inputs.push_back(std::move(input));
    } else if (std::filesystem::is_regular_file(place.path) && looks_like_json(place.path)) {
      FigureInput input;
      input.model.name = stem_of(place.path);
      input.model.source = place.path;
      input.evidence = read_whole(place.path, console);
      opened.inputs.push_back(std::move(input));
    } else {
      opened.inputs.push_back(model_input(word, arch_of(request, opened.inputs.size()), console));
    }
    models.push_back(opened.inputs.back().model.name);
    files.push_back(stem_of(place.path));
    runs.push_back(opened.inputs.back().run);
  }
  const std::vector<std::string> names =
      request.names.empty() ? distinct_names(models, files, runs) : request.names;
  for (std::size_t i = 0; i < names.size(); ++i) opened.inputs[i].name = names[i];
  return opened;
}

}  // namespace sinkscope
