#include "diagnose/collectives.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace assay {
namespace {

// FNV-1a over the parts of a key; zero is kept for "no key".
class Hash {
 public:
  Hash& add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(0xff);
    return *this;
  }
  Hash& add(int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) mix(static_cast<uint64_t>(number) >> shift & 0xff);
    return *this;
  }
  uint64_t value() const { return state_ == 0 ? 1 : state_; }

 private:
  void mix(uint64_t byte) { state_ = (state_ ^ byte) * 1099511628211u; }
  uint64_t state_ = 14695981039346656037u;
};

// The step in which the host asked for it, by the step's name; empty: none.
std::string_view step_of(const Trace& trace, const DeviceEvent& e) {
  if (e.launch < 0 || trace.steps.empty()) return {};
  const int64_t asked = trace.runtime[static_cast<size_t>(e.launch)].start_ns;
  const auto after = std::upper_bound(trace.steps.begin(), trace.steps.end(), asked,
                                      [&](int64_t at, int32_t step) {
                                        return at < trace.host[static_cast<size_t>(step)].start_ns;
                                      });
  if (after == trace.steps.begin()) return {};
  return trace.text(trace.host[static_cast<size_t>(*(after - 1))].name);
}

struct KeyMaker {
  const Trace& trace;
  int rank;
  std::unordered_map<uint64_t, int64_t> seen;  // how many of the same kind before

  void fill(const DeviceEvent& e, CollectiveUse& use) {
    if (e.collective < 0) return;
    const CollectiveInfo& info = trace.collectives[static_cast<size_t>(e.collective)];
    const std::string_view group = trace.text(info.group), name = trace.text(info.name);
    if (group.empty()) return;
    Hash hash;
    hash.add(group).add(trace.text(info.group_ranks));
    const bool sends = name.starts_with("send"), receives = name.starts_with("recv");
    if (sends || receives) {
      use.point_to_point = true;
      use.sends = sends;
      const int64_t source = receives ? info.source : info.source >= 0 ? info.source : rank;
      const int64_t target = sends                   ? info.destination
                             : info.destination >= 0 ? info.destination
                                                     : rank;
      hash.add("pair").add(source).add(target);
    } else if (info.sequence >= 0) {
      hash.add("sequence").add(info.sequence);
    } else {
      hash.add("order").add(step_of(trace, e)).add(name);
    }
    const int64_t number = seen[hash.value()]++;
    use.key = hash.add(number).value();
  }
};

// Length of a union of intervals within [from, to), by prefix sums.
class Covered {
 public:
  explicit Covered(Intervals intervals) : intervals_(std::move(intervals)) {
    sums_.push_back(0);
    for (const Interval64& i : intervals_) sums_.push_back(sums_.back() + i.end_ns - i.start_ns);
  }
  int64_t in(int64_t from, int64_t to) const { return to <= from ? 0 : until(to) - until(from); }

 private:
  int64_t until(int64_t t) const {
    const auto after =
        std::upper_bound(intervals_.begin(), intervals_.end(), t,
                         [](int64_t at, const Interval64& i) { return at < i.start_ns; });
    const size_t n = static_cast<size_t>(after - intervals_.begin());
    if (n == 0) return 0;
    return sums_[n - 1] + std::min(t, intervals_[n - 1].end_ns) - intervals_[n - 1].start_ns;
  }
  Intervals intervals_;
  std::vector<int64_t> sums_;
};

bool loads_data(std::string_view name) { return name.starts_with("enumerate(DataLoader)"); }

Intervals data_loading(const Trace& trace) {
  Intervals all;
  std::unordered_map<uint32_t, bool> loads;  // by name
  for (const HostEvent& e : trace.host) {
    const auto [at, is_new] = loads.try_emplace(e.name, false);
    if (is_new) at->second = loads_data(trace.text(e.name));
    if (at->second) all.push_back({e.start_ns, e.start_ns + e.duration_ns});
  }
  return union_of(std::move(all));
}

