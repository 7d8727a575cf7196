#include "ingest/kineto.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fmt/format.h>

#include "ingest/breakdown.h"

namespace assay {
namespace {

struct ReadResult {
  Result<Trace> trace;
  Diagnostics warnings;
};

ReadResult read(const std::string& text, const KinetoLimits& limits = {}) {
  Diagnostics warnings;
  Result<Trace> trace = read_kineto_text(text, "t.json", warnings, limits);
  return {std::move(trace), std::move(warnings)};
}

Trace good(const std::string& text) {
  ReadResult r = read(text);
  EXPECT_TRUE(r.trace) << r.trace.error().message;
  EXPECT_TRUE(r.warnings.empty()) << render(r.warnings);
  return r.trace ? std::move(*r.trace) : Trace();
}

// Reads with warnings expected; `about` must be part of them.
Trace warned(const std::string& text, const std::string& about, const KinetoLimits& limits = {}) {
  ReadResult r = read(text, limits);
  EXPECT_TRUE(r.trace) << r.trace.error().message;
  EXPECT_NE(render(r.warnings).find(about), std::string::npos) << render(r.warnings);
  return r.trace ? std::move(*r.trace) : Trace();
}

std::string failure(const std::string& text, const KinetoLimits& limits = {}) {
  const ReadResult r = read(text, limits);
  EXPECT_FALSE(r.trace);
  if (r.trace) return "";
  EXPECT_EQ(r.trace.error().file, "t.json");
  return r.trace.error().message;
}

std::string kernel(const std::string& ts, const std::string& dur, int stream = 7,
                   int correlation = 0, const std::string& name = "k") {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {},)"
                     R"( "dur": {}, "args": {{"device": 0, "stream": {}, "correlation": {}}}}})",
                     name, stream, ts, dur, stream, correlation);
}

std::string host(const std::string& cat, const std::string& name, int ts, int dur,
                 const std::string& args = "", int tid = 1) {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 5, "tid": {}, "ts": {},)"
                     R"( "dur": {}, "args": {{{}}}}})",
                     cat, name, tid, ts, dur, args);
}

std::string events(const std::vector<std::string>& list) {
  return "{\"schemaVersion\": 1, \"traceEvents\": [" + fmt::format("{}", fmt::join(list, ",\n")) +
         "]}";
}

std::string gzip(const std::string& text) {
  z_stream s{};
  EXPECT_EQ(deflateInit2(&s, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&s, text.size()), '\0');
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  s.avail_in = static_cast<uInt>(text.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&s, Z_FINISH), Z_STREAM_END);
  out.resize(s.total_out);
  deflateEnd(&s);
  return out;
}

TEST(Kineto, EventsBecomeRows) {
  const Trace t = good(events(
      {host("cpu_op", "aten::mm", 10, 20,
            R"("External id": 3, "Sequence number": 8, "Input Dims": [[2, 3], []])"),
       host("cuda_runtime", "cudaLaunchKernel", 15, 5, R"("correlation": 9)"),
       R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 20, "ts": 40.25,)"
       R"( "dur": 3.5, "args": {"device": 1, "stream": 20, "correlation": 9,)"
       R"( "grid": [80, 2, 1], "block": [256, 1, 1]}})",
       R"({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 1, "tid": 7, "ts": 50,)"
       R"( "dur": 1, "args": {"device": 1, "stream": 7, "bytes": 4096}})",
       R"({"ph": "i", "name": "[memory]", "pid": 5, "tid": 1, "ts": 12, "s": "t", "args":)"
       R"( {"Device Type": 1, "Device Id": 1, "Bytes": -512, "Total Allocated": 7}})",
       R"({"ph": "M", "name": "thread_name", "pid": 5, "tid": 1, "ts": 0,)"
       R"( "args": {"name": "main"}})",
       R"({"ph": "s", "id": 1, "pid": 5, "tid": 1, "ts": 15, "cat": "ac2g", "name": "ac2g"})"}));
  EXPECT_EQ(t.events, 7u);
  ASSERT_EQ(t.device.size(), 2u);
  const DeviceEvent& k = t.device[0];
  EXPECT_EQ(t.text(k.name), "gemm");
  EXPECT_EQ(k.start_ns, 40250);
  EXPECT_EQ(k.duration_ns, 3500);
  EXPECT_EQ(k.device, 1);
  EXPECT_EQ(k.stream, 20);
  EXPECT_EQ(k.grid[0], 80);
  EXPECT_EQ(k.block[0], 256);
  EXPECT_EQ(k.launch, 0);
  ASSERT_EQ(k.op, 0);
  EXPECT_EQ(t.device[1].bytes, 4096);
  EXPECT_EQ(t.device[1].role, Role::kMemory);
  EXPECT_EQ(t.text(t.host[0].shapes), "[[2, 3], []]");
  EXPECT_EQ(t.host[0].sequence, 8);
  EXPECT_EQ(t.runtime[0].host, 0);
  ASSERT_EQ(t.memory_samples.size(), 1u);
  EXPECT_EQ(t.memory_samples[0].bytes, -512);
  EXPECT_EQ(t.memory_samples[0].device, 1);
  ASSERT_EQ(t.threads.size(), 1u);
  EXPECT_EQ(t.text(t.threads[0].name), "main");
  EXPECT_TRUE(t.shapes);
  EXPECT_TRUE(t.memory);
}

