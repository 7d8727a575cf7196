#include "ingest/flight_recorder.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "ingest/pickle.h"
#include "ingest/plain.h"
#include "ingest/text.h"

namespace assay {
namespace {

constexpr size_t kMaxEntries = size_t{1} << 20;  // the ring holds 2,000 by default
constexpr size_t kMaxGroups = size_t{1} << 16;
constexpr size_t kMaxMembers = size_t{8} << 20;  // of all groups of one dump
constexpr size_t kMaxTensors = 1024;             // of one entry
constexpr size_t kMaxDimensions = 64;
constexpr int32_t kMaxRank = 1 << 24;

int64_t parse_integer(std::string_view text, int64_t otherwise) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && !text.empty() ? value
                                                                                  : otherwise;
}

class FlightReader {
 public:
  FlightReader(const PlainDocument& document, FlightDump& out) : in_(document), out_(out) {
    out_.strings.emplace_back();
  }

  void read() {
    read_groups();
    PlainId entries = 0;
    out_.lists_entries = in_.find(in_.root, "entries", entries);
    if (out_.lists_entries) {
      const std::vector<PlainId>& all = in_.items(entries);
      if (all.size() > kMaxEntries) warn(fmt::format("only the last {} entries", kMaxEntries));
      const size_t from = all.size() > kMaxEntries ? all.size() - kMaxEntries : 0;
      for (size_t i = from; i < all.size(); ++i) read_entry(all[i]);
    }
    std::stable_sort(
        out_.entries.begin(), out_.entries.end(),
        [](const FlightEntry& a, const FlightEntry& b) { return a.record_id < b.record_id; });
    read_status();
  }

 private:
  void warn(std::string message) {
    constexpr size_t kMaxProblems = 20;
    if (out_.problems.size() >= kMaxProblems) return;
    out_.problems.push_back(problem(Severity::kWarning, std::move(message), out_.file));
  }
  std::string text(PlainId dict, std::string_view key) const {
    PlainId value = 0;
    if (!in_.find(dict, key, value)) return {};
    return sanitize(std::string(in_.text_of(value).substr(0, 1000)), 200);
  }
  int64_t integer(PlainId dict, std::string_view key) const {
    PlainId value = 0;
    if (!in_.find(dict, key, value)) return -1;
    if (in_.at(value).kind == PlainKind::kText) return parse_integer(in_.text_of(value), -1);
    return in_.integer_or(value, -1);
  }
  uint32_t intern(std::string value) {
    if (value.empty()) return 0;
    const auto [at, added] =
        strings_.try_emplace(value, static_cast<uint32_t>(out_.strings.size()));
    if (added) out_.strings.push_back(std::move(value));
    return at->second;
  }

  // `[0, 4, 8]` as text, or a list. A text that ends in `...` is cut and says nothing sure.
  std::vector<int32_t> ranks_of(PlainId value) {
    std::vector<int32_t> out;
    const auto add = [&](int64_t rank) {
      if (rank < 0 || rank > kMaxRank || members_ >= kMaxMembers) return false;
      out.push_back(static_cast<int32_t>(rank));
      ++members_;
      return true;
    };
    if (in_.at(value).kind != PlainKind::kText) {
      for (const PlainId id : in_.items(value)) {
        if (!add(in_.integer_or(id, -1))) return {};
      }
      return out;
    }
    const std::string_view list = in_.text_of(value);
    for (size_t i = 0; i < list.size();) {
      if (list[i] == '.') return {};
      if (!is_digit(list[i])) {
        ++i;
        continue;
      }
      size_t end = i;
      while (end < list.size() && is_digit(list[end])) ++end;
      if (!add(parse_integer(list.substr(i, end - i), -1))) return {};
      i = end;
    }
    return out;
  }
  void read_groups() {
    PlainId config = 0;
    if (!in_.find(in_.root, "pg_config", config)) return;
    const std::vector<PlainId>& all = in_.items(config);
    for (size_t i = 0; i + 1 < all.size() && out_.groups.size() < kMaxGroups; i += 2) {
      FlightGroup group;
      group.name = text(all[i + 1], "name");
      if (group.name.empty()) group.name = sanitize(std::string(in_.text_of(all[i])), 200);
      group.description = text(all[i + 1], "desc");
      PlainId ranks = 0;
      if (in_.find(all[i + 1], "ranks", ranks)) group.ranks = ranks_of(ranks);
      if (by_name_.try_emplace(group.name, static_cast<int32_t>(out_.groups.size())).second) {
        out_.groups.push_back(std::move(group));
      }
    }
  }

