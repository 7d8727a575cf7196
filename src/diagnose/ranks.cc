#include "diagnose/ranks.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/text.h"
#include "diagnose/collectives.h"
#include "diagnose/ranks_replay.h"

namespace assay {
namespace {

constexpr size_t kMissingListed = 64;
constexpr int kLargestWorld = 1 << 20;
constexpr int64_t kNoiseFactor = 4;  // a clock differs when its median leaves the ends' own scatter

std::string_view base_name(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// `rank-3.json`, `worker7.pt.trace.json`: the number after the word; -1: none.
int rank_in_name(std::string_view file) {
  const std::string_view name = base_name(file);
  for (const std::string_view word : {"rank", "worker"}) {
    size_t at = name.find(word);
    if (at == name.npos) continue;
    at += word.size();
    while (at < name.size() && (name[at] == '-' || name[at] == '_')) ++at;
    int number = -1;
    for (; at < name.size() && is_digit(name[at]) && number < kLargestWorld; ++at)
      number = std::max(number, 0) * 10 + (name[at] - '0');
    if (number >= 0 && number < kLargestWorld) return number;
  }
  return -1;
}

// tensorboard's trace handler writes `HOST_PID.TIME.pt.trace.json`.
std::string host_in_name(std::string_view file) {
  const std::string_view name = base_name(file);
  const size_t tail = name.find(".pt.trace.json");
  const size_t bar = name.substr(0, tail).rfind('_');
  if (tail == name.npos || bar == name.npos || bar == 0) return {};
  const std::string_view process = name.substr(bar + 1, tail - bar - 1);
  const bool numbers = !process.empty() && std::all_of(process.begin(), process.end(), [](char c) {
    return is_digit(c) || c == '.';
  });
  return numbers ? sanitize(std::string(name.substr(0, bar)), 80) : std::string();
}

struct Member {
  uint64_t key;
  int32_t rank;
  uint32_t use;
};

std::vector<Member> members_by_key(const std::vector<RankSummary>& ranks) {
  std::vector<Member> all;
  for (size_t r = 0; r < ranks.size(); ++r)
    for (size_t u = 0; u < ranks[r].collectives.size(); ++u)
      if (ranks[r].collectives[u].key != 0)
        all.push_back(
            {ranks[r].collectives[u].key, static_cast<int32_t>(r), static_cast<uint32_t>(u)});
  std::sort(all.begin(), all.end(), [](const Member& a, const Member& b) {
    return std::tie(a.key, a.rank, a.use) < std::tie(b.key, b.rank, b.use);
  });
  return all;
}

// One collective from members of one key. A rank that has the key twice takes part once.
MatchedCollective matched(const RanksDiagnosis& d, const std::vector<RankSummary>& ranks,
                          const Member* begin, const Member* end) {
  MatchedCollective c;
  for (const Member* m = begin; m != end; ++m) {
    if (m != begin && m->rank == (m - 1)->rank) continue;
    const CollectiveUse& use = ranks[static_cast<size_t>(m->rank)].collectives[m->use];
    const RankView& view = d.ranks[static_cast<size_t>(m->rank)];
    const int64_t offset = view.corrected ? view.clock_offset_ns : 0;
    c.members.push_back({m->rank, m->use, use.start_ns - offset, use.end_ns - offset, 0});
    c.point_to_point = use.point_to_point;
  }
  const RankSummary& first_rank = ranks[static_cast<size_t>(begin->rank)];
  const std::string& name = first_rank.names[first_rank.collectives[begin->use].name];
  c.name = sanitize(name.substr(0, name.find('(')), 80);
  const auto start = [](const MatchedMember& a, const MatchedMember& b) {
    return a.start_ns < b.start_ns;
  };
  const auto ending = [](const MatchedMember& a, const MatchedMember& b) {
    return a.end_ns < b.end_ns;
  };
  const auto first = std::min_element(c.members.begin(), c.members.end(), start);
  const auto last = std::max_element(c.members.begin(), c.members.end(), start);
  const auto ends = std::minmax_element(c.members.begin(), c.members.end(), ending);
  c.first = first->rank;
  c.last = last->rank;
  c.skew_ns = last->start_ns - first->start_ns;
  c.end_skew_ns = ends.second->end_ns - ends.first->end_ns;
  c.wire_ns = last->end_ns - last->start_ns;
  c.shortest_ns = c.longest_ns = c.wire_ns;
  for (MatchedMember& m : c.members) {
    m.waiting_ns = last->start_ns - m.start_ns;
    c.shortest_ns = std::min(c.shortest_ns, m.end_ns - m.start_ns);
    c.longest_ns = std::max(c.longest_ns, m.end_ns - m.start_ns);
  }
  return c;
}

int64_t last_arrival(const MatchedCollective& c) {
  int64_t at = c.members[0].start_ns;
  for (const MatchedMember& m : c.members) at = std::max(at, m.start_ns);
  return at;
}

void fill_collectives(RanksDiagnosis& d, const std::vector<RankSummary>& ranks) {
  const std::vector<Member> members = members_by_key(ranks);
  size_t all = 0;
  for (const RankSummary& rank : ranks) all += rank.collectives.size();
  size_t together = 0;
  for (size_t first = 0; first < members.size();) {
    size_t last = first;
    while (last < members.size() && members[last].key == members[first].key) ++last;
    if (members[first].rank != members[last - 1].rank) {
      d.collectives.push_back(matched(d, ranks, &members[first], &members[last]));
      together += d.collectives.back().members.size();
    }
    first = last;
  }
  d.unmatched = all - together;
  std::stable_sort(d.collectives.begin(), d.collectives.end(),
                   [](const MatchedCollective& a, const MatchedCollective& b) {
                     return last_arrival(a) < last_arrival(b);
                   });
  for (const MatchedCollective& c : d.collectives) {
    d.ranks[static_cast<size_t>(c.last)].blamed_ns += c.skew_ns;
    ++d.ranks[static_cast<size_t>(c.last)].last_at;
    for (const MatchedMember& m : c.members) {
      d.ranks[static_cast<size_t>(m.rank)].waiting_ns += m.waiting_ns;
      d.ranks[static_cast<size_t>(m.rank)].wire_ns += c.wire_ns;
    }
  }
}

void fill_missing(RanksDiagnosis& d, const std::vector<RankSummary>& ranks) {
  int world = 0;
  std::set<int> present;
  for (size_t r = 0; r < ranks.size(); ++r) {
    world = std::max(world, std::min(ranks[r].world_size, kLargestWorld));
    present.insert(d.ranks[r].rank);
  }
  for (int r = 0; r < world; ++r) {
    if (present.count(r)) continue;
    ++d.missing_count;
    if (d.missing.size() < kMissingListed) d.missing.push_back(r);
  }
}

// In order of rank; of two files of one rank the first is kept.
void sort_ranks(std::vector<RankSummary>& ranks, RanksDiagnosis& d) {
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankSummary& a, const RankSummary& b) {
    return std::pair{a.rank < 0, a.rank} < std::pair{b.rank < 0, b.rank};
  });
  const auto same = [&](const RankSummary& a, const RankSummary& b) {
    if (a.rank < 0 || a.rank != b.rank) return false;
    d.analysis.notes.push_back(fmt::format("{}: rank {} was given twice; this file is left out",
                                           sanitize(std::string(base_name(b.file)), 60), b.rank));
    return true;
  };
  ranks.erase(std::unique(ranks.begin(), ranks.end(), same), ranks.end());
}

}  // namespace

