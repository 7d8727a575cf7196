// Who hangs a job: from the Flight Recorder dumps of its ranks, and from whatever else is known of
// the devices behind them.
//
// A rank is convicted by the order of collectives when others wait for it and it waits for nobody:
// it has nothing in flight, so no collective explains why it stopped. A rank that waits is a victim
// and is never named. What the order cannot decide is an open question, never a guess:
//  - a rank whose recorder stopped before those of its peers, though it had enqueued all they had;
//  - an operation that all have enqueued and none completed (a device or a link);
//  - ranks that wait for one another in a circle;
//  - a rank that left no dump.
// Evidence from the kernel log or from telemetry decides those, either way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/hang_model.h"
#include "ingest/flight_recorder.h"

namespace assay {

// What other files say about the device and the process of one rank. All optional; the caller maps
// hosts and devices to ranks (a rank's host and local device, in the order of the launcher).
struct RankEvidence {
  int rank = -1;
  std::string host;  // sanitised; empty: unknown
  int device = -1;

  // XID errors of the device. `at_ns` is wall clock; none: the log has no clock.
  struct Xid {
    int code = 0;
    std::optional<int64_t> at_ns;
  };
  std::vector<Xid> xids;
  bool kernel_log_read = false;  // so that no XID means none, rather than not looked

  // The last sign of life of the process: a line of its log, a step, a heartbeat.
  std::optional<int64_t> last_activity_ns;

  // Telemetry after the job stopped: a device that waits inside a collective spins and shows high
  // utilisation; a dead one shows none or reports no more.
  std::optional<double> utilisation;  // 0 to 1, median
  std::optional<double> power_w;      // median
  bool stopped_reporting = false;     // while its peers still report
};

struct HangEvidence {
  std::vector<RankEvidence> ranks;
};

struct HangReport {
  bool hung = false;             // somebody waits
  std::vector<int> convicted;    // by the order of collectives; ascending
  std::vector<int> by_evidence;  // by kernel log or telemetry, beyond those
  std::vector<int> mismatched;   // called something else than the others under the same number
  std::vector<int> undecided;    // suspects that the order alone cannot convict
  std::vector<int> no_dump;
  size_t waiting = 0;  // ranks with operations in flight
  Analysis analysis;
};

HangReport diagnose_hang(const std::vector<FlightDump>&, const HangEvidence& = {});

// Whether an XID means that work on the device stops. A few are told for information, or follow
// when a job is killed for another reason.
bool xid_stops_work(int code);

}  // namespace assay