  int32_t group_of(PlainId entry) {
    std::string name, description;
    PlainId pair = 0;
    if (in_.find(entry, "process_group", pair)) {
      const std::vector<PlainId>& items = in_.items(pair);
      if (!items.empty()) name = sanitize(std::string(in_.text_of(items[0]).substr(0, 1000)), 200);
      if (items.size() > 1) {
        description = sanitize(std::string(in_.text_of(items[1]).substr(0, 1000)), 200);
      }
    }
    const int64_t id = integer(entry, "pg_id");
    if (name.empty()) name = id >= 0 ? fmt::format("{}", id) : "?";
    const auto [at, added] = by_name_.try_emplace(name, static_cast<int32_t>(out_.groups.size()));
    if (added) {
      if (out_.groups.size() >= kMaxGroups) return -1;
      out_.groups.emplace_back();
      out_.groups.back().name = name;
    }
    if (at->second < 0) return -1;
    FlightGroup& group = out_.groups[static_cast<size_t>(at->second)];
    if (group.description.empty()) group.description = description;
    if (group.id < 0) group.id = id;
    return at->second;
  }

  // The elements of all tensors, and the sizes as text.
  int64_t elements(PlainId entry, std::string_view key, std::string* sizes) {
    PlainId value = 0;
    if (!in_.find(entry, key, value)) return -1;
    double total = 0;
    size_t tensors = 0;
    for (const PlainId tensor : in_.items(value)) {
      if (++tensors > kMaxTensors) return -1;
      double product = 1;
      size_t dimensions = 0;
      if (sizes && !sizes->empty()) *sizes += ' ';
      for (const PlainId dimension : in_.items(tensor)) {
        if (++dimensions > kMaxDimensions) return -1;
        const int64_t size = in_.integer_or(dimension, 0);
        product *= static_cast<double>(size);
        if (sizes && sizes->size() < 100)
          *sizes += fmt::format("{}{}", dimensions > 1 ? "x" : "", size);
      }
      total += product;
    }
    constexpr double kMost = 9e18;
    return total >= 0 && total < kMost ? static_cast<int64_t>(total) : -1;
  }

  // `nccl:send 0->3` and `nccl:recv 0<-3` carry the pair.
  void read_name(PlainId entry, FlightEntry& out) {
    std::string name = text(entry, "profiling_name");
    if (const size_t colon = name.find(':'); colon != std::string::npos) name.erase(0, colon + 1);
    PlainId p2p = 0;
    const bool is_p2p = in_.find(entry, "is_p2p", p2p) && in_.integer_or(p2p, 0) != 0;
    const size_t space = name.find(' ');
    const std::string verb = name.substr(0, space);
    if (verb == "send" || verb == "recv") {
      out.kind = verb == "send" ? FlightKind::kSend : FlightKind::kRecv;
      const std::string_view pair = space == std::string::npos
                                        ? std::string_view()
                                        : std::string_view(name).substr(space + 1);
      const size_t arrow = pair.find(out.kind == FlightKind::kSend ? "->" : "<-");
      if (arrow != std::string_view::npos) {
        const int64_t self = parse_integer(pair.substr(0, arrow), -1);
        const int64_t peer = parse_integer(pair.substr(arrow + 2), -1);
        out.self = self <= kMaxRank ? static_cast<int32_t>(self) : -1;
        out.peer = peer <= kMaxRank ? static_cast<int32_t>(peer) : -1;
      }
    } else if (is_p2p) {
      out.kind = FlightKind::kOtherP2p;
    }
    out.name = intern(verb);
  }

