// How far work that takes its time has come, on standard error and never in a result.
//
// A terminal sees a bar with the time that is left, after half a second and only where the whole
// takes more than one; it overwrites itself and is erased at the end. A log gets a line for each
// tenth once ten seconds have passed. --quiet: nothing.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/units.h"
#include "cli/context.h"

namespace assay {

// The words alone: what to write when, for a clock that the caller has.
class ProgressText {
 public:
  ProgressText(std::string what, bool terminal) : what_(std::move(what)), terminal_(terminal) {}

  // What to write now; empty: nothing.
  std::string at(double fraction, Seconds elapsed);
  // What erases it.
  std::string end() const { return shown_ && terminal_ ? "\r\x1b[K" : ""; }

 private:
  std::string what_;
  bool terminal_;
  bool shown_ = false;
  Seconds last_{0};
  int tenths_ = 0;  // told, in a log
};

class Progress {
 public:
  Progress(const Context&, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Takes the fraction done, from one thread at a time. To hand on; refers to this object.
  std::function<void(double)> callback();

 private:
  bool enabled_;
  ProgressText text_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace assay