TEST(Kineto, HeadAroundTheEventsInAnyOrder) {
  const Trace t = good(
      R"({"metadata": {"deep": [1, {"x": "]}"}]}, "record_shapes": 1, "traceEvents": [)" +
      kernel("1", "2") +
      R"(], "with_stack": 0, "deviceProperties": [{"id": 0, "name": "NVIDIA \"H200\"",)"
      R"( "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0, "numSms": 132}],)"
      R"( "baseTimeNanoseconds": 1790857026000000000, "distributedInfo": {"backend": "nccl",)"
      R"( "rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg",)"
      R"( "pg_size": 8, "ranks": [0, 1]}]}, "traceName": "/tmp/x.json"})");
  EXPECT_EQ(t.rank, 3);
  EXPECT_EQ(t.world_size, 8);
  EXPECT_EQ(t.backend, "nccl");
  EXPECT_EQ(t.base_ns, 1790857026000000000);
  EXPECT_TRUE(t.shapes);
  EXPECT_FALSE(t.stacks);
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.devices[0].name, "NVIDIA \"H200\"");
  EXPECT_EQ(t.devices[0].major, 9);
  ASSERT_EQ(t.groups.size(), 1u);
  EXPECT_EQ(t.groups[0].ranks, "[0, 1]");
  EXPECT_EQ(t.device.size(), 1u);
}

TEST(Kineto, KeysOfAnEventInAnyOrderAndArgsFirst) {
  const Trace t = good(
      R"([{"args": {"correlation": 5, "stream": 3, "nested": {"stream": 9}}, "dur": 2, "ts": 1,)"
      R"( "tid": 3, "name": "k", "extra": [{"ph": "M"}], "cat": "kernel", "ph": "X", "pid": 0}])");
  ASSERT_EQ(t.device.size(), 1u);
  EXPECT_EQ(t.device[0].stream, 3);
  EXPECT_EQ(t.device[0].correlation, 5u);
}

TEST(Kineto, OldTracesOfPyTorch18) {
  const Trace t = good(
      events({R"({"ph": "X", "cat": "Operator", "name": "ProfilerStep#5", "pid": 2, "tid": "2",)"
              R"( "ts": 0, "dur": 100, "args": {"External id": 1}})",
              R"({"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 2, "tid": "2",)"
              R"( "ts": 1, "dur": 50, "args": {"External id": 2}})",
              R"({"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 2, "tid": "2",)"
              R"( "ts": 5, "dur": 5, "args": {"correlation": 11, "external id": 2}})",
              R"({"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 20,)"
              R"( "dur": 5, "args": {"correlation": 11, "external id": 2}})",
              R"({"ph": "X", "cat": "Memset", "name": "m", "pid": 0, "tid": "stream 7", "ts": 30,)"
              R"( "dur": 5, "args": {"stream": 7}})"}));
  ASSERT_EQ(t.steps.size(), 1u);
  EXPECT_EQ(t.threads.size(), 1u);
  ASSERT_EQ(t.device.size(), 2u);
  EXPECT_EQ(t.device[0].stream, 7);
  EXPECT_EQ(t.text(t.host[static_cast<size_t>(t.device[0].op)].name), "aten::mm");
  EXPECT_EQ(breakdown(t).streams, 1);
}

