#include "cli/options.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "report/screen.h"

namespace assay {
namespace {

constexpr int kPageWidth = 100;  // of docs/reference/cli.md

const Option* find(const Command& command, std::string_view name) {
  for (const Option& o : command.options) {
    if (o.name == name) return &o;
  }
  for (const Option& o : global_options()) {
    if (o.name == name) return &o;
  }
  return nullptr;
}

const Option* find_letter(const Command& command, char letter) {
  for (const Option& o : command.options) {
    if (o.letter == letter) return &o;
  }
  for (const Option& o : global_options()) {
    if (o.letter == letter) return &o;
  }
  return nullptr;
}

UsageError unknown_option(const Command& command, const std::string& written) {
  std::vector<std::string> names;
  for (const Option& o : command.options) names.push_back(std::string(o.name));
  for (const Option& o : global_options()) names.push_back(std::string(o.name));
  const size_t start = written.find_first_not_of('-');
  const std::string word = start == std::string::npos ? written : written.substr(start);
  const std::string near = nearest(word, names);
  return {fmt::format("unknown option `{}`", sanitize(written, 60)),
          near.empty() ? fmt::format("assay {} -h lists them", command.name)
                       : fmt::format("did you mean `--{}`?", near)};
}

std::string written_form(const Option& o) {
  std::string text =
      o.letter ? fmt::format("-{}, --{}", o.letter, o.name) : fmt::format("    --{}", o.name);
  if (!o.value.empty()) text += fmt::format(" {}", o.value);
  return text;
}

std::string option_lines(const std::vector<Option>& options, bool with_more, int width) {
  std::string out;
  for (const Option& o : options) {
    out += wrap("  " + left(written_form(o), 26) + std::string(o.brief), width, 28) + "\n";
    if (with_more && !o.more.empty()) {
      out += wrap(std::string(28, ' ') + std::string(o.more), width, 28) + "\n";
    }
  }
  return out;
}

std::string paragraphs(std::string_view text, int width) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += wrap(std::string(text.substr(at, end - at)), width) + "\n";
    at = end + 1;
  }
  return out;
}

std::string usage(const Command& c, int width) {
  return wrap(fmt::format("assay {} - {}", c.name, c.brief), width, 2) + "\n\n" +
         wrap(fmt::format("Usage: assay {} {} [options]", c.name, c.operands), width, 7) + "\n";
}

std::string example_lines(const Command& c, int width) {
  std::string out;
  if (!c.examples.empty()) out += c.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (std::string_view e : c.examples)
    out += command_lines(fmt::format("  {}", e), width, 6) + "\n";
  return out;
}

// One word that starts with `-`; returns the index of the last word used.
tl::expected<size_t, UsageError> parse_option(const Command& command, Arguments& args,
                                              const std::vector<std::string>& words, size_t i) {
  const std::string& word = words[i];
  const bool is_long = word.size() > 2 && word[1] == '-';
  const size_t equals = is_long ? word.find('=') : std::string::npos;
  const Option* option = is_long ? find(command, std::string_view(word).substr(2, equals - 2))
                                 : find_letter(command, word[1]);
  if (!option) return tl::unexpected(unknown_option(command, word));
  if (option->value.empty()) {
    if (equals != std::string::npos || (!is_long && word.size() > 2)) {
      return tl::unexpected(UsageError{fmt::format("--{} takes no value", option->name),
                                       fmt::format("write `--{}` alone", option->name)});
    }
    args.options.emplace_back(option->name, "");
    return i;
  }
  size_t last = i;
  std::string value;
  if (equals != std::string::npos) {
    value = word.substr(equals + 1);
  } else if (!is_long && word.size() > 2) {
    value = word.substr(2);
  } else if (i + 1 < words.size()) {
    value = words[++last];
  }
  if (value.empty()) {  // also of a variable of the shell that is not set
    return tl::unexpected(
        UsageError{fmt::format("--{} needs a value ({})", option->name, option->value),
                   fmt::format("assay {} --help", command.name)});
  }
  args.options.emplace_back(option->name, std::move(value));
  return last;
}

std::string reference_options(const std::vector<Option>& options) {
  std::string out = "| option | what it does |\n|---|---|\n";
  for (const Option& o : options) {
    std::string name =
        o.letter ? fmt::format("`-{}`, `--{}", o.letter, o.name) : fmt::format("`--{}", o.name);
    if (!o.value.empty()) name += fmt::format(" {}", o.value);
    out += fmt::format("| {}` | {}{} |\n", name, o.brief,
                       o.more.empty() ? "" : fmt::format(". {}", o.more));
  }
  return out;
}

}  // namespace

