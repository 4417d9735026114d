// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/figure_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/figure/figure_kinds.h"
#include "core/shell_word.h"

namespace sinkscope {
namespace {

// Only words that begin with a dash have to be kept apart from options.
std::string positional_word(const std::string& text) {
  return shell_word(text.starts_with('-') ? "./" + text : text);
}

}  // namespace

std::string figure_command(const FigureRequest& request, const std::string& output) {
  std::string command = "sinkscope figure";
  if (!request.kind.empty()) command += ' ' + request.kind;
  for (const std::string& input : request.inputs) command += ' ' + positional_word(input);
  if (!request.archs.empty())
    command += fmt::format(" --arch {}",
                           positional_word(fmt::format("{}", fmt::join(request.archs, ","))));
  for (const FigureOption& option : figure_options()) {
    const std::optional<std::string> text = option.text(request);
    if (!text) continue;
    command += fmt::format(" {}", option.flag);
    // A value may itself begin with a dash (a range from −1).
    if (*option.placeholder != '\0')
      command += text->starts_with('-') ? '=' + shell_word(*text) : ' ' + shell_word(*text);
  }
  if (!output.empty()) command += " -o " + positional_word(output);
  return command;
}

FigureRequest parse_figure_words(const std::vector<std::string>& words) {
  FigureRequest request;
  std::vector<std::string> positional;
  std::optional<std::string> archs;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      positional.push_back(words[i]);
      continue;
    }
    const std::string flag = words[i].substr(0, words[i].find('='));
    const auto value_as = [&](const char* placeholder) {
      if (flag.size() < words[i].size()) return words[i].substr(flag.size() + 1);
      if (i + 1 < words.size()) return words[++i];
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: expected {} behind it", flag, placeholder));
    };
    if (flag == "--arch") {
      archs = value_as("F.json");
      continue;
    }
    const auto option = std::find_if(figure_options().begin(), figure_options().end(),
                                     [&](const FigureOption& o) { return flag == o.flag; });
    if (option == figure_options().end())
      throw Error(ErrorKind::invalid_argument, fmt::format("figure: unknown option '{}'", flag));
    option->set(request, *option->placeholder != '\0' ? value_as(option->placeholder) : "");
  }
  set_figure_words(request, positional);
  if (archs) set_archs(request, *archs);
  return request;
}

void set_figure_words(FigureRequest& request, const std::vector<std::string>& positional) {
  auto first_input = positional.begin();
  if (request.preset.empty()) {
    if (positional.empty())
      throw Error(ErrorKind::invalid_argument,
                  "figure: expected KIND INPUT…; sinkscope figure --list names the kinds");
    request.kind = figure_kind(positional.front()).name;
    ++first_input;
  }
  request.inputs.assign(first_input, positional.end());
}

void set_archs(FigureRequest& request, const std::string& text) {
  request.archs.clear();
  if (text.empty()) return;
  std::vector<std::string> each(1);
  for (const char c : text) {
    if (c == ',')
      each.emplace_back();
    else
      each.back() += c;
  }
  // A path may itself have a comma.
  request.archs = each.size() == request.inputs.size() ? each : std::vector<std::string>{text};
}

std::string arch_of(const FigureRequest& request, std::size_t input) {
  if (request.archs.empty()) return "";
  return request.archs.size() == 1 ? request.archs.front() : request.archs.at(input);
}

std::vector<std::string> archs_for(const std::vector<std::string>& inputs,
                                   const ModelArchs& models) {
  std::vector<std::string> each;
  std::set<std::string> different;
  for (const std::string& input : inputs) {
    const auto found = models.find(input);
    each.push_back(found == models.end() ? "" : found->second);
    if (found != models.end()) different.insert(found->second);
  }
  if (different.size() > 1) return each;
  if (different.empty() || different.begin()->empty()) return {};
  return {*different.begin()};
}

void check_request(const FigureRequest& request) {
  if (request.preset.empty() == request.kind.empty())
    throw Error(ErrorKind::invalid_argument, "figure: expected a kind or a preset, one of them");
  if (request.preset.empty()) {
    figure_kind(request.kind);
  } else {
    figure_preset(request.preset);
  }
  if (request.inputs.empty())
    throw Error(ErrorKind::invalid_argument, "figure: expected a capture or a model to draw");
  if (!request.names.empty() && request.names.size() != request.inputs.size())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--names: expected {} for as many inputs, found {}",
                            request.inputs.size(), request.names.size()));
  if (request.archs.size() > 1 && request.archs.size() != request.inputs.size())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--arch: expected one file or {} for as many inputs, found {}",
                            request.inputs.size(), request.archs.size()));
  if (request.kind == "compare" && request.inputs.size() < 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("figure compare: expected two inputs or more, found {}",
                            request.inputs.size()));
  for (const auto& [flag, list] :
       {std::pair("--layers", &request.layers), std::pair("--heads", &request.heads)})
    if (!list->empty() && (request.kind != "compare" || list->size() != request.inputs.size()))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: expected one for each input of compare, found {} for {}", flag,
                              list->size(), request.inputs.size()));
}

}  // namespace sinkscope
