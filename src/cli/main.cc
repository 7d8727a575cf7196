// assay: see commands.cc for what there is, and docs/internals/life-of-a-plan.md for the way
// through.
#include <csignal>
#include <cstdlib>
#include <exception>

#include <unistd.h>

#include "cli/commands.h"
#include "cli/interrupt.h"

namespace {

// An assertion failed: our bug, not the user's. Only async-signal-safe calls.
void aborted(int) {
  const char text[] =
      "assay: this is a bug of ours; please report it with the command and its files\n";
  const ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
  static_cast<void>(ignored);
  std::_Exit(assay::kOurBug);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a broken pipe shows as a failed write and ends in success
  std::signal(SIGABRT, aborted);
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    assay::catch_interrupts(words);
    return assay::run_command_line(words);
  } catch (const std::exception& e) {
    assay::print_error(std::string("assay: unexpected: ") + e.what() + "\n");
    return assay::kOurBug;
  }
}
