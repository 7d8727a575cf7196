#include "ingest/kineto_events.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace assay {
namespace {

using scan::Kind;
using scan::Scan;
using scan::Slice;

// A fixed set of words found with one hash and one comparison: the multipliers are searched for at
// compile time until no two words share a slot.
template <class Value, size_t N>
class WordTable {
 public:
  struct Entry {
    std::string_view word;
    Value value{};
  };

  consteval explicit WordTable(const std::array<Entry, N>& entries) {
    for (uint32_t a = 1; a < 64; a += 2) {
      for (uint32_t b = 1; b < 64; b += 2) {
        if (fill(entries, a, b)) return;
      }
    }
    throw "no multipliers found: enlarge the table";
  }

  // REQUIRES: eight bytes may be read from the word's begin on, as in a window.
  Value find(std::string_view word) const {
    if (word.empty()) return Value{};
    const size_t at = slot(word, a_, b_);
    const Entry& entry = slots_[at];
    if (entry.word.size() != word.size()) return Value{};
    uint64_t head = 0;
    std::memcpy(&head, word.data(), 8);
    const size_t shift = word.size() < 8 ? 64 - 8 * word.size() : 0;
    if (head << shift != heads_[at]) return Value{};
    const bool same = word.size() <= 8 ||
                      std::memcmp(word.data() + 8, entry.word.data() + 8, word.size() - 8) == 0;
    return same ? entry.value : Value{};
  }

 private:
  static constexpr size_t kSlots = 256;

  static constexpr size_t slot(std::string_view w, uint32_t a, uint32_t b) {
    const uint32_t first = static_cast<unsigned char>(w.front());
    const uint32_t middle = static_cast<unsigned char>(w[w.size() / 2]);
    const uint32_t last = static_cast<unsigned char>(w.back());
    return (static_cast<uint32_t>(w.size()) + first * a + middle * b + last) % kSlots;
  }

  consteval bool fill(const std::array<Entry, N>& entries, uint32_t a, uint32_t b) {
    slots_ = {};
    a_ = a;
    b_ = b;
    for (const Entry& entry : entries) {
      Entry& at = slots_[slot(entry.word, a, b)];
      if (!at.word.empty()) return false;
      at = entry;
      heads_[slot(entry.word, a, b)] = head(entry.word);
    }
    return true;
  }

  // The first eight bytes as a little-endian number, the last of them at the top.
  static consteval uint64_t head(std::string_view w) {
    uint64_t value = 0;
    for (size_t i = 0; i < std::min<size_t>(w.size(), 8); ++i) {
      value = value >> 8 | static_cast<uint64_t>(static_cast<unsigned char>(w[i])) << 56;
    }
    return value;
  }

