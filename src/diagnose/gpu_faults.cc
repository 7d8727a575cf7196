#include "diagnose/gpu_faults.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "diagnose/fleet.h"
#include "diagnose/xid.h"

namespace assay {
namespace {

// --- faults -----------------------------------------------------------------------------------

struct Fault {
  std::string title, fix;
  Confidence confidence = Confidence::kHigh;
  bool urgent = true;
};

void add_fault(const Fault& fault, const GpuTime& time, const std::string& detail,
               std::vector<std::pair<std::string, double>> figures, Analysis& out) {
  Finding finding;
  finding.cause = Cause::kHardwareFault;
  finding.title = fault.title;
  finding.detail = detail;
  finding.fix = fault.fix;
  finding.where = {time.name};
  finding.confidence = fault.confidence;
  finding.urgent = fault.urgent;
  Evidence evidence;
  evidence.title = "as the driver counts it";
  evidence.file = time.file;
  evidence.columns = {"what", "value"};
  for (const auto& [name, value] : figures) {
    evidence.rows.push_back({name, fmt::format("{:.0f}", value)});
  }
  finding.evidence.push_back(std::move(evidence));
  out.findings.push_back(std::move(finding));
}

void memory_faults(const GpuSeries& gpu, const GpuTime& time, Analysis& out) {
  const double uncorrected = gpu.last(Metric::kEccUncorrected);
  const double failed = gpu.last(Metric::kRowRemapFailed);
  const double pending = std::max(
      std::isnan(gpu.last(Metric::kRowRemapPending)) ? 0 : gpu.last(Metric::kRowRemapPending),
      std::isnan(gpu.last(Metric::kPagesPending)) ? 0 : gpu.last(Metric::kPagesPending));
  if (failed > 0) {
    add_fault({time.name + " could not remap a faulty memory row",
               "Drain the node and replace the GPU: it has no spare row left for this bank.",
               Confidence::kHigh, true},
              time, "Row remapping has failed; further errors of that row end the job they hit.",
              {{"row remap failed", failed}}, out);
  } else if (uncorrected > 0) {
    add_fault(
        {time.name + " has uncorrectable memory errors",
         "Drain the node, reset the GPU (nvidia-smi -r) so that the row is remapped, and run "
         "dcgmi diag -r 3 before it returns.",
         Confidence::kHigh, true},
        time,
        fmt::format("{:.0f} uncorrectable ECC errors since the driver was loaded.", uncorrected),
        {{"ECC uncorrected", uncorrected}, {"row remap pending", pending}}, out);
  } else if (pending > 0) {
    add_fault(
        {time.name + " waits for a reset to replace a faulty memory row",
         "Reset the GPU (nvidia-smi -r) or reboot when the job is done.", Confidence::kHigh, true},
        time, "A row remapping (or page retirement) is pending.", {{"row remap pending", pending}},
        out);
  }
}

// A link narrower than it could be is a fault at any time; a lower generation only under load,
// because idle links save power.
void link_faults(const GpuSeries& gpu, const GpuTime& time, Analysis& out) {
  const double width = gpu.last(Metric::kPcieWidth), width_max = gpu.last(Metric::kPcieWidthMax);
  if (width > 0 && width < width_max) {
    add_fault(
        {fmt::format("The PCIe link of {} has {:.0f} of {:.0f} lanes", time.name, width, width_max),
         "Reseat the GPU or its riser and look for AER errors in the kernel log; copies and "
         "the network through this link go at the lower speed until then.",
         Confidence::kHigh, true},
        time, "The link trained with fewer lanes than both ends have.",
        {{"PCIe width", width}, {"PCIe width, maximum", width_max}}, out);
  }
  const double most = gpu.last(Metric::kPcieGenerationMax);
  double best = 0, loaded = 0;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double generation = gpu.at(i, Metric::kPcieGeneration);
    const double utilisation = gpu.at(i, Metric::kGpuUtilisation);
    if (std::isnan(generation) || !(utilisation >= 0.5)) continue;
    best = std::max(best, generation);
    ++loaded;
  }
  if (loaded > 0 && best > 0 && best < most) {
    add_fault({fmt::format("The PCIe link of {} runs at generation {:.0f} of {:.0f}", time.name,
                           best, most),
               "Reseat the GPU or its riser; check the BIOS setting of the slot and AER errors.",
               Confidence::kHigh, true},
              time, fmt::format("Under load, in {:.0f} samples, it never ran faster.", loaded),
              {{"PCIe generation", best}, {"PCIe generation, maximum", most}}, out);
  }
}

// DCGM keeps the last XID for ever: one that was there from the first sample may be weeks old, and
// only one that appears while we look is news.
void xid_faults(const GpuSeries& gpu, const GpuTime& time, Analysis& out) {
  double before = std::nan("");
  std::vector<int> seen;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double xid = gpu.at(i, Metric::kXid);
    if (std::isnan(xid)) continue;
    if (!std::isnan(before) && xid != before && xid > 0) seen.push_back(static_cast<int>(xid));
    before = xid;
  }
  for (const int code : seen) {
    const XidInfo* info = find_xid(code);
    if (info == nullptr || !must_drain(*info, true, "")) {
      out.notes.push_back(fmt::format("{}: XID {} ({})", time.name, code,
                                      info != nullptr ? info->what : "not in the catalog"));
      continue;
    }
    add_fault({fmt::format("{}: XID {}, {}", time.name, code, info->what), info->action,
               info->confidence, true},
              time, "It appeared while the GPU was watched. The node must be drained.",
              {{"XID", static_cast<double>(code)}}, out);
  }
  if (!seen.empty() || std::isnan(before) || !(before > 0)) return;
  const XidInfo* info = find_xid(static_cast<int>(before));
  const bool serious = info != nullptr && must_drain(*info, true, "");
  const std::string text =
      fmt::format("{}: the last XID is {:.0f} ({}), at an unknown time", time.name, before,
                  info != nullptr ? info->what : "not in the catalog");
  if (serious) {
    out.open.push_back({text + "; it may be old", "the kernel log of the node"});
  } else {
    out.notes.push_back(text);
  }
}

