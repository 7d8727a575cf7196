#include "ingest/kineto.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ingest/kineto_events.h"
#include "ingest/kineto_head.h"
#include "ingest/kineto_join.h"
#include "ingest/kineto_roles.h"
#include "ingest/kineto_window.h"
#include "ingest/text_file.h"

namespace assay {
namespace {

using scan::Scan;
using scan::Slice;

constexpr uint64_t kEventBytesMost = uint64_t{1} << 30;  // slices count in 32 bits

// How reading a part of the file ended.
enum class Ended {
  kWell,
  kCut,   // the text is over in the middle of it
  kStop,  // nothing after this can be read; a warning says why
};

// Reads the file once, front to back. A method that returns kWell has consumed its part.
class KinetoReader {
 public:
  KinetoReader(ByteSource source, Diagnostics& warnings, const KinetoLimits& limits)
      : window_(std::move(source), std::min(limits.event_bytes, kEventBytesMost)),
        name_(window_.source().name()),
        warnings_(warnings),
        limits_(limits),
        columns_(trace_) {}

  Result<Trace> read();

 private:
  Failure failure(const std::string& what) const { return {what, name_}; }
  void warn(const std::string& what, std::optional<uint64_t> byte = std::nullopt) {
    Diagnostic d;
    d.severity = Severity::kWarning;
    d.message = what;
    d.at.file = name_;
    if (byte) places_.push_back({warnings_.size(), {*byte}});
    warnings_.push_back(std::move(d));
  }
  std::string at_byte(uint64_t byte) const {
    return fmt::format("at byte {}{}", byte,
                       window_.source().compressed() ? " of the decompressed text" : "");
  }

  // Remembers where a count left zero: the event that begins the window.
  void note_first(uint64_t& place, size_t count) const {
    if (place == 0 && count > 0) place = window_.offset();
  }

  Result<char> next_char();  // the next byte that is not blank; 0 at the end
  Result<Ended> read_root();
  Result<Ended> read_member();
  Result<Ended> read_head_value(const std::string& key);
  Result<Ended> skip_value();
  Result<Ended> find_events();
  Result<Ended> read_events();
  Result<Ended> read_one_event();
  Result<Ended> resume_at_next_event();
  void report();
  void place_warnings();

