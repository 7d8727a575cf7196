#include "cli/interrupt.h"

#include <csignal>
#include <cstdlib>
#include <ctime>

#include <unistd.h>

#include <fmt/format.h>

#include "cli/context.h"
#include "report/check_report.h"

namespace assay {
namespace {

struct State {
  std::atomic<bool> cancelled{false}, run_done{false};
  std::atomic<int64_t> first_ns{0};  // of the first one that ends the runs
  std::string text, document;        // of one that ends the program; written before it can come
};
State& state() {
  static State& s = *new State;  // outlives the end of main
  return s;
}

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);  // safe within a handler
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void write_all(int file, const std::string& text) {
  const ssize_t ignored = write(file, text.data(), text.size());
  static_cast<void>(ignored);
}

void on_interrupt(int) {
  State& s = state();
  if (!s.run_done.load()) {
    write_all(STDOUT_FILENO, s.document);
    write_all(STDERR_FILENO, s.text);
    std::_Exit(kInterrupted);
  }
  // A second one within half a second is the first heard twice: `timeout -s INT` signals the
  // process and then its group.
  constexpr int64_t kEcho_ns = 500'000'000;
  int64_t none = 0;
  if (s.first_ns.compare_exchange_strong(none, now_ns()) || now_ns() - none < kEcho_ns) {
    s.cancelled.store(true);
    return;
  }
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

}  // namespace

void catch_interrupts(const std::vector<std::string>& words) {
  const bool simulates = !words.empty() && words[0] == "simulate";
  const std::string message =
      fmt::format("interrupted: nothing {} yet", simulates ? "was simulated" : "is known");
  State& s = state();
  // A terminal shows ^C and perhaps a bar where the cursor is.
  s.text = fmt::format("{}{}\n", isatty(STDERR_FILENO) != 0 ? "\n" : "", message);
  // The document is complete before it is needed: a handler can make none. What is stamped is what
  // the command would stamp, so that the catalog is read for its date already here.
  const Context context = bare_context(words);
  if (context.json) {
    Diagnostic d;
    d.message = message;
    s.document = errors_json({d}, context.stamp);
  }
  std::signal(SIGINT, on_interrupt);
}

void note_run_done() { state().run_done.store(true); }
bool interrupted() { return state().cancelled.load(); }
const std::atomic<bool>& interrupt_flag() { return state().cancelled; }

}  // namespace assay