void recovery_faults(const GpuSeries& gpu, const GpuTime& time, Analysis& out) {
  const double action = gpu.last(Metric::kRecoveryAction);
  if (std::isnan(action) || !(action > 0)) return;
  const char* what = action == 1   ? "a reset"
                     : action == 2 ? "a reboot of the node"
                     : action == 3 ? "peer-to-peer work to be drained"
                                   : "a drain and a reset";
  add_fault({fmt::format("The driver asks for {} of {}", what, time.name),
             "Drain the node, do what the driver asks for (nvidia-smi -q, `GPU Recovery Action`), "
             "and look for the XID that came before.",
             Confidence::kHigh, true},
            time, "The GPU is in a state that it does not leave by itself.",
            {{"recovery action", action}}, out);
}

// --- work -------------------------------------------------------------------------------------

// Of 150 published dense bf16 pre-training runs (data/training_runs.csv) the lower quartile of the
// MFU is 34.7 %, the median 42.7 %: what a run can be brought to without a miracle.
constexpr double kOrdinaryWork = 0.347;
constexpr double kBusyUtilisation = 0.9;  // the dashboard looks fine
constexpr double kLittleTensor = 0.2;     // less than half the published median

enum class Idling { kMemory, kLaunch, kVector };

// Which of them it is. DRAM traffic near its practical peak says memory. SMs without warps say that
// kernels are small or far apart. SMs that are full without tensor work or traffic compute on the
// vector pipes.
Idling kind_of(const GpuTime& time, const GpuSeries& gpu, Confidence& confidence) {
  constexpr double kBusyDram = 0.5, kEmptySm = 0.5, kBusyFp32 = 0.3;
  confidence = Confidence::kMedium;
  if (time.dram && *time.dram >= kBusyDram) return Idling::kMemory;
  if (time.fp32 && *time.fp32 >= kBusyFp32) return Idling::kVector;
  if (time.sm && *time.sm < kEmptySm) return Idling::kLaunch;
  if (time.sm && time.dram) return Idling::kVector;
  // Neither is known. An empty chip draws little.
  confidence = Confidence::kLow;
  const double power = gpu.largest(Metric::kPowerW), limit = gpu.last(Metric::kPowerLimitW);
  const bool cool = !std::isnan(power) && !std::isnan(limit) && power < 0.5 * limit;
  return cool ? Idling::kLaunch : Idling::kMemory;
}

std::string percent(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.0f} %", 100 * *ratio) : "-";
}