  std::array<Entry, kSlots> slots_{};
  std::array<uint64_t, kSlots> heads_{};
  uint32_t a_ = 1, b_ = 1;
};

constexpr WordTable<Field, 8> kEventKeys({{{"ph", Field::kPhase},
                                           {"cat", Field::kCategory},
                                           {"name", Field::kName},
                                           {"pid", Field::kProcess},
                                           {"tid", Field::kThread},
                                           {"ts", Field::kStart},
                                           {"dur", Field::kDuration},
                                           {"args", Field::kArgs}}});

constexpr WordTable<Field, 28> kArgKeys(
    {{{"name", Field::kArgName},
      {"correlation", Field::kCorrelation},
      {"External id", Field::kExternalId},
      {"external id", Field::kExternalId},  // before PyTorch 1.11
      {"stream", Field::kStream},
      {"device", Field::kDevice},
      {"bytes", Field::kBytes},
      {"grid", Field::kGrid},
      {"block", Field::kBlock},
      {"Input Dims", Field::kInputDims},
      {"Input type", Field::kInputType},
      {"Concrete Inputs", Field::kConcreteInputs},
      {"Sequence number", Field::kSequence},
      {"Collective name", Field::kCollective},
      {"dtype", Field::kDtype},
      {"Process Group Name", Field::kGroupName},
      {"Process Group Ranks", Field::kGroupRanks},
      {"Seq", Field::kCollectiveSequence},
      {"Src Rank", Field::kSource},
      {"Dst Rank", Field::kDestination},
      {"cuda_sync_kind", Field::kSyncKind},
      {"wait_on_stream", Field::kWaitStream},
      {"wait_on_cuda_event_record_corr_id", Field::kWaitCorrelation},
      {"Device Type", Field::kDeviceType},
      {"Device Id", Field::kDeviceId},
      {"Bytes", Field::kMemoryBytes},
      {"Total Allocated", Field::kAllocated},
      {"Total Reserved", Field::kReserved}}});

enum class Category : uint8_t {
  kOther,
  kKernel,
  kCopy,
  kSet,
  kRuntime,
  kOp,
  kAnnotation,
  kPython,
  kOverhead,
  kSync,
  kRange
};

constexpr WordTable<Category, 22> kCategories({{{"kernel", Category::kKernel},
                                                {"Kernel", Category::kKernel},
                                                {"mtia_ccp_events", Category::kKernel},
                                                {"gpu_memcpy", Category::kCopy},
                                                {"Memcpy", Category::kCopy},
                                                {"gpu_memset", Category::kSet},
                                                {"Memset", Category::kSet},
                                                {"cuda_runtime", Category::kRuntime},
                                                {"cuda_driver", Category::kRuntime},
                                                {"Runtime", Category::kRuntime},
                                                {"mtia_runtime", Category::kRuntime},
                                                {"xpu_runtime", Category::kRuntime},
                                                {"xpu_driver", Category::kRuntime},
                                                {"privateuse1_runtime", Category::kRuntime},
                                                {"privateuse1_driver", Category::kRuntime},
                                                {"cpu_op", Category::kOp},
                                                {"Operator", Category::kOp},
                                                {"user_annotation", Category::kAnnotation},
                                                {"python_function", Category::kPython},
                                                {"overhead", Category::kOverhead},
                                                {"cuda_sync", Category::kSync},
                                                {"gpu_user_annotation", Category::kRange}}});

bool flow(Slice phase) {
  return phase.size == 1 && (*phase.begin == 's' || *phase.begin == 'f' || *phase.begin == 't');
}

Scan read_args(const char*& p, const char* end, RawEvent& event) {
  p = scan::skip_blanks(p + 1);
  while (true) {
    if (p >= end) return Scan::kMore;
    if (*p == '}') break;
    Slice key, value;
    Scan scanned = scan::read_key(p, end, key);
    if (scanned != Scan::kOk) return scanned;
    scanned = scan::read_value(p, end, value);
    if (scanned != Scan::kOk) return scanned;
    const Field field = kArgKeys.find(key.view());
    if (field != Field::kNone) event.set(field, value);
    p = scan::skip_blanks(p);
    if (*p == ',') {
      p = scan::skip_blanks(p + 1);
    } else if (*p != '}') {
      return p >= end ? Scan::kMore : Scan::kBad;
    }
  }
  ++p;
  return Scan::kOk;
}

int64_t number(Slice s, int64_t otherwise) {
  if (s.kind == Kind::kNone) return otherwise;
  return scan::whole_number(s.view()).value_or(otherwise);
}

uint64_t id(Slice s) {
  return s.kind == Kind::kNone ? 0 : scan::natural_number(s.view()).value_or(0);
}

// `[80, 1, 1]`
void three(Slice s, int32_t (&out)[3]) {
  if (s.kind != Kind::kContainer) return;
  size_t i = 0;
  int64_t n = 0;
  bool any = false;
  for (const char c : s.view()) {
    if (c >= '0' && c <= '9') {
      n = std::min<int64_t>(n * 10 + (c - '0'), INT32_MAX);
      any = true;
    } else if (any && (c == ',' || c == ']')) {
      if (i < 3) out[i++] = static_cast<int32_t>(n);
      n = 0;
      any = false;
    }
  }
}

// A stream's number where the args do not state it: the row's `tid`, `7` or `stream 7`.
int32_t stream_of_row(Slice tid) {
  const std::string_view text = tid.view();
  const size_t word = text.find_last_of(' ');
  const std::string_view digits = word == std::string_view::npos ? text : text.substr(word + 1);
  return static_cast<int32_t>(
      std::clamp<int64_t>(scan::whole_number(digits).value_or(0), INT32_MIN, INT32_MAX));
}

// PyTorch before 1.11 put annotations among the operators.
bool names_annotation(std::string_view name) {
  return name.starts_with("ProfilerStep#") || name.starts_with("enumerate(DataLoader)#") ||
         name.starts_with("Optimizer.");
}

}  // namespace