const std::vector<Option>& global_options() {
  static const std::vector<Option> options{
      {"json", 0, "", "print the result as JSON",
       "A versioned document; text and JSON come from one struct. Where the input or a file is "
       "wrong "
       "it is `assay.error/1`: errors with file, line, column, message and fix."},
      {"output", 'o', "FILE", "also write the result as JSON to FILE",
       "`compare` and `explain` read it again."},
      {"set", 0, "PATH=VALUE", "change one setting, e.g. cluster.nodes=64 (repeatable)",
       "Paths are those of the YAML sections: workload, cluster, site, stack, plan, run. Units as "
       "in "
       "YAML. A section alone names another entry of the catalog, as in stack=pytorch-fsdp2."},
      {"seed", 0, "N", "seed of random streams (default 1)",
       "The luck of `simulate` and of offers: the same seed gives the same bytes. A prediction has "
       "none."},
      {"color", 0, "WHEN", "auto, always or never", ""},
      {"ascii", 0, "", "no Unicode in bars", ""},
      {"width", 0, "N", "columns of the screen (80 to 200)",
       "Default: COLUMNS, the terminal, or 100."},
      {"quiet", 'q', "", "no legend, no suggested commands, no progress", ""},
      {"verbose", 'v', "", "all assumptions and all accounts", ""},
      {"version", 0, "", "print the version", ""},
      {"help", 'h', "", "-h: one screen; --help: everything", ""},
  };
  return options;
}

bool Arguments::has(std::string_view name) const {
  for (const auto& [key, value] : options) {
    if (key == name) return true;
  }
  return false;
}

std::string Arguments::get(std::string_view name, const std::string& fallback) const {
  std::string found = fallback;
  for (const auto& [key, value] : options) {
    if (key == name) found = value;
  }
  return found;
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& [key, value] : options) {
    if (key == name) found.push_back(value);
  }
  return found;
}

Arguments parse(const Command& command, const std::vector<std::string>& words, UsageErrors& wrong) {
  Arguments args;
  bool options_ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options_ended || word.size() < 2 || word[0] != '-') {
      args.operands.push_back(word);
    } else if (word == "--") {
      options_ended = true;
    } else {
      const tl::expected<size_t, UsageError> last = parse_option(command, args, words, i);
      if (last)
        i = *last;
      else
        wrong.push_back(last.error());
    }
  }
  return args;
}

std::string short_help(const Command& c, int width) {
  std::string out = usage(c, width);
  if (!c.options.empty()) out += "\n" + option_lines(c.options, false, width);
  out += example_lines(c, width);
  std::vector<std::string> names;
  for (const Option& o : global_options()) {
    names.push_back(o.letter ? fmt::format("-{}", o.letter) : fmt::format("--{}", o.name));
    if (!o.value.empty()) names.back() += fmt::format(" {}", o.value);
  }
  out += "\n" + wrap(fmt::format("Also: {}", fmt::join(names, "  ")), width, 6) + "\n";
  return out +
         fmt::format("Help: assay {} --help        Exit: 0 yes  1 no  2 input  3 system\n", c.name);
}

std::string long_help(const Command& c, int width) {
  std::string out = usage(c, width) + "\n";
  out += paragraphs(c.more, width);
  if (!c.options.empty()) out += "\nOptions:\n" + option_lines(c.options, true, width);
  out += "\nOptions of every command:\n" + option_lines(global_options(), true, width);
  out += example_lines(c, width);
  return out + "\n" +
         wrap(
             "Exit: 0 done, the answer is yes; 1 done, the answer is no (does not fit, a gate "
             "failed); 2 the input is wrong; 3 the world is wrong (a file); 70 a bug of ours.",
             width, 6) +
         "\n";
}

std::string overview(const std::vector<Command>& commands, int width) {
  std::string out =
      wrap("assay - what AI compute is really worth: predicts, simulates and diagnoses training",
           width, 2) +
      "\n\nUsage: assay COMMAND [names or files] [options]\n\n";
  for (const Command& c : commands)
    out += wrap("  " + left(std::string(c.name), 12) + std::string(c.brief), width, 14) + "\n";
  out +=
      "\nExamples:\n"
      "  assay plan llama-3.1-70b dgx-h100 --set cluster.nodes=128\n"
      "  assay plan w.yaml c.yaml --json | jq .best.mfu\n"
      "  assay compare before.yaml after.yaml\n\n";
  out += wrap(
             "Options: --json  -o FILE  --set PATH=VALUE  --seed N  --color WHEN  --ascii  -q  -v  "
             "--version",
             width, 9) +
         "\n";
  out += "Help:    assay COMMAND -h        Exit: 0 yes  1 no  2 input  3 system\n";
  return out;
}

std::string reference_page(const std::vector<Command>& commands) {
  std::string out =
      "# The command line\n\n"
      "Written by `assay help --markdown` from the tables in src/cli; a test keeps this page equal "
      "to\n"
      "them. Names are catalog entries or YAML files, in any order; `-` reads standard input.\n\n"
      "Exit codes: 0 done, the answer is yes; 1 done, the answer is no (does not fit, a gate "
      "failed);\n"
      "2 the input is wrong; 3 the world is wrong (a file); 70 a bug of ours; 130 interrupted, "
      "what is "
      "printed\nis partial. A broken pipe is success.\n";
  for (const Command& c : commands) {
    out += fmt::format("\n## assay {} {}\n\n{}.\n\n", c.name, c.operands, c.brief);
    const std::string more = paragraphs(c.more, kPageWidth);
    if (!more.empty()) out += more + "\n";
    if (!c.options.empty()) out += reference_options(c.options) + "\n";
    if (!c.examples.empty()) {
      out += "```\n";
      for (std::string_view e : c.examples) out += fmt::format("{}\n", e);
      out += "```\n";
    }
  }
  return out + "\n## Options of every command\n\n" + reference_options(global_options());
}

}  // namespace assay
