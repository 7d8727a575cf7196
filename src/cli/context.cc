#include "cli/context.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/text.h"
#include "report/catalog_report.h"
#include "report/check_report.h"

namespace assay {
namespace {

constexpr int kWidthLeast = 80;
constexpr int kWidthMost = 200;
constexpr int kWidthDesign = 100;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

template <class T>
bool parse_number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

int terminal_width() {
  int columns = 0;
  if (parse_number(environment("COLUMNS"), columns) && columns > 0) return columns;
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return kWidthDesign;
}

bool utf8_terminal() {
  if (!isatty(STDOUT_FILENO)) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

bool color_wanted(const std::string& when) {
  if (when != "auto") return when == "always";
  return isatty(STDOUT_FILENO) && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

// `2T`, `300 B`, `1.5e12`: tokens as people write them.
bool parse_tokens(std::string text, double& value) {
  double factor = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'T':
        factor = 1e12;
        break;
      case 'B':
      case 'G':
        factor = 1e9;
        break;
      case 'M':
        factor = 1e6;
        break;
      default:
        break;
    }
    if (factor > 1) text.pop_back();
    while (!text.empty() && text.back() == ' ') text.pop_back();
  }
  if (!parse_number(text, value)) return false;
  value *= factor;
  return value >= 1 && value <= 1e18;
}

bool looks_like_file(const std::string& input) {
  if (input.find('/') != std::string::npos) return true;
  for (const char* ending : {".yaml", ".yml", ".json", ".csv"}) {
    const size_t length = std::strlen(ending);
    if (input.size() > length && input.compare(input.size() - length, length, ending) == 0)
      return true;
  }
  return false;
}

bool is_folder(const std::string& input) {
  std::error_code ignored;
  return std::filesystem::is_directory(input, ignored);
}

// What else a missing file may have meant: a name of the catalog, with or without an ending.
void suggest_name(const std::string& input, Failure& failure) {
  const std::string stem = std::filesystem::path(input).stem().string();
  const std::vector<std::string> names = catalog_names(catalog());
  const bool exact = std::find(names.begin(), names.end(), stem) != names.end();
  if (exact) {
    failure.help = fmt::format("the catalog knows `{}`: leave folder and ending out", stem);
  } else if (!failure.help.starts_with("did you mean")) {
    const std::string near = nearest(stem, names);
    failure.help = near.empty() ? failure.help + "; `assay catalog list` has what needs no file"
                                : fmt::format("did you mean `{}` of the catalog?", near);
  }
}

// As --seed will be read, where it is one; else the usual one.
std::string stated_seed(const std::vector<std::string>& words) {
  int64_t seed = 1;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string text;
    if (words[i].starts_with("--seed=")) text = words[i].substr(7);
    if (words[i] == "--seed" && i + 1 < words.size()) text = words[i + 1];
    int64_t stated = 0;
    if (!text.empty() && parse_number(text, stated) && stated >= 0) seed = stated;
  }
  return fmt::format("{}", seed);
}

}  // namespace

Context bare_context(const std::vector<std::string>& words) {
  Context c;
  c.json = std::find(words.begin(), words.end(), "--json") != words.end();
  c.stamp.seed = stated_seed(words);
  c.stamp.version = ASSAY_VERSION;
  c.stamp.catalog_date = catalog().date;
  return c;
}

Context make_context(const Arguments& args, UsageErrors& wrong) {
  Context c = bare_context({});
  c.json = args.has("json");
  c.output = args.get("output");
  c.style.quiet = args.has("quiet");
  c.style.verbose = args.has("verbose");
  c.style.timing = isatty(STDOUT_FILENO) != 0;
  c.style.unicode = !args.has("ascii") && utf8_terminal();
  c.style.width = std::min(std::max(terminal_width(), kWidthLeast), kWidthMost);
  if (args.has("width")) {
    int width = 0;
    if (!parse_number(args.get("width"), width) || width < kWidthLeast || width > kWidthMost) {
      wrong.push_back({fmt::format("--width: `{}` is not a number from {} to {}",
                                   sanitize(args.get("width"), 40), kWidthLeast, kWidthMost),
                       "leave it out, and the screen is as wide as the terminal"});
    } else {
      c.style.width = width;
    }
  }
  const std::string when = args.get("color", "auto");
  if (when != "auto" && when != "always" && when != "never") {
    const std::string near = nearest(when, {"auto", "always", "never"});
    wrong.push_back(
        {fmt::format("--color: `{}` is none of auto, always, never", sanitize(when, 40)),
         near.empty() ? "write `--color never` for none"
                      : fmt::format("did you mean `{}`?", near)});
  }
  c.style.color = color_wanted(when);
  int64_t seed = 1;
  if (args.has("seed") && (!parse_number(args.get("seed"), seed) || seed < 0)) {
    wrong.push_back({fmt::format("--seed: `{}` is not a whole number from 0 on",
                                 sanitize(args.get("seed"), 40)),
                     "as in --seed 7"});
    seed = 1;
  }
  c.stamp.seed = fmt::format("{}", seed);
  for (const std::string& operand : args.operands) {
    c.stamp.inputs += (c.stamp.inputs.empty() ? "" : " ") + shell_quoted(operand);
  }
  for (const auto& [name, value] : args.options) {
    if (name == "site" || name == "run") c.stamp.inputs += " " + shell_quoted(value);
    if (name == "set" || name == "tokens")
      c.stamp.settings += fmt::format(" --{} {}", name, shell_quoted(value));
    if (name == "gpus") c.stamp.gpus = " --gpus " + shell_quoted(value);
  }
  if (c.output != "-" && !c.output.empty()) c.stamp.saved = shell_quoted(c.output);
  return c;
}

