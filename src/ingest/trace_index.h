// Questions that analyses ask of a trace again and again, answered without a scan: what a thread,
// a stream or a launch call holds, which ops stand behind a kernel, what the host was doing at a
// moment.
//
// A TraceIndex is built once from a trace (linear in its rows, 12 bytes a row) and refers to it by
// indices only: keep the trace unchanged while using it. Reading it from several threads is safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/trace.h"

namespace assay {

// Lists of row numbers, one list a key, in one block of memory.
struct RowLists {
  std::vector<uint32_t> first;  // of list k: rows[first[k]] to rows[first[k + 1]]
  std::vector<int32_t> rows;
  size_t size() const { return first.empty() ? 0 : first.size() - 1; }
  std::span<const int32_t> operator[](size_t k) const {
    return std::span(rows).subspan(first[k], first[k + 1] - first[k]);
  }
};

struct StreamId {
  int32_t device = 0, stream = 0;
  bool operator==(const StreamId&) const = default;
};

struct TraceIndex {
  RowLists host_of_thread;     // host events of each thread, by start
  RowLists runtime_of_thread;  // runtime calls of each thread, by start
  RowLists device_of_launch;   // device events of each runtime call: graph launches have many
  std::vector<StreamId> streams;
  RowLists device_of_stream;  // as `streams`; device events by start
  int32_t main_thread = -1;   // the thread that launches most device events; -1: none does
};

TraceIndex index_trace(const Trace&);

// The call that launched it, or null: it was launched before the file begins.
const RuntimeEvent* launch_of(const Trace&, const DeviceEvent&);

// The host events around a launch, innermost first, up to the root: ops, annotations and frames, or
// ops alone. At most `most`. Where the launch is not in the file, from the op that External id
// names.
std::vector<int32_t> host_chain(const Trace&, const DeviceEvent&, size_t most = 256);
std::vector<int32_t> op_chain(const Trace&, const DeviceEvent&, size_t most = 256);

// `aten::linear > aten::addmm`, outermost first, for people; untrusted text, not sanitised.
std::string op_path(const Trace&, const DeviceEvent&, size_t most = 16);

// The innermost host event of a thread that is open at a moment; -1: none.
int32_t host_at(const Trace&, const TraceIndex&, int32_t thread, int64_t at_ns);

// The runtime call of a thread that is open at a moment; -1: none.
int32_t runtime_at(const Trace&, const TraceIndex&, int32_t thread, int64_t at_ns);

// The step (place in trace.steps) whose annotation holds a moment; -1: none.
int32_t step_at(const Trace&, int64_t at_ns);

// What a runtime call is, by its name: cuda*, cu*, hip* and MTIA alike.
bool launches_kernel(std::string_view call);   // cudaLaunchKernel, cuLaunchKernelEx, hipGraphLaunch
bool launches_graph(std::string_view call);    // cudaGraphLaunch, hipGraphLaunch
bool waits_for_device(std::string_view call);  // cudaStreamSynchronize, hipDeviceSynchronize, ...

}  // namespace assay
