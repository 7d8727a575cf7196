// What is wrong, how we know, what it costs, and what to do: the one form in which every analysis
// of traces, dumps, telemetry and accounting speaks.
//
// A finding needs at least kWorthFixing of the time to be recoverable; a fault that must be acted
// on whatever its price (a hang, a node to drain) is `urgent` and needs no share. Every finding has
// evidence: rows a person can look at with --show.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ledger/ledger.h"

namespace assay {

// Printed by these names, which scripts match: see cause_name.
enum class Cause {
  kDataStarved,
  kLaunchBound,
  kHostSync,
  kPageableCopies,
  kNoTensorCores,
  kUnfusedAttention,
  kMemoryBound,
  kMisalignedShapes,
  kExposedCommunication,
  kStraggler,
  kPipelineBubble,
  kPowerThrottle,
  kThermalThrottle,
  kHardwareFault,
  kAllocator,
  kGarbageCollection,
  kHang,
  kDiverged,
  kHealthy,
};
constexpr int kCauses = static_cast<int>(Cause::kHealthy) + 1;
std::string_view cause_name(Cause);  // `data-starved`

constexpr double kWorthFixing = 0.03;  // of the time: below it a finding is not worth a line

enum class Confidence { kLow, kMedium, kHigh };
std::string_view confidence_name(Confidence);

// What a finding rests on. Rows are ready to print; text in them is sanitised already.
struct Evidence {
  std::string id;     // `e1`; given when findings are ranked
  std::string title;  // `the longest idle gaps of the device`
  std::string file;   // where it was seen
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // at most kEvidenceRows, the weightiest first
};
constexpr size_t kEvidenceRows = 50;

struct Finding {
  Cause cause = Cause::kHealthy;
  std::string title;               // `The loader stalls every step`
  std::string detail;              // one or two sentences with the figures
  std::string fix;                 // what a person can paste or do
  std::vector<std::string> where;  // `rank 14`, `node a3-u07`, `stage 0`: who is to blame
  Confidence confidence = Confidence::kMedium;
  bool urgent = false;

  // What removing the cause gives back, everything else kept: of one step (or of the period), and
  // as a share of it. Predicted by replaying or re-predicting, never by just deleting the gap.
  Seconds gain;
  double share = 0;
  // The step after the fix, where a step is what is looked at.
  std::optional<Seconds> step_after;
  // Where the host would then set the pace, which a profile tells only roughly: that step for a
  // host that is faster and for one that is slower than it seems. Low <= high.
  struct Range {
    Seconds low, high;
  };
  std::optional<Range> step_range;
  // Another, smaller repair and the step after it: `tf32`, `fused-optimizer`,
  // `fused-operations`.
  struct Alternative {
    std::string repair;
    Seconds step_after;
  };
  std::optional<Alternative> alternative;
  // It is of another job than the one whose step is printed: times of the two do not add.
  bool elsewhere = false;

  // What stands in the way of this repair and is ranked before it: a step that waits for the device
  // again and again cannot be captured into graphs.
  std::optional<Cause> after;

  std::vector<Evidence> evidence;
};

// A question that the files leave open, and what would answer it.
struct OpenQuestion {
  std::string text;    // `rank 14 stopped with its peers; the order of collectives cannot tell`
  std::string needed;  // `its kernel log (XID), or telemetry of the last minute`
};

// What one analysis adds to a diagnosis.
struct Analysis {
  std::vector<Finding> findings;
  std::vector<OpenQuestion> open;
  std::vector<std::string> notes;  // facts worth a line that are not findings
};

inline constexpr size_t kNamesShown = 8;         // of nodes or devices, in one finding
std::string base_name(const std::string& path);  // the file alone, fit for a terminal

}  // namespace assay
