// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace sinkscope {

class Tokenizer;

// How a family of chat models writes one turn of a user and begins the answer. Built in: a template
// out of a file is a program of a stranger's and is never run.
struct ChatTemplate {
  const char* name;              // "ChatML", "Llama-3", "Gemma"
  const char* turn;              // the token that begins a turn: by it the family is recognized
  const char* before;            // in front of the user's text
  const char* after;             // behind it, up to where the answer begins
  const char* const* tokens;     // all markers the vocabulary must have; ends with nullptr
  bool trims = false;            // white space around the text is removed
  bool begins_with_bos = false;  // BOS belongs to the template
};

// The template of the vocabulary's family. Throws Error{unsupported} naming the markers looked for.
const ChatTemplate& chat_template_of(const Tokenizer& tokenizer);

// The text as one user turn and the beginning of an answer; without BOS. No system message.
std::string apply_chat_template(const ChatTemplate& chat, std::string_view text);

}  // namespace sinkscope
