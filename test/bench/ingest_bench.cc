// What reading a trace costs, against the least that any reader pays: gunzip with zlib and one walk
// over the JSON with simdjson that picks out ph, cat, name, ts, dur, tid, correlation and stream.
//
//   ingest_bench [--most RATIO] [MEGABYTES...]      default 10; 500 by hand
//
// Both sides read the same file in turns, in one process, and the least CPU time of several turns
// counts. `peak` is what reading adds to the process at its highest. With --most it fails where a
// ratio is above.
#include <malloc.h>
#include <simdjson.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpu_time.h"
#include "ingest/breakdown.h"
#include "ingest/kineto.h"
#include "tools/trace_generator.h"

namespace {

namespace ondemand = simdjson::ondemand;

size_t status_kib(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return std::strtoull(line.c_str() + std::strlen(key), nullptr, 10);
  }
  return 0;
}

// Peak memory is counted from here on (Linux 4.0 and later; elsewhere since the start).
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

struct Walked {
  size_t events = 0;
  double sum = 0;  // so that nothing is optimised away
};

void walk_args(ondemand::object args, Walked& w) {
  for (ondemand::field field : args) {
    const ondemand::raw_json_string key = field.key();
    if (key == "correlation" || key == "stream") {
      int64_t value = 0;
      if (field.value().get(value) == simdjson::SUCCESS) w.sum += static_cast<double>(value);
    }
  }
}

void walk_event(ondemand::object event, Walked& w) {
  for (ondemand::field field : event) {
    const ondemand::raw_json_string key = field.key();
    std::string_view text;
    double number = 0;
    if (key == "ph" || key == "cat" || key == "name") {
      if (field.value().get(text) == simdjson::SUCCESS) w.sum += static_cast<double>(text.size());
    } else if (key == "ts" || key == "dur" || key == "tid") {
      if (field.value().get(number) == simdjson::SUCCESS) w.sum += number;
    } else if (key == "args") {
      ondemand::object args;
      if (field.value().get(args) == simdjson::SUCCESS) walk_args(args, w);
    }
  }
  ++w.events;
}

// The text with room for simdjson's padding, in one block of the right size: a gzip ends with the
// size of its text.
std::vector<char> gunzip(const std::string& path, size_t& size) {
  std::ifstream tail(path, std::ios::binary | std::ios::ate);
  size_t room = static_cast<size_t>(tail.tellg());
  if (path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0) {
    uint32_t stated = 0;
    tail.seekg(-4, std::ios::end);
    tail.read(reinterpret_cast<char*>(&stated), sizeof stated);
    room = stated;
  }
  std::vector<char> text(room + simdjson::SIMDJSON_PADDING);
  const gzFile file = gzopen(path.c_str(), "rb");  // passes plain files through
  gzbuffer(file, 1u << 18);
  for (size = 0; size < room;) {
    const size_t part = std::min(room - size, size_t{1} << 30);
    const int got = gzread(file, text.data() + size, static_cast<unsigned>(part));
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  gzclose(file);
  return text;
}

Walked floor_walk(const std::string& path) {
  size_t size = 0;
  const std::vector<char> text = gunzip(path, size);
  ondemand::parser parser;
  ondemand::document document =
      parser.iterate(simdjson::padded_string_view(text.data(), size, text.size()));
  Walked w;
  for (ondemand::object event : document["traceEvents"].get_array()) walk_event(event, w);
  return w;
}

struct Cost {
  double cpu = 1e9;
  size_t peak_kib = 0;
};

template <class Work>
void measure(Cost& cost, Work work) {
  malloc_trim(0);  // what an earlier turn left would hide what this one needs
  forget_peak();
  const size_t before = status_kib("VmRSS:");
  const double begin = cpu_s();
  work();
  cost.cpu = std::min(cost.cpu, cpu_s() - begin);
  const size_t peak = status_kib("VmHWM:");
  cost.peak_kib = std::max(cost.peak_kib, peak > before ? peak - before : 0);
}

std::string make(uint64_t megabytes, bool packed, const std::string& folder) {
  const std::string path = fmt::format("{}/made-{}.json{}", folder, megabytes, packed ? ".gz" : "");
  const gzFile file = gzopen(path.c_str(), packed ? "wb6" : "wbT");
  assay::TraceRecipe recipe;
  recipe.json_bytes = megabytes << 20;
  assay::generate_trace(recipe, [&](std::string_view text) {
    if (gzwrite(file, text.data(), static_cast<unsigned>(text.size())) <= 0) std::abort();
  });
  gzclose(file);
  return path;
}

double compare(const std::string& path, int turns) {
  Cost ours, floor;
  size_t events = 0, walked = 0, bytes = 0;
  for (int i = 0; i < turns; ++i) {
    measure(ours, [&] {
      assay::Diagnostics warnings;
      const assay::Result<assay::Trace> trace = assay::read_kineto(path, warnings);
      if (!trace || assay::breakdown(*trace).busy_ns <= 0) std::abort();
      events = trace->events;
      bytes = trace->bytes;
    });
    measure(floor, [&] { walked = floor_walk(path).events; });
  }
  if (events != walked) std::abort();
  const double megabytes = static_cast<double>(bytes) / 1e6;
  const double ratio = ours.cpu / floor.cpu;
  fmt::print("{:>24} {:>8.1f} {:>9} {:>9.3f} {:>9.3f} {:>7.2f} {:>8.0f} {:>9.1f} {:>9.1f}\n",
             std::filesystem::path(path).filename().string(), megabytes, events, ours.cpu,
             floor.cpu, ratio, megabytes / ours.cpu, static_cast<double>(ours.peak_kib) / 1024,
             static_cast<double>(floor.peak_kib) / 1024);
  return ratio;
}

}  // namespace

int main(int argc, char** argv) {
  double most = 0;
  std::vector<std::string> inputs;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--most") == 0 && i + 1 < argc) {
      most = std::atof(argv[++i]);
    } else {
      inputs.emplace_back(argv[i]);
    }
  }
  if (inputs.empty()) inputs = {"10"};
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("assay-bench-{}", ::getpid())).string();
  std::filesystem::create_directory(folder);
  fmt::print("{:>24} {:>8} {:>9} {:>9} {:>9} {:>7} {:>8} {:>9} {:>9}\n", "file", "MB", "events",
             "ours s", "floor s", "ratio", "MB/s", "peak MiB", "floor MiB");
  bool slow = false;
  for (const std::string& input : inputs) {
    if (std::filesystem::exists(input)) {
      slow = compare(input, 5) > most || slow;
      continue;
    }
    const uint64_t megabytes = std::strtoull(input.c_str(), nullptr, 10);
    for (const bool packed : {true, false}) {
      const std::string path = make(megabytes, packed, folder);
      slow = compare(path, megabytes > 100 ? 3 : 7) > most || slow;
      std::filesystem::remove(path);
    }
  }
  std::filesystem::remove_all(folder);
  return most > 0 && slow ? 1 : 0;
}