Scan read_event(const char*& p, const char* end, RawEvent& event) {
  event.present = 0;
  p = scan::skip_blanks(p + 1);
  while (true) {
    if (p >= end) return Scan::kMore;
    if (*p == '}') break;
    Slice key, value;
    Scan scanned = scan::read_key(p, end, key);
    if (scanned != Scan::kOk) return scanned;
    const Field field = kEventKeys.find(key.view());
    if (field == Field::kArgs && *p == '{') {
      scanned = read_args(p, end, event);
    } else {
      scanned = scan::read_value(p, end, value);
      if (scanned == Scan::kOk && field != Field::kNone) event.set(field, value);
      // Flows repeat what ids say already, and are a third of the rows.
      if (field == Field::kPhase && scanned == Scan::kOk && flow(value)) {
        return scan::skip_container(p, end, 1);
      }
    }
    if (scanned != Scan::kOk) return scanned;
    p = scan::skip_blanks(p);
    if (*p == ',') {
      p = scan::skip_blanks(p + 1);
    } else if (*p != '}') {
      return p >= end ? Scan::kMore : Scan::kBad;
    }
  }
  ++p;
  return Scan::kOk;
}

bool Columns::times(const RawEvent& event, int64_t& start_ns, int64_t& duration_ns) {
  constexpr int64_t kDurationMost_ns = 1'000'000'000'000'000'000;  // 31 years
  const std::optional<int64_t> start = scan::microseconds_to_ns(event.view(Field::kStart));
  const std::optional<int64_t> duration =
      event.has(Field::kDuration) ? scan::microseconds_to_ns(event.view(Field::kDuration)) : 0;
  if (!start || !duration || std::abs(*duration) > kDurationMost_ns) {
    ++without_time_;
    return false;
  }
  start_ns = *start;
  duration_ns = *duration;
  return true;
}

int64_t Columns::thread_number(Slice text) {
  const std::optional<int64_t> n = scan::whole_number(text.view());
  if (n) return *n;
  return -1 - static_cast<int64_t>(texts_.add_text(text));  // `Spans`: a number of its own
}

int32_t Columns::thread(const RawEvent& event) {
  const ThreadKey key{thread_number(event.get(Field::kProcess)),
                      thread_number(event.get(Field::kThread))};
  if (last_thread_ >= 0 && key == last_key_) return last_thread_;
  const auto [at, made] = threads_.try_emplace(key, static_cast<int32_t>(trace_.threads.size()));
  if (made) trace_.threads.push_back({key.process, key.id, 0});
  last_key_ = key;
  last_thread_ = at->second;
  return last_thread_;
}

// Before 2024 only an annotation tells of a collective: `nccl:all_reduce`, with the tensors' types.
int32_t Columns::derived_collective(const RawEvent& event) {
  const Slice name = event.get(Field::kName);
  const size_t colon = name.view().find("ccl:");
  if (colon == std::string_view::npos || colon > 4) return -1;
  CollectiveInfo info;
  info.derived = true;
  const uint32_t skip = static_cast<uint32_t>(colon) + 4;
  info.name = texts_.add_text({name.begin + skip, name.size - skip, name.kind});
  scan::for_each_element(event.view(Field::kInputType), [&](Slice type) {
    if (info.dtype == 0) info.dtype = texts_.add_text(type);
  });
  trace_.collectives.push_back(info);
  return static_cast<int32_t>(trace_.collectives.size()) - 1;
}