  Window window_;
  std::string name_;
  Diagnostics& warnings_;
  KinetoLimits limits_;
  Trace trace_;
  Columns columns_;
  RawEvent event_;
  bool has_events_ = false;
  std::vector<std::pair<size_t, BytePlace>> places_;  // of which of the warnings
  size_t broken_ = 0, broken_head_ = 0;
  // Bytes of the text; zero: none, as no event begins there in a file that has one.
  uint64_t first_broken_ = 0, first_repaired_ = 0, first_without_time_ = 0, first_negative_ = 0,
           first_long_ = 0;
};

Result<char> KinetoReader::next_char() {
  for (;;) {
    const char* p = scan::skip_blanks(window_.begin());
    window_.consume_to(std::min(p, window_.end()));
    if (p < window_.end()) return *p;
    const Result<bool> more = window_.more();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return '\0';
  }
}

// Steps over one value of any size, holding none of it.
Result<Ended> KinetoReader::skip_value() {
  int depth = 0;
  bool in_text = false, in_word = false;
  for (;;) {
    const char* p = window_.begin();
    const char* const end = window_.end();
    while (p < end) {
      if (in_text) {
        p = scan::find_quote(p, end);
        if (p == end) break;
        if (*p == '\\' && p + 1 == end) break;
        in_text = *p != '"';
        p += in_text ? 2 : 1;
      } else if (depth == 0 && (in_word || (*p != '"' && *p != '{' && *p != '['))) {
        in_word = true;
        while (p < end && std::strchr(",}] \n\r\t", *p) == nullptr) ++p;
        if (p == end) break;
        window_.consume_to(p);
        return Ended::kWell;
      } else {
        p = scan::find_bracket(p, end);
        if (p == end) break;
        in_text = *p == '"';
        if (*p == '{' || *p == '[') ++depth;
        if (*p == '}' || *p == ']') --depth;
        ++p;
        if (depth > scan::kDepthMost) {
          window_.consume_to(p);
          warn(fmt::format("nested deeper than {} {}: the rest was not read", scan::kDepthMost,
                           at_byte(window_.offset())),
               window_.offset());
          return Ended::kStop;
        }
      }
      if (depth == 0 && !in_text) {
        window_.consume_to(p);
        return Ended::kWell;
      }
    }
    window_.consume_to(p);
    const Result<bool> more = window_.more();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return Ended::kCut;
  }
}

Result<Ended> KinetoReader::read_head_value(const std::string& key) {
  for (;;) {
    const char* p = window_.begin();
    Slice value;
    const Scan scanned = scan::read_value(p, window_.end(), value);
    if (scanned == Scan::kOk) {
      read_head(key, value, trace_);
      window_.consume_to(p);
      return Ended::kWell;
    }
    if (scanned == Scan::kBad || window_.full()) return skip_value();
    const Result<bool> more = window_.more();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return Ended::kCut;
  }
}

// The head of the file is broken: what matters is further on.
Result<Ended> KinetoReader::find_events() {
  if (has_events_) return Ended::kStop;
  constexpr std::string_view kKey = "\"traceEvents\"";
  for (;;) {
    const std::string_view sight(window_.begin(), window_.size());
    const size_t at = sight.find(kKey);
    if (at != std::string_view::npos) {
      window_.consume_to(window_.begin() + at);
      return Ended::kWell;
    }
    const size_t keep = std::min(sight.size(), kKey.size() - 1);
    window_.consume_to(window_.end() - keep);
    const Result<bool> more = window_.more();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return Ended::kCut;
  }
}

Result<Ended> KinetoReader::read_member() {
  for (;;) {
    const char* p = window_.begin();
    Slice key;
    const Scan scanned = scan::read_key(p, window_.end(), key);
    if (scanned == Scan::kOk) {
      const std::string name(key.view().substr(0, 64));
      window_.consume_to(p);
      if (name == "traceEvents" && *p == '[') return read_events();
      return head_key(name) ? read_head_value(name) : skip_value();
    }
    if (scanned == Scan::kBad || window_.full()) {
      const uint64_t here = window_.offset();
      if (broken_head_++ == 0) warn("malformed JSON " + at_byte(here), here);
      window_.consume_to(std::min(window_.begin() + 1, window_.end()));  // never here again
      return find_events();
    }
    const Result<bool> more = window_.more();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return Ended::kCut;
  }
}

Result<Ended> KinetoReader::read_root() {
  Result<char> c = next_char();
  if (!c) return tl::unexpected(c.error());
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // UTF-8 byte order mark
  if (std::string_view(window_.begin(), window_.size()).substr(0, 3) == kMark) {
    window_.consume_to(window_.begin() + kMark.size());
    c = next_char();
    if (!c) return tl::unexpected(c.error());
  }
  if (*c == '\0' && window_.size() == 0) return tl::unexpected(failure("is empty"));
  if (*c == '[') return read_events();
  if (*c != '{') {
    return tl::unexpected(failure("is not JSON: it begins with neither { nor ["));
  }
  window_.consume_to(window_.begin() + 1);
  for (;;) {
    c = next_char();
    if (!c) return tl::unexpected(c.error());
    if (*c == '}') return Ended::kWell;
    if (*c == ',') {
      window_.consume_to(window_.begin() + 1);
      continue;
    }
    if (*c == '\0' && window_.size() == 0) return Ended::kCut;
    const Result<Ended> member = read_member();
    if (!member || *member != Ended::kWell) return member;
  }
}

// After a broken event: on to the next `{ "ph"` (or another key that only events have).
Result<Ended> KinetoReader::resume_at_next_event() {
  for (;;) {
    const char* const end = window_.end();
    const char* p = window_.begin();
    for (; p < end; ++p) {
      p = static_cast<const char*>(std::memchr(p, '{', static_cast<size_t>(end - p)));
      if (p == nullptr) {
        p = end;
        break;
      }
      const char* key = scan::skip_blanks(p + 1);
      if (end - key < 8) break;
      const std::string_view word(key, 8);
      if (word.substr(0, 5) == "\"ph\":" || word.substr(0, 6) == "\"cat\":" ||
          word.substr(0, 6) == "\"name\"") {
        window_.consume_to(p);
        return Ended::kWell;
      }
    }
    window_.consume_to(p);
    const Result<bool> more = window_.more();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return Ended::kCut;
  }
}

Result<Ended> KinetoReader::read_one_event() {
  for (;;) {
    const char* p = window_.begin();
    const Scan scanned = read_event(p, window_.end(), event_);
    if (scanned == Scan::kOk) {
      ++trace_.events;
      columns_.add(event_);
      note_first(first_repaired_, columns_.texts().repaired());
      note_first(first_without_time_, columns_.without_time());
      note_first(first_negative_, trace_.negative_durations);
      note_first(first_long_, trace_.long_durations);
      window_.consume_to(p);
      return Ended::kWell;
    }
    if (scanned == Scan::kBad) {
      if (broken_++ == 0) {
        first_broken_ = window_.offset() + static_cast<uint64_t>(p - window_.begin());
      }
      window_.consume_to(std::max(p, window_.begin() + 1));
      return resume_at_next_event();
    }
    if (window_.full()) {
      warn(fmt::format("an event of more than {} MB {}: the rest was not read",
                       limits_.event_bytes >> 20, at_byte(window_.offset())),
           window_.offset());
      return Ended::kStop;
    }
    const Result<bool> more = window_.more();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return Ended::kCut;
  }
}

// At the `[` of the events.
Result<Ended> KinetoReader::read_events() {
  has_events_ = true;
  window_.consume_to(window_.begin() + 1);
  for (;;) {
    const Result<char> c = next_char();
    if (!c) return tl::unexpected(c.error());
    Result<Ended> one = Ended::kWell;
    if (*c == '{') {
      one = read_one_event();
    } else if (*c == ',' || *c == ']') {
      window_.consume_to(window_.begin() + 1);
      if (*c == ']') return Ended::kWell;
    } else if (*c == '\0' && window_.size() == 0) {
      return Ended::kCut;
    } else {
      if (broken_++ == 0) first_broken_ = window_.offset();
      window_.consume_to(window_.begin() + 1);
      one = resume_at_next_event();
    }
    if (!one || *one != Ended::kWell) return one;
    if (columns_.rows() > limits_.events) {
      return tl::unexpected(failure(
          fmt::format("holds more than the limit of {} million events", limits_.events / 1000000)));
    }
    if (columns_.texts().bytes() > limits_.text_bytes) {
      return tl::unexpected(failure(fmt::format(
          "holds more than the limit of {} MB of distinct texts", limits_.text_bytes >> 20)));
    }
  }
}

void KinetoReader::report() {
  if (broken_ > 0) {
    warn(fmt::format("malformed JSON {}: {} {} left out", at_byte(first_broken_), broken_,
                     broken_ == 1 ? "event was" : "events were"),
         first_broken_);
  }
  if (columns_.without_time() > 0) {
    warn(fmt::format("{} events without a usable time were left out, the first {}",
                     columns_.without_time(), at_byte(first_without_time_)),
         first_without_time_);
  }
  if (columns_.texts().repaired() > 0) {
    warn(fmt::format("{} texts hold control characters or invalid UTF-8, shown as `?`, the first "
                     "in the event {}",
                     columns_.texts().repaired(), at_byte(first_repaired_)),
         first_repaired_);
  }
  if (trace_.negative_durations > 0) {
    warn(fmt::format("{} device events have a negative duration and count in no total, the first "
                     "{}",
                     trace_.negative_durations, at_byte(first_negative_)),
         first_negative_);
  }
  if (trace_.long_durations > 0) {
    warn(
        fmt::format("{} device events last longer than an hour, the first {}: no kernel does; they "
                    "count as they are written",
                    trace_.long_durations, at_byte(first_long_)),
        first_long_);
  }
}

// Counting lines all along would cost every file what only a broken one needs.
void KinetoReader::place_warnings() {
  constexpr uint64_t kSearchedMost = uint64_t{1} << 30;
  std::vector<BytePlace> places;
  for (const auto& [warning, place] : places_) places.push_back(place);
  find_lines(window_.source(), places, kSearchedMost);
  for (size_t i = 0; i < places.size(); ++i) {
    warnings_[places_[i].first].at.line = places[i].line;
    warnings_[places_[i].first].at.column = places[i].column;
  }
}

Result<Trace> KinetoReader::read() {
  trace_.file = name_;
  const Result<Ended> root = read_root();
  if (!root) return tl::unexpected(root.error());
  const uint64_t end = window_.source().bytes_out();
  if (!has_events_) {
    return tl::unexpected(failure(
        *root == Ended::kCut
            ? fmt::format("ends {}, before any traceEvents: cut short, or no trace", at_byte(end))
            : "has no traceEvents: not a profiler trace"));
  }
  if (columns_.phases() == 0 && (trace_.events > 0 || broken_ > 0)) {
    return tl::unexpected(failure("holds no profiler events: not a profiler trace"));
  }
  if (*root == Ended::kCut && trace_.events == 0) {
    return tl::unexpected(
        failure(fmt::format("ends {}, before its first event: cut short", at_byte(end))));
  }
  if (*root == Ended::kCut) {
    warn(fmt::format("the file ends in the middle, {}: the {} events before it were read",
                     at_byte(end), trace_.events),
         end);
  }
  if (!window_.source().damage().empty()) warn(window_.source().damage());
  trace_.cut = *root == Ended::kCut || !window_.source().damage().empty();
  columns_.finish();
  report();
  place_warnings();
  trace_.bytes = end;
  join(trace_);
  assign_roles(trace_);
  return std::move(trace_);
}

}  // namespace

Result<Trace> read_kineto(ByteSource source, Diagnostics& warnings, const KinetoLimits& limits) {
  return KinetoReader(std::move(source), warnings, limits).read();
}

Result<Trace> read_kineto(const std::string& path, Diagnostics& warnings,
                          const KinetoLimits& limits) {
  Result<ByteSource> source = ByteSource::open(path, limits.json_bytes);
  if (!source) return tl::unexpected(source.error());
  return read_kineto(std::move(*source), warnings, limits);
}

Result<Trace> read_kineto_text(std::string_view bytes, const std::string& name,
                               Diagnostics& warnings, const KinetoLimits& limits) {
  return read_kineto(ByteSource::over(bytes, name, limits.json_bytes), warnings, limits);
}

}  // namespace assay