void print_out(const std::string& text) {
  errno = 0;
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) std::_Exit(kYes);  // the reader has seen enough
  print_error(fmt::format("error: standard output: {}\n", std::strerror(errno)));
  std::_Exit(kWorldWrong);
}

void print_error(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int deliver(const Context& c, const std::string& text, const std::string& json, int code) {
  if (!c.output.empty() && c.output != "-") {
    if (const Result<bool> written = write_file(c.output, json); !written)
      return fail(c, {written.error()});
  }
  print_out(c.json || c.output == "-" ? json : text);
  return code;
}

int reject(const Context& c, const Diagnostics& problems) {
  if (c.json) print_out(errors_json(problems, c.stamp));
  print_error(render(problems));
  size_t errors = 0;
  for (const Diagnostic& d : problems) errors += d.severity == Severity::kError ? 1 : 0;
  print_error(fmt::format("\n{} {}\n", errors, errors == 1 ? "problem" : "problems"));
  return kInputWrong;
}

int reject(const Context& c, const UsageError& e, const Diagnostics& told) {
  return reject(c, UsageErrors{e}, told);
}

int reject(const Context& c, const UsageErrors& errors, const Diagnostics& told) {
  Diagnostics all = told;
  for (const UsageError& e : errors) {
    all.emplace_back().message = e.message;
    all.back().help = e.help;
  }
  if (c.json) print_out(errors_json(all, c.stamp));
  for (const UsageError& e : errors) {
    print_error(fmt::format("error: {}\n", e.message));
    if (!e.help.empty()) print_error(fmt::format("  = help: {}\n", e.help));
  }
  return kInputWrong;
}

int fail(const Context& c, const std::vector<Failure>& failures) {
  ASSERT(!failures.empty());
  Diagnostics told;
  for (const Failure& f : failures) told.push_back(to_diagnostic(f));
  if (c.json) print_out(errors_json(told, c.stamp));
  print_error(render(told));
  return failures.front().exit_code;
}

tl::expected<Request, UsageErrors> make_request(const Arguments& args,
                                                const std::vector<std::string>& inputs) {
  UsageErrors wrong;
  Request r;
  r.inputs = inputs;
  r.sets = args.all("set");
  const std::string gpus = args.get("gpus");
  if (!gpus.empty() && (!parse_number(gpus, r.gpus) || r.gpus < 1 || r.gpus > 1'000'000)) {
    wrong.push_back(
        {fmt::format("--gpus: `{}` is not a number from 1 to 1,000,000", sanitize(gpus, 40)),
         "as in --gpus 1024"});
  }
  const std::string tokens = args.get("tokens");
  if (!tokens.empty() && !parse_tokens(tokens, r.tokens)) {
    wrong.push_back({fmt::format("--tokens: `{}` is not an amount of tokens", sanitize(tokens, 40)),
                     "write 2e12, 2T or 300B"});
  }
  if (!wrong.empty()) return tl::unexpected(std::move(wrong));
  return r;
}

// `meta-llama/Llama-3.1-70B`, as hubs name models: no path.
bool names_a_model(const std::string& input) {
  const bool path = input.starts_with(".") || input.starts_with("/") || is_folder(input);
  return !path && find_model(catalog(), input) != nullptr;
}

std::vector<Failure> missing_inputs(const std::vector<std::string>& inputs) {
  std::vector<Failure> failures;
  for (const std::string& input : inputs) {
    if (!looks_like_file(input)) continue;
    if (file_exists(input)) {
      if (const Result<bool> can = can_read(input); !can) failures.push_back(can.error());
      continue;
    }
    if (names_a_model(input)) continue;
    failures.push_back(open_failure(input, is_folder(input) ? EISDIR : ENOENT));
    if (!is_folder(input)) suggest_name(input, failures.back());
  }
  return failures;
}

}  // namespace assay
