// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/text_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "app/cli/parse_text.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<int>::max();

// How often the mean loss of a window counts.
std::int64_t weight_of(const TextWindow& window, bool is_first, const WindowPlan& plan) {
  const bool has_context = !is_first && plan.stride < plan.window;
  const bool takes_one_off = plan.rule == WindowRule::hugging_face && has_context;
  return std::max<std::int64_t>(0, window.n_scored() - takes_one_off);
}

std::vector<TextWindow> hugging_face_windows(std::int64_t n_tokens, const WindowPlan& plan) {
  std::vector<TextWindow> windows;
  std::int64_t scored_end = 0;  // where the window before ended
  for (std::int64_t begin = 0; scored_end < n_tokens; begin += plan.stride) {
    const std::int64_t end = std::min(begin + plan.window, n_tokens);
    windows.push_back({begin, end, std::max(scored_end, begin + 1)});
    windows.back().weight = weight_of(windows.back(), windows.size() == 1, plan);
    scored_end = end;
  }
  return windows;
}

std::vector<TextWindow> llama_cpp_windows(std::int64_t n_tokens, const WindowPlan& plan) {
  std::vector<TextWindow> windows;
  for (std::int64_t begin = 0; begin + plan.window <= n_tokens; begin += plan.window) {
    windows.push_back({begin, begin + plan.window, begin + plan.window / 2 + 1});
    windows.back().weight = weight_of(windows.back(), windows.size() == 1, plan);
  }
  return windows;
}

WindowRule parse_rule(const std::string& text) {
  for (const WindowRule rule : {WindowRule::hugging_face, WindowRule::llama_cpp})
    if (text == name_of(rule)) return rule;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("--window-rule: expected hf or llama.cpp, found '{}'", text));
}

bool begins_with_bos(const RunInput& run) {
  return std::find(run.bos_positions.begin(), run.bos_positions.end(), 0) !=
         run.bos_positions.end();
}

}  // namespace

const char* name_of(WindowRule rule) {
  return rule == WindowRule::hugging_face ? "hf" : "llama.cpp";
}

std::optional<WindowPlan> parse_window_plan(const std::optional<std::string>& window,
                                            const std::optional<std::string>& stride,
                                            const std::optional<std::string>& max_windows,
                                            const std::optional<std::string>& rule) {
  if (!window) {
    const char* lonely = stride        ? "--stride"
                         : max_windows ? "--max-windows"
                         : rule        ? "--window-rule"
                                       : nullptr;
    if (lonely == nullptr) return std::nullopt;
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected --window beside it", lonely));
  }
  WindowPlan plan;
  plan.window = parse_integer("--window", *window, 2, kMost);
  plan.stride = stride ? parse_integer("--stride", *stride, 1, kMost) : plan.window;
  if (max_windows) plan.max_windows = parse_integer("--max-windows", *max_windows, 1, kMost);
  if (rule) plan.rule = parse_rule(*rule);
  if (plan.stride > plan.window)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--stride: expected at most the window of {}, found {}: tokens between "
                            "windows would be left out",
                            plan.window, plan.stride));
  if (plan.rule == WindowRule::llama_cpp && plan.stride != plan.window)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--stride: windows of the rule llama.cpp lie side by side, expected {} "
                            "or nothing, found {}",
                            plan.window, plan.stride));
  return plan;
}

std::vector<TextWindow> plan_windows(std::int64_t n_tokens, const WindowPlan& plan) {
  std::vector<TextWindow> windows = plan.rule == WindowRule::hugging_face
                                        ? hugging_face_windows(n_tokens, plan)
                                        : llama_cpp_windows(n_tokens, plan);
  if (windows.empty())
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("--window: the text has {} tokens, not one whole window of {} (rule {})",
                    n_tokens, plan.window, name_of(plan.rule)));
  if (plan.max_windows && static_cast<std::int64_t>(windows.size()) > *plan.max_windows)
    windows.resize(static_cast<std::size_t>(*plan.max_windows));
  return windows;
}

