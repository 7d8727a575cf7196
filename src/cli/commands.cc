#include "cli/commands.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/inputs.h"

namespace assay {
namespace {

const Command* find_command(const std::string& name) {
  for (const Command& c : commands()) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

int unknown_command(const Context& context, const std::string& name) {
  std::vector<std::string> names;
  for (const Command& c : commands()) names.push_back(std::string(c.name));
  const std::string near = nearest(name, names);
  return reject(context, UsageError{fmt::format("unknown command `{}`", sanitize(name, 60)),
                                    near.empty() ? "assay -h lists them"
                                                 : fmt::format("did you mean `assay {}`?", near)});
}

// Whether --help (and not -h) asked for help.
bool wants_long(const std::vector<std::string>& words) {
  for (const std::string& w : words) {
    if (w == "--help") return true;
  }
  return false;
}

constexpr int kHelpMost = 100;  // longer lines are hard to read

int help_width(const Arguments& args) {
  UsageErrors ignored;
  return std::min(make_context(args, ignored).style.width, kHelpMost);
}

int run_help(const Context& context, const Arguments& args) {
  if (args.has("markdown")) {
    print_out(reference_page(commands()));
    return kYes;
  }
  if (args.operands.empty()) {
    print_out(overview(commands(), help_width(args)));
    return kYes;
  }
  const Command* command = find_command(args.operands[0]);
  if (!command) return unknown_command(context, args.operands[0]);
  print_out(long_help(*command, help_width(args)));
  return kYes;
}

}  // namespace

Command help_command() {
  return {"help",
          "[COMMAND]",
          "everything about a command",
          "",
          {{"markdown", 0, "", "the reference page docs/reference/cli.md", ""}},
          {},
          run_help};
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all{plan_command(),     compare_command(), scale_command(),
                                        simulate_command(), review_command(),  explain_command(),
                                        check_command(),    catalog_command(), validate_command(),
                                        diagnose_command(), help_command()};
  return all;
}

namespace {

// Tells what is wrong with the options together with all that is wrong beside them. Where an option
// is unknown, nobody knows which words are operands: of these nothing is said.
int refuse_line(const Command& command, const Context& context, const Arguments& args,
                UsageErrors wrong, bool unread) {
  InputRefusal all{std::move(wrong), {}, {}};
  if (command.check != nullptr) {
    InputRefusal more = command.check(context, args);
    if (unread) more.problems.clear(), more.failures.clear();
    all.usage.insert(all.usage.end(), more.usage.begin(), more.usage.end());
    all.problems = std::move(more.problems);
    all.failures = std::move(more.failures);
  }
  return refuse(context, all);
}

}  // namespace

int run_command_line(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_error(overview(commands(), help_width({})));
    return kInputWrong;
  }
  if (words[0] == "-h" || words[0] == "--help") {
    UsageErrors ignored;  // help is for those who do not know the options yet
    const Arguments args = parse(help_command(), {words.begin() + 1, words.end()}, ignored);
    print_out(overview(commands(), help_width(args)));
    return kYes;
  }
  if (words[0] == "--version" || words[0] == "version") {
    print_out(fmt::format("assay {} (catalog {})\n", ASSAY_VERSION, catalog().date));
    return kYes;
  }
  const Command* command = find_command(words[0]);
  if (!command) return unknown_command(bare_context(words), words[0]);
  UsageErrors wrong;
  const Arguments args = parse(*command, {words.begin() + 1, words.end()}, wrong);
  const bool unread = !wrong.empty();
  if (!unread && args.has("help")) {
    const int width = help_width(args);
    print_out(wants_long(words) ? long_help(*command, width) : short_help(*command, width));
    return kYes;
  }
  if (!unread && args.has("version")) return run_command_line({"--version"});
  const Context context = make_context(args, wrong);
  if (!wrong.empty()) return refuse_line(*command, context, args, std::move(wrong), unread);
  // Work of minutes must not end in a file that cannot be written.
  std::vector<Failure> unwritable;
  for (const char* option : {"output", "trace"}) {
    const std::string path = args.get(option);
    if (path.empty() || path == "-") continue;
    if (const Result<bool> can = can_write(path); !can) unwritable.push_back(can.error());
  }
  if (!unwritable.empty()) {
    InputRefusal all;
    if (command->check != nullptr) all = command->check(context, args);
    all.failures.insert(all.failures.end(), unwritable.begin(), unwritable.end());
    return refuse(context, all);
  }
  return command->run(context, args);
}

}  // namespace assay
