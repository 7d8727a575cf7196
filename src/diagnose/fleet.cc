#include "diagnose/fleet.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr double kGiga = 1e9;

// One test of a kind: where it ran, and what it reached.
struct Run {
  std::string file;
  const NcclTest* test = nullptr;
  Bandwidth bus;
  std::vector<std::string> hosts;
};

struct Kind {
  std::string collective;
  size_t ranks = 0, hosts = 0;
  double bytes = 0;
  std::string type;
  std::string model;  // two kinds of GPU are two fleets
  auto key() const { return std::tie(collective, ranks, hosts, bytes, type, model); }
  bool operator<(const Kind& other) const { return key() < other.key(); }
};

// A run is named by its node where it has one, else by its file.
std::string run_name(const Run& run) {
  return run.hosts.size() == 1 && !run.hosts[0].empty() ? sanitize(run.hosts[0], 60)
                                                        : base_name(run.file);
}

std::string kind_words(const Kind& kind) {
  const double mebibytes = kind.bytes / 1048576.0;
  return fmt::format("{} of {:.0f} MiB on {} GPUs",
                     kind.collective.empty() ? "collective" : sanitize(kind.collective, 32),
                     mebibytes, kind.ranks);
}

// Every test at its largest size: there the links decide, not latencies.
std::map<Kind, std::vector<Run>> runs_by_kind(const std::vector<NcclTests>& files) {
  std::map<Kind, std::vector<Run>> kinds;
  for (const NcclTests& file : files) {
    for (const NcclTest& test : file.tests) {
      const auto largest =
          std::max_element(test.rows.begin(), test.rows.end(),
                           [](const NcclRow& a, const NcclRow& b) { return a.size.v < b.size.v; });
      if (largest == test.rows.end() || !(largest->bus().v > 0)) continue;
      Run run{file.file, &test, largest->bus(), test.hosts()};
      const Kind kind{test.collective,  test.ranks.size(),
                      run.hosts.size(), largest->size.v,
                      largest->type,    test.ranks.empty() ? "" : test.ranks[0].model};
      kinds[kind].push_back(std::move(run));
    }
  }
  return kinds;
}

Evidence table_of_runs(const Kind& kind, std::vector<Run> runs, double median) {
  Evidence out;
  out.title = kind_words(kind) + ", each run against the median";
  out.file = runs.empty() ? "" : runs[0].file;
  out.columns = {"run", "bus GB/s", "of median", "nodes"};
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.bus < b.bus; });
  for (const Run& run : runs) {
    if (out.rows.size() >= kEvidenceRows) break;
    std::string nodes;
    for (size_t i = 0; i < run.hosts.size() && i < kNamesShown; ++i) {
      nodes += (i > 0 ? " " : "") + sanitize(run.hosts[i], 40);
    }
    out.rows.push_back({base_name(run.file), fmt::format("{:.1f}", run.bus.v / kGiga),
                        fmt::format("{:.1f} %", 100 * run.bus.v / median), nodes});
  }
  return out;
}

// Nodes that are in every slow run and in no fast one. Where each run has one node, those of the
// slow runs.
std::vector<std::string> nodes_of_slow_runs(const std::vector<Run>& runs, double boundary) {
  const bool alone =
      std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.hosts.size() == 1; });
  std::set<std::string> common;
  bool first = true;
  for (const Run& run : runs) {
    if (run.bus.v >= boundary) continue;
    const std::set<std::string> hosts(run.hosts.begin(), run.hosts.end());
    if (first || alone) {
      common.insert(hosts.begin(), hosts.end());
      first = false;
      continue;
    }
    std::set<std::string> both;
    std::set_intersection(common.begin(), common.end(), hosts.begin(), hosts.end(),
                          std::inserter(both, both.begin()));
    common = std::move(both);
  }
  for (const Run& run : runs) {
    if (run.bus.v < boundary) continue;
    for (const std::string& host : run.hosts) common.erase(host);
  }
  return {common.begin(), common.end()};
}

