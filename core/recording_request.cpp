// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/recording_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/h5/object.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;

// Of the runs' ids; lengths go in before them, so that no two lists of runs read alike.
std::string digest(const std::vector<RunInput>& runs) {
  std::vector<int> all;
  for (const RunInput& run : runs) {
    all.push_back(run.seq_len());
    all.insert(all.end(), run.token_ids.begin(), run.token_ids.end());
  }
  return input_sha256(all);
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
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

[[noreturn]] void refuse(const std::string& path, const std::string& field, const Json& was,
                         const Json& is) {
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: is whole, but another recording: {} was {}, is {}; --force replaces "
                          "it",
                          path, field, text_of(was), text_of(is)));
}

}  // namespace

std::string recording_request(const CaptureLayout& layout) {
  const Provenance& from = layout.provenance;
  Json what_ifs = Json::array(), sites = Json::array(), taps = Json::array(), names = Json::array();
  for (const RunInput& run : layout.runs) names.push_back(run.name);
  for (const RunInput& run : layout.runs)
    if (run.edit_of >= 0) what_ifs.push_back({run.edit_of, run.what_if});
  for (const StatsSite& site : layout.sites) sites.push_back({site.hook, site.layers});
  for (const TapRecord& tap : layout.taps) taps.push_back({tap.hook, tap.layers});
  const Json request = {{"model", layout.model.fingerprint},
                        {"runs", layout.runs.size()},
                        {"names", names},
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
                        {"creator", layout.creator},
                        {"command", from.command}};  // what no other field says: windows, budgets
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);  // names may be any bytes
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

void require_same_command(const CaptureReader& reader, const std::string& command) {
  const std::string was = reader.read_text(reader.runs().front(), "provenance/command");
  if (was != command) refuse(reader.path(), "command", was, command);
}

void require_same_recording(const CaptureReader& reader, const CaptureLayout& layout) {
  const auto require = [&](const std::string& field, const Json& was, const Json& is) {
    if (was != is) refuse(reader.path(), field, was, is);
  };
  require_same_command(reader, layout.provenance.command);
  const std::string& first = reader.runs().front();
  require("model", reader.model(first).fingerprint, layout.model.fingerprint);
  require("runs", reader.runs().size(), layout.runs.size());
  for (std::size_t i = 0; i < layout.runs.size(); ++i) {
    const std::string run = run_group_name(layout.runs, static_cast<int>(i));
    const RunInput there = reader.input(run);
    require("the name of " + run, there.name, h5::storable_text(layout.runs[i].name));
    require("tokens of " + run, there.token_ids, layout.runs[i].token_ids);
  }
}

}  // namespace sinkscope