Finding work_finding(Idling kind, const std::vector<const GpuTime*>& times) {
  Finding finding;
  double share = 0, seconds = 0, tensor = 0, utilisation = 0;
  Evidence evidence;
  evidence.title = "what the GPUs did while they were busy";
  evidence.file = times.front()->file;
  evidence.columns = {"GPU", "utilisation", "tensor", "SM", "DRAM", "OFU"};
  for (const GpuTime* time : times) {
    const double used = time->ofu.value_or(*time->tensor);
    share += std::clamp(1 - used / kOrdinaryWork, 0.0, 1.0);
    seconds += time->timed ? time->busy.v : 0;
    tensor += *time->tensor;
    utilisation += *time->utilisation;
    finding.where.push_back(time->name);
    if (evidence.rows.size() < kEvidenceRows) {
      evidence.rows.push_back({time->name, percent(time->utilisation), percent(time->tensor),
                               percent(time->sm), percent(time->dram), percent(time->ofu)});
    }
  }
  const double n = static_cast<double>(times.size());
  finding.share = share / n;
  finding.gain = Seconds(seconds / n * finding.share);
  finding.cause = kind == Idling::kMemory   ? Cause::kMemoryBound
                  : kind == Idling::kLaunch ? Cause::kLaunchBound
                                            : Cause::kNoTensorCores;
  finding.title = fmt::format("Utilisation of {:.0f} %, but tensor cores are active for {:.0f} %",
                              100 * utilisation / n, 100 * tensor / n);
  const bool seen = std::any_of(times.begin(), times.end(),
                                [](const GpuTime* time) { return time->dram.has_value(); });
  const char* why = kind == Idling::kMemory && !seen
                        ? "Nothing here says how busy memory was (DCGM field 1005 would); its "
                          "traffic is the likeliest reason."
                    : kind == Idling::kMemory ? "Memory traffic fills the time."
                    : kind == Idling::kLaunch
                        ? "Most SMs are empty: kernels are small, or wait for the host or a peer."
                        : "SMs are full without tensor work: arithmetic runs on the vector pipes.";
  finding.detail = fmt::format(
      "Utilisation says that a kernel was resident, not that it worked. {} The gain is what lies "
      "between this and an ordinary training run ({:.0f} % of peak), so it is an upper bound.",
      why, 100 * kOrdinaryWork);
  finding.fix = kind == Idling::kMemory
                    ? "Fuse element-wise operations (torch.compile), use fused attention and "
                      "optimizer, larger batches; in decoding, batch more requests."
                : kind == Idling::kLaunch
                    ? "Take a profiler trace of a few steps; torch.compile or CUDA graphs, larger "
                      "micro-batches."
                    : "Use bf16 autocast, or torch.set_float32_matmul_precision('high'), and take "
                      "a profiler trace to see which kernels run.";
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

// From which sample on a GPU spins: a kernel is resident, nothing else moves, and before that it
// worked. size() when it does not.
size_t spins_since(const GpuSeries& gpu) {
  size_t i = gpu.size();
  while (i > 0) {
    const double utilisation = gpu.at(i - 1, Metric::kGpuUtilisation);
    const double tensor = gpu.at(i - 1, Metric::kTensorActive);
    const double dram = gpu.at(i - 1, Metric::kDramActive);
    const bool spinning = utilisation >= 0.99 && tensor <= 0.005 && dram <= 0.02;
    if (!spinning) break;
    --i;
  }
  return i;
}

void add_hang(const std::vector<const GpuSeries*>& series, const std::vector<GpuTime>& times,
              Analysis& out) {
  constexpr double kStuckS = 300;  // longer than checkpoints and evaluations keep all pipes empty
  Finding finding;
  Evidence evidence;
  evidence.title = "GPUs that are busy without doing anything";
  evidence.columns = {"GPU", "for"};
  double longest = 0;
  for (size_t k = 0; k < series.size(); ++k) {
    const GpuSeries& gpu = *series[k];
    const size_t since = spins_since(gpu);
    const bool worked = gpu.largest(Metric::kTensorActive) > 0.05;
    if (since >= gpu.size() || since == 0 || !worked || !times[k].timed) continue;
    const double stuck = gpu.at_s.back() - gpu.at_s[since];
    if (stuck < kStuckS) continue;
    longest = std::max(longest, stuck);
    finding.where.push_back(times[k].name);
    evidence.file = times[k].file;
    evidence.rows.push_back({times[k].name, fmt::format("{:.0f} s", stuck)});
  }
  if (finding.where.empty()) return;
  finding.cause = Cause::kHang;
  finding.title = fmt::format("{} GPUs spin without working", finding.where.size());
  finding.detail = fmt::format(
      "For {:.0f} s, to the end of the record, a kernel is resident while tensor cores and memory "
      "stand still: ranks that wait inside a collective for one that does not come.",
      longest);
  finding.fix =
      "Dump the NCCL Flight Recorder of every rank (TORCH_NCCL_TRACE_BUFFER_SIZE=2000, "
      "TORCH_NCCL_DUMP_ON_TIMEOUT=1) and give the dumps to assay diagnose.";
  finding.confidence = Confidence::kMedium;
  finding.urgent = true;
  finding.gain = Seconds(longest);
  finding.evidence.push_back(std::move(evidence));
  out.findings.push_back(std::move(finding));
}

void add_ofu(const std::vector<GpuTime>& times, const HardwareContext& context, Analysis& out) {
  double sum = 0, n = 0;
  for (const GpuTime& time : times) {
    if (!time.ofu || !(time.busy.v > 0)) continue;
    sum += *time.ofu;
    ++n;
  }
  if (n == 0) return;
  const double ofu = sum / n;
  out.notes.push_back(fmt::format(
      "OFU (tensor activity x clock / maximum clock) is {:.1f} % over {:.0f} GPUs", 100 * ofu, n));
  if (!context.mfu) return;
  // NVIDIA's OFU paper (arXiv 2605.20799): within 2 points of the MFU on matmuls.
  constexpr double kPoints = 0.05;
  if (*context.mfu > ofu + kPoints) {
    out.open.push_back(
        {fmt::format("an MFU of {:.1f} % is more than the tensor cores did ({:.1f} %): the FLOP "
                     "count or the peak is wrong",
                     100 * *context.mfu, 100 * ofu),
         "the formula of the trainer's FLOP count, and the precision of its peak"});
  } else if (*context.mfu < ofu - kPoints) {
    out.notes.push_back(fmt::format(
        "tensor cores did {:.1f} % of peak, the model's FLOPs are {:.1f} %: the difference is "
        "recomputation, padding, or idle experts",
        100 * ofu, 100 * *context.mfu));
  }
}

}  // namespace

