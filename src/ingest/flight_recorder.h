// A dump of PyTorch's NCCL Flight Recorder: one rank's ring of collectives, with what was enqueued,
// started and completed, and the process groups it belongs to. Read from the pickle that the
// watchdog writes or from JSON of the same shape.
//
// Versions drift: any field may be absent (-1, empty). Times are nanoseconds of the host's wall
// clock. Sequence numbers count per process group: collectives and point-to-point operations
// apart. A point-to-point number is the rank's own count and means nothing to its peer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/diagnostic.h"

namespace assay {

enum class FlightState : uint8_t { kScheduled, kStarted, kCompleted };

enum class FlightKind : uint8_t { kCollective, kSend, kRecv, kOtherP2p };

struct FlightEntry {
  int64_t record_id = -1;  // the rank's own order of enqueueing, over all groups
  int32_t group = -1;      // index into FlightDump::groups
  int64_t sequence = -1;   // collective_seq_id
  int64_t p2p_sequence = -1;
  int64_t created_ns = -1;
  int64_t started_ns = -1;  // when the watchdog discovered it
  int64_t timeout_ms = -1;
  int64_t input_elements = -1;  // of all tensors together; -1: not stated
  uint32_t name = 0;   // index into strings: `all_reduce`, `send`; without `nccl:` and the peers
  uint32_t sizes = 0;  // input sizes as a person reads them: `4096x5120`
  uint32_t dtype = 0;
  int32_t self = -1, peer = -1;  // point to point: indices within the group
  FlightKind kind = FlightKind::kCollective;
  FlightState state = FlightState::kScheduled;
};

// What the recorder says of a group's progress: sequence numbers of the last operation enqueued,
// started and completed. Collectives and point-to-point share it: whichever came last.
struct FlightStatus {
  int64_t enqueued = -1, started = -1, completed = -1;
};

struct FlightGroup {
  std::string name;  // the same on every member
  std::string description;
  std::vector<int32_t> ranks;  // ascending as the file lists them; empty: not stated
  int64_t id = -1;             // the rank's own number of the group
  std::optional<FlightStatus> status;
};

struct FlightDump {
  std::string file;
  int32_t rank = -1;
  std::vector<FlightGroup> groups;
  std::vector<FlightEntry> entries;  // in the order of record_id
  bool lists_entries = true;         // false: the dump has no such field, so nothing is known
  std::vector<std::string> strings;  // 0 is empty
  // When the file was written, where the caller knows (a copy's time is later, never earlier).
  std::optional<int64_t> written_ns;
  Diagnostics problems;  // what was odd and survived

  const std::string& string(uint32_t index) const { return strings[index]; }
};

// The dump, or the one reason why these bytes are none. The rank is the one that all groups have in
// common; where that leaves several or the groups are absent, the file's name decides.
tl::expected<FlightDump, Diagnostic> read_flight_dump(std::string_view bytes,
                                                      const std::string& file);

// The rank that a file's name states, or -1: `_dump_3`, `nccl_trace_rank_3.json`, `node07-rank3`.
int32_t rank_of_name(std::string_view file);

// Whether two dumps of one rank say the same: a pickle and its JSON twin.
bool same_dump(const FlightDump&, const FlightDump&);

// One dump a rank, by rank. Of two of one rank (a pickle and its JSON twin; an earlier dump) the
// one that saw more stays; a different one that is dropped is told.
void keep_one_dump_per_rank(std::vector<FlightDump>&, Diagnostics&);

}  // namespace assay
