// Parents. Host events of a thread nest like calls, so one pass over them in the order of their
// starts with a stack a thread finds the innermost event that holds each. Two things break the
// picture: files in whole microseconds, where a child may end up to a microsecond after its parent
// (kRounding_ns), and ranges that merely overlap, such as annotations of asynchronous work. An
// event that is not held by the top of the stack is looked for further down, but not further than
// kOverlapsMost: honest files need one or two steps, and a hostile one must not cost its square.
// For the same reason nothing nests deeper than kNestedMost, four times what Python allows.
//
// Launches. A kernel's correlation id names the runtime call that launched it; a graph launch names
// one call for hundreds of kernels. Ids may come twice (several processes in one file): the call
// that began last before the kernel did is taken. A kernel launched before the profiler began has
// no call in the file; its External id may still name the op. Some versions number the two sides
// apart, so ids are believed only where they agree with what the times say of launched kernels.
#include "ingest/kineto_join.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace assay {
namespace {

constexpr int64_t kRounding_ns = 1000;
constexpr int kOverlapsMost = 64;
constexpr size_t kNestedMost = 4096;

// Puts `rows` in the order of `less` over (key, place in the file).
template <class Row, class Key>
void sort_rows(std::vector<Row>& rows, Key key) {
  const auto in_order = [&](const Row& a, const Row& b) { return key(a) < key(b); };
  if (std::is_sorted(rows.begin(), rows.end(), in_order)) return;
  std::vector<std::pair<decltype(key(rows[0])), uint32_t>> keys(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) keys[i] = {key(rows[i]), static_cast<uint32_t>(i)};
  std::sort(keys.begin(), keys.end());
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const auto& [k, i] : keys) sorted.push_back(rows[i]);
  rows.swap(sorted);
}

void sort_all(Trace& t) {
  const auto by_start = [](const auto& e) { return e.start_ns; };
  sort_rows(t.device, by_start);
  sort_rows(t.runtime, by_start);
  sort_rows(t.syncs, by_start);
  sort_rows(t.ranges, by_start);
  sort_rows(t.memory_samples, [](const MemorySample& e) { return e.at_ns; });
  sort_rows(t.host, [](const HostEvent& e) { return std::pair(e.start_ns, -e.duration_ns); });
}

int64_t end_of(const HostEvent& e) { return e.start_ns + std::max<int64_t>(e.duration_ns, 0); }

// The events of one thread that are open at the moment, outermost first.
using Stack = std::vector<int32_t>;

void close_until(const Trace& t, Stack& open, int64_t now_ns) {
  while (!open.empty() && end_of(t.host[static_cast<size_t>(open.back())]) <= now_ns) {
    open.pop_back();
  }
}

int32_t holder(const Trace& t, const Stack& open, int64_t start_ns, int64_t end_ns) {
  size_t i = open.size();
  for (int tries = 0; i > 0 && tries < kOverlapsMost; --i, ++tries) {
    const HostEvent& e = t.host[static_cast<size_t>(open[i - 1])];
    if (end_of(e) > start_ns && end_of(e) + kRounding_ns >= end_ns) return open[i - 1];
  }
  return -1;
}

void find_parents(Trace& t) {
  std::vector<Stack> open(t.threads.size());
  size_t r = 0;
  const auto place_calls_before = [&](int64_t limit_ns) {
    for (; r < t.runtime.size() && t.runtime[r].start_ns < limit_ns; ++r) {
      RuntimeEvent& call = t.runtime[r];
      Stack& stack = open[static_cast<size_t>(call.thread)];
      close_until(t, stack, call.start_ns);
      call.host = holder(t, stack, call.start_ns, call.start_ns);
    }
  };
  for (size_t i = 0; i < t.host.size(); ++i) {
    HostEvent& e = t.host[i];
    place_calls_before(e.start_ns);
    Stack& stack = open[static_cast<size_t>(e.thread)];
    close_until(t, stack, e.start_ns);
    e.parent = holder(t, stack, e.start_ns, end_of(e));
    if (stack.size() < kNestedMost) stack.push_back(static_cast<int32_t>(i));
  }
  place_calls_before(INT64_MAX);
}

// From an id to the rows that carry it, the latest first.
class IdIndex {
 public:
  explicit IdIndex(size_t rows)
      : slots_(std::bit_ceil(std::max<size_t>(rows * 2, 16))), before_(rows, -1) {}

