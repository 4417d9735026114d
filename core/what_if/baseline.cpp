// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"

namespace sinkscope {
namespace {

std::string shortened(const std::string& hash) { return hash.substr(0, 12); }

}  // namespace

std::string baseline_run(const std::string& twin) { return twin.substr(0, twin.find("_edit")); }

void check_same_model(const CaptureReader& baseline, const std::string& fingerprint) {
  const ModelFacts found = baseline.model(baseline.runs().front());
  if (found.fingerprint == fingerprint) return;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: fingerprint: expected a capture of this model ({}), found one of {} "
                          "({})",
                          baseline.path(), shortened(fingerprint), found.name,
                          shortened(found.fingerprint)));
}

void check_same_tokens(const CaptureReader& baseline, const std::string& run,
                       const std::string& sha256) {
  const std::string found = input_sha256(baseline.input(run).token_ids);
  if (found == sha256) return;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: {}: input_sha256: expected the same tokens ({}), found others ({})",
                          baseline.path(), run, shortened(sha256), shortened(found)));
}

std::unique_ptr<CaptureReader> open_baseline(const CaptureReader& edited) {
  const std::string file = edited.input(edited.runs().front()).baseline_file;
  if (file.empty()) return nullptr;
  const auto folder = std::filesystem::path(edited.path()).parent_path();
  auto baseline = CaptureReader::open((folder / file).string());
  check_same_model(*baseline, edited.model(edited.runs().front()).fingerprint);
  for (const std::string& twin : edited.runs())
    check_same_tokens(*baseline, baseline_run(twin),
                      edited.text_attribute(twin, "", "input_sha256"));
  return baseline;
}

}  // namespace sinkscope