WindowScore score_windows(const std::vector<TextWindow>& windows,
                          const std::vector<std::vector<double>>& loss) {
  WindowScore score;
  double all = 0, weighted = 0;
  std::int64_t weights = 0;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const TextWindow& window = windows[w];
    if (window.n_scored() <= 0) continue;  // transformers takes the mean of nothing, NaN
    double sum = 0;
    for (std::int64_t at = window.scored_from; at < window.end; ++at)
      sum += loss[w].at(static_cast<std::size_t>(at - window.begin - 1));
    all += sum;
    score.n_scored += window.n_scored();
    weighted += sum / static_cast<double>(window.n_scored()) * static_cast<double>(window.weight);
    weights += window.weight;
  }
  score.position_loss = all / static_cast<double>(score.n_scored);
  score.mean_loss = weighted / static_cast<double>(weights);
  return score;
}

RunInput cut_window(const RunInput& text, const TextWindow& window, const WindowPlan& plan,
                    int index) {
  const auto begin = static_cast<std::ptrdiff_t>(window.begin);
  const auto end = static_cast<std::ptrdiff_t>(window.end);
  RunInput run;
  run.name = fmt::format("{}{}window {}: tokens {}-{}, scored from {}", text.name,
                         text.name.empty() ? "" : ", ", index, window.begin, window.end - 1,
                         window.scored_from);
  run.tokenizer = text.tokenizer;
  run.token_ids.assign(text.token_ids.begin() + begin, text.token_ids.begin() + end);
  run.token_text.assign(text.token_text.begin() + begin, text.token_text.begin() + end);
  for (const int position : text.bos_positions)
    if (position >= window.begin && position < window.end)
      run.bos_positions.push_back(position - static_cast<int>(window.begin));
  if (plan.rule != WindowRule::llama_cpp || !begins_with_bos(text)) return run;
  run.token_ids.front() = text.token_ids.front();
  run.token_text.front() = text.token_text.front();
  if (!begins_with_bos(run)) run.bos_positions.insert(run.bos_positions.begin(), 0);
  return run;
}

std::vector<TextWindow> windows_of(const std::vector<RunInput>& runs, const WindowPlan& plan) {
  std::vector<TextWindow> windows;
  for (const RunInput& run : runs) {
    long long index = 0, begin = 0, last = 0, scored_from = 0;
    const std::size_t at = run.name.rfind("window ");
    if (at == std::string::npos ||
        std::sscanf(run.name.c_str() + at, "window %lld: tokens %lld-%lld, scored from %lld",
                    &index, &begin, &last, &scored_from) != 4 ||
        begin < 0 || begin > kMost || scored_from <= begin)
      return {};
    TextWindow window{begin, begin + run.seq_len(), scored_from};
    window.scored_from = std::min(window.scored_from, window.end);
    window.weight = weight_of(window, index <= 0, plan);
    windows.push_back(window);
  }
  return windows;
}

std::string windows_text(const std::vector<TextWindow>& windows, const std::vector<RunInput>& runs,
                         const WindowPlan& plan) {
  std::int64_t n_scored = 0;
  for (const TextWindow& window : windows) n_scored += window.n_scored();
  const auto n_bos = std::count_if(runs.begin(), runs.end(), begins_with_bos);
  return fmt::format(
      "{} window{} of {} tokens, stride {}, rule {}: {} positions scored, BOS at the beginning of "
      "{}",
      windows.size(), windows.size() == 1 ? "" : "s", plan.window, plan.stride, name_of(plan.rule),
      n_scored,
      n_bos == 0                                          ? std::string("none")
      : n_bos == static_cast<std::ptrdiff_t>(runs.size()) ? std::string("every window")
      : n_bos == 1 && begins_with_bos(runs.front())       ? std::string("the first window only")
                                                          : fmt::format("{} windows", n_bos));
}

}  // namespace sinkscope
