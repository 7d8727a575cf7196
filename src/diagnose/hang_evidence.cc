#include "diagnose/hang_evidence.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace assay {
namespace {

constexpr double kNs = 1e9;
// A device that reports no more while its peers do: this many of its usual intervals.
constexpr double kSilentIntervals = 3;

// The bus number of `0x8f`, `0000:19:00`, `00000000:19:00.0`; -1: none.
int bus_of(const std::string& text) {
  const size_t colon = text.find(':');
  const char* const digits =
      text.c_str() + (colon == std::string::npos ? 0 : static_cast<std::ptrdiff_t>(colon) + 1);
  char* end = nullptr;
  const long value = std::strtol(digits, &end, 16);
  return end == digits || value < 0 || value > 255 ? -1 : static_cast<int>(value);
}

struct FilePlace {
  std::string host;
  int bus = -1, device = -1;
};

class Join {
 public:
  Join(const std::vector<FlightDump>& dumps, const std::vector<NcclTests>& tests) {
    for (const FlightDump& d : dumps) ranks_ = std::max(ranks_, d.rank + 1);
    for (const NcclTests& t : tests) {
      for (const NcclTest& test : t.tests) {
        if (static_cast<int>(test.ranks.size()) != ranks_) continue;
        for (const NcclRank& r : test.ranks) places_[r.rank] = {r.host, bus_of(r.bus), r.device};
      }
    }
  }

  // Ranks that a line of this file about this host and bus is about.
  std::vector<int> find(const std::string& file, const std::string& host, int bus,
                        int device) const {
    const size_t slash = file.rfind('/');
    const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
    const int named = rank_of_name(name);
    if (named >= 0 && named < ranks_ && name.find("rank") != std::string::npos) return {named};
    std::vector<int> found;
    for (const auto& [rank, place] : places_) {
      const bool same_host = host.empty() ? one_host() : host == place.host;
      const bool same_device = bus >= 0 ? bus == place.bus : device >= 0 && device == place.device;
      if (same_host && same_device) found.push_back(rank);
    }
    if (found.empty() && places_.empty() && device >= 0 && device < ranks_ && ranks_ <= 8)
      found.push_back(device);
    return found;
  }
  // Ranks of a host whose kernel log was read, so that silence means something.
  std::vector<int> of_host(const std::string& file, const std::string& host) const {
    std::vector<int> found = find(file, host, -1, -1);
    for (const auto& [rank, place] : places_) {
      if (!host.empty() && place.host == host) found.push_back(rank);
    }
    return found;
  }

 private:
  bool one_host() const {
    return !places_.empty() && std::all_of(places_.begin(), places_.end(), [this](const auto& p) {
      return p.second.host == places_.begin()->second.host;
    });
  }

  int ranks_ = 0;
  std::map<int, FilePlace> places_;
};

RankEvidence& of(std::map<int, RankEvidence>& all, int rank) {
  RankEvidence& e = all[rank];
  e.rank = rank;
  return e;
}

void add_log(const KernelLog& log, const Join& join, std::map<int, RankEvidence>& all) {
  std::string host;
  for (const KernelEvent& e : log.events) {
    if (host.empty()) host = e.host;
    if (e.kind != KernelEventKind::kXid) continue;
    for (int rank : join.find(log.file, e.host, bus_of(e.pci), -1)) {
      RankEvidence& evidence = of(all, rank);
      evidence.host = e.host;
      RankEvidence::Xid xid;
      xid.code = e.code;
      if (e.at_s) xid.at_ns = static_cast<int64_t>(*e.at_s * kNs);
      evidence.xids.push_back(xid);
      evidence.kernel_log_read = true;
    }
  }
  for (int rank : join.of_host(log.file, host)) of(all, rank).kernel_log_read = true;
}

double newest(const std::vector<Telemetry>& telemetry) {
  double last = 0;
  for (const Telemetry& t : telemetry) {
    for (const GpuSeries& g : t.gpus) {
      if (!g.at_s.empty()) last = std::max(last, g.at_s.back());
    }
  }
  return last;
}

// The last quarter of a series stands for the time after the job stopped.
void add_series(const Telemetry& t, const GpuSeries& g, double last, const Join& join,
                std::map<int, RankEvidence>& all) {
  if (g.size() == 0) return;
  for (int rank : join.find(t.file, g.host, bus_of(g.pci), g.index)) {
    RankEvidence& e = of(all, rank);
    e.device = g.index;
    std::vector<double> used;
    for (size_t i = g.size() - (g.size() + 3) / 4; i < g.size(); ++i) {
      const double u = g.at(i, Metric::kGpuUtilisation);
      if (!std::isnan(u)) used.push_back(u);
    }
    if (!used.empty()) {
      std::nth_element(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2),
                       used.end());
      e.utilisation = used[used.size() / 2];
    }
    const double power = g.last(Metric::kPowerW);
    if (!std::isnan(power)) e.power_w = power;
    if (g.size() > 2 && g.at_s.front() > 0) {
      const double usual = (g.at_s.back() - g.at_s.front()) / static_cast<double>(g.size() - 1);
      e.stopped_reporting = last - g.at_s.back() > kSilentIntervals * usual;
    }
  }
}

}  // namespace

HangEvidence hang_evidence(const std::vector<FlightDump>& dumps, const std::vector<KernelLog>& logs,
                           const std::vector<Telemetry>& telemetry,
                           const std::vector<NcclTests>& tests) {
  const Join join(dumps, tests);
  std::map<int, RankEvidence> all;
  for (const KernelLog& log : logs) add_log(log, join, all);
  const double last = newest(telemetry);
  for (const Telemetry& t : telemetry) {
    for (const GpuSeries& g : t.gpus) add_series(t, g, last, join, all);
  }
  HangEvidence evidence;
  for (auto& [rank, e] : all) evidence.ranks.push_back(std::move(e));
  return evidence;
}

}  // namespace assay
