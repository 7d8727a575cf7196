#include "ingest/trace_index.h"

#include <algorithm>
#include <map>

namespace assay {
namespace {

// Rows into lists by `key`; a negative key is in no list. Keeps the order of the rows.
template <class Key>
RowLists lists(size_t rows, size_t keys, Key key) {
  RowLists out;
  out.first.assign(keys + 1, 0);
  for (size_t i = 0; i < rows; ++i) {
    const int32_t k = key(i);
    if (k >= 0) ++out.first[static_cast<size_t>(k) + 1];
  }
  for (size_t k = 0; k < keys; ++k) out.first[k + 1] += out.first[k];
  out.rows.resize(out.first[keys]);
  std::vector<uint32_t> next(out.first.begin(), out.first.end() - 1);
  for (size_t i = 0; i < rows; ++i) {
    const int32_t k = key(i);
    if (k >= 0) out.rows[next[static_cast<size_t>(k)]++] = static_cast<int32_t>(i);
  }
  return out;
}

void index_streams(const Trace& t, TraceIndex& x) {
  std::map<std::pair<int32_t, int32_t>, int32_t> place;
  std::vector<int32_t> stream(t.device.size());
  for (const DeviceEvent& e : t.device) place.try_emplace({e.device, e.stream}, 0);
  for (auto& [key, at] : place) {
    at = static_cast<int32_t>(x.streams.size());
    x.streams.push_back({key.first, key.second});
  }
  for (size_t i = 0; i < t.device.size(); ++i) {
    stream[i] = place[{t.device[i].device, t.device[i].stream}];
  }
  x.device_of_stream = lists(stream.size(), x.streams.size(), [&](size_t i) { return stream[i]; });
}

int32_t busiest_launcher(const Trace& t) {
  std::vector<size_t> launched(t.threads.size(), 0);
  for (const DeviceEvent& e : t.device) {
    const RuntimeEvent* call = launch_of(t, e);
    if (call != nullptr) ++launched[static_cast<size_t>(call->thread)];
  }
  const auto most = std::max_element(launched.begin(), launched.end());
  if (most == launched.end() || *most == 0) return -1;
  return static_cast<int32_t>(most - launched.begin());
}

// The last of `rows` that begins at or before a moment; npos: none.
template <class Row>
size_t last_begun(const std::vector<Row>& all, std::span<const int32_t> rows, int64_t at_ns) {
  const auto after = std::upper_bound(rows.begin(), rows.end(), at_ns, [&](int64_t at, int32_t i) {
    return at < all[static_cast<size_t>(i)].start_ns;
  });
  return static_cast<size_t>(after - rows.begin()) - 1;
}

}  // namespace

TraceIndex index_trace(const Trace& t) {
  TraceIndex x;
  x.host_of_thread =
      lists(t.host.size(), t.threads.size(), [&](size_t i) { return t.host[i].thread; });
  x.runtime_of_thread =
      lists(t.runtime.size(), t.threads.size(), [&](size_t i) { return t.runtime[i].thread; });
  x.device_of_launch =
      lists(t.device.size(), t.runtime.size(), [&](size_t i) { return t.device[i].launch; });
  index_streams(t, x);
  x.main_thread = busiest_launcher(t);
  return x;
}

const RuntimeEvent* launch_of(const Trace& t, const DeviceEvent& e) {
  return e.launch < 0 ? nullptr : &t.runtime[static_cast<size_t>(e.launch)];
}

std::vector<int32_t> host_chain(const Trace& t, const DeviceEvent& e, size_t most) {
  const RuntimeEvent* call = launch_of(t, e);
  int32_t at = call != nullptr && call->host >= 0 ? call->host : e.op;
  std::vector<int32_t> chain;
  for (; at >= 0 && chain.size() < most; at = t.host[static_cast<size_t>(at)].parent) {
    chain.push_back(at);
  }
  return chain;
}

std::vector<int32_t> op_chain(const Trace& t, const DeviceEvent& e, size_t most) {
  std::vector<int32_t> chain;
  for (int32_t at = e.op; at >= 0 && chain.size() < most;) {
    const HostEvent& host = t.host[static_cast<size_t>(at)];
    if (host.kind == HostKind::kOp) chain.push_back(at);
    at = host.parent;
  }
  return chain;
}

std::string op_path(const Trace& t, const DeviceEvent& e, size_t most) {
  std::string path;
  std::vector<int32_t> chain = op_chain(t, e, most);
  std::reverse(chain.begin(), chain.end());
  for (const int32_t at : chain) {
    if (!path.empty()) path += " > ";
    path += t.text(t.host[static_cast<size_t>(at)].name);
  }
  return path;
}

int32_t host_at(const Trace& t, const TraceIndex& x, int32_t thread, int64_t at_ns) {
  const std::span<const int32_t> rows = x.host_of_thread[static_cast<size_t>(thread)];
  const size_t last = last_begun(t.host, rows, at_ns);
  int32_t at = last < rows.size() ? rows[last] : -1;
  while (at >= 0) {
    const HostEvent& e = t.host[static_cast<size_t>(at)];
    if (e.start_ns + e.duration_ns > at_ns) break;
    at = e.parent;
  }
  return at;
}

int32_t runtime_at(const Trace& t, const TraceIndex& x, int32_t thread, int64_t at_ns) {
  const std::span<const int32_t> rows = x.runtime_of_thread[static_cast<size_t>(thread)];
  // A driver call lies inside its runtime call: two levels, so the last few begun are enough.
  constexpr int kLevels = 4;
  size_t last = last_begun(t.runtime, rows, at_ns);
  for (int i = 0; i < kLevels && last < rows.size(); ++i, --last) {
    const RuntimeEvent& e = t.runtime[static_cast<size_t>(rows[last])];
    if (e.start_ns + e.duration_ns > at_ns) return rows[last];
  }
  return -1;
}

int32_t step_at(const Trace& t, int64_t at_ns) {
  const size_t last = last_begun(t.host, std::span(t.steps), at_ns);
  if (last >= t.steps.size()) return -1;
  const HostEvent& e = t.host[static_cast<size_t>(t.steps[last])];
  return e.start_ns + e.duration_ns > at_ns ? static_cast<int32_t>(last) : -1;
}

bool launches_kernel(std::string_view call) {
  if (call.find("HostFunc") != std::string_view::npos) return false;
  return call.find("LaunchKernel") != std::string_view::npos ||
         call.find("LaunchCooperativeKernel") != std::string_view::npos || launches_graph(call);
}

bool launches_graph(std::string_view call) {
  return call.find("GraphLaunch") != std::string_view::npos;
}

bool waits_for_device(std::string_view call) {
  return call.find("Synchronize") != std::string_view::npos;
}

}  // namespace assay
