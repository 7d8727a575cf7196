// The reader against a slow twin that takes the whole file into simdjson, and the joins against
// definitions spelt out as double loops.
#include <gtest/gtest.h>

#include <simdjson.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "ingest/breakdown.h"
#include "ingest/kineto.h"
#include "ingest/test_random.h"

namespace assay {
namespace {

namespace ondemand = simdjson::ondemand;

// What a row is known by in both readers: start, duration, kind, name, correlation or external id.
using Row = std::tuple<int64_t, int64_t, std::string, std::string, uint64_t>;

std::string gunzip(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  std::vector<char> piece(1 << 20);
  for (int got = 1; got > 0;) {
    got = gzread(file, piece.data(), static_cast<unsigned>(piece.size()));
    if (got > 0) text.append(piece.data(), static_cast<size_t>(got));
  }
  gzclose(file);
  return text;
}

// `12.5` to 12500: good for texts with up to three places.
int64_t thousandths(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  std::string places(point == std::string_view::npos ? "" : text.substr(point + 1));
  places.resize(3, '0');
  return std::stoll(digits + places);
}

std::vector<Row> slow_rows(const std::string& path) {
  const simdjson::padded_string text(gunzip(path));
  ondemand::parser parser;
  ondemand::document document = parser.iterate(text);
  std::vector<Row> rows;
  for (ondemand::object event : document["traceEvents"].get_array()) {
    std::string_view phase, category, name;
    if (event["ph"].get(phase) != simdjson::SUCCESS || phase != "X" ||
        event["cat"].get(category) != simdjson::SUCCESS)
      continue;
    const bool device =
        category == "kernel" || category == "gpu_memset" || category == "gpu_memcpy";
    const bool call = category == "cuda_runtime" || category == "cuda_driver";
    if (!device && !call && category != "cpu_op") continue;
    const std::string kind = device ? "device" : call ? "call" : "op";
    if (event["name"].get(name) != simdjson::SUCCESS) continue;
    const std::string kept(name);
    const int64_t start = thousandths(event["ts"].raw_json_token());
    const int64_t duration = thousandths(event["dur"].raw_json_token());
    uint64_t id = 0;
    if (event["args"][kind == "op" ? "External id" : "correlation"].get(id)) id = 0;
    rows.emplace_back(start, duration, kind, kept, id);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<Row> rows_of(const Trace& t) {
  std::vector<Row> rows;
  const auto name = [&](uint32_t text) { return std::string(t.text(text)); };
  for (const DeviceEvent& e : t.device) {
    rows.emplace_back(e.start_ns, e.duration_ns, "device", name(e.name), e.correlation);
  }
  for (const RuntimeEvent& e : t.runtime) {
    rows.emplace_back(e.start_ns, e.duration_ns, "call", name(e.name), e.correlation);
  }
  for (const HostEvent& e : t.host) {
    if (e.kind != HostKind::kOp) continue;
    rows.emplace_back(e.start_ns, e.duration_ns, "op", name(e.name), e.external_id);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(KinetoTwin, TheSameRowsAsAWholeFileParser) {
  const std::string path = std::string(ASSAY_ROOT) + "/test/data/traces/launch_bound.json.gz";
  Diagnostics warnings;
  const Result<Trace> trace = read_kineto(path, warnings);
  ASSERT_TRUE(trace) << trace.error().message;
  const std::vector<Row> ours = rows_of(*trace);
  const std::vector<Row> slow = slow_rows(path);
  ASSERT_EQ(ours.size(), slow.size());
  EXPECT_GT(ours.size(), 20'000u);
  EXPECT_TRUE(ours == slow);
}

std::string random_host(TestRandom& random, int events) {
  std::string text = "[";
  for (int i = 0; i < events; ++i) {
    const bool call = random.below(4) == 0;
    text +=
        fmt::format(R"({}{{"ph": "X", "cat": "{}", "name": "n{}", "pid": 1, "tid": {}, "ts": {},)"
                    R"( "dur": {}, "args": {{"correlation": {}}}}})",
                    i == 0 ? "" : ",", call ? "cuda_runtime" : "cpu_op", i, random.below(2),
                    random.below(40), random.below(25), i + 1);
  }
  return text + "]";
}

int64_t end_of(const HostEvent& e) { return e.start_ns + e.duration_ns; }

// Of all events of the thread that come before, the last that is still open and holds the other's
// end, within the microsecond that whole-microsecond files lose.
template <class Event>
int32_t slow_parent(const Trace& t, size_t before, const Event& e, int64_t end_ns) {
  int32_t parent = -1;
  for (size_t i = 0; i < before; ++i) {
    const HostEvent& h = t.host[i];
    const bool begun = h.start_ns <= e.start_ns && h.thread == e.thread;
    if (begun && end_of(h) > e.start_ns && end_of(h) + 1000 >= end_ns) {
      parent = static_cast<int32_t>(i);
    }
  }
  return parent;
}

TEST(KinetoTwin, ParentsAsDefined) {
  TestRandom random(7);
  for (int round = 0; round < 400; ++round) {
    Diagnostics warnings;
    const Result<Trace> t = read_kineto_text(random_host(random, 30), "t", warnings);
    ASSERT_TRUE(t);
    for (size_t i = 0; i < t->host.size(); ++i) {
      const HostEvent& e = t->host[i];
      ASSERT_EQ(e.parent, slow_parent(*t, i, e, end_of(e))) << round << " host " << i;
    }
    for (const RuntimeEvent& call : t->runtime) {
      ASSERT_EQ(call.host, slow_parent(*t, t->host.size(), call, call.start_ns)) << round;
    }
  }
}

TEST(KinetoTwin, FilesMayBeReadByThreadsAtOnce) {
  const std::string folder = std::string(ASSAY_ROOT) + "/test/data/traces/";
  std::vector<int64_t> busy(4, 0);
  std::vector<std::thread> readers;
  for (size_t i = 0; i < busy.size(); ++i) {
    readers.emplace_back([&, i] {
      Diagnostics warnings;
      const Result<Trace> t = read_kineto(folder + "launch_bound.json.gz", warnings);
      if (t) busy[i] = breakdown(*t).busy_ns;
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(busy[0], 0);
  for (const int64_t b : busy) EXPECT_EQ(b, busy[0]);
}

}  // namespace
}  // namespace assay
