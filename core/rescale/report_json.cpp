// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/rescale/report.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;

// Reads one file's values; every refusal names the file and the key.
class Evidence {
 public:
  explicit Evidence(const std::string& name) : name_(name) {}

  [[noreturn]] void refuse(const std::string& found, ErrorKind kind = ErrorKind::corrupt) const {
    throw Error(kind,
                fmt::format("{}: expected the evidence of sinkscope rescale -o F.json, found {}",
                            name_, found));
  }

  const Json& at(const Json& from, const char* key) const {
    if (!from.is_object() || !from.contains(key)) refuse(fmt::format("no \"{}\"", key));
    return from[key];
  }
  std::string text(const Json& from, const char* key) const {
    if (!at(from, key).is_string()) refuse(fmt::format("no text in \"{}\"", key));
    return from[key].get<std::string>();
  }
  int integer(const Json& from, const char* key) const { return integer_in(at(from, key), key); }
  double number(const Json& from, const char* key) const { return number_in(at(from, key), key); }

  // null = not finite, as written.
  std::vector<double> numbers(const Json& from, const char* key, std::size_t n) const {
    std::vector<double> values;
    for (const Json& value : list(from, key, n)) values.push_back(number_in(value, key));
    return values;
  }
  std::vector<int> integers(const Json& from, const char* key, std::size_t n) const {
    std::vector<int> values;
    for (const Json& value : list(from, key, n)) values.push_back(integer_in(value, key));
    return values;
  }
  const Json& list(const Json& from, const char* key) const {
    if (!at(from, key).is_array()) refuse(fmt::format("no list in \"{}\"", key));
    return from[key];
  }

 private:
  const Json& list(const Json& from, const char* key, std::size_t n) const {
    const Json& values = list(from, key);
    if (values.size() != n)
      refuse(fmt::format("{} values in \"{}\" instead of {}", values.size(), key, n));
    return values;
  }
  int integer_in(const Json& value, const char* key) const {
    if (!value.is_number_integer() || std::abs(value.get<double>()) > (1 << 24))
      refuse(fmt::format("no small integer in \"{}\"", key));
    return value.get<int>();
  }
  double number_in(const Json& value, const char* key) const {
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) refuse(fmt::format("no number in \"{}\"", key));
    return value.get<double>();
  }

  const std::string& name_;
};

NormEvidence norm_of(const Evidence& from, const Json& json, std::size_t n_tokens) {
  NormEvidence e;
  e.role = from.text(json, "role");
  e.layer = from.integer(json, "layer");
  e.eps = from.number(json, "eps");
  e.dim = from.integers(json, "dim", n_tokens);
  e.gain_max = from.number(json, "gain_max");
  const std::pair<const char*, std::vector<double>*> arrays[] = {{"r2", &e.r2},
                                                                 {"share_after", &e.share_after},
                                                                 {"alpha", &e.alpha},
                                                                 {"elasticity", &e.elasticity},
                                                                 {"output_rms", &e.output_rms},
                                                                 {"gain_dim", &e.gain_dim},
                                                                 {"bound_1", &e.bound_1},
                                                                 {"bound_5", &e.bound_5},
                                                                 {"lower", &e.lower},
                                                                 {"clip_growth", &e.clip_growth},
                                                                 {"next_linear", &e.next_linear}};
  for (const auto& [key, values] : arrays) {
    const bool may_lack = values == &e.clip_growth || values == &e.next_linear;
    if (!may_lack || json.contains(key)) *values = from.numbers(json, key, n_tokens);
  }
  return e;
}

HeadEvidence head_of(const Evidence& from, const Json& json) {
  HeadEvidence e;
  e.layer = from.integer(json, "layer");
  e.head = from.integer(json, "head");
  const std::size_t n = from.list(json, "query").size();
  e.query = from.integers(json, "query", n);
  e.p = from.numbers(json, "p", n);
  e.share_after = from.numbers(json, "share_after", n);
  if (json.contains("through_o")) e.through_o = from.numbers(json, "through_o", n);
  return e;
}

}  // namespace

RescaleReport parse_rescale_json(const std::string& text, const std::string& name) {
  const Evidence from(name);
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) from.refuse("no JSON");
  if (!json.is_object() || json.value("schema", Json()) != "sinkscope.rescale/1")
    from.refuse("another file", ErrorKind::invalid_argument);
  RescaleReport report;
  report.path = from.text(json, "file");
  report.run = from.text(json, "run");
  report.model = from.text(json, "model");
  report.n_layers = from.integer(json, "layers");
  report.n_tokens = from.integer(json, "tokens");
  report.queries = from.text(json, "queries");
  report.options.key = from.integer(json, "key");
  if (report.n_layers < 0 || report.n_tokens < 1) from.refuse("no tokens");
  report.options.dims = from.integers(json, "dims", from.list(json, "dims").size());
  for (const Json& norm : from.list(json, "norms"))
    report.norms.push_back(norm_of(from, norm, static_cast<std::size_t>(report.n_tokens)));
  for (const Json& head : from.list(json, "heads")) report.heads.push_back(head_of(from, head));
  if (!from.at(json, "not_computed").is_object()) from.refuse("no object in \"not_computed\"");
  for (const auto& [quantity, needs] : json["not_computed"].items())
    report.not_computed[quantity] = from.text(json["not_computed"], quantity.c_str());
  for (const NormEvidence& e : report.norms)
    if (e.layer < -1 || e.layer >= report.n_layers) from.refuse(fmt::format("layer {}", e.layer));
  for (const HeadEvidence& e : report.heads)
    if (e.layer < 0 || e.layer >= report.n_layers) from.refuse(fmt::format("layer {}", e.layer));
  return report;
}

}  // namespace sinkscope