  void read_entry(PlainId id) {
    if (in_.at(id).kind != PlainKind::kDict) {
      warn("an entry that is no table was skipped");
      return;
    }
    FlightEntry out;
    out.group = group_of(id);
    out.record_id = integer(id, "record_id");
    if (out.record_id < 0) out.record_id = integer(id, "id");
    out.sequence = integer(id, "collective_seq_id");
    if (out.sequence < 0) out.sequence = integer(id, "seq_id");  // before version 2.0
    out.p2p_sequence = integer(id, "p2p_seq_id");
    out.created_ns = integer(id, "time_created_ns");
    out.started_ns = integer(id, "time_discovered_started_ns");
    out.timeout_ms = integer(id, "timeout_ms");
    std::string sizes;
    out.input_elements = elements(id, "input_sizes", &sizes);
    out.sizes = intern(std::move(sizes));
    PlainId types = 0;
    if (in_.find(id, "input_dtypes", types) && !in_.items(types).empty()) {
      out.dtype =
          intern(sanitize(std::string(in_.text_of(in_.items(types)[0]).substr(0, 100)), 40));
    }
    read_name(id, out);
    const std::string state = text(id, "state");
    out.state = state == "completed" ? FlightState::kCompleted
                : state == "started" ? FlightState::kStarted
                                     : FlightState::kScheduled;
    if (out.group >= 0) out_.entries.push_back(out);
  }

  // The status is keyed by the rank's own numbers of its groups. Entries tie numbers to names.
  // Where a group has no entry, both count groups in the order of their creation: the k-th number
  // is the k-th name, as long as names are numbers, there are as many of each, and no entry says
  // otherwise.
  void read_status() {
    PlainId status = 0;
    if (!in_.find(in_.root, "pg_status", status)) return;
    std::map<int64_t, FlightStatus> by_id;
    const std::vector<PlainId>& all = in_.items(status);
    for (size_t i = 0; i + 1 < all.size() && by_id.size() < kMaxGroups; i += 2) {
      const PlainNode& key = in_.at(all[i]);
      const int64_t id =
          key.kind == PlainKind::kText ? parse_integer(in_.text_of(all[i]), -1) : key.integer;
      if (id < 0) continue;
      by_id[id] = {integer(all[i + 1], "last_enqueued_collective"),
                   integer(all[i + 1], "last_started_collective"),
                   integer(all[i + 1], "last_completed_collective")};
    }
    number_groups(by_id);
    for (FlightGroup& group : out_.groups) {
      const auto found = by_id.find(group.id);
      if (group.id >= 0 && found != by_id.end()) group.status = found->second;
    }
  }
  void number_groups(const std::map<int64_t, FlightStatus>& by_id) {
    std::vector<std::pair<int64_t, size_t>> by_name;
    for (size_t i = 0; i < out_.groups.size(); ++i) {
      const int64_t number = parse_integer(out_.groups[i].name, -1);
      if (number < 0) return;
      by_name.emplace_back(number, i);
    }
    if (by_name.size() != by_id.size()) return;
    std::sort(by_name.begin(), by_name.end());
    size_t k = 0;
    for (const auto& [id, status] : by_id) {
      const int64_t known = out_.groups[by_name[k++].second].id;
      if (known >= 0 && known != id) return;
    }
    k = 0;
    for (const auto& [id, status] : by_id) out_.groups[by_name[k++].second].id = id;
  }

  const PlainDocument& in_;
  FlightDump& out_;
  std::unordered_map<std::string, uint32_t> strings_;
  std::unordered_map<std::string, int32_t> by_name_;
  size_t members_ = 0;
};

// A rank is a member of each of its groups.
int32_t rank_of_groups(const FlightDump& dump, int32_t named, Diagnostics& problems) {
  std::vector<int32_t> common;
  bool first = true;
  for (const FlightGroup& group : dump.groups) {
    if (group.ranks.empty()) continue;
    std::vector<int32_t> sorted = group.ranks;
    std::sort(sorted.begin(), sorted.end());
    if (first) {
      common = sorted;
    } else {
      std::vector<int32_t> both;
      std::set_intersection(common.begin(), common.end(), sorted.begin(), sorted.end(),
                            std::back_inserter(both));
      common = std::move(both);
    }
    first = false;
  }
  if (common.size() != 1 || common[0] == named) return named;
  if (named >= 0) {
    problems.push_back(
        problem(Severity::kWarning,
                fmt::format("the name says rank {}, the process groups say rank {}: taken as {}",
                            named, common[0], common[0]),
                dump.file));
  }
  return common[0];
}

int64_t last_record(const FlightDump& dump) {
  int64_t last = dump.entries.empty() ? -1 : dump.entries.back().record_id;
  for (const FlightGroup& group : dump.groups) {
    if (group.status) last = std::max(last, group.status->enqueued);
  }
  return last;
}

}  // namespace

