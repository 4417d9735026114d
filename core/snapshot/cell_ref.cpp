// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/cell_ref.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sinkscope {
namespace {

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// A whole number at the front of `text`, which is cut off.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "l12h3", "l12", "h3"; nullopt when it is not of this form at all.
std::optional<CellRef> layer_and_head(const std::string& text) {
  CellRef cell;
  std::string_view rest = text;
  for (const char letter : {'l', 'h'}) {
    if (rest.empty() || rest.front() != letter) continue;
    rest.remove_prefix(1);
    if (rest.empty()) return std::nullopt;
    const std::optional<int> number = take_number(rest);
    if (!number) return std::nullopt;
    (letter == 'l' ? cell.layer : cell.head) = *number;
  }
  if (!rest.empty() || cell == CellRef{}) return std::nullopt;
  return cell;
}

std::optional<CellRef> find_token(const std::string& text, const FindSpace& space,
                                  const CellRef& current) {
  const int n = static_cast<int>(space.token_labels.size());
  const int from = std::max(current.token, -1);
  for (int i = 1; i <= n; ++i) {
    const int t = (from + i) % n;
    if (lower(space.token_labels[static_cast<std::size_t>(t)]).find(text) == std::string::npos)
      continue;
    CellRef cell;
    cell.token = cell.key = t;
    return cell;
  }
  return std::nullopt;
}

}  // namespace

CellRef merged(CellRef cell, const CellRef& change) {
  for (int CellRef::*field : {&CellRef::layer, &CellRef::head, &CellRef::query, &CellRef::key,
                              &CellRef::token, &CellRef::dim})
    if (change.*field >= 0) cell.*field = change.*field;
  return cell;
}

std::string short_name(const CellRef& cell) {
  std::string name;
  if (cell.layer >= 0) name += fmt::format("L{}", cell.layer);
  if (cell.head >= 0) name += fmt::format("H{}", cell.head);
  const std::pair<char, int> parts[] = {
      {'q', cell.query}, {'k', cell.key}, {'t', cell.token}, {'d', cell.dim}};
  for (const auto& [letter, value] : parts)
    if (value >= 0) name += fmt::format("{}{}{}", name.empty() ? "" : " ", letter, value);
  return name;
}

std::optional<CellRef> find_place(const std::string& text, const FindSpace& space,
                                  const CellRef& current) {
  const std::string wanted = lower(trimmed(text));
  if (wanted.empty()) return std::nullopt;
  if (const auto cell = layer_and_head(wanted)) {
    if (cell->layer < space.n_layers && cell->head < space.n_heads) return cell;
  }
  std::string_view rest = wanted;
  if (const auto dim = take_number(rest); dim && rest.empty() && *dim < space.n_dims) {
    CellRef cell;
    cell.dim = *dim;
    return cell;
  }
  return find_token(wanted, space, current);
}

}  // namespace sinkscope
