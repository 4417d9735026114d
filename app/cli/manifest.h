// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "app/cli/capture_job.h"
#include "app/cli/console.h"

namespace sinkscope {

// One recording of a batch.
struct BatchEntry {
  int number = 0;     // from 0, over the whole manifest
  std::string where;  // in the manifest, for messages: "runs.json: entry 3", "runs.jsonl:4"
  std::string model, prompt, options;  // their names; "" where there is only one without a name
  CaptureFlags flags;                  // with the output
};

// A manifest is JSON (one block or a list of them) or JSON lines (a block a line). A block names
// what `capture` is told, by its long flags without dashes: {"model":…,"text":…,"record":"maps",
// "layers":"0-3","output":"x.h5"}. Numbers, true and lists of numbers or words stand for the flag's
// text. Lists under "models", "prompts" and "options" make one entry of every combination, in that
// order, the last varying fastest; their items are blocks again (a text: a model's path, a prompt's
// text), may have a "name", and win over the block around them.
//
// "output" is a pattern: {n} is the entry's number in four digits, {model}, {prompt} and {options}
// are names, without one the last part of the model's path or the item's number. None:
// "{n}-{model}.h5". Relative outputs lie in `folder`.
//
// Everything that can be told without opening a model is checked. Throws Error: not_found, io (the
// file); invalid_argument, one line with entry and field: what is unknown, doubled, of the wrong
// type or contradicts itself, and two entries that would write the same file.
std::vector<BatchEntry> read_manifest(const std::string& path, const std::string& folder,
                                      Console& console);

// "1/4": the second of four disjoint parts, those entries whose number leaves 1 when divided by 4.
struct Shard {
  int index = 0, count = 1;
  bool has(int number) const { return number % count == index; }
};
// Throws Error{invalid_argument}.
Shard parse_shard(const std::string& text);

}  // namespace sinkscope
