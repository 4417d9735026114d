// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/model_card.h"
#include "core/capture_reader.h"
#include "core/snapshot/norms_snapshot.h"
#include "core/snapshot/run_facts.h"

namespace sinkscope {

// A model that was opened: what is shown at once, without a forward pass.
struct OpenModel {
  std::shared_ptr<const ModelFiles> files;
  ModelCard card;
  std::string fingerprint;  // as a capture of it says
  std::vector<NormFacts> norms;
  std::vector<std::string> unread_norms;
};
OpenModel open_for_window(const std::string& path, const std::string& arch_file = "");
using OpenModels = std::vector<std::shared_ptr<const OpenModel>>;  // in the order of opening

// One sentence: "SmolLM2-135M-Instruct is a llama of 30 layers, 9 heads and width 576: 134,515,008
// parameters in a GGUF file of 93.5 MiB."
std::string model_sentence(const ModelCard& card);

// The name of a run, which tells its edited twins from it: "story · edited · run0_edit0".
std::string run_label(const RunFacts& facts);

// The captures that are open. All members run on the reading worker's thread: exactly one thread
// touches a file.
class OpenFiles {
 public:
  // Is called with a path before the file is opened by open(), and throws where that would be
  // unwise; see read_in_another_process. To be set before the first open().
  using Trial = std::function<void(const std::string& path)>;
  void set_trial(Trial trial) { trial_ = std::move(trial); }

  // Every run with its edited twins behind it. Opens the file again where it was open before: a
  // recording may have replaced it.
  std::vector<RunFacts> open(const std::string& path);
  // Opens it on first use. Errors: those of CaptureReader::open.
  const CaptureReader& reader(const std::string& path);
  void close(const std::string& path) { readers_.erase(path); }

 private:
  Trial trial_;
  std::map<std::string, std::unique_ptr<CaptureReader>> readers_;
};

}  // namespace sinkscope