struct Activity {
  Intervals busy, compute;
  std::vector<int64_t> kernel_starts;
};

Activity activity(const Trace& trace) {
  Activity a;
  for (const DeviceEvent& e : trace.device) {
    if (e.duration_ns < 0) continue;
    a.busy.push_back({e.start_ns, e.start_ns + e.duration_ns});
    if (e.role != Role::kCompute) continue;
    a.compute.push_back(a.busy.back());
    a.kernel_starts.push_back(e.start_ns);
  }
  a.busy = union_of(std::move(a.busy));
  a.compute = union_of(std::move(a.compute));
  return a;
}

}  // namespace

void summarise_collectives(const Trace& trace, RankSummary& summary) {
  const Activity active = activity(trace);
  const Intervals data = data_loading(trace);
  summary.data_ns = length_ns(data);
  const Covered compute(active.compute), starved(subtract(data, active.busy));
  std::set<std::pair<int32_t, int32_t>> streams;
  std::vector<const DeviceEvent*> events;
  for (const DeviceEvent& e : trace.device) {
    if (e.role != Role::kCommunication || e.duration_ns < 0) continue;
    streams.insert({e.device, e.stream});
    events.push_back(&e);
  }
  if (events.size() > kRankCollectives) events.resize(kRankCollectives);
  std::vector<int64_t> ends;
  for (const DeviceEvent* e : events) ends.push_back(e->start_ns + e->duration_ns);
  std::sort(ends.begin(), ends.end());

  KeyMaker keys{trace, summary.rank, {}};
  std::unordered_map<uint32_t, uint32_t> names;
  const int64_t begin = summary.breakdown.start_ns;
  for (const DeviceEvent* e : events) {
    CollectiveUse use;
    keys.fill(*e, use);
    summary.has_metadata = summary.has_metadata || use.key != 0;
    const auto [name, is_new] =
        names.try_emplace(e->name, static_cast<uint32_t>(summary.names.size()));
    if (is_new) summary.names.emplace_back(trace.text(e->name));
    use.name = name->second;
    use.stream =
        static_cast<uint32_t>(std::distance(streams.begin(), streams.find({e->device, e->stream})));
    const int64_t start = e->start_ns, end = start + e->duration_ns;
    const auto after = std::upper_bound(ends.begin(), ends.end(), start);
    const int64_t since = after == ends.begin() ? std::min(begin, start) : *(after - 1);
    use.start_ns = start + trace.base_ns;
    use.end_ns = end + trace.base_ns;
    use.exposed_ns = e->duration_ns - compute.in(start, end);
    use.compute_ns = compute.in(since, start);
    use.data_ns = starved.in(since, start);
    const auto from =
        std::lower_bound(active.kernel_starts.begin(), active.kernel_starts.end(), since);
    use.kernels =
        static_cast<int32_t>(std::lower_bound(from, active.kernel_starts.end(), start) - from);
    summary.collectives.push_back(use);
  }
}

// --- Matching without metadata -----------------------------------------------------------------