TEST(Kineto, OneGraphLaunchHasManyKernelsAndOrphansKeepTheirOp) {
  std::vector<std::string> list = {
      host("cpu_op", "early", 0, 4, R"("External id": 77)"),
      host("cuda_runtime", "cudaGraphLaunch", 10, 5, R"("correlation": 9)")};
  for (int i = 0; i < 400; ++i) list.push_back(kernel(std::to_string(100 + 2 * i), "1", 7, 9));
  list.push_back(kernel("5", "1", 7, 4));
  list.push_back(
      R"({"ph": "X", "cat": "kernel", "name": "o", "pid": 0, "tid": 7, "ts": 6, "dur": 1,)"
      R"( "args": {"stream": 7, "correlation": 5, "External id": 77}})");
  const Trace t = good(events(list));
  ASSERT_EQ(t.device.size(), 402u);
  EXPECT_EQ(t.device[0].launch, -1);
  EXPECT_EQ(t.device[0].op, -1);
  EXPECT_EQ(t.device[1].launch, -1);
  EXPECT_EQ(t.device[1].op, 0);
  for (size_t i = 2; i < 402; ++i) EXPECT_EQ(t.device[i].launch, 0);
  EXPECT_EQ(breakdown(t).busy_ns, 402'000);
}

TEST(Kineto, ExternalIdsThatContradictTheTimesAreNotBelieved) {
  const std::string orphan =
      R"({"ph": "X", "cat": "kernel", "name": "o", "pid": 0, "tid": 7, "ts": 90, "dur": 1,)"
      R"( "args": {"stream": 7, "External id": 77}})";
  const auto launched_by = [&](const std::string& external) {
    return good(events({host("cpu_op", "named", 0, 4, R"("External id": 77)"),
                        host("cpu_op", "true", 10, 9, R"("External id": 78)"),
                        host("cuda_runtime", "cudaLaunchKernel", 12, 5,
                             R"("correlation": 9, "External id": )" + external),
                        kernel("50", "1", 7, 9), orphan}));
  };
  const Trace agreeing = launched_by("78");
  EXPECT_EQ(agreeing.device[0].op, 1);
  EXPECT_EQ(agreeing.device[1].op, 0);
  const Trace contradicting = launched_by("77");
  EXPECT_EQ(contradicting.device[0].op, 1);
  EXPECT_EQ(contradicting.device[1].op, -1);
}

TEST(Kineto, CollectivesBefore2024AreTakenFromTheirAnnotation) {
  const Trace t =
      good(events({host("cpu_op", "record_param_comms", 0, 20),
                   host("user_annotation", "nccl:all_reduce", 2, 15,
                        R"("Input Dims": [[4, 8], [16]], "Input type": ["float", "float"])"),
                   host("cuda_runtime", "cudaLaunchKernel", 5, 5, R"("correlation": 9)"),
                   kernel("50", "1", 20, 9, "ncclKernel_AllReduce")}));
  ASSERT_EQ(t.device[0].collective, 0);
  EXPECT_TRUE(t.collectives[0].derived);
  EXPECT_EQ(t.text(t.collectives[0].name), "all_reduce");
  EXPECT_EQ(t.text(t.collectives[0].dtype), "float");
}

TEST(Kineto, DuplicateCorrelationsTakeTheLastCallBefore) {
  const Trace t =
      good(events({host("cuda_runtime", "a", 10, 1, R"("correlation": 9)"),
                   host("cuda_runtime", "b", 20, 1, R"("correlation": 9)"),
                   host("cuda_runtime", "c", 30, 1, R"("correlation": 9)"), kernel("25", "1", 7, 9),
                   kernel("5", "1", 7, 9), kernel("99", "1", 7, 9)}));
  EXPECT_EQ(t.device[0].launch, 0);  // none before it: the nearest
  EXPECT_EQ(t.device[1].launch, 1);
  EXPECT_EQ(t.device[2].launch, 2);
}

TEST(Kineto, ParentsAreTheInnermostThatHold) {
  const Trace t = good(events({
      host("cpu_op", "child", 10, 5),
      host("cpu_op", "twin", 10, 20),
      host("python_function", "frame", 0, 100),
      host("cpu_op", "late", 20, 11),              // rounded us
      host("user_annotation", "across", 25, 200),  // holds no other
      host("cpu_op", "inside", 110, 5),
      host("cpu_op", "elsewhere", 12, 1, "", 2),
  }));
  const auto parent = [&](std::string_view name) -> std::string {
    for (const HostEvent& e : t.host) {
      if (t.text(e.name) != name) continue;
      return e.parent < 0 ? "-" : std::string(t.text(t.host[static_cast<size_t>(e.parent)].name));
    }
    return "?";
  };
  EXPECT_EQ(parent("frame"), "-");
  EXPECT_EQ(parent("twin"), "frame");
  EXPECT_EQ(parent("child"), "twin");
  EXPECT_EQ(parent("late"), "twin");
  EXPECT_EQ(parent("across"), "-");
  EXPECT_EQ(parent("inside"), "across");
  EXPECT_EQ(parent("elsewhere"), "-");
}

TEST(Kineto, NestingOfEventsIsBounded) {
  std::vector<std::string> list;
  for (int i = 0; i < 6000; ++i) list.push_back(host("cpu_op", "same", 1, 5));
  const Trace t = good(events(list));
  size_t depth = 0;
  for (int32_t at = 5999; at >= 0; at = t.host[static_cast<size_t>(at)].parent) ++depth;
  EXPECT_LE(depth, 4097u);
  EXPECT_GE(depth, 4000u);
}

TEST(Kineto, NegativeWeekLongAndImpossibleTimes) {
  const Trace t =
      warned(events({kernel("10", "-1"), kernel("20", "604800000000"), kernel("NaN", "1"),
                     kernel("1", "Infinity"), kernel("1e40", "1"), kernel("1", "99999999999999999"),
                     R"({"ph": "X", "cat": "kernel", "name": "k", "args": {"stream": 7}})"}),
             "5 events without a usable time");
  EXPECT_EQ(t.device.size(), 2u);
  const Breakdown b = breakdown(t);
  EXPECT_EQ(b.negative_durations, 1);
  EXPECT_EQ(b.busy_ns, 604800000000000);
  EXPECT_EQ(b.span_ns, 604800000000000);
}

TEST(Kineto, AWeekLongKernelIsTold) {
  const Trace t = warned(events({kernel("10", "5"), kernel("20", "604800000000")}),
                         "1 device events last longer than an hour");
  EXPECT_EQ(t.long_durations, 1u);
  const Trace honest = warned(events({kernel("10", "-1"), kernel("20", "3600000000")}), "negative");
  EXPECT_EQ(honest.long_durations, 0u);
}

TEST(Kineto, EveryCutKeepsWhatCameBefore) {
  const std::string whole = events({kernel("1", "2"), kernel("4", "2"), kernel("8", "2")});
  const size_t first = whole.find("},\n") + 1;
  for (size_t size = first; size < whole.size(); ++size) {
    ReadResult r = read(whole.substr(0, size));
    ASSERT_TRUE(r.trace) << size;
    EXPECT_GE(r.trace->device.size(), 1u);
    ASSERT_EQ(r.warnings.size(), 1u);
    EXPECT_NE(r.warnings[0].message.find(fmt::format("byte {}", size)), std::string::npos);
  }
  for (size_t size = 0; size < whole.find('['); ++size) failure(whole.substr(0, size));
}

TEST(Kineto, BrokenEventsAreLeftOutAndTheRestIsRead) {
  const Trace t = warned(events({kernel("1", "2"), R"({"ph": "X", "name": "a "quoted" b"})",
                                 kernel("4", "2"), "} nonsense", kernel("8", "2")}),
                         "malformed JSON at byte");
  EXPECT_EQ(t.device.size(), 3u);
}

TEST(Kineto, ABrokenHeadDoesNotHideTheEvents) {
  const std::string whole = events({kernel("1", "2")});
  const Trace t = warned("{\"user\" = broken, \"x\": }" + whole.substr(1), "malformed JSON");
  EXPECT_EQ(t.device.size(), 1u);
  // A key that is found but never leads anywhere must not be found again.
  EXPECT_NE(failure(R"({"traceEvents" "traceEvents" , 5)").find("traceEvents"), std::string::npos);
}

TEST(Kineto, ControlCharactersAndInvalidUtf8InTexts) {
  const Trace t =
      warned(events({kernel("1", "2", 7, 0, "bad\x01\xff name\n"), kernel("4", "2", 7, 0, "fine")}),
             "in the event at byte 37");
  ASSERT_EQ(t.device.size(), 2u);
  EXPECT_EQ(t.text(t.device[0].name), "bad?? name?");
}

TEST(Kineto, NotATrace) {
  EXPECT_EQ(failure(""), "is empty");
  EXPECT_EQ(failure(" \n\t "), "is empty");
  EXPECT_NE(failure("ProfilerStep,1,2").find("not JSON"), std::string::npos);
  EXPECT_NE(failure(std::string("\0\1\2\3", 4)).find("not JSON"), std::string::npos);
  EXPECT_NE(failure("{}").find("no traceEvents"), std::string::npos);
  EXPECT_NE(failure("{\"a\": [1, 2]}").find("no traceEvents"), std::string::npos);
  EXPECT_NE(failure("[[1, 2, [3]], 4]").find("no profiler events"), std::string::npos);
  EXPECT_NE(failure(R"([{"a": 1}, {"a": 2}])").find("no profiler events"), std::string::npos);
  EXPECT_EQ(good("[]").events, 0u);
  EXPECT_EQ(good("\xEF\xBB\xBF" + events({})).events, 0u);
}

TEST(Kineto, CutBeforeTheFirstEvent) {
  EXPECT_EQ(failure(R"({"schemaVersion": 1, "traceEvents": [)"),
            "ends at byte 37, before its first event: cut short");
  EXPECT_EQ(failure(R"({"schemaVersion": 1, "traceEvents": [ {"ph": "X")"),
            "ends at byte 48, before its first event: cut short");
  EXPECT_EQ(failure(R"({"schemaVersion": 1, "devicePro)"),
            "ends at byte 31, before any traceEvents: cut short, or no trace");
}

TEST(Kineto, WarningsHaveLineAndColumn) {
  Diagnostics warnings;
  const std::string text =
      "{\"traceEvents\": [\n" + kernel("1", "2") + ",\n  {\"ph\": }\n, " + kernel("4", "2") + ",\n";
  ASSERT_TRUE(read_kineto_text(text, "t.json", warnings));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].message.find("ends in the middle"), std::string::npos);
  EXPECT_EQ(warnings[0].at.line, 5);
  EXPECT_EQ(warnings[0].at.column, 1);
  EXPECT_NE(warnings[1].message.find("malformed JSON"), std::string::npos);
  EXPECT_EQ(warnings[1].at.line, 3);
  EXPECT_EQ(warnings[1].at.column, 10);
}