int32_t Columns::collective(const RawEvent& event) {
  if (!event.has(Field::kCollective)) return -1;
  CollectiveInfo info;
  info.name = texts_.add_text(event.get(Field::kCollective));
  info.group = texts_.add_text(event.get(Field::kGroupName));
  info.group_ranks = texts_.add_text(event.get(Field::kGroupRanks));
  info.dtype = texts_.add_text(event.get(Field::kDtype));
  info.sequence = number(event.get(Field::kCollectiveSequence), -1);
  info.source = scan::small_number(event.get(Field::kSource), -1);
  info.destination = scan::small_number(event.get(Field::kDestination), -1);
  trace_.collectives.push_back(info);
  return static_cast<int32_t>(trace_.collectives.size()) - 1;
}

void Columns::add_device(const RawEvent& event, DeviceKind kind) {
  DeviceEvent e;
  if (!times(event, e.start_ns, e.duration_ns)) return;
  e.name = texts_.add_text(event.get(Field::kName));
  const Slice device = event.get(Field::kDevice);
  e.device =
      scan::small_number(device.kind == Kind::kNone ? event.get(Field::kProcess) : device, 0);
  const Slice stream = event.get(Field::kStream);
  const std::optional<int64_t> stated =
      stream.kind == Kind::kNone ? std::nullopt : scan::whole_number(stream.view());
  e.stream = stated ? scan::small_number(stream, 0) : stream_of_row(event.get(Field::kThread));
  e.kind = kind;
  e.role = kind == DeviceKind::kKernel ? Role::kCompute : Role::kMemory;
  e.correlation = id(event.get(Field::kCorrelation));
  e.external_id = id(event.get(Field::kExternalId));
  if (kind != DeviceKind::kKernel) e.bytes = number(event.get(Field::kBytes), 0);
  three(event.get(Field::kGrid), e.grid);
  three(event.get(Field::kBlock), e.block);
  e.collective = collective(event);
  if (e.duration_ns < 0) ++trace_.negative_durations;
  if (e.duration_ns > kLongestEvent_ns) ++trace_.long_durations;
  trace_.device.push_back(e);
}

void Columns::add_runtime(const RawEvent& event) {
  RuntimeEvent e;
  if (!times(event, e.start_ns, e.duration_ns)) return;
  e.name = texts_.add_text(event.get(Field::kName));
  e.thread = thread(event);
  e.correlation = id(event.get(Field::kCorrelation));
  e.external_id = id(event.get(Field::kExternalId));
  trace_.runtime.push_back(e);
}

void Columns::add_host(const RawEvent& event, HostKind kind) {
  HostEvent e;
  if (!times(event, e.start_ns, e.duration_ns)) return;
  e.name = texts_.add_text(event.get(Field::kName));
  e.thread = thread(event);
  e.kind = kind;
  if (kind == HostKind::kOp && names_annotation(event.view(Field::kName))) {
    e.kind = HostKind::kAnnotation;
  }
  e.external_id = id(event.get(Field::kExternalId));
  e.sequence = number(event.get(Field::kSequence), -1);
  if (event.has(Field::kInputDims)) {
    e.shapes = texts_.add_value(event.get(Field::kInputDims));
    trace_.shapes = true;
  }
  if (event.has(Field::kInputType)) e.types = texts_.add_value(event.get(Field::kInputType));
  if (event.has(Field::kConcreteInputs)) {
    e.inputs = texts_.add_value(event.get(Field::kConcreteInputs));
  }
  e.collective = collective(event);
  if (e.collective < 0 && kind == HostKind::kAnnotation) e.collective = derived_collective(event);
  trace_.stacks = trace_.stacks || kind == HostKind::kPython;
  trace_.host.push_back(e);
}