  void add(uint64_t id, int32_t row) {
    Slot& slot = at(id);
    slot.id = id;
    before_[static_cast<size_t>(row)] = slot.row;
    slot.row = row;
  }

  // The last row not after `now_ns`, or else the nearest after it; -1: none.
  template <class Row>
  int32_t find(uint64_t id, int64_t now_ns, const std::vector<Row>& rows) {
    int32_t row = id == 0 ? -1 : at(id).row;
    for (int tries = 0; row >= 0 && tries < kOverlapsMost; ++tries) {
      const int32_t earlier = before_[static_cast<size_t>(row)];
      if (rows[static_cast<size_t>(row)].start_ns <= now_ns || earlier < 0) break;
      row = earlier;
    }
    return row;
  }

 private:
  struct Slot {
    uint64_t id = 0;
    int32_t row = -1;
  };
  Slot& at(uint64_t id) {
    const size_t mask = slots_.size() - 1;
    size_t i = static_cast<size_t>((id * 0x9E3779B97F4A7C15u) >> 20) & mask;
    while (slots_[i].row >= 0 && slots_[i].id != id) i = (i + 1) & mask;
    return slots_[i];
  }
  std::vector<Slot> slots_;
  std::vector<int32_t> before_;
};

IdIndex index_of_calls(const Trace& t) {
  IdIndex index(t.runtime.size());
  for (size_t i = 0; i < t.runtime.size(); ++i) {
    const uint64_t id = t.runtime[i].correlation;
    if (id != 0) index.add(id, static_cast<int32_t>(i));
  }
  return index;
}

IdIndex index_of_ops(const Trace& t) {
  IdIndex index(t.host.size());
  for (size_t i = 0; i < t.host.size(); ++i) {
    const HostEvent& e = t.host[i];
    if (e.kind == HostKind::kOp && e.external_id != 0) {
      index.add(e.external_id, static_cast<int32_t>(i));
    }
  }
  return index;
}

// For each host event the innermost op that it is or lies in.
std::vector<int32_t> innermost_ops(const Trace& t) {
  std::vector<int32_t> op(t.host.size(), -1);
  for (size_t i = 0; i < t.host.size(); ++i) {
    const HostEvent& e = t.host[i];
    if (e.kind == HostKind::kOp) {
      op[i] = static_cast<int32_t>(i);
    } else if (e.parent >= 0) {
      op[i] = op[static_cast<size_t>(e.parent)];  // a parent comes first
    }
  }
  return op;
}

uint64_t external_id(const Trace& t, const DeviceEvent& e) {
  const uint64_t of_call = e.launch < 0 ? 0 : t.runtime[static_cast<size_t>(e.launch)].external_id;
  return of_call != 0 ? of_call : e.external_id;
}

void find_launches(Trace& t) {
  IdIndex calls = index_of_calls(t);
  const std::vector<int32_t> innermost = innermost_ops(t);
  for (DeviceEvent& e : t.device) {
    e.launch = calls.find(e.correlation, e.start_ns, t.runtime);
    if (e.launch < 0) continue;
    const RuntimeEvent& call = t.runtime[static_cast<size_t>(e.launch)];
    if (call.host >= 0) e.op = innermost[static_cast<size_t>(call.host)];
  }
}

// For the device events whose op the times did not tell.
void find_ops_by_id(Trace& t) {
  IdIndex ops = index_of_ops(t);
  size_t agree = 0, differ = 0;
  for (const DeviceEvent& e : t.device) {
    if (e.op < 0) continue;
    const int32_t named = ops.find(external_id(t, e), e.start_ns, t.host);
    if (named >= 0) ++(named == e.op ? agree : differ);
  }
  constexpr size_t kAgreeing = 10;  // to one that differs
  if (differ * kAgreeing > agree) return;
  for (DeviceEvent& e : t.device) {
    if (e.op < 0) e.op = ops.find(external_id(t, e), e.start_ns, t.host);
  }
}

void find_steps(Trace& t) {
  constexpr std::string_view kStep = "ProfilerStep#";
  for (size_t i = 0; i < t.host.size(); ++i) {
    const HostEvent& e = t.host[i];
    if (e.kind == HostKind::kAnnotation && t.text(e.name).substr(0, kStep.size()) == kStep) {
      t.steps.push_back(static_cast<int32_t>(i));
    }
  }
}

}  // namespace

void join(Trace& trace) {
  sort_all(trace);
  find_parents(trace);
  find_launches(trace);
  find_ops_by_id(trace);
  find_steps(trace);
}

}  // namespace assay
