#include "cli/progress.h"

#include <cmath>
#include <cstdio>

#include <unistd.h>

#include <fmt/format.h>

#include "report/screen.h"

namespace assay {
namespace {

constexpr Seconds kFirst{0.5}, kBetween{0.1}, kWorthIt{1};  // on a terminal
constexpr Seconds kFirstInLog{10};                          // who reads a log does not wait
constexpr double kKnown = 0.01;                             // before it nobody knows what is left
constexpr int kBar = 30;

std::string left_text(double fraction, Seconds elapsed) {
  if (fraction < kKnown) return "";
  const double left_s = elapsed.v * (1 - fraction) / fraction;
  if (left_s < 99.5) return fmt::format(", about {:.0f} s left", std::max(1.0, left_s));
  if (left_s < 99.5 * 60) return fmt::format(", about {:.0f} min left", left_s / 60);
  return fmt::format(", about {:.0f} h left", left_s / kSecondsPerHour);
}

}  // namespace

std::string ProgressText::at(double fraction, Seconds elapsed) {
  if (!(fraction >= 0 && fraction < 1)) return "";
  const std::string figures =
      fmt::format("{:.0f} %{}", std::floor(100 * fraction), left_text(fraction, elapsed));
  if (!terminal_) {
    const int tenths = static_cast<int>(10 * fraction);
    if (elapsed < kFirstInLog || tenths <= tenths_) return "";
    tenths_ = tenths;
    return fmt::format("assay {}: {}\n", what_, figures);
  }
  const bool early = elapsed < kFirst || (shown_ && elapsed - last_ < kBetween);
  if (early || elapsed.v < fraction * kWorthIt.v) return "";
  shown_ = true;
  last_ = elapsed;
  // Text that has become shorter leaves nothing of the longer one.
  return fmt::format("\r{} [{}] {}\x1b[K", what_, left(bar(fraction, kBar, Style{}), kBar),
                     figures);
}

Progress::Progress(const Context& c, std::string what)
    : enabled_(!c.style.quiet),
      text_(std::move(what), isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { print_error(text_.end()); }

std::function<void(double)> Progress::callback() {
  if (!enabled_) return {};
  return [this](double fraction) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    print_error(text_.at(fraction, Seconds(elapsed.count())));
  };
}

}  // namespace assay
