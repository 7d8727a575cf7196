#include "report/annotated_trace.h"

#include <ostream>

#include <fmt/format.h>

#include "base/diagnostic.h"

namespace assay {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
constexpr int kDevicePid = 1, kAssayPid = 2;

// Text of a file as a JSON string, quotes included.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : sanitize(std::string(text), 300)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) { text_ = "{\"traceEvents\":[\n"; }

  void name(const char* what, int pid, int64_t tid, const std::string& name) {
    put(fmt::format(
        "{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", what,
        pid, tid, quoted(name)));
  }
  void span(int pid, int64_t tid, std::string_view name, int64_t start_ns, int64_t duration_ns) {
    put(fmt::format(
        "{{\"ph\":\"X\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03}}}",
        quoted(name), pid, tid, start_ns / 1000, start_ns % 1000, duration_ns / 1000,
        duration_ns % 1000));
  }
  void finish() {
    text_ += "\n]}\n";
    flush();
  }

 private:
  void put(const std::string& event) {
    if (!first_) text_ += ",\n";
    first_ = false;
    text_ += event;
    if (text_.size() > kChunk) flush();
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  std::ostream& out_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

void write_annotated_trace(const Trace& trace, const TraceDiagnosis& d, std::ostream& out) {
  Writer w(out);
  w.name("process_name", kAssayPid, 0, "assay: why the device waits");
  w.name("thread_name", kAssayPid, 0, "steps");
  w.name("thread_name", kAssayPid, 1, "idle, by cause");
  w.name("process_name", kDevicePid, 0, "device");
  // Times count from the first event, so that they are never negative.
  const int64_t zero = d.whole.start_ns < d.from_ns ? d.whole.start_ns : d.from_ns;
  for (const int32_t step : trace.steps) {
    const HostEvent& e = trace.host[static_cast<size_t>(step)];
    if (e.start_ns >= zero && e.duration_ns >= 0)
      w.span(kAssayPid, 0, trace.text(e.name), e.start_ns - zero, e.duration_ns);
  }
  for (const CauseSpan& s : d.spans) {
    if (s.start_ns < zero || s.end_ns < s.start_ns) continue;
    const std::string_view name =
        s.cause == Cause::kHealthy ? std::string_view("not explained") : cause_name(s.cause);
    w.span(kAssayPid, 1, name, s.start_ns - zero, s.end_ns - s.start_ns);
  }
  for (const DeviceEvent& e : trace.device) {
    if (e.duration_ns < 0 || e.start_ns < zero) continue;
    w.span(kDevicePid, e.stream, trace.text(e.name), e.start_ns - zero, e.duration_ns);
  }
  w.finish();
}

}  // namespace assay