bool same_dump(const FlightDump& a, const FlightDump& b) {
  const auto newest = [](const FlightDump& d) {
    return d.entries.empty() ? -1 : d.entries.back().created_ns;
  };
  return a.entries.size() == b.entries.size() && a.groups.size() == b.groups.size() &&
         last_record(a) == last_record(b) && newest(a) == newest(b);
}

tl::expected<FlightDump, Diagnostic> read_flight_dump(std::string_view bytes,
                                                      const std::string& file) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && bytes[first] == '{';
  tl::expected<PlainDocument, Diagnostic> document =
      json ? read_plain_json(bytes, file) : read_pickle(bytes, file);
  if (!document) return tl::unexpected(document.error());
  PlainId any = 0;
  if (!document->find(document->root, "entries", any) &&
      !document->find(document->root, "pg_status", any) &&
      !document->find(document->root, "pg_config", any)) {
    return tl::unexpected(
        problem(Severity::kError,
                "not a Flight Recorder dump: no entries, no pg_config, no pg_status", file));
  }
  FlightDump out;
  out.file = file;
  FlightReader(*document, out).read();
  int32_t named = rank_of_name(file);
  if (document->find(document->root, "rank", any)) {
    const int64_t said = document->integer_or(any, -1);
    if (said >= 0 && said <= kMaxRank) named = static_cast<int32_t>(said);
  }
  out.rank = rank_of_groups(out, named, out.problems);
  return out;
}

int32_t rank_of_name(std::string_view file) {
  if (const size_t slash = file.find_last_of('/'); slash != std::string_view::npos) {
    file.remove_prefix(slash + 1);
  }
  for (const std::string_view end : {".gz", ".json", ".pickle", ".pkl", ".pt", ".txt", ".trace"}) {
    if (file.size() > end.size() && file.ends_with(end)) file.remove_suffix(end.size());
  }
  const auto number_at = [&](size_t from) {
    size_t end = from;
    while (end < file.size() && is_digit(file[end])) ++end;
    const int64_t rank = parse_integer(file.substr(from, end - from), -1);
    return rank <= kMaxRank ? static_cast<int32_t>(rank) : -1;
  };
  const std::string folded = lower(file);
  for (const std::string_view word : {"rank", "dump"}) {
    for (size_t at = folded.rfind(word); at != std::string::npos && at + 1 > 0;
         at = at == 0 ? std::string::npos : folded.rfind(word, at - 1)) {
      size_t digits = at + word.size();
      while (digits < folded.size() && (folded[digits] == '_' || folded[digits] == '-' ||
                                        folded[digits] == '=' || folded[digits] == '.')) {
        ++digits;
      }
      if (digits < folded.size() && is_digit(folded[digits])) return number_at(digits);
    }
  }
  size_t end = file.size();
  while (end > 0 && !is_digit(file[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_digit(file[begin - 1])) --begin;
  return begin == end ? -1 : number_at(begin);
}

void keep_one_dump_per_rank(std::vector<FlightDump>& dumps, Diagnostics& problems) {
  std::stable_sort(dumps.begin(), dumps.end(), [](const FlightDump& a, const FlightDump& b) {
    return a.rank != b.rank ? a.rank < b.rank : last_record(a) > last_record(b);
  });
  std::vector<FlightDump> kept;
  for (FlightDump& dump : dumps) {
    if (kept.empty() || kept.back().rank != dump.rank || dump.rank < 0) {
      kept.push_back(std::move(dump));
      continue;
    }
    if (same_dump(kept.back(), dump)) continue;
    problems.push_back(
        problem(Severity::kWarning,
                fmt::format("another dump of rank {} saw more ({}): this one is left out",
                            dump.rank, sanitize(kept.back().file)),
                dump.file));
  }
  dumps = std::move(kept);
}

}  // namespace assay