void add_faults(const std::vector<const GpuSeries*>& series, const std::vector<GpuTime>& times,
                Analysis& out) {
  for (size_t i = 0; i < series.size(); ++i) {
    memory_faults(*series[i], times[i], out);
    link_faults(*series[i], times[i], out);
    recovery_faults(*series[i], times[i], out);
    xid_faults(*series[i], times[i], out);
  }
}

// Chips at their power cap differ by a few percent from each other by nature; that is why a suspect
// must also lie outside the scatter of its peers.
void add_slow_peers(const std::vector<const GpuSeries*>& series, const std::vector<GpuTime>& times,
                    Analysis& out) {
  std::map<std::string, std::vector<size_t>> by_model;
  for (size_t i = 0; i < series.size(); ++i) {
    const bool busy = times[i].busy.v > 0.5 * times[i].observed.v;
    if (busy && times[i].clock_mhz > 0) by_model[times[i].model].push_back(i);
  }
  for (const auto& [model, indices] : by_model) {
    std::vector<FleetMember> members;
    for (const size_t i : indices) members.push_back({times[i].name, times[i].clock_mhz});
    const FleetVerdict verdict = judge_fleet(members);
    for (const size_t k : verdict.suspects) {
      const GpuTime& time = times[indices[k]];
      const bool named =
          std::any_of(out.findings.begin(), out.findings.end(), [&](const Finding& f) {
            const bool clocks =
                f.cause == Cause::kThermalThrottle || f.cause == Cause::kPowerThrottle;
            return clocks && std::find(f.where.begin(), f.where.end(), time.name) != f.where.end();
          });
      if (named) continue;
      Finding finding;
      finding.cause = Cause::kStraggler;
      finding.share = 1 - time.clock_mhz / verdict.median;
      if (time.timed) finding.gain = time.busy * finding.share;
      finding.title =
          fmt::format("{} runs {:.1f} % slower than its peers", time.name, 100 * finding.share);
      finding.detail = fmt::format(
          "{:.0f} MHz while busy; the median of {} GPUs of its kind is {:.0f} MHz. A synchronous "
          "job goes at the speed of its slowest GPU.",
          time.clock_mhz, members.size(), verdict.median);
      finding.fix =
          "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE on it and on a peer; "
          "exchange the node for a spare and run dcgmi diag -r 3.";
      finding.where = {time.name};
      finding.confidence = Confidence::kMedium;
      Evidence evidence{"", "mean clocks while busy", time.file, {"GPU", "MHz"}, {}};
      for (const FleetMember& member : members) {
        if (evidence.rows.size() >= kEvidenceRows) break;
        evidence.rows.push_back({member.name, fmt::format("{:.0f}", member.value)});
      }
      finding.evidence.push_back(std::move(evidence));
      out.findings.push_back(std::move(finding));
    }
  }
}

void add_work(const std::vector<const GpuSeries*>& series, const std::vector<GpuTime>& times,
              const HardwareContext& context, Analysis& out) {
  const size_t before = out.findings.size();
  add_hang(series, times, out);
  const bool hangs = out.findings.size() > before;
  for (const Idling kind : {Idling::kMemory, Idling::kLaunch, Idling::kVector}) {
    std::vector<const GpuTime*> idle;
    Confidence confidence = Confidence::kMedium;
    for (size_t i = 0; i < series.size() && !hangs; ++i) {
      const GpuTime& time = times[i];
      if (!time.utilisation || *time.utilisation < kBusyUtilisation) continue;
      if (!time.tensor || *time.tensor >= kLittleTensor) continue;
      Confidence own = Confidence::kMedium;
      if (kind_of(time, *series[i], own) != kind) continue;
      idle.push_back(&time);
      confidence = own;
    }
    if (idle.empty()) continue;
    out.findings.push_back(work_finding(kind, idle));
    out.findings.back().confidence = confidence;
  }
  add_ofu(times, context, out);
}

}  // namespace assay