Finding two_mode_finding(const Kind& kind, const std::vector<Run>& runs, const TwoModes& modes) {
  Finding finding;
  finding.cause = Cause::kHardwareFault;
  const double loss = 1 - modes.low / modes.high;
  const double n = static_cast<double>(runs.size());
  const std::vector<std::string> guilty = nodes_of_slow_runs(runs, modes.boundary);
  finding.title = fmt::format("{} of {} runs of one collective are {:.0f} % slow", modes.low_count,
                              runs.size(), 100 * loss);
  finding.detail = fmt::format(
      "{} has two modes: {} runs near {:.0f} GB/s, {} near {:.0f} GB/s (p = {:.4f}). {}",
      kind_words(kind), modes.low_count, modes.low / kGiga, modes.high_count, modes.high / kGiga,
      modes.p_value,
      guilty.empty() ? "No node is in all of the slow runs and in none of the fast ones, so it is "
                       "the fabric (routes, congestion, placement), not a node."
                     : "The nodes named are in the slow runs and in no fast one.");
  finding.fix = guilty.empty()
                    ? "Run the test again with NCCL_DEBUG=INFO in a slow and a fast placement and "
                      "compare rings, rails and routing; check adaptive routing and the links "
                      "between the leaf switches of the slow runs."
                    : "Drain the nodes named and test each against a good one: all_reduce_perf -b "
                      "1G -e 8G -f 2 on pairs of nodes; check NIC link rates with ibstat.";
  for (const std::string& node : guilty) finding.where.push_back("node " + sanitize(node, 60));
  finding.confidence = Confidence::kHigh;
  if (guilty.empty()) finding.confidence = Confidence::kMedium;
  // Of the time of this collective over all the runs: the slow ones take 1/low instead of 1/high.
  const double slow = static_cast<double>(modes.low_count) / n;
  const double time = slow / modes.low + (1 - slow) / modes.high;
  finding.share = 1 - (1 / modes.high) / time;
  finding.evidence.push_back(table_of_runs(kind, runs, modes.high));
  return finding;
}

Finding suspects_finding(const Kind& kind, const std::vector<Run>& runs,
                         const FleetVerdict& verdict) {
  Finding finding;
  finding.cause = Cause::kHardwareFault;
  const Run& worst = runs[verdict.suspects.front()];
  const double loss = 1 - worst.bus.v / verdict.median;
  finding.title = fmt::format("{} is {:.1f} % slower than its peers", run_name(worst), 100 * loss);
  finding.detail = fmt::format(
      "{}: {:.1f} GB/s against a median of {:.1f} over {} runs that scatter by {:.2f} %. A "
      "collective goes at the speed of its slowest member.",
      kind_words(kind), worst.bus.v / kGiga, verdict.median / kGiga, runs.size(),
      100 * verdict.sigma / verdict.median);
  finding.fix =
      "Keep the node out of large jobs and test it: nvidia-smi nvlink -s, nvidia-smi topo -m, "
      "ibstat, dcgmi diag -r 3; compare with a good node of the same kind.";
  for (const size_t i : verdict.suspects) {
    finding.where.push_back((runs[i].hosts.size() == 1 ? "node " : "run ") + run_name(runs[i]));
  }
  finding.confidence = runs.size() >= 5 ? Confidence::kHigh : Confidence::kMedium;
  finding.share = loss;
  finding.evidence.push_back(table_of_runs(kind, runs, verdict.median));
  return finding;
}

void judge_kind(const Kind& kind, const std::vector<Run>& runs, Analysis& out) {
  std::vector<FleetMember> members;
  for (const Run& run : runs) members.push_back({run_name(run), run.bus.v});
  const FleetVerdict verdict = judge_fleet(members);
  if (verdict.modes) {
    out.findings.push_back(two_mode_finding(kind, runs, *verdict.modes));
  } else if (!verdict.suspects.empty()) {
    out.findings.push_back(suspects_finding(kind, runs, verdict));
  } else if (runs.size() >= 3) {
    out.notes.push_back(fmt::format("{}: {} runs, {:.1f} GB/s, scatter {:.2f} %: one healthy fleet",
                                    kind_words(kind), runs.size(), verdict.median / kGiga,
                                    100 * verdict.sigma / verdict.median));
  }
}

