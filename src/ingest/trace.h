// One rank's profiler trace, as plain columns: what ran on the device, what the host did, and when.
//
// Times are integer nanoseconds, read from the decimal text of the file (a double loses them at
// 1.7e15 us). They count from the file's own zero; `base_ns` makes them wall-clock time where the
// file says so. Events of a kind are sorted by start time, ties in the order of the file, except
// that among host events that start together the longer comes first: a parent precedes its
// children. No time lies beyond +-4e18 ns and no duration beyond +-1e18, so that neither an end nor
// a difference of two ends overflows. Names and other texts are indices into `strings`; index 0 is
// the empty string. Text from a file is untrusted: it passes sanitize() before it reaches a
// terminal.
//
// Nothing here judges: orphan kernels, negative durations and week-long events are kept as they
// are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class DeviceKind : uint8_t { kKernel, kCopy, kSet };

// What a kernel moves between ranks, decided by the reader from its name, its stream, the op that
// launched it and its metadata together.
enum class Role : uint8_t { kCompute, kCommunication, kMemory };

// Something that ran on the device.
struct DeviceEvent {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;  // negative durations happen; they count in no union
  uint32_t name = 0;
  int32_t device = 0;
  int32_t stream = 0;
  DeviceKind kind = DeviceKind::kKernel;
  Role role = Role::kCompute;
  uint64_t correlation = 0;  // zero: none. A graph launch gives one id to hundreds of kernels
  int32_t launch = -1;       // index into runtime; -1: launched before the window began
  int32_t op = -1;           // index into host: the innermost kOp that launched it; -1: unknown
  int32_t collective = -1;   // index into collectives; -1: none known
  uint64_t external_id = 0;  // joins it to an op where the launch is not in the file
  int64_t bytes = 0;         // copies and sets
  int32_t grid[3] = {0, 0, 0}, block[3] = {0, 0, 0};  // zero: not stated
};

// A call of the device runtime or driver on the host (cudaLaunchKernel, hipMemcpyAsync, ...).
struct RuntimeEvent {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  uint32_t name = 0;
  int32_t thread = 0;  // index into threads
  int32_t host = -1;   // index into host: the innermost event of its thread that holds its start
  uint64_t correlation = 0;
  uint64_t external_id = 0;
};

// A framework operator, an annotation or a Python frame on the host.
enum class HostKind : uint8_t { kOp, kAnnotation, kPython, kOverhead };
struct HostEvent {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  uint32_t name = 0;
  int32_t thread = 0;
  HostKind kind = HostKind::kOp;
  int32_t parent = -1;      // the innermost event of the same thread that holds it; -1: none
  int32_t collective = -1;  // index into collectives: record_param_comms says it; -1: none
  uint64_t external_id = 0;
  int64_t sequence = -1;  // joins a backward op to its forward op; -1: none
  uint32_t shapes = 0;    // `Input Dims` as the text of the file, or empty
  uint32_t types = 0;     // `Input type`, likewise
  uint32_t inputs = 0;    // `Concrete Inputs`, likewise
};

// What a collective says of itself (record_param_comms or the kernel's own metadata).
struct CollectiveInfo {
  uint32_t name = 0;         // allreduce, _allgather_base, ...
  uint32_t group = 0;        // process group name
  uint32_t group_ranks = 0;  // as printed, perhaps cut short with "..."
  uint32_t dtype = 0;
  int64_t sequence = -1;
  int32_t source = -1, destination = -1;  // point to point
  // Not stated but taken from an annotation `nccl:all_reduce` (before 2024): name and dtype at
  // most; the name is then spelt as the annotation spells it.
  bool derived = false;
};

// A wait on the device's progress that the profiler recorded by itself (category cuda_sync).
struct SyncEvent {
  int64_t start_ns = 0, duration_ns = 0;
  uint32_t kind = 0;  // `Stream Sync`, `Event Sync`, `Context Sync`, `Stream Wait Event`
  int32_t device = 0, stream = 0;
  uint64_t correlation = 0;
  int64_t wait_on_stream = -1, wait_on_correlation = -1;
};

// Memory in use after an allocation or a release (profile_memory).
struct MemorySample {
  int64_t at_ns = 0;
  int64_t bytes = 0;  // negative: released
  int64_t allocated = 0, reserved = 0;
  int32_t device = -1;  // -1: host memory
};

// A range of the host's annotations as the device ran it (category gpu_user_annotation): from the
// first to the last kernel launched inside it, on one stream.
struct DeviceRange {
  int64_t start_ns = 0, duration_ns = 0;
  uint32_t name = 0;
  int32_t device = 0, stream = 0;
};

// A process group as distributedInfo lists it.
struct ProcessGroup {
  std::string name, description, ranks;  // ranks as printed, perhaps cut short with "..."
  int32_t size = 0;
};

struct Thread {
  int64_t process = 0, id = 0;
  uint32_t name = 0;
};

struct TraceDevice {
  int32_t id = 0;
  std::string name;   // `NVIDIA H200`; may be empty
  int32_t major = 0;  // of its compute capability; 0: not stated
};

// An hour. No profiler runs so long, and a collective that hangs is given up before.
constexpr int64_t kLongestEvent_ns = 3'600'000'000'000;

struct Trace {
  std::string file;
  std::string backend;            // `nccl`; empty: not stated
  int rank = -1, world_size = 0;  // -1, 0: not stated
  int64_t base_ns = 0;            // wall-clock time of the file's zero; 0: not stated
  bool shapes = false, stacks = false, memory = false;  // what the profiler was told to record
  std::vector<TraceDevice> devices;
  std::vector<Thread> threads;

  std::vector<DeviceEvent> device;
  std::vector<RuntimeEvent> runtime;
  std::vector<HostEvent> host;  // ops, annotations, Python frames; parents are resolved
  std::vector<SyncEvent> syncs;
  std::vector<CollectiveInfo> collectives;
  std::vector<MemorySample> memory_samples;
  std::vector<DeviceRange> ranges;
  std::vector<ProcessGroup> groups;
  // Indices into `host` of `ProfilerStep#N`, in order; empty: the file has no steps.
  std::vector<int32_t> steps;
  bool steps_inferred = false;  // none was marked; diagnose/infer_steps.h has told them apart

  std::vector<std::string> strings;  // [0] is empty
  std::string_view text(uint32_t index) const { return strings[index]; }

  size_t events = 0;              // rows of the file, all phases
  size_t negative_durations = 0;  // of device events
  size_t long_durations = 0;      // of device events, above kLongestEvent_ns
  size_t bytes = 0;               // of JSON, after decompression
  bool cut = false;               // the file ends in the middle, or is damaged from there on
};

}  // namespace assay