TEST(Kineto, DeepNestingEndsTheReading) {
  std::string deep = "{\"a\": " + std::string(3'000'000, '[');
  EXPECT_NE(failure(deep).find("no traceEvents"), std::string::npos);
  deep = "{\"traceEvents\": [" + kernel("1", "2") + ",";
  for (int i = 0; i < 300'000; ++i) deep += "{\"ph\":";
  const Trace t = warned(deep, "malformed JSON");
  EXPECT_EQ(t.device.size(), 1u);
}

TEST(Kineto, Limits) {
  KinetoLimits limits;
  limits.json_bytes = 1000;
  EXPECT_NE(failure(events({std::string(2000, ' ')}), limits).find("limit"), std::string::npos);
  limits = {};
  limits.events = 2;
  const std::string three = events({kernel("1", "2"), kernel("4", "2"), kernel("8", "2")});
  EXPECT_NE(failure(three, limits).find("events"), std::string::npos);
  limits = {};
  limits.text_bytes = 10;
  EXPECT_NE(failure(three, limits).find("texts"), std::string::npos);
  limits = {};
  limits.event_bytes = 1 << 20;
  const Trace t =
      warned(events({kernel("1", "2"), kernel("3", "2", 7, 0, std::string(3 << 20, 'x'))}),
             "an event of more than 1 MB", limits);
  EXPECT_EQ(t.device.size(), 1u);
}

TEST(Kineto, GzipWholeSplitCutDamagedAndBomb) {
  std::vector<std::string> list;
  for (int i = 0; i < 5000; ++i) list.push_back(kernel(std::to_string(i * 10), "7.25", i % 3, i));
  const std::string plain = events(list);
  const std::string packed = gzip(plain);
  EXPECT_EQ(good(packed).device.size(), 5000u);
  EXPECT_EQ(good(gzip(plain.substr(0, 1000)) + gzip(plain.substr(1000))).device.size(), 5000u);
  EXPECT_EQ(good(packed + std::string(512, '\0')).device.size(), 5000u);
  EXPECT_EQ(warned(packed + "junk", "not gzip").device.size(), 5000u);
  const Trace cut = warned(packed.substr(0, packed.size() / 2), "cut short");
  EXPECT_GT(cut.device.size(), 100u);
  std::string damaged = packed;
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 50; ++i) damaged[i] = '\x55';
  read(damaged);
  damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(warned(damaged, "damaged").device.size(), 5000u);
  const std::string bomb = gzip("{\"traceEvents\": [" + std::string(80 << 20, ' '));
  EXPECT_NE(failure(bomb).find("bomb"), std::string::npos);
}

TEST(Kineto, TextsAcrossTheEdgesOfTheWindow) {
  // Long names push every place of an event across the window's edges in turn.
  std::vector<std::string> list;
  for (int i = 0; i < 3000; ++i) {
    list.push_back(
        kernel(std::to_string(i), "0.5", 7, i, std::string(static_cast<size_t>(i), 'n')));
  }
  const Trace t = good(events(list));
  ASSERT_EQ(t.device.size(), 3000u);
  for (size_t i = 0; i < 3000; ++i) {
    ASSERT_EQ(t.text(t.device[i].name).size(), i);
    ASSERT_EQ(t.device[i].correlation, i);
  }
}

}  // namespace
}  // namespace assay