// What a test says by itself.
void judge_test(const NcclTests& file, const NcclTest& test, Analysis& out) {
  double wrong = test.out_of_bounds.value_or(0);
  for (const NcclRow& row : test.rows) {
    for (const std::optional<NcclTiming>& timing : {row.out_of_place, row.in_place}) {
      if (timing && timing->wrong) wrong = std::max(wrong, *timing->wrong);
    }
  }
  Evidence evidence;
  evidence.file = file.file;
  if (wrong > 0) {
    Finding finding;
    finding.cause = Cause::kHardwareFault;
    finding.title = "A collective returned wrong values";
    finding.detail = fmt::format("{} elements of {} were wrong: data is corrupted on its way.",
                                 wrong, sanitize(test.collective, 32));
    finding.fix =
        "Drain the nodes of this test; run it on halves of them to find the one, then "
        "dcgmi diag -r 3 and a check of its cables.";
    for (const std::string& host : test.hosts()) {
      if (finding.where.size() < kNamesShown) finding.where.push_back("node " + sanitize(host, 60));
    }
    finding.confidence = Confidence::kHigh;
    finding.urgent = true;
    evidence.title = "rows with wrong elements";
    evidence.columns = {"line", "wrong"};
    evidence.rows.push_back({fmt::format("{}", test.line), fmt::format("{}", wrong)});
    finding.evidence.push_back(std::move(evidence));
    out.findings.push_back(std::move(finding));
    return;
  }
  if (!test.failures.empty() && test.rows.empty()) {
    out.notes.push_back(
        fmt::format("{}: the test failed: {}", base_name(file.file), test.failures.front()));
  }
}

// --- topologies -------------------------------------------------------------------------------

void judge_nvlinks(const Topology& topology, Analysis& out) {
  std::vector<const TopoDevice*> gpus;
  int most = 0;
  for (const TopoDevice& device : topology.devices) {
    if (device.kind != TopoKind::kGpu) continue;
    gpus.push_back(&device);
    most = std::max(most, device.nvlinks);
  }
  // A broken link takes one from each end, and a GPU that lost several takes one from each peer:
  // the guilty one is short by the most. In a healthy node every GPU has the same number, whatever
  // the wiring.
  int least = most;
  for (const TopoDevice* gpu : gpus) least = std::min(least, gpu->nvlinks);
  if (gpus.size() < 2 || least == most) return;
  Finding finding;
  finding.cause = Cause::kHardwareFault;
  Evidence evidence;
  evidence.title = "NVLinks by GPU";
  evidence.file = topology.file;
  evidence.columns = {"GPU", "bus", "NVLinks"};
  for (const TopoDevice* gpu : gpus) {
    const std::string name = gpu->name.empty() ? gpu->pci : gpu->name;
    if (gpu->nvlinks == least) finding.where.push_back(name);
    if (evidence.rows.size() < kEvidenceRows) {
      evidence.rows.push_back({name, gpu->pci, fmt::format("{}", gpu->nvlinks)});
    }
  }
  if (least == 0) {  // perhaps never bridged
    out.notes.push_back(fmt::format("{}: {} of {} GPUs have no NVLink to the others",
                                    base_name(topology.file), finding.where.size(), gpus.size()));
    return;
  }
  finding.title = fmt::format("{} has lost NVLinks", finding.where.front());
  finding.detail =
      fmt::format("{} NVLinks where its peers have up to {}: traffic to it goes over fewer links.",
                  least, most);
  finding.fix =
      "nvidia-smi nvlink -s and -e on the GPU named; reset it (nvidia-smi -r) when the "
      "node is drained, and replace it or the baseboard if the link stays down.";
  finding.confidence = Confidence::kHigh;
  finding.urgent = true;
  finding.evidence.push_back(std::move(evidence));
  out.findings.push_back(std::move(finding));
}