namespace {

// Ends of one collective on different ranks: microseconds for a reduction, but the members of an
// all-to-all over many nodes leave it when their own part is done.
constexpr int64_t kEndTogether = 500'000;  // ns
constexpr size_t kVoters = 256;            // collectives of a rank that vote on its clock
constexpr size_t kLeastVotes = 3;
constexpr size_t kNearest = 64;  // candidates of one collective; honest ones are a few

// The kernel of a name without its argument list, which differs between versions of one binary.
uint64_t name_hash(const RankSummary& rank, const CollectiveUse& use) {
  const std::string_view name = rank.names[use.name];
  return Hash().add(name.substr(0, name.find('('))).value();
}

struct Place {
  uint32_t stream;
  int64_t order;
  auto operator<=>(const Place&) const = default;
};

// Position in its stream, by use.
std::vector<Place> places(const RankSummary& rank) {
  std::map<uint32_t, int64_t> next;
  std::vector<Place> all;
  for (const CollectiveUse& use : rank.collectives) all.push_back({use.stream, next[use.stream]++});
  return all;
}

int64_t median_ns(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Whether a rank has the same kernels in the same order as the reference, ending together but for
// a constant difference of clocks.
bool same_order(const RankSummary& reference, const RankSummary& rank) {
  if (reference.collectives.size() != rank.collectives.size()) return false;
  std::map<Place, size_t> at;
  const std::vector<Place> theirs = places(reference), own = places(rank);
  for (size_t i = 0; i < theirs.size(); ++i) at[theirs[i]] = i;
  std::vector<int64_t> differences;
  for (size_t i = 0; i < own.size(); ++i) {
    const auto found = at.find(own[i]);
    if (found == at.end()) return false;
    const CollectiveUse& other = reference.collectives[found->second];
    if (name_hash(rank, rank.collectives[i]) != name_hash(reference, other)) return false;
    differences.push_back(rank.collectives[i].end_ns - other.end_ns);
  }
  const int64_t offset = median_ns(differences);
  size_t together = 0;
  for (const int64_t d : differences) together += std::abs(d - offset) <= kEndTogether;
  return together * 2 >= differences.size();
}

// The difference of clocks that most pairs of ends agree on, and how many do.
std::pair<int64_t, size_t> vote(const RankSummary& reference, const RankSummary& rank) {
  std::vector<int64_t> differences;
  const size_t own = std::min(kVoters, rank.collectives.size());
  const size_t theirs = std::min(kVoters, reference.collectives.size());
  for (size_t i = 0; i < own; ++i)
    for (size_t j = 0; j < theirs; ++j) {
      const CollectiveUse &a = rank.collectives[i], &b = reference.collectives[j];
      if (name_hash(rank, a) == name_hash(reference, b)) differences.push_back(a.end_ns - b.end_ns);
    }
  std::sort(differences.begin(), differences.end());
  std::pair<int64_t, size_t> best{0, 0};
  for (size_t first = 0, last = 0; first < differences.size(); ++first) {
    while (last < differences.size() && differences[last] - differences[first] <= kEndTogether)
      ++last;
    if (last - first > best.second) best = {differences[(first + last - 1) / 2], last - first};
  }
  return best;
}

// Each record takes the key of the reference's record that ends nearest. False: too few agree.
bool match_by_time(const RankSummary& reference, RankSummary& rank) {
  const auto [offset, votes] = vote(reference, rank);
  const size_t fewer = std::min({rank.collectives.size(), reference.collectives.size(), kVoters});
  if (votes < kLeastVotes || votes * 3 < fewer) return false;
  std::vector<std::pair<int64_t, size_t>> ends;
  for (size_t i = 0; i < reference.collectives.size(); ++i)
    ends.emplace_back(reference.collectives[i].end_ns, i);
  std::sort(ends.begin(), ends.end());
  std::vector<bool> taken(ends.size(), false);
  for (CollectiveUse& use : rank.collectives) {
    const int64_t end = use.end_ns - offset;
    const auto from =
        std::lower_bound(ends.begin(), ends.end(), std::pair{end - kEndTogether, size_t{0}});
    const CollectiveUse* nearest = nullptr;
    size_t looked_at = 0;
    for (auto near = from; near != ends.end() && near->first <= end + kEndTogether; ++near) {
      const CollectiveUse& other = reference.collectives[near->second];
      if (++looked_at > kNearest) break;
      if (taken[near->second] || name_hash(rank, use) != name_hash(reference, other)) continue;
      if (!nearest || std::abs(other.end_ns - end) < std::abs(nearest->end_ns - end))
        nearest = &other;
    }
    if (!nearest) continue;
    taken[static_cast<size_t>(nearest - reference.collectives.data())] = true;
    use.key = nearest->key;
  }
  return true;
}

}  // namespace

std::vector<int32_t> match_by_order(std::vector<RankSummary>& ranks) {
  std::vector<int32_t> alone;
  int32_t reference = -1;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].has_metadata || ranks[r].collectives.empty()) continue;
    if (reference < 0 ||
        ranks[r].collectives.size() > ranks[static_cast<size_t>(reference)].collectives.size())
      reference = static_cast<int32_t>(r);
  }
  if (reference < 0) return alone;
  RankSummary& first = ranks[static_cast<size_t>(reference)];
  const auto by_place = [](RankSummary& rank) {
    const std::vector<Place> at = places(rank);
    for (size_t i = 0; i < at.size(); ++i)
      rank.collectives[i].key = Hash().add("place").add(at[i].stream).add(at[i].order).value();
  };
  by_place(first);
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankSummary& rank = ranks[r];
    if (&rank == &first || rank.has_metadata || rank.collectives.empty()) continue;
    if (same_order(first, rank)) {
      by_place(rank);
    } else if (!match_by_time(first, rank)) {
      alone.push_back(static_cast<int32_t>(r));
    }
  }
  return alone;
}

