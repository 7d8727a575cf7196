// The critical path of one rank: the chain of host work, launches and device work whose lengths add
// up to the most, so that shortening anything else gives nothing.
//
// What depends on what, as "lightweight critical path analysis" of Holistic Trace Analysis defines
// it, so that results can be compared:
//   - An operator or runtime call on a host thread follows the one before it. Time between top
//     level operators counts nothing in the path's length; it is listed as kGap, because that is
//     where Python and data loading hide.
//   - A device event follows its launch when its stream was idle then (the delay counts, kLaunch),
//     else the event before it on its stream (the pause between them counts, kBetween). Kernels of
//     a graph launch share one launch. An event recorded on one stream and waited for on another
//     joins the streams.
//   - A host call that waits for the device (synchronisation of stream, event or device) takes no
//     time of its own: it ends with what it waited for.
// Beyond that definition: a host thread that was idle continues where another thread of the process
// stopped (autograd's thread takes over from the main thread and hands back). Files without
// synchronisation records, launches or correlation ids are analysed as far as they go.
//
// All times are integer nanoseconds of the file's clock. O(n log n).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ingest/trace.h"

namespace assay {

enum class PathKind : uint8_t {
  kHost,     // operators and runtime calls
  kDevice,   // kernels, copies and sets
  kLaunch,   // from the launch call to the start on an idle stream
  kBetween,  // between two device events, the second already waiting
  kGap,      // on a host thread between top-level operators; not part of the length
};
constexpr int kPathKinds = static_cast<int>(PathKind::kGap) + 1;

struct PathSegment {
  PathKind kind = PathKind::kHost;
  int rank = -1;
  int32_t thread = -1;  // host and gap: index into Trace::threads
  int32_t device = -1, stream = -1;
  uint32_t name =
      0;  // in Trace::strings: the operator, kernel or, of a gap, the annotation round it
  int64_t start_ns = 0, duration_ns = 0;
};

struct CriticalPath {
  std::vector<PathSegment> segments;  // in order of time
  std::array<int64_t, kPathKinds> by_kind{};
  int64_t total_ns = 0;            // without gaps
  int64_t from_ns = 0, to_ns = 0;  // of the path

  int64_t of(PathKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
};

// Of the host events that begin in [from, to] and the device events they launched.
CriticalPath critical_path(const Trace&, int64_t from_ns, int64_t to_ns);
// Of what begins in [from, to], on the host and on the device, whoever launched it: for a stretch
// of time inside a step, whose kernels may have been launched long before.
CriticalPath critical_path_between(const Trace&, int64_t from_ns, int64_t to_ns);
// Of the whole file.
CriticalPath critical_path(const Trace&);
// Of one step (index into Trace::steps).
CriticalPath critical_path_of_step(const Trace&, size_t step);

}  // namespace assay
