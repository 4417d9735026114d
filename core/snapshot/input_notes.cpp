// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/input_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"

namespace sinkscope {
namespace {

std::string token_text(const RunInput& input, std::size_t t) {
  const std::string& text = input.token_text.at(t);
  return text.empty() ? fmt::format("id {}", input.token_ids[t]) : quoted(text);
}

void note_tokens(const RunInput& a, const std::string& title_a, const RunInput& b,
                 const std::string& title_b, std::vector<std::string>& notes) {
  const std::size_t common = std::min(a.token_ids.size(), b.token_ids.size());
  std::size_t n_different = 0, first = common;
  for (std::size_t t = common; t-- > 0;)
    if (a.token_ids[t] != b.token_ids[t]) {
      ++n_different;
      first = t;
    }
  if (n_different > 0) {
    notes.push_back(fmt::format(
        "Different inputs: {} of the first {} tokens differ, the first at position {}: {} in {}, "
        "{} in {}.",
        n_different, common, first, token_text(a, first), title_a, token_text(b, first), title_b));
  }
  if (a.token_ids.size() != b.token_ids.size())
    notes.push_back(fmt::format("Different lengths: {} tokens in {}, {} in {}.", a.token_ids.size(),
                                title_a, b.token_ids.size(), title_b));
}

bool begins_with_bos(const RunInput& input) {
  return std::find(input.bos_positions.begin(), input.bos_positions.end(), 0) !=
         input.bos_positions.end();
}

bool are_other_weights(const ModelFacts& a, const ModelFacts& b) {
  return !a.fingerprint.empty() && !b.fingerprint.empty() && a.fingerprint != b.fingerprint;
}

}  // namespace

void note_models(const ModelFacts& a, const std::string& title_a, const ModelFacts& b,
                 const std::string& title_b, std::vector<std::string>& notes) {
  if (!are_other_weights(a, b) && a.name == b.name) return;
  notes.push_back(fmt::format("Different models: {} in {}, {} in {}{}.", a.name, title_a, b.name,
                              title_b, a.name == b.name ? " (the same name, other weights)" : ""));
}

void note_inputs(const RunInput& a, const std::string& title_a, const RunInput& b,
                 const std::string& title_b, std::vector<std::string>& notes) {
  if (a.token_ids != b.token_ids) note_tokens(a, title_a, b, title_b, notes);
  if (begins_with_bos(a) != begins_with_bos(b))
    notes.push_back(fmt::format(
        "Inputs differ: BOS. Only {} begins with a BOS token: first tokens are not the same.",
        begins_with_bos(a) ? title_a : title_b));
}

}  // namespace sinkscope
