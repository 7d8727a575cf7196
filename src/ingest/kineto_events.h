// From one event's text to a row of the Trace's columns. Internal to the Kineto reader.
//
// An event is first scanned whole into slices, because its keys come in any order (`args` may
// precede `cat`); then the few slices that its category needs are read. A key that comes twice
// counts as it stands last.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ingest/kineto.h"
#include "ingest/kineto_scan.h"
#include "ingest/kineto_texts.h"
#include "ingest/trace.h"

namespace assay {

enum class Field : uint8_t {
  kNone,
  // Of the event itself.
  kPhase,
  kCategory,
  kName,
  kProcess,
  kThread,
  kStart,
  kDuration,
  kArgs,
  // Of `args`.
  kArgName,
  kCorrelation,
  kExternalId,
  kStream,
  kDevice,
  kBytes,
  kGrid,
  kBlock,
  kInputDims,
  kInputType,
  kConcreteInputs,
  kSequence,
  kCollective,
  kDtype,
  kGroupName,
  kGroupRanks,
  kCollectiveSequence,
  kSource,
  kDestination,
  kSyncKind,
  kWaitStream,
  kWaitCorrelation,
  kDeviceType,
  kDeviceId,
  kMemoryBytes,
  kAllocated,
  kReserved,
  kCount
};

// The slices of one event; valid while the window it was scanned from is.
struct RawEvent {
  uint64_t present = 0;
  std::array<scan::Slice, static_cast<size_t>(Field::kCount)> slices;

  bool has(Field f) const { return (present >> static_cast<unsigned>(f) & 1) != 0; }
  scan::Slice get(Field f) const { return has(f) ? slices[static_cast<size_t>(f)] : scan::Slice{}; }
  std::string_view view(Field f) const { return get(f).view(); }
  void set(Field f, scan::Slice s) {
    slices[static_cast<size_t>(f)] = s;
    present |= uint64_t{1} << static_cast<unsigned>(f);
  }
};

// Scans the event whose `{` is at `p`; `p` is then after its `}`, or on kBad where it is broken.
scan::Scan read_event(const char*& p, const char* end, RawEvent& event);

// Rows as they come; join() and assign_roles() make sense of them afterwards.
class Columns {
 public:
  explicit Columns(Trace& trace) : trace_(trace), texts_(trace.strings) {}

  void add(const RawEvent& event);
  void finish();  // names of threads

  uint64_t rows() const { return rows_; }      // kept
  uint64_t phases() const { return phases_; }  // seen that say what they are
  const Interner& texts() const { return texts_; }
  size_t without_time() const { return without_time_; }

 private:
  bool times(const RawEvent& event, int64_t& start_ns, int64_t& duration_ns);
  int32_t thread(const RawEvent& event);
  int64_t thread_number(scan::Slice id);
  int32_t collective(const RawEvent& event);
  int32_t derived_collective(const RawEvent& event);
  void add_device(const RawEvent& event, DeviceKind kind);
  void add_runtime(const RawEvent& event);
  void add_host(const RawEvent& event, HostKind kind);
  void add_sync(const RawEvent& event);
  void add_range(const RawEvent& event);
  void add_memory(const RawEvent& event);
  void add_thread_name(const RawEvent& event);

  struct ThreadKey {
    int64_t process = 0, id = 0;
    bool operator==(const ThreadKey&) const = default;
  };
  struct ThreadHash {
    size_t operator()(const ThreadKey& k) const {
      return static_cast<size_t>(static_cast<uint64_t>(k.process) * 0x9E3779B97F4A7C15u ^
                                 static_cast<uint64_t>(k.id) * 0xC2B2AE3D27D4EB4Fu);
    }
  };

  Trace& trace_;
  Interner texts_;
  std::unordered_map<ThreadKey, int32_t, ThreadHash> threads_;
  std::unordered_map<ThreadKey, uint32_t, ThreadHash> thread_names_;
  ThreadKey last_key_;
  int32_t last_thread_ = -1;
  uint64_t rows_ = 0, phases_ = 0;
  size_t without_time_ = 0;
};

}  // namespace assay
