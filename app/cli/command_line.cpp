// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <ostream>

#include "core/error.h"

namespace sinkscope {
namespace {

// CLI11's own layout breaks long help lines nowhere; this one keeps a narrower left column.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(34); }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_items_expected_max() != 0 && !option->get_type_name().empty())
      text = " " + option->get_type_name();
    return text;
  }
};

}  // namespace

struct CommandLine::Parts {
  explicit Parts(const std::string& summary) : app(summary) {}

  CLI::App app;
  std::string verb, heading = "Options";
  struct Setter {
    std::string name;
    Kind kind;
    std::function<void(const std::string&)> set;
  };
  std::vector<Setter> setters;

  // "-o,--output" is known as "--output".
  void remember(const std::string& names, Kind kind, std::function<void(const std::string&)> set) {
    const auto at = names.find("--");
    if (at != std::string::npos) setters.push_back({names.substr(at), kind, std::move(set)});
  }
  const Setter* find(const std::string& name) const {
    const auto found = std::find_if(setters.begin(), setters.end(),
                                    [&](const Setter& setter) { return setter.name == name; });
    return found == setters.end() ? nullptr : &*found;
  }
  bool quiet = false, verbose = false;
};

CommandLine::CommandLine(const std::string& verb, const std::string& summary)
    : parts_(std::make_unique<Parts>(summary)) {
  parts_->verb = verb;
  CLI::App& app = parts_->app;
  app.name("sinkscope " + verb);
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("-h,--help", "print this help");
}

CommandLine::~CommandLine() = default;

void CommandLine::positional(const std::string& name, std::string& value, const std::string& help,
                             Need need) {
  CLI::Option* option = parts_->app.add_option(name, value, help);
  option->type_name("");
  if (need == Need::required) option->required();
}

void CommandLine::rest(const std::string& name, std::vector<std::string>& values,
                       const std::string& help) {
  parts_->app.add_option(name, values, help)->type_name("");
}

void CommandLine::value(const std::string& names, std::optional<std::string>& value,
                        const std::string& placeholder, const std::string& help) {
  const auto set = [&value](const std::string& text) { value = text; };
  CLI::Option* option = parts_->app.add_option_function<std::string>(names, set, help);
  option->type_name(placeholder)->group(parts_->heading);
  parts_->remember(names, Kind::value, set);
}

void CommandLine::values(const std::string& names, std::vector<std::string>& values,
                         const std::string& placeholder, const std::string& help) {
  CLI::Option* option = parts_->app.add_option(names, values, help);
  option->type_name(placeholder)->group(parts_->heading)->expected(1);
  // Without this the library would take a text in brackets, such as a JSON list, apart.
  option->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  parts_->app
      .add_flag_callback(
          names, [&value] { value = true; }, help)
      ->group(parts_->heading);
  parts_->remember(names, Kind::flag, [&value](const std::string&) { value = true; });
}

void CommandLine::group(const std::string& heading) { parts_->heading = heading; }

void CommandLine::footer(const std::string& text) { parts_->app.footer(text); }

CommandLine::Kind CommandLine::kind_of(const std::string& name) const {
  const Parts::Setter* setter = parts_->find(name);
  return setter == nullptr ? Kind::none : setter->kind;
}

void CommandLine::set(const std::string& name, const std::string& text) {
  if (const Parts::Setter* setter = parts_->find(name)) setter->set(text);
}

std::vector<std::string> CommandLine::names() const {
  std::vector<std::string> names;
  for (const Parts::Setter& setter : parts_->setters) names.push_back(setter.name);
  return names;
}

bool CommandLine::parse(const std::vector<std::string>& args, Console& console) {
  CLI::App& app = parts_->app;
  parts_->heading = "Options";
  flag("-q,--quiet", parts_->quiet, "no notes and no warnings");
  flag("-v,--verbose", parts_->verbose, "more notes");
  // The library wants the arguments back to front.
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    console.out << app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::invalid_argument, fmt::format("{}: {}; see sinkscope {} --help",
                                                         parts_->verb, error.what(), parts_->verb));
  }
  if (parts_->quiet) console.verbosity = Verbosity::quiet;
  if (parts_->verbose) console.verbosity = Verbosity::verbose;
  return true;
}

}  // namespace sinkscope
