// What every command shares: how to print, where to write, what is known.
#pragma once

#include "cli/options.h"
#include "report/screen.h"
#include "world/describe.h"

namespace assay {

// Exit codes (docs/reference/cli.md).
constexpr int kYes = 0;
constexpr int kNo = 1;
constexpr int kInputWrong = 2;
constexpr int kWorldWrong = 3;
constexpr int kOurBug = 70;
constexpr int kInterrupted = 130;  // Ctrl-C: what is printed is partial

struct Context {
  Style style;
  Stamp stamp;
  bool json = false;
  std::string output;  // -o
};

// As far as it is known before the options are: enough to refuse them.
Context bare_context(const std::vector<std::string>& words);
// Global options -> context, after the environment. A bad --width, --seed and --color are added to
// `wrong`, and the usual ones stand for them.
Context make_context(const Arguments&, UsageErrors& wrong);

// Writes to standard output; a broken pipe ends the program with success.
void print_out(const std::string&);
void print_error(const std::string&);

// Prints the text (or the JSON with --json), writes -o; returns `code`, or 3 where -o fails.
int deliver(const Context&, const std::string& text, const std::string& json, int code);

// The input is wrong: all problems on standard error, with --json also as a document; 2.
int reject(const Context&, const Diagnostics&);
// `told` was printed before; the document has it, too.
int reject(const Context&, const UsageError&, const Diagnostics& told = {});
int reject(const Context&, const UsageErrors&, const Diagnostics& told = {});
// The world is wrong: at least one failure, told like problems of the input; its exit code.
int fail(const Context&, const std::vector<Failure>&);

// Request from operands, --set, --gpus and --tokens.
tl::expected<Request, UsageErrors> make_request(const Arguments&,
                                                const std::vector<std::string>& inputs);
// Files that are named but cannot be read are failures of the world: all of them. Where a name of
// the catalog may have been meant, the help says so.
std::vector<Failure> missing_inputs(const std::vector<std::string>& inputs);

}  // namespace assay
