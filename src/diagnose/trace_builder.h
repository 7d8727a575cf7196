// Makes small traces for tests: a host that launches work, a device that runs it in streams. The
// times that a trace would show follow from the rules of the machine, so a test states what the
// program does, not when.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ingest/trace.h"

namespace assay {

class TraceBuilder {
 public:
  static constexpr int64_t kUs = 1000;
  static constexpr int32_t kCompute = 7, kSide = 20;

  explicit TraceBuilder(const std::string& device = "NVIDIA H200") {
    trace_.file = "generated.json";
    trace_.strings = {""};
    trace_.devices.push_back({0, device, 9});
    trace_.threads.push_back({1, 1, 0});
  }

  int64_t host_us_per_launch = 15;  // of framework work, besides 5 us for the call
  int32_t thread = 0;               // that launches; the autograd engine has one of its own

  // One training step: `body` launches its work.
  void step(const std::function<void()>& body) {
    const int64_t start = now_;
    body();
    add_host("ProfilerStep#" + std::to_string(steps_++), start, now_, HostKind::kAnnotation);
  }

  // A kernel. Returns its index among device events in the order of launching.
  size_t kernel(const std::string& name, const std::string& op, int64_t us,
                int32_t stream = kCompute, int32_t blocks = 0) {
    const int64_t begin = now_;
    now_ += host_us_per_launch * kUs;
    const int32_t launch = call("cudaLaunchKernel", 5);
    DeviceEvent e = event(name, launch, us, stream);
    e.grid[0] = blocks;
    e.grid[1] = e.grid[2] = blocks > 0 ? 1 : 0;
    ops_.push_back(add_host(op, begin, now_, HostKind::kOp));
    return run(e);
  }

  // Several kernels that one operator launches.
  void kernels_of(const std::string& op,
                  const std::vector<std::pair<std::string, int64_t>>& names_and_us) {
    const size_t first = ops_.size();
    for (const auto& [name, us] : names_and_us) kernel(name, op, us);
    HostEvent& all = host_[ops_[first]];
    all.duration_ns = now_ - all.start_ns;
    for (size_t i = first + 1; i < ops_.size(); ++i) ops_[i] = ops_[first];
  }

  // The next operation on `stream` starts after that one (a wait for its event).
  void wait_for(int32_t stream, size_t device_event) {
    const DeviceEvent& e = events_[device_event];
    int64_t& free = free_[stream];
    free = std::max(free, e.start_ns + e.duration_ns);
  }

  // A copy between host and device; a held one returns when it is done.
  void copy(const std::string& name, int64_t bytes, int64_t us, bool held,
            int32_t stream = kCompute) {
    const int64_t begin = now_;
    now_ += 5 * kUs;
    const int32_t launch = call("cudaMemcpyAsync", 5);
    DeviceEvent e = event(name, launch, us, stream);
    e.kind = DeviceKind::kCopy;
    e.role = Role::kMemory;
    e.bytes = bytes;
    const size_t i = run(e);
    if (held) {
      now_ = std::max(now_, events_[i].start_ns + events_[i].duration_ns + 5 * kUs);
      RuntimeEvent& r = trace_.runtime[static_cast<size_t>(launch)];
      r.duration_ns = now_ - r.start_ns;
    }
    ops_.push_back(add_host("aten::copy_", begin, now_, HostKind::kOp));
  }

  // A copy of pageable memory that fits the driver's buffer: the call waits for the stream, copies
  // it there, and returns when the device begins with it.
  void staged_copy(int64_t bytes, int64_t host_us, int64_t us) {
    const int64_t begin = now_;
    const int64_t waits_us = std::max<int64_t>(free_[kCompute] - now_, 0) / kUs;
    const int32_t launch = call("cudaMemcpyAsync", waits_us + host_us);
    DeviceEvent e = event("Memcpy HtoD (Pageable -> Device)", launch, us, kCompute);
    e.kind = DeviceKind::kCopy;
    e.role = Role::kMemory;
    e.bytes = bytes;
    free_[kCompute] = std::max(free_[kCompute], now_ - kUs);
    run(e);
    ops_.push_back(add_host("aten::copy_", begin, now_, HostKind::kOp));
  }

  // Waits for everything launched so far.
  void sync(const std::string& op = "aten::_local_scalar_dense") {
    const int64_t begin = now_;
    const int32_t index = call("cudaStreamSynchronize", 5);
    for (const auto& [stream, free] : free_) now_ = std::max(now_, free + 5 * kUs);
    RuntimeEvent& r = trace_.runtime[static_cast<size_t>(index)];
    r.duration_ns = now_ - r.start_ns;
    add_host(op, begin, now_, HostKind::kOp);
  }

  // tensor.item(): four bytes to the host, and a wait for them.
  void item() {
    copy("Memcpy DtoH (Device -> Pageable)", 4, 2, true);
    sync();
  }