// GPUs only: a node has NICs of several kinds on purpose.
void judge_pcie(const Topology& topology, Analysis& out) {
  std::vector<const TopoDevice*> devices;
  std::vector<double> speeds;
  for (const TopoDevice& device : topology.devices) {
    if (device.kind != TopoKind::kGpu || !(device.pcie.v > 0)) continue;
    devices.push_back(&device);
    speeds.push_back(device.pcie.v);
  }
  const double usual = median_of(speeds);
  for (size_t i = 0; i < devices.size() && devices.size() >= 3; ++i) {
    if (speeds[i] > usual * (1 - kSuspectShare)) continue;
    const std::string name = devices[i]->name.empty() ? devices[i]->pci : devices[i]->name;
    out.open.push_back(
        {fmt::format(
             "{}: the PCIe link of {} does {:.1f} GB/s where its peers do {:.1f}; a fault, or "
             "an idle link that saves power",
             base_name(topology.file), name, speeds[i] / kGiga, usual / kGiga),
         "lspci -vv (LnkSta against LnkCap) or nvidia-smi -q under load"});
  }
}

}  // namespace

FleetVerdict judge_fleet(const std::vector<FleetMember>& members) {
  FleetVerdict verdict;
  std::vector<double> values;
  for (const FleetMember& member : members) values.push_back(member.value);
  verdict.median = median_of(values);
  verdict.sigma = robust_sigma(values);
  if (members.size() < 3 || !(verdict.median > 0)) return verdict;
  verdict.modes = two_modes(values);
  if (verdict.modes && verdict.modes->low > verdict.modes->high * (1 - kSuspectShare)) {
    verdict.modes.reset();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const double below = verdict.median - values[i];
    if (below > kSuspectShare * verdict.median && below > kSuspectSigmas * verdict.sigma) {
      verdict.suspects.push_back(i);
    }
  }
  std::stable_sort(verdict.suspects.begin(), verdict.suspects.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  return verdict;
}

Analysis diagnose_nccl_tests(const std::vector<NcclTests>& files) {
  Analysis out;
  for (const NcclTests& file : files) {
    for (const NcclTest& test : file.tests) judge_test(file, test, out);
  }
  for (const auto& [kind, runs] : runs_by_kind(files)) judge_kind(kind, runs, out);
  return out;
}

namespace {

// Counters of links have no time: what they show may be weeks old, so they are a question and no
// finding. A link that was retrained, or one with far more errors than its peers, is worth asking.
// Both limits are assumed: an order of magnitude, and no fuss over a handful.
void ask_link_errors(const Topology& topology, Analysis& out) {
  constexpr double kErrorsLeast = 100, kAbovePeers = 10;
  std::vector<double> errors;
  for (const TopoDevice& device : topology.devices) {
    for (const NvlinkErrors& e : device.errors) {
      errors.push_back(static_cast<double>(e.replays) + static_cast<double>(e.crc));
    }
  }
  if (errors.empty()) return;
  const double usual = median_of(errors);
  std::vector<std::string> links;
  for (const TopoDevice& device : topology.devices) {
    for (const NvlinkErrors& e : device.errors) {
      const double count = static_cast<double>(e.replays) + static_cast<double>(e.crc);
      if (e.recoveries == 0 && (count < kErrorsLeast || count < kAbovePeers * usual)) continue;
      if (links.size() < kNamesShown) {
        links.push_back(fmt::format("{} link {} ({} recoveries, {} replays, {} CRC errors)",
                                    device.name, e.link, e.recoveries, e.replays, e.crc));
      }
    }
  }
  if (links.empty()) return;
  out.open.push_back(
      {fmt::format("NVLinks with errors that their peers do not have: {}", fmt::join(links, ", ")),
       "the same counters an hour later (do they grow?), or the kernel log (XID 74)"});
}

}  // namespace

Analysis diagnose_topologies(const std::vector<Topology>& topologies) {
  Analysis out;
  for (const Topology& topology : topologies) {
    judge_nvlinks(topology, out);
    ask_link_errors(topology, out);
    judge_pcie(topology, out);
  }
  return out;
}

}  // namespace assay