void Columns::add_sync(const RawEvent& event) {
  SyncEvent e;
  if (!times(event, e.start_ns, e.duration_ns)) return;
  e.kind = texts_.add_text(event.has(Field::kSyncKind) ? event.get(Field::kSyncKind)
                                                       : event.get(Field::kName));
  const Slice device = event.get(Field::kDevice);
  e.device =
      scan::small_number(device.kind == Kind::kNone ? event.get(Field::kProcess) : device, 0);
  const Slice stream = event.get(Field::kStream);
  e.stream = scan::small_number(stream.kind == Kind::kNone ? event.get(Field::kThread) : stream, 0);
  e.correlation = id(event.get(Field::kCorrelation));
  e.wait_on_stream = number(event.get(Field::kWaitStream), -1);
  e.wait_on_correlation = number(event.get(Field::kWaitCorrelation), -1);
  trace_.syncs.push_back(e);
}

void Columns::add_range(const RawEvent& event) {
  DeviceRange e;
  if (!times(event, e.start_ns, e.duration_ns)) return;
  e.name = texts_.add_text(event.get(Field::kName));
  e.device = scan::small_number(event.get(Field::kProcess), 0);
  e.stream = stream_of_row(event.get(Field::kThread));
  trace_.ranges.push_back(e);
}

void Columns::add_memory(const RawEvent& event) {
  MemorySample e;
  int64_t none = 0;
  if (!event.has(Field::kMemoryBytes) || !times(event, e.at_ns, none)) return;
  e.bytes = number(event.get(Field::kMemoryBytes), 0);
  e.allocated = number(event.get(Field::kAllocated), 0);
  e.reserved = number(event.get(Field::kReserved), 0);
  const bool host = number(event.get(Field::kDeviceType), 0) == 0;
  e.device = host ? -1 : std::max(scan::small_number(event.get(Field::kDeviceId), 0), 0);
  trace_.memory = true;
  trace_.memory_samples.push_back(e);
}

void Columns::add_thread_name(const RawEvent& event) {
  constexpr size_t kNamesMost = 1'000'000;
  if (event.view(Field::kName) != "thread_name" || thread_names_.size() >= kNamesMost) return;
  const ThreadKey key{thread_number(event.get(Field::kProcess)),
                      thread_number(event.get(Field::kThread))};
  thread_names_[key] = texts_.add_text(event.get(Field::kArgName));
}

void Columns::add(const RawEvent& event) {
  const std::string_view phase = event.view(Field::kPhase);
  phases_ += phase.empty() ? 0 : 1;
  if (phase == "X") {
    ++rows_;
    switch (kCategories.find(event.view(Field::kCategory))) {
      case Category::kKernel:
        return add_device(event, DeviceKind::kKernel);
      case Category::kCopy:
        return add_device(event, DeviceKind::kCopy);
      case Category::kSet:
        return add_device(event, DeviceKind::kSet);
      case Category::kRuntime:
        return add_runtime(event);
      case Category::kOp:
        return add_host(event, HostKind::kOp);
      case Category::kAnnotation:
        return add_host(event, HostKind::kAnnotation);
      case Category::kPython:
        return add_host(event, HostKind::kPython);
      case Category::kOverhead:
        return add_host(event, HostKind::kOverhead);
      case Category::kSync:
        return add_sync(event);
      case Category::kRange:
        return add_range(event);
      case Category::kOther:
        --rows_;
        return;
    }
  } else if (phase == "i" || phase == "I") {
    if (event.view(Field::kName) != "[memory]") return;
    ++rows_;
    add_memory(event);
  } else if (phase == "M") {
    add_thread_name(event);
  }
}

void Columns::finish() {
  for (const auto& [key, name] : thread_names_) {
    const auto at = threads_.find(key);
    if (at != threads_.end()) trace_.threads[static_cast<size_t>(at->second)].name = name;
  }
}

}  // namespace assay
