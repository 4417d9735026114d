// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "app/cli/parse_text.h"
#include "app/cli/prompt_reader.h"
#include "capture/tokenizer/chat_template.h"
#include "capture/tokenizer/unicode.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// How a complaint names a run: "run0", and the user's name for it where there is one.
std::string run_label(const std::vector<RunInput>& runs, std::size_t index) {
  const std::string& name = runs[index].name;
  return name.empty() ? fmt::format("run{}", index) : fmt::format("run{} ({})", index, name);
}

void check_ids(const std::vector<RunInput>& runs, int vocab_size) {
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::vector<int>& ids = runs[r].token_ids;
    if (ids.empty())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: the prompt has no tokens", run_label(runs, r)));
    const auto bad = std::find_if(ids.begin(), ids.end(),
                                  [&](int id) { return vocab_size > 0 && id >= vocab_size; });
    if (bad != ids.end())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: token id {} at position {} is outside the vocabulary, expected "
                              "ids from 0 to {}",
                              run_label(runs, r), *bad, bad - ids.begin(), vocab_size - 1));
  }
}

// Every prompt as windows of itself.
std::vector<RunInput> cut_windows(const std::vector<RunInput>& texts, const WindowPlan& plan,
                                  std::vector<TextWindow>& all, Console& console) {
  std::vector<RunInput> runs;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const std::vector<TextWindow> windows = plan_windows(texts[t].seq_len(), plan);
    const std::size_t first = runs.size();
    for (std::size_t w = 0; w < windows.size(); ++w)
      runs.push_back(cut_window(texts[t], windows[w], plan, static_cast<int>(w)));
    const std::vector<RunInput> made(runs.begin() + static_cast<std::ptrdiff_t>(first), runs.end());
    console.note(fmt::format("{}: {} tokens as {}",
                             texts.size() == 1 ? "text" : run_label(texts, t), texts[t].seq_len(),
                             windows_text(windows, made, plan)));
    all.insert(all.end(), windows.begin(), windows.end());
  }
  return runs;
}

void cut(RunInput& run, std::int64_t length) {
  const auto kept = static_cast<std::size_t>(length);
  run.token_ids.resize(kept);
  run.token_text.resize(std::min(kept, run.token_text.size()));
  std::erase_if(run.bos_positions, [&](int position) { return position >= length; });
}

std::int64_t max_tokens(const PromptFlags& flags) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return flags.max_tokens ? parse_integer("--max-tokens", *flags.max_tokens, 1, kMost) : kMost;
}

// --max-tokens: of the whole text, before there are windows.
void cut_to_limit(std::vector<RunInput>& runs, const PromptFlags& flags, Console& console) {
  const std::int64_t limit = max_tokens(flags);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].seq_len() <= limit) continue;
    console.note(
        fmt::format("{}: cut from {} to {} tokens", run_label(runs, r), runs[r].seq_len(), limit));
    cut(runs[r], limit);
  }
}

// More than a book shelf: what is larger was named by mistake, or has no end.
constexpr std::size_t kLargestText = std::size_t{256} << 20;

std::string read_bounded(std::istream& in, const std::string& name) {
  std::string content;
  std::vector<char> piece(std::size_t{1} << 20);
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    content.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    if (content.size() > kLargestText)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: expected a text of at most {} MiB, found more", name,
                              kLargestText >> 20));
  }
  if (in.bad())
    throw Error(ErrorKind::io, fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  return content;
}

void require_one_prompt(const PromptFlags& flags) {
  const int n_given = static_cast<int>(flags.text.has_value()) + flags.text_file.has_value() +
                      flags.tokens.has_value() + flags.tokens_file.has_value() +
                      flags.prompts.has_value();
  if (n_given > 1)
    throw Error(ErrorKind::invalid_argument,
                "expected one of --text, --text-file, --tokens, --tokens-file and --prompts, found "
                "several");
}

}  // namespace

const std::string& built_in_text() {
  static const std::string text =
      "The lighthouse keeper climbed the stairs every evening, before the sun went down. He lit "
      "the "
      "lamp, wrote the weather into a small book, and listened to the sea. Some nights the fog was "
      "so thick that he could not see the rocks below. Then he rang the bell, and ships away "
      "answered with their horns.";
  return text;
}