RankSummary summarise(const Trace& trace) {
  RankSummary summary;
  summary.file = trace.file;
  summary.rank = trace.rank >= 0 ? trace.rank : rank_in_name(trace.file);
  summary.world_size = trace.world_size;
  summary.host = host_in_name(trace.file);
  if (!trace.devices.empty()) summary.device = sanitize(trace.devices[0].name, 80);
  summary.breakdown = breakdown(trace);
  for (const int32_t step : trace.steps)
    summary.steps_ns.push_back(trace.host[static_cast<size_t>(step)].duration_ns);
  summary.names.emplace_back();
  summarise_collectives(trace, summary);
  return summary;
}

RanksDiagnosis diagnose_ranks(std::vector<RankSummary> ranks) {
  RanksDiagnosis d;
  sort_ranks(ranks, d);
  const std::vector<int32_t> alone = match_by_order(ranks);
  const std::vector<ClockOffset> clocks = clock_offsets(ranks);
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankView view;
    view.rank = ranks[r].rank >= 0 ? ranks[r].rank : static_cast<int>(r);
    view.file = ranks[r].file;
    view.host = ranks[r].host;
    view.breakdown = ranks[r].breakdown;
    view.clock_offset_ns = clocks[r].offset_ns;
    view.corrected =
        std::abs(clocks[r].offset_ns) > std::max(kClockNoise, kNoiseFactor * clocks[r].noise_ns);
    d.ranks.push_back(std::move(view));
  }
  fill_collectives(d, ranks);
  fill_missing(d, ranks);
  for (const int32_t r : alone)
    d.analysis.notes.push_back(fmt::format(
        "rank {}: its communication could not be matched with the other ranks' (no metadata, and "
        "neither order nor ends agree)",
        d.ranks[static_cast<size_t>(r)].rank));
  judge_ranks(d, ranks);
  return d;
}

CriticalPath detail(const RanksDiagnosis& d, const JobSegment& segment, const Trace& trace) {
  const RankView& view = d.ranks[static_cast<size_t>(segment.rank)];
  const int64_t clock = view.corrected ? view.clock_offset_ns : 0;
  const int64_t from = segment.start_ns + clock - trace.base_ns;
  CriticalPath path = critical_path_between(trace, from, from + segment.duration_ns - 1);
  for (PathSegment& part : path.segments) part.rank = view.rank;
  return path;
}

}  // namespace assay