  void allocate(const std::string& name, int64_t us) { call(name, us); }
  void loader(int64_t us, const std::string& kind = "_SingleProcessDataLoaderIter") {
    const int64_t start = now_;
    now_ += us * kUs;
    add_host("enumerate(DataLoader)#" + kind + ".__next__", start, now_, HostKind::kAnnotation);
  }
  void pause(int64_t us) { now_ += us * kUs; }
  // A thread that launches nothing begins to copy a batch to pinned memory.
  void begin_pinning() {
    if (trace_.threads.size() < 2) trace_.threads.push_back({1, 2, 0});
    RuntimeEvent r;
    r.start_ns = now_;
    r.duration_ns = 10 * kUs;
    r.name = text("cudaPointerGetAttributes");
    r.thread = 1;
    r.correlation = trace_.runtime.size() + 1;
    trace_.runtime.push_back(r);
  }
  // An operator that runs on the host alone.
  void host_op(const std::string& name, int64_t us) {
    const int64_t start = now_;
    now_ += us * kUs;
    add_host(name, start, now_, HostKind::kOp);
  }
  // `body` launches from within this operator.
  void inside(const std::string& op, const std::function<void()>& body) {
    const int64_t start = now_;
    now_ += 1;
    body();
    now_ += 1;
    add_host(op, start, now_, HostKind::kOp);
  }

  // Marks a launched event as communication.
  void communicate(size_t device_event, const std::string& collective) {
    events_[device_event].role = Role::kCommunication;
    events_[device_event].collective = static_cast<int32_t>(trace_.collectives.size());
    CollectiveInfo info;
    info.name = text(collective);
    trace_.collectives.push_back(info);
  }

  void record_shapes(const std::string& dims) {  // of the operator launched last
    trace_.shapes = true;
    host_[ops_.back()].shapes = text(dims);
  }

  Trace finish() {
    // Host events in order of start, the enclosing one first; parents by containment.
    std::vector<size_t> order(host_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return host_[a].start_ns != host_[b].start_ns ? host_[a].start_ns < host_[b].start_ns
                                                    : host_[a].duration_ns > host_[b].duration_ns;
    });
    std::vector<int32_t> place(host_.size());
    std::vector<int32_t> open;
    for (size_t i = 0; i < order.size(); ++i) {
      HostEvent e = host_[order[i]];
      while (!open.empty() && end(trace_.host[static_cast<size_t>(open.back())]) <= e.start_ns) {
        open.pop_back();
      }
      e.parent = open.empty() ? -1 : open.back();
      place[order[i]] = static_cast<int32_t>(i);
      open.push_back(static_cast<int32_t>(i));
      if (trace_.text(e.name).substr(0, 12) == "ProfilerStep") {
        trace_.steps.push_back(static_cast<int32_t>(i));
      }
      trace_.host.push_back(e);
    }
    for (size_t i = 0; i < events_.size(); ++i) events_[i].op = place[ops_[i]];
    trace_.device = events_;
    std::stable_sort(
        trace_.device.begin(), trace_.device.end(),
        [](const DeviceEvent& a, const DeviceEvent& b) { return a.start_ns < b.start_ns; });
    return trace_;
  }

 private:
  static int64_t end(const HostEvent& e) { return e.start_ns + e.duration_ns; }

  uint32_t text(const std::string& s) {
    const auto [it, fresh] = known_.try_emplace(s, static_cast<uint32_t>(trace_.strings.size()));
    if (fresh) trace_.strings.push_back(s);
    return it->second;
  }

  int32_t call(const std::string& name, int64_t us) {
    RuntimeEvent r;
    r.start_ns = now_;
    r.duration_ns = us * kUs;
    r.name = text(name);
    r.thread = thread;
    while (trace_.threads.size() <= static_cast<size_t>(thread)) {
      trace_.threads.push_back({1, static_cast<int64_t>(trace_.threads.size()) + 1, 0});
    }
    r.correlation = trace_.runtime.size() + 1;
    now_ += us * kUs;
    trace_.runtime.push_back(r);
    return static_cast<int32_t>(trace_.runtime.size()) - 1;
  }

  size_t add_host(const std::string& name, int64_t start, int64_t stop, HostKind kind) {
    HostEvent e;
    e.start_ns = start;
    e.duration_ns = stop - start;
    e.name = text(name);
    e.kind = kind;
    host_.push_back(e);
    return host_.size() - 1;
  }

  DeviceEvent event(const std::string& name, int32_t launch, int64_t us, int32_t stream) {
    DeviceEvent e;
    e.name = text(name);
    e.launch = launch;
    e.correlation = static_cast<uint64_t>(launch) + 1;
    e.duration_ns = us * kUs;
    e.stream = stream;
    return e;
  }

  size_t run(DeviceEvent e) {
    int64_t& free = free_[e.stream];
    const RuntimeEvent& launch = trace_.runtime[static_cast<size_t>(e.launch)];
    e.start_ns = std::max(launch.start_ns + 8 * kUs, free + kUs);
    free = e.start_ns + e.duration_ns;
    events_.push_back(e);
    return events_.size() - 1;
  }

  Trace trace_;
  int64_t now_ = 1'000'000'000;
  int steps_ = 0;
  std::map<int32_t, int64_t> free_;
  std::map<std::string, uint32_t> known_;
  std::vector<HostEvent> host_;
  std::vector<size_t> ops_;  // per device event: its operator, an index into host_
  std::vector<DeviceEvent> events_;
};

}  // namespace assay