void add_text_flags(CommandLine& command, PromptFlags& flags) {
  command.value("--text", flags.text, "S", "the text itself");
  command.value("--text-file", flags.text_file, "F", "a UTF-8 file; - is standard input");
  command.flag("--chat", flags.chat,
               "wrap the text as a user's turn in the model family's template (ChatML, Llama-3, "
               "Gemma)");
  command.value("--bos", flags.bos, "auto|always|never",
                "put the BOS token first (auto: what the model's files say)");
  command.flag("--no-special", flags.no_special,
               "the text alone: no token is added to it (BOS, [SEP]), and what spells a special "
               "token is cut up as text");
  command.value("--pre-tokenizer", flags.pre_tokenizer, "NAME",
                "how a GGUF vocabulary splits text, where the file does not say");
}

void add_prompt_flags(CommandLine& command, PromptFlags& flags) {
  command.group("Prompt (none: a built-in English text of about 64 tokens)");
  add_text_flags(command, flags);
  command.value("--tokens", flags.tokens, "1,2,3", "token ids, fed as they are");
  command.value("--tokens-file", flags.tokens_file, "F",
                "token ids separated by commas or white space; - is standard input");
  command.value("--prompts", flags.prompts, "F.jsonl",
                "one run a line: {\"text\":…} or {\"tokens\":[…]}, optional \"name\"");
  command.value("--max-tokens", flags.max_tokens, "N", "cut every prompt to N tokens");
  command.value("--window", flags.window, "N", "cut a long text into runs of N tokens");
  command.value("--stride", flags.stride, "N", "tokens from one window to the next (default: N)");
  command.value("--max-windows", flags.max_windows, "N", "only the first N windows of a text");
  command.value("--window-rule", flags.window_rule, "hf|llama.cpp",
                "what is scored, and where BOS stands (default: hf)");
}

bool has_prompt(const PromptFlags& flags) {
  return flags.text || flags.text_file || flags.tokens || flags.tokens_file || flags.prompts;
}

BosRule parse_bos_rule(const std::optional<std::string>& text) {
  const std::string rule = text.value_or("auto");
  if (rule == "auto") return BosRule::automatic;
  if (rule == "always") return BosRule::always;
  if (rule == "never") return BosRule::never;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("--bos: expected auto, always or never, found '{}'", rule));
}

BosRule bos_rule_of(const PromptFlags& flags) {
  const BosRule rule = parse_bos_rule(flags.bos);
  if (!flags.no_special) return rule;
  if (rule != BosRule::automatic || flags.chat)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected none beside --no-special, which adds no token",
                            flags.chat ? "--chat" : "--bos"));
  return BosRule::text_alone;
}

std::string read_whole(const std::string& path, Console& console) {
  namespace fs = std::filesystem;
  if (path == "-") return read_bounded(console.in, "standard input");
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  if (type == fs::file_type::not_found)
    throw Error(ErrorKind::not_found, fmt::format("{}: no such file", path));
  if (type == fs::file_type::directory)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected a file, found a folder", path));
  if (type == fs::file_type::character || type == fs::file_type::block)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected a file, found a device", path));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be opened: {}", path,
                                           failure ? failure.message() : std::strerror(errno)));
  return read_bounded(file, path);
}

std::string read_text(const std::string& path, Console& console) {
  std::string text = read_whole(path, console);
  try {
    require_utf8(text);
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{}: {}", path == "-" ? "standard input" : path, error.what()));
  }
  return text;
}

std::string fed_text(const std::string& text, bool chat, const Tokenizer& tokenizer, BosRule& bos,
                     Console& console) {
  if (!chat) return text;
  const ChatTemplate& wrapping = chat_template_of(tokenizer);
  if (wrapping.begins_with_bos && bos == BosRule::automatic && tokenizer.bos_id() >= 0)
    bos = BosRule::always;
  console.note(fmt::format("chat: a user's turn of {}, without a system message", wrapping.name));
  return apply_chat_template(wrapping, text);
}

void check_prompt_flags(const PromptFlags& flags) {
  require_one_prompt(flags);
  bos_rule_of(flags);
  max_tokens(flags);
  parse_window_plan(flags.window, flags.stride, flags.max_windows, flags.window_rule);
  if (flags.tokens) parse_ids("--tokens", *flags.tokens);
}

