// The command line as data: every command and option is one entry of a table, and parsing, -h,
// --help and docs/reference/cli.md come from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace assay {

struct Context;
struct Arguments;
struct InputRefusal;

struct Option {
  std::string_view name;   // `gpus`, written `--gpus`
  char letter;             // `o` for -o; 0: none
  std::string_view value;  // `N`: takes a value; empty: a switch
  std::string_view brief;  // one line, for -h
  std::string_view more;   // for --help; may be empty
};

struct Command {
  std::string_view name;
  std::string_view operands;  // `WORKLOAD CLUSTER`
  std::string_view brief;     // one line
  std::string_view more;      // paragraphs for --help, parted by newlines
  std::vector<Option> options;
  std::vector<std::string_view> examples;
  int (*run)(const Context&, const Arguments&);
  // What else is wrong with a command line that is refused anyway, so that all is told at once;
  // null: nothing more is looked for.
  InputRefusal (*check)(const Context&, const Arguments&) = nullptr;
};

// Options that every command takes.
const std::vector<Option>& global_options();

struct Arguments {
  std::vector<std::string> operands;
  std::vector<std::pair<std::string_view, std::string>> options;  // in the order given

  bool has(std::string_view name) const;
  // The last value given, or `fallback`.
  std::string get(std::string_view name, const std::string& fallback = "") const;
  std::vector<std::string> all(std::string_view name) const;
};

struct UsageError {
  std::string message;  // `unknown option --gpu`
  std::string help;     // `did you mean --gpus?`
};
using UsageErrors = std::vector<UsageError>;

// `words` are those after the command's name. Options and operands may come in any order; `--` ends
// the options; `-` is an operand. All that cannot be read is added to `wrong`.
Arguments parse(const Command&, const std::vector<std::string>& words, UsageErrors& wrong);

std::string short_help(const Command&, int width);
std::string long_help(const Command&, int width);
std::string overview(const std::vector<Command>&, int width);
// docs/reference/cli.md, all of it.
std::string reference_page(const std::vector<Command>&);

}  // namespace assay
