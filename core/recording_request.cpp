// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recording_request.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;

// FNV-1a over the runs' ids and lengths.
std::string digest(const std::vector<RunInput>& runs) {
  std::uint64_t sum = 0xCBF29CE484222325U;
  const auto mix = [&](std::uint64_t value) { sum = (sum ^ value) * 0x100000001B3U; };
  for (const RunInput& run : runs) {
    mix(run.token_ids.size());
    for (int id : run.token_ids) mix(static_cast<std::uint64_t>(id));
  }
  return fmt::format("{:016x}", sum);
}

Json pattern_of(const PatternRecord& pattern) {
  if (pattern.layers.empty()) return nullptr;
  return {{"layers", pattern.layers},
          {"heads", pattern.heads},
          {"rows", pattern.rows},
          {"reduce", static_cast<int>(pattern.reduce)},
          {"over", static_cast<int>(pattern.over)}};
}

std::string text_of(const Json& value) {
  const std::string text = value.dump();
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

}  // namespace

std::string recording_request(const CaptureLayout& layout) {
  const Provenance& from = layout.provenance;
  Json what_ifs = Json::array(), sites = Json::array(), taps = Json::array();
  for (const RunInput& run : layout.runs)
    if (run.edit_of >= 0) what_ifs.push_back({run.edit_of, run.what_if});
  for (const StatsSite& site : layout.sites) sites.push_back({site.hook, site.layers});
  for (const TapRecord& tap : layout.taps) taps.push_back({tap.hook, tap.layers});
  const Json request = {{"model", layout.model.fingerprint},
                        {"runs", layout.runs.size()},
                        {"tokens", digest(layout.runs)},
                        {"edits", what_ifs},
                        {"stream", layout.stream},
                        {"maps", pattern_of(layout.pattern)},
                        {"sites", taps},
                        {"statistics", sites},
                        {"logits", layout.logits_full},
                        {"top-k", layout.top_k},
                        {"device", from.device},
                        {"dtype", from.dtype},
                        {"threads", from.threads},
                        {"kernel", from.kernel},
                        {"tile", from.tile},
                        {"torch", from.torch},
                        {"creator", layout.creator}};
  return request.dump();
}

void require_same_request(const std::string& path, const std::string& begun,
                          const std::string& now) {
  const Json was = Json::parse(begun, nullptr, false), is = Json::parse(now);
  if (!was.is_object())
    throw Error(ErrorKind::corrupt,
                fmt::format("{}.state: it does not say what is recorded", path));
  for (const auto& [field, value] : is.items()) {
    const Json before = was.value(field, Json());
    if (before == value) continue;
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: cannot be resumed with another request: {} was {}, is {}", path,
                            field, text_of(before), text_of(value)));
  }
}

}  // namespace sinkscope
