// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"

namespace sinkscope {

// The flags of one verb: what it takes, its help, and the parsing. Values stay text here; the verb
// turns them into numbers (parse_text.h), so that every complaint has the same form. The variables
// handed in must outlive parse() and keep what they hold where the flag is not given.
class CommandLine {
 public:
  // `verb` "capture"; `summary`: one or two sentences above the options.
  CommandLine(const std::string& verb, const std::string& summary);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  enum class Need { required, optional };

  // Positional arguments, in this order.
  void positional(const std::string& name, std::string& value, const std::string& help,
                  Need need = Need::required);
  // All positional arguments that are left.
  void rest(const std::string& name, std::vector<std::string>& values, const std::string& help);
  // `names`: "-o,--output"; `placeholder` is what help shows for the value.
  void value(const std::string& names, std::optional<std::string>& value,
             const std::string& placeholder, const std::string& help);
  // May be given several times; values keep their order.
  void values(const std::string& names, std::vector<std::string>& values,
              const std::string& placeholder, const std::string& help);
  void flag(const std::string& names, bool& value, const std::string& help);
  // The options that follow stand under this heading in the help.
  void group(const std::string& heading);
  // Text below the options: examples, and the keys of --json.
  void footer(const std::string& text);

  // What a name such as "--layers" stands for, among what was said above.
  enum class Kind { none, value, flag };
  Kind kind_of(const std::string& name) const;
  // Sets it as a command line would: a value to `text`, a flag to on.
  void set(const std::string& name, const std::string& text);
  std::vector<std::string> names() const;  // of values and flags, the long ones, in their order

  // False: --help was asked for and printed. Sets the console's verbosity from -q and -v.
  // Throws Error{invalid_argument} for anything unknown, missing or doubled.
  bool parse(const std::vector<std::string>& args, Console& console);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sinkscope