// --- Clocks ------------------------------------------------------------------------------------

namespace {

struct Edge {
  int32_t to;
  ClockOffset clock;  // of `to` against the rank the edge comes from
};

// Clocks of ranks that are connected, against the median of them.
std::vector<ClockOffset> along_edges(const std::vector<std::vector<Edge>>& edges) {
  std::vector<ClockOffset> clocks(edges.size());
  std::vector<bool> known(edges.size(), false);
  for (size_t root = 0; root < edges.size(); ++root) {
    if (known[root]) continue;
    std::vector<size_t> component{root};
    known[root] = true;
    for (size_t i = 0; i < component.size(); ++i)
      for (const Edge& edge : edges[component[i]]) {
        const size_t other = static_cast<size_t>(edge.to);
        if (known[other]) continue;
        known[other] = true;
        clocks[other] = {clocks[component[i]].offset_ns + edge.clock.offset_ns,
                         std::max(clocks[component[i]].noise_ns, edge.clock.noise_ns)};
        component.push_back(other);
      }
    std::vector<int64_t> values;
    for (const size_t r : component) values.push_back(clocks[r].offset_ns);
    const int64_t middle = median_ns(std::move(values));
    for (const size_t r : component) clocks[r].offset_ns -= middle;
  }
  return clocks;
}

}  // namespace

std::vector<ClockOffset> clock_offsets(const std::vector<RankSummary>& ranks) {
  struct End {
    uint64_t key;
    int32_t rank;
    int64_t end;
  };
  std::vector<End> ends;
  for (const bool pairs : {false, true}) {  // pairs only where there is nothing better
    for (size_t r = 0; r < ranks.size(); ++r)
      for (const CollectiveUse& use : ranks[r].collectives)
        if (use.key != 0 && use.point_to_point == pairs)
          ends.push_back({use.key, static_cast<int32_t>(r), use.end_ns});
    if (!ends.empty()) break;
  }
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
    return std::pair{a.key, a.rank} < std::pair{b.key, b.rank};
  });
  // Differences against the first member of each group; then clocks along these edges.
  std::map<std::pair<int32_t, int32_t>, std::vector<int64_t>> differences;
  for (size_t first = 0, i = 0; i < ends.size(); ++i) {
    if (ends[i].key != ends[first].key) first = i;
    if (ends[i].rank != ends[first].rank)
      differences[{ends[first].rank, ends[i].rank}].push_back(ends[i].end - ends[first].end);
  }
  std::vector<std::vector<Edge>> edges(ranks.size());
  for (auto& [pair, values] : differences) {
    const int64_t middle = median_ns(values);
    for (int64_t& value : values) value = std::abs(value - middle);
    const int64_t noise = median_ns(std::move(values));
    edges[static_cast<size_t>(pair.first)].push_back({pair.second, {middle, noise}});
    edges[static_cast<size_t>(pair.second)].push_back({pair.first, {-middle, noise}});
  }
  return along_edges(edges);
}

}  // namespace assay