void relabel(std::vector<RunInput>& runs, const std::optional<std::string>& pre_tokenizer,
             const ModelFiles& model, const std::string& from, Console& console) {
  PromptFlags flags;
  flags.pre_tokenizer = pre_tokenizer;
  PromptReader reader(flags, model, console);
  bool is_said = false;
  for (RunInput& run : runs) {
    const std::vector<std::string> none(run.token_ids.size());
    const RunInput here = reader.from_ids(run.token_ids, run.name);
    if (here.token_text == none || run.token_text == none || here.token_text == run.token_text)
      continue;
    const auto differing = std::mismatch(here.token_text.begin(), here.token_text.end(),
                                         run.token_text.begin(), run.token_text.end());
    const auto at = differing.first - here.token_text.begin();
    if (!is_said)
      console.warn(fmt::format(
          "{}: token id {} is '{}' to this model and '{}' in the recording: "
          "another vocabulary, the same ids are another text",
          from, run.token_ids[static_cast<std::size_t>(at)], *differing.first, *differing.second));
    is_said = true;
    run.token_text = here.token_text;
    run.bos_positions = here.bos_positions;
  }
}

void require_windows_side_by_side(const PromptFlags& flags) {
  const std::optional<WindowPlan> plan =
      parse_window_plan(flags.window, flags.stride, flags.max_windows, flags.window_rule);
  if (!plan) return;
  if (plan->stride < plan->window)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--stride {}: every position of every window is scored here; expected "
                            "windows side by side (--stride {} or none)",
                            plan->stride, plan->window));
  if (plan->rule == WindowRule::llama_cpp)
    throw Error(ErrorKind::invalid_argument,
                "--window-rule llama.cpp: every position of every window is scored here, not half "
                "of them");
}

std::vector<RunInput> read_prompts(const PromptFlags& flags, const ModelFiles& model,
                                   Console& console, std::vector<TextWindow>* windows) {
  const std::optional<WindowPlan> plan =
      parse_window_plan(flags.window, flags.stride, flags.max_windows, flags.window_rule);
  require_one_prompt(flags);
  PromptReader reader(flags, model, console);
  std::vector<RunInput> runs;
  if (flags.text) {
    runs.push_back(reader.from_text(*flags.text, ""));
  } else if (flags.text_file) {
    runs.push_back(reader.from_text(read_text(*flags.text_file, console), ""));
  } else if (flags.tokens) {
    runs.push_back(reader.from_ids(parse_ids("--tokens", *flags.tokens), ""));
  } else if (flags.tokens_file) {
    const std::string content = read_whole(*flags.tokens_file, console);
    runs.push_back(reader.from_ids(parse_ids(*flags.tokens_file, content), ""));
  } else if (flags.prompts) {
    runs = reader.from_json_lines(read_whole(*flags.prompts, console), *flags.prompts);
  } else {
    runs.push_back(reader.from_text(built_in_text(), "built-in text"));
    console.note(
        fmt::format("prompt: the built-in English text, {} tokens here (--text, --tokens "
                    "or --prompts give another)",
                    runs.front().seq_len()));
  }
  check_ids(runs, model.spec().vocab_size);
  cut_to_limit(runs, flags, console);
  if (plan) {
    std::vector<TextWindow> made;
    runs = cut_windows(runs, *plan, made, console);
    if (windows != nullptr) *windows = std::move(made);
  }
  check_prompts(runs, flags, model.spec(), console);
  return runs;
}

void check_prompts(std::vector<RunInput>& runs, const PromptFlags& flags, const ArchSpec& spec,
                   Console& console) {
  check_ids(runs, spec.vocab_size);
  cut_to_limit(runs, flags, console);
  const auto longest = std::max_element(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a.seq_len() < b.seq_len();
  });
  if (spec.n_ctx <= 0 || longest == runs.end() || longest->seq_len() <= spec.n_ctx) return;
  const std::string sentence =
      fmt::format("{}: {} tokens, the model's context is {}",
                  run_label(runs, static_cast<std::size_t>(longest - runs.begin())),
                  longest->seq_len(), spec.n_ctx);
  if (spec.learned_positions)
    throw Error(ErrorKind::invalid_argument, sentence + " and its positions are learned");
  console.warn(sentence + (spec.rope.rotary_dim > 0
                               ? "; rotary positions go on, the model never saw them"
                               : "; it has no positions that could end, and never saw so many"));
}

}  // namespace sinkscope
