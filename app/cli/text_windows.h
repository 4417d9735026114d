// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/capture_layout.h"

namespace sinkscope {

// How a long text becomes windows, and which of their positions count for its perplexity. Numbers
// of one text differ by several per cent between the two, so every report names the rule.
enum class WindowRule {
  // The recipe of transformers' documentation ("Perplexity of fixed-length models"): windows begin
  // every `stride` tokens; a position is scored by the first window that holds it; the last window
  // may be shorter. BOS only where the text has it: in the first window. The mean loss of a window
  // counts as often as it has labels that are not masked, less one for the shift of labels. In a
  // window with context no label is lost to the shift, the recipe takes one off all the same: n
  // scored positions weigh n − 1 there, one alone nothing.
  hugging_face,
  // llama.cpp's: windows side by side, whole ones only; each scores its second half, from position
  // window/2 + 1 on; where the text begins with BOS, every window's first token is replaced by it.
  // Every scored position counts once.
  llama_cpp,
};
const char* name_of(WindowRule rule);  // "hf", "llama.cpp"

struct WindowPlan {
  std::int64_t window = 0, stride = 0;
  std::optional<std::int64_t> max_windows;
  WindowRule rule = WindowRule::hugging_face;
};

// Positions of a text: tokens [begin, end), of which [scored_from, end) are scored. A token is
// scored by the probability that it has after those before it, so the first of a window never is.
struct TextWindow {
  std::int64_t begin = 0, end = 0, scored_from = 0;
  std::int64_t weight = 0;  // how often the mean loss of its scored positions counts, by the rule
  std::int64_t n_scored() const { return end - scored_from; }
  bool operator==(const TextWindow&) const = default;
};

// The plan that the flags say; nullopt without --window. Throws Error{invalid_argument} naming the
// flag: a window of less than 2 tokens, a stride beyond the window, a rule that is not known.
std::optional<WindowPlan> parse_window_plan(const std::optional<std::string>& window,
                                            const std::optional<std::string>& stride,
                                            const std::optional<std::string>& max_windows,
                                            const std::optional<std::string>& rule);

// The windows of a text of so many tokens. Throws Error{invalid_argument} where there is none.
std::vector<TextWindow> plan_windows(std::int64_t n_tokens, const WindowPlan& plan);

// The windows that runs were cut by before (cut_window names them so); none where one of them is no
// window. Of a run that has become shorter since, what is left counts.
std::vector<TextWindow> windows_of(const std::vector<RunInput>& runs, const WindowPlan& plan);

// What the scored positions of all windows say: the mean negative log-likelihood in nats.
struct WindowScore {
  std::int64_t n_scored = 0;
  double mean_loss = 0;      // by the rule's weights; NaN where nothing counts
  double position_loss = 0;  // every scored position once; NaN where nothing is scored
};
// `loss[w]`: of window w's positions 1…T−1 (logits/loss of its run).
WindowScore score_windows(const std::vector<TextWindow>& windows,
                          const std::vector<std::vector<double>>& loss);

// The window as a run: its tokens with BOS by the rule, and a name that says where it lies.
RunInput cut_window(const RunInput& text, const TextWindow& window, const WindowPlan& plan,
                    int index);

// "4 windows of 16 tokens, stride 8, rule hf: 39 of 40 tokens scored, BOS in the first window
// only".
std::string windows_text(const std::vector<TextWindow>& windows, const std::vector<RunInput>& runs,
                         const WindowPlan& plan);

}  // namespace sinkscope
