#include "diagnose/hardware.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/assert.h"
#include "diagnose/gpu_faults.h"
#include "diagnose/robust.h"
#include "world/catalog.h"

namespace assay {
namespace {

// --- time -------------------------------------------------------------------------------------

// What each sample stands for: the time to the next one, but no more than a few usual intervals,
// because a gap in the log is not time that was seen.
std::vector<double> weights_of(const GpuSeries& gpu, bool& timed) {
  constexpr double kLongGap = 5;  // usual intervals
  const size_t n = gpu.size();
  std::vector<double> steps;
  for (size_t i = 1; i < n; ++i) {
    const double step = gpu.at_s[i] - gpu.at_s[i - 1];
    if (step > 0) steps.push_back(step);
  }
  timed = n > 1 && !steps.empty() && gpu.at_s[0] > 0;
  if (!timed) return std::vector<double>(n, 1.0);
  const double usual = median_of(steps);
  std::vector<double> weights(n, usual);
  for (size_t i = 0; i + 1 < n; ++i) {
    weights[i] = std::min(gpu.at_s[i + 1] - gpu.at_s[i], kLongGap * usual);
  }
  return weights;
}

unsigned reasons_at(const GpuSeries& gpu, size_t i) {
  const double mask = gpu.at(i, Metric::kThrottleReasons);
  return std::isnan(mask) || mask < 0 || mask > 1e9 ? 0 : static_cast<unsigned>(mask);
}

// The share of a sample in which the GPU was busy.
double busy_at(const GpuSeries& gpu, size_t i) {
  if ((reasons_at(gpu, i) & kReasonIdle) != 0) return 0;
  const double utilisation = gpu.at(i, Metric::kGpuUtilisation);
  if (!std::isnan(utilisation)) return std::clamp(utilisation, 0.0, 1.0);
  const double engine = gpu.at(i, Metric::kEngineActive);
  if (!std::isnan(engine)) return std::clamp(engine, 0.0, 1.0);
  // Without either, a GPU that the driver does not call idle is busy.
  return gpu.has(Metric::kThrottleReasons) ? 1 : 0;
}

// What files say of the part rather than of the moment. A query log often lacks it, and an
// nvidia-smi -q of the same machine beside it has it: what all files that state it agree on holds
// for those that do not.
struct Part {
  double clock_max_mhz = 0;            // 0: not stated
  double limit_w = 0;                  // its own; 0: not stated
  double clock_seen_mhz = 0;           // the highest of any GPU
  const Accelerator* known = nullptr;  // of the catalog, or null
};

// The value that all series agree on; 0 when none states it or they differ.
double agreed(const std::vector<const GpuSeries*>& series, Metric metric) {
  double value = 0;
  for (const GpuSeries* gpu : series) {
    const double stated = gpu->last(metric);
    if (std::isnan(stated) || !(stated > 0)) continue;
    if (value > 0 && stated != value) return 0;
    value = stated;
  }
  return value;
}

Part common_part(const std::vector<const GpuSeries*>& series, const HardwareContext& context) {
  Part part;
  part.clock_max_mhz = agreed(series, Metric::kSmClockMaxMhz);
  part.limit_w = agreed(series, Metric::kPowerLimitDefaultW);
  if (!(part.limit_w > 0)) part.limit_w = agreed(series, Metric::kPowerLimitMaxW);
  std::string model;
  bool several = false;
  for (const GpuSeries* gpu : series) {
    const double seen = gpu->largest(Metric::kSmClockMhz);
    if (!std::isnan(seen)) part.clock_seen_mhz = std::max(part.clock_seen_mhz, seen);
    if (gpu->model.empty()) continue;
    several = several || (!model.empty() && model != gpu->model);
    model = gpu->model;
  }
  part.known = context.accelerator;
  if (part.known == nullptr && !model.empty()) part.known = find_accelerator(catalog(), model);
  if (several) part = Part{};  // no telling which is which
  return part;
}

Part part_of(const GpuSeries& gpu, const Part& common) {
  Part part = common;
  const double clock = gpu.last(Metric::kSmClockMaxMhz);
  const double limit = gpu.last(Metric::kPowerLimitDefaultW);
  const double most = gpu.last(Metric::kPowerLimitMaxW);
  const double seen = gpu.largest(Metric::kSmClockMhz);
  if (!gpu.model.empty()) {
    const Accelerator* known = find_accelerator(catalog(), gpu.model);
    if (known != nullptr) part.known = known;
  }
  if (!std::isnan(seen)) part.clock_seen_mhz = std::max(part.clock_seen_mhz, seen);
  if (clock > 0) part.clock_max_mhz = clock;
  if (most > 0 && !(part.limit_w > 0)) part.limit_w = most;
  if (limit > 0) part.limit_w = limit;
  if (!(part.limit_w > 0) && part.known != nullptr) part.limit_w = part.known->tdp.v;
  return part;
}

// Who takes the blame for a low clock. Several bits may be set: heat before power, because a
// hot chip also draws more, and the cap before the settings.
Seconds GpuTime::*blamed(unsigned reasons) {
  if ((reasons & (kReasonHwThermal | kReasonSwThermal)) != 0) return &GpuTime::lost_thermal;
  if ((reasons & kReasonPowerBrake) != 0) return &GpuTime::lost_power_brake;
  if ((reasons & kReasonHwSlowdown) != 0) return &GpuTime::lost_slowdown;
  if ((reasons & kReasonPowerCap) != 0) return &GpuTime::lost_power_cap;
  if ((reasons & (kReasonAppClocks | kReasonSyncBoost | kReasonDisplay)) != 0) {
    return &GpuTime::lost_setting;
  }
  return &GpuTime::lost_unexplained;
}

// The mean of a metric over samples weighted by the time in which the GPU was not idle.
std::optional<double> mean_of(const GpuSeries& gpu, Metric metric,
                              const std::vector<double>& weights) {
  double sum = 0, total = 0;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double value = gpu.at(i, metric);
    const double weight = busy_at(gpu, i) > 0 ? weights[i] : 0;
    if (std::isnan(value) || !(weight > 0)) continue;
    sum += value * weight;
    total += weight;
  }
  return total > 0 ? std::optional<double>(sum / total) : std::nullopt;
}

// Where the driver counts throttled time instead of saying why at each sample (DCGM 240, 241; the
// counters of nvidia-smi), what was lost without a reason is shared out by the counters.
void apportion(const GpuSeries& gpu, GpuTime& time) {
  const auto grown = [&](Metric metric) {
    const double first = gpu.smallest(metric), last = gpu.last(metric);
    return std::isnan(first) || std::isnan(last) || last < first ? 0 : last - first;
  };
  if (gpu.has(Metric::kThrottleReasons)) return;
  const double power = grown(Metric::kPowerViolationS);
  const double thermal = grown(Metric::kSwThermalViolationS) + grown(Metric::kHwThermalViolationS);
  const double brake = grown(Metric::kPowerBrakeS);
  const double total = power + thermal + brake;
  if (!(total > 0)) return;
  const Seconds lost = time.lost_unexplained;
  time.lost_power_cap += lost * (power / total);
  time.lost_thermal += lost * (thermal / total);
  time.lost_power_brake += lost * (brake / total);
  time.lost_unexplained = Seconds();
}

GpuTime time_of(const GpuSeries& gpu, const std::string& file, const Part& part) {
  GpuTime time;
  time.name = gpu.name();
  time.file = file;
  time.model = sanitize(gpu.model, 64);
  const std::vector<double> weights = weights_of(gpu, time.timed);
  time.samples = gpu.size();
  time.load_known = gpu.has(Metric::kThrottleReasons) || gpu.has(Metric::kGpuUtilisation) ||
                    gpu.has(Metric::kEngineActive);
  // The clock it could hold: the maximum it states, or the highest that was seen of its kind.
  time.clock_max_mhz = part.clock_max_mhz > 0 ? part.clock_max_mhz : part.clock_seen_mhz;
  double clock_sum = 0, clock_weight = 0, work = 0, work_weight = 0;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double busy = busy_at(gpu, i) * weights[i];
    time.observed += Seconds(weights[i]);
    time.busy += Seconds(busy);
    const double clock = gpu.at(i, Metric::kSmClockMhz);
    if (std::isnan(clock) || !(busy > 0) || !(time.clock_max_mhz > 0)) continue;
    clock_sum += clock * busy;
    clock_weight += busy;
    const double lost = std::clamp(1 - clock / time.clock_max_mhz, 0.0, 1.0);
    time.*blamed(reasons_at(gpu, i)) += Seconds(lost * busy);
    const double tensor = gpu.at(i, Metric::kTensorActive);
    if (std::isnan(tensor)) continue;
    work += tensor * clock / time.clock_max_mhz * weights[i];
    work_weight += weights[i];
  }
  time.idle = time.observed - time.busy;
  if (clock_weight > 0) time.clock_mhz = clock_sum / clock_weight;
  if (work_weight > 0) time.ofu = work / work_weight;
  time.utilisation = mean_of(gpu, Metric::kGpuUtilisation, weights);
  time.tensor = mean_of(gpu, Metric::kTensorActive, weights);
  time.sm = mean_of(gpu, Metric::kSmActive, weights);
  time.dram = mean_of(gpu, Metric::kDramActive, weights);
  time.fp32 = mean_of(gpu, Metric::kFp32Active, weights);
  apportion(gpu, time);
  return time;
}

// --- throttling -------------------------------------------------------------------------------

double share_of(Seconds lost, const GpuTime& time) {
  return time.busy.v > 0 ? lost / time.busy : 0;
}

std::string figure(double value, const char* unit) {
  return std::isnan(value) ? "-" : fmt::format("{:.0f} {}", value, unit);
}

struct Victim {
  const GpuTime* time;
  const GpuSeries* gpu;
  const Part* part;
  double share;  // of its busy time that could be won back
};

Evidence throttle_table(const std::vector<Victim>& victims) {
  Evidence out;
  out.title = "clocks, power and heat of the GPUs that are held down";
  out.file = victims.front().time->file;
  out.columns = {"GPU", "lost", "clock", "could hold", "power", "limit", "temperature", "memory"};
  for (const Victim& v : victims) {
    if (out.rows.size() >= kEvidenceRows) break;
    out.rows.push_back({v.time->name, fmt::format("{:.1f} %", 100 * v.share),
                        figure(v.time->clock_mhz, "MHz"), figure(v.time->clock_max_mhz, "MHz"),
                        figure(v.gpu->largest(Metric::kPowerW), "W"),
                        figure(v.gpu->last(Metric::kPowerLimitW), "W"),
                        figure(v.gpu->largest(Metric::kTemperatureC), "C"),
                        figure(v.gpu->largest(Metric::kMemoryTemperatureC), "C")});
  }
  return out;
}

// A job goes at the speed of its slowest GPU, so the worst one's loss is what a fix gives back.
Finding throttle_finding(Cause cause, std::vector<Victim> victims, size_t of) {
  std::stable_sort(victims.begin(), victims.end(),
                   [](const Victim& a, const Victim& b) { return a.share > b.share; });
  const Victim& worst = victims.front();
  Finding finding;
  finding.cause = cause;
  finding.share = worst.share;
  if (worst.time->timed) finding.gain = worst.time->busy * worst.share;
  for (const Victim& v : victims) finding.where.push_back(v.time->name);
  finding.detail = fmt::format(
      "{} of {} GPUs; the worst, {}, runs at {:.0f} MHz while busy (maximum {:.0f}) and would win "
      "{:.1f} % of that time. A synchronous job goes at the speed of its slowest GPU.",
      victims.size(), of, worst.time->name, worst.time->clock_mhz, worst.time->clock_max_mhz,
      100 * worst.share);
  finding.evidence.push_back(throttle_table(victims));
  return finding;
}

bool is_hot(const GpuSeries& gpu) {
  // Hopper states the distance to its limit; older parts slow down at 87 C and more (V100: from
  // memory), HBM at 95 C and more (docs/models/heat.md).
  const double margin = gpu.smallest(Metric::kTemperatureMarginC);
  const double core = gpu.largest(Metric::kTemperatureC);
  const double memory = gpu.largest(Metric::kMemoryTemperatureC);
  return (!std::isnan(margin) && margin <= 3) || (!std::isnan(core) && core >= 85) ||
         (!std::isnan(memory) && memory >= 95);
}

double exponent_of(const Part& part) {
  const Kernels* kernels =
      find_kernels(catalog(), part.known != nullptr ? part.known->architecture : "");
  ASSERT(kernels != nullptr);
  return kernels->power_exponent;
}

// The clock at another limit. Power above idle goes with the clock to the catalog's exponent
// (docs/models/clocks.md) down to where the voltage can fall no further, and with the clock itself
// below. On an H200 (test/data/telemetry/capped.csv) the exponent is 2.0 between 1677 and 1264 MHz
// and 1.07 between 1264 and 719 MHz, of 1980.
double clock_at(double clock, double raise, double clock_max, double exponent) {
  constexpr double kVoltageFloor = 0.62;  // of the maximum clock
  const double knee = kVoltageFloor * clock_max;
  double linear = clock * raise;  // the clock if power were in proportion to it
  if (linear <= knee) return linear;
  linear = std::max(clock, knee) * std::pow(linear / std::max(clock, knee), 1 / exponent);
  return std::min(linear, clock_max);
}

// Its draw at rest, by the least that was seen or the catalog.
double idle_power(const GpuSeries& gpu, const Part& part, double limit) {
  double idle = part.known != nullptr ? part.known->idle.v : 0;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double power = gpu.at(i, Metric::kPowerW);
    const double utilisation = gpu.at(i, Metric::kGpuUtilisation);
    if (power > 0 && utilisation < 0.01) idle = std::max(idle, std::min(power, 0.2 * part.limit_w));
  }
  return std::min(idle, 0.5 * limit);
}

// The clock that a GPU would hold if heat or a brake did not hold it down: that of its peers, or
// else what the power it does not draw would buy, up to the cap. Never the maximum alone: most jobs
// run at their power cap.
double unhindered_clock(const Victim& victim, const std::vector<Victim>& all) {
  std::vector<double> peers;
  for (const Victim& v : all) {
    const Seconds hindered =
        v.time->lost_thermal + v.time->lost_power_brake + v.time->lost_slowdown;
    const bool busy = v.time->busy.v > 0.5 * v.time->observed.v;
    const bool kin = v.time->model == victim.time->model && v.time->clock_mhz > 0;
    if (busy && kin && share_of(hindered, *v.time) < kWorthFixing) {
      peers.push_back(v.time->clock_mhz);
    }
  }
  if (!peers.empty()) return median_of(peers);
  std::vector<double> drawn, clocks;
  for (size_t i = 0; i < victim.gpu->size(); ++i) {
    if (busy_at(*victim.gpu, i) < 0.5) continue;
    const double power = victim.gpu->at(i, Metric::kPowerW);
    const double clock = victim.gpu->at(i, Metric::kSmClockMhz);
    if (!std::isnan(power)) drawn.push_back(power);
    if (!std::isnan(clock)) clocks.push_back(clock);
  }
  const double power = median_of(drawn), limit = victim.part->limit_w;
  if (!(power > 0) || !(limit > power)) return victim.time->clock_max_mhz;
  const double idle = idle_power(*victim.gpu, *victim.part, power);
  return clock_at(median_of(clocks), (limit - idle) / (power - idle), victim.time->clock_max_mhz,
                  exponent_of(*victim.part));
}

// What would come back of the time under these reasons, and under a bare hardware slow-down where
// that is of the same kind.
double recoverable(const Victim& victim, unsigned reasons, bool slowdown, double clock) {
  const GpuSeries& gpu = *victim.gpu;
  bool timed = true;
  const std::vector<double> weights = weights_of(gpu, timed);
  double lost = 0;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const unsigned active = reasons_at(gpu, i);
    const Seconds GpuTime::*blame = blamed(active);
    const bool bare = slowdown && blame == &GpuTime::lost_slowdown;
    const bool same = (active & reasons) != 0 && blame != &GpuTime::lost_slowdown &&
                      blame == blamed(active & reasons);
    const double now = gpu.at(i, Metric::kSmClockMhz);
    if ((!bare && !same) || std::isnan(now) || !(clock > 0)) continue;
    lost += std::max(0.0, 1 - now / clock) * busy_at(gpu, i) * weights[i];
  }
  return victim.time->busy.v > 0 ? lost / victim.time->busy.v : 0;
}

void add_thermal(const std::vector<Victim>& all, Analysis& out) {
  std::vector<Victim> hot;
  for (const Victim& v : all) {
    const bool slowdown = is_hot(*v.gpu);
    const Seconds lost = v.time->lost_thermal + (slowdown ? v.time->lost_slowdown : Seconds());
    if (share_of(lost, *v.time) < kWorthFixing) continue;
    // Counters instead of reasons say how much, not when.
    const double share = v.gpu->has(Metric::kThrottleReasons)
                             ? recoverable(v, kReasonHwThermal | kReasonSwThermal, slowdown,
                                           unhindered_clock(v, all))
                             : share_of(lost, *v.time);
    if (share >= kWorthFixing) hot.push_back({v.time, v.gpu, v.part, share});
  }
  if (hot.empty()) return;
  Finding finding = throttle_finding(Cause::kThermalThrottle, hot, all.size());
  finding.title = hot.size() == 1 ? hot[0].time->name + " is throttled by heat"
                                  : fmt::format("{} GPUs are throttled by heat", hot.size());
  finding.confidence =
      std::any_of(hot.begin(), hot.end(), [](const Victim& v) { return is_hot(*v.gpu); })
          ? Confidence::kHigh
          : Confidence::kMedium;
  finding.fix =
      "nvidia-smi -q -d TEMPERATURE,PERFORMANCE on the node. One hot GPU among cool peers: heat "
      "sink, fan or cold plate. All of them: inlet temperature, fan speed, coolant flow.";
  out.findings.push_back(std::move(finding));
}

void add_power_brake(const std::vector<Victim>& all, Analysis& out) {
  std::vector<Victim> braked;
  for (const Victim& v : all) {
    const bool slowdown = !is_hot(*v.gpu);
    const Seconds lost = v.time->lost_power_brake + (slowdown ? v.time->lost_slowdown : Seconds());
    if (share_of(lost, *v.time) < kWorthFixing) continue;
    const double share = v.gpu->has(Metric::kThrottleReasons)
                             ? recoverable(v, kReasonPowerBrake, slowdown, unhindered_clock(v, all))
                             : share_of(lost, *v.time);
    if (share >= kWorthFixing) braked.push_back({v.time, v.gpu, v.part, share});
  }
  if (braked.empty()) return;
  Finding finding = throttle_finding(Cause::kPowerThrottle, braked, all.size());
  const bool sure = std::any_of(braked.begin(), braked.end(),
                                [](const Victim& v) { return v.time->lost_power_brake.v > 0; });
  finding.title = sure ? "The power supply brakes the GPUs" : "The hardware slows the GPUs down";
  finding.confidence = sure ? Confidence::kHigh : Confidence::kLow;
  finding.fix =
      "The board is told from outside to slow down: check the power supplies (a failed one, a "
      "redundancy setting), the rack's power cap (ipmitool dcmi power get_limit) and the PDU.";
  out.findings.push_back(std::move(finding));
}

// What a power limit below the part's own costs: the time that is lost against the clock the part
// would hold at its own limit.
struct LoweredLimit {
  double limit = 0, own = 0;  // W; the limit that costs most, where it was changed on the way
  double share = 0;           // of the busy time
};

// The limit in force where no column states it: what the GPU draws while it is held at the cap.
double limit_by_draw(const GpuSeries& gpu) {
  constexpr size_t kEnough = 20;  // samples; on an H200 their median is within 2 % of the limit
  std::vector<double> drawn;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double power = gpu.at(i, Metric::kPowerW);
    if (!std::isnan(power) && (reasons_at(gpu, i) & kReasonPowerCap) != 0) drawn.push_back(power);
  }
  return drawn.size() < kEnough ? 0 : median_of(drawn);
}

std::optional<LoweredLimit> lowered_limit(const GpuSeries& gpu, const GpuTime& time,
                                          const Part& part) {
  if (!(part.limit_w > 0) || !(time.lost_power_cap.v > 0)) return std::nullopt;
  const bool stated = gpu.has(Metric::kPowerLimitW);
  const double drawn = stated ? 0 : limit_by_draw(gpu);
  // Stated limits are rounded to a few watts; drawn power scatters.
  const double below = (stated ? 0.98 : 0.93) * part.limit_w;
  struct Held {
    double busy = 0, clock = 0;  // s, MHz s
  };
  std::map<double, Held> by_limit;
  bool timed = true;
  const std::vector<double> weights = weights_of(gpu, timed);
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double limit = stated ? gpu.at(i, Metric::kPowerLimitW) : drawn;
    const double clock = gpu.at(i, Metric::kSmClockMhz);
    const double busy = busy_at(gpu, i) * weights[i];
    const bool capped = (reasons_at(gpu, i) & kReasonPowerCap) != 0;
    if (!capped || !(limit > 0) || limit >= below || std::isnan(clock) || !(busy > 0)) continue;
    by_limit[limit].busy += busy;
    by_limit[limit].clock += clock * busy;
  }
  LoweredLimit out;
  out.own = part.limit_w;
  double worst = 0;
  for (const auto& [limit, held] : by_limit) {
    const double idle = idle_power(gpu, part, limit);
    const double clock = held.clock / held.busy;
    const double after = clock_at(clock, (part.limit_w - idle) / (limit - idle), time.clock_max_mhz,
                                  exponent_of(part));
    const double lost = after > clock ? held.busy * (1 - clock / after) : 0;
    out.share += lost / time.busy.v;
    if (lost >= worst) out.limit = limit;
    worst = std::max(worst, lost);
  }
  return out;
}

void add_lowered_limit(const std::vector<Victim>& all, Analysis& out) {
  std::vector<Victim> capped;
  LoweredLimit worst;
  for (const Victim& v : all) {
    const std::optional<LoweredLimit> lowered = lowered_limit(*v.gpu, *v.time, *v.part);
    if (!lowered || lowered->share < kWorthFixing) continue;
    capped.push_back({v.time, v.gpu, v.part, lowered->share});
    if (lowered->share > worst.share) worst = *lowered;
  }
  if (capped.empty()) return;
  Finding finding = throttle_finding(Cause::kPowerThrottle, capped, all.size());
  finding.title = fmt::format("The power limit is set to {:.0f} W, the part's own is {:.0f} W",
                              worst.limit, worst.own);
  finding.confidence = Confidence::kHigh;
  finding.fix = fmt::format(
      "nvidia-smi -pl {:.0f} on the node, if its power and cooling allow it; or keep the limit and "
      "count the loss as the price of the saved power.",
      worst.own);
  out.findings.push_back(std::move(finding));
}

// Clocks that never move while the GPU is busy, far below what it could hold, were locked.
bool is_locked(const GpuSeries& gpu, const GpuTime& time, const Part& part) {
  constexpr double kStepMhz = 15;  // NVIDIA's clocks move in steps of 15 MHz
  constexpr double kFar = 0.1;     // some parts never reach the maximum they state
  if (!(part.clock_max_mhz > 0)) return false;
  if (share_of(time.lost_setting + time.lost_unexplained, time) < kFar) return false;
  std::vector<double> clocks;
  for (size_t i = 0; i < gpu.size(); ++i) {
    const double clock = gpu.at(i, Metric::kSmClockMhz);
    if (!std::isnan(clock) && busy_at(gpu, i) >= 0.5) clocks.push_back(clock);
  }
  constexpr size_t kEnough = 10;
  return clocks.size() >= kEnough &&
         quantile_of(clocks, 0.9) - quantile_of(clocks, 0.1) <= kStepMhz;
}

void add_setting(const std::vector<Victim>& all, Analysis& out) {
  std::vector<Victim> held;
  for (const Victim& v : all) {
    const double asked = v.gpu->last(Metric::kAppClockMhz);
    const bool below = !std::isnan(asked) && asked < 0.97 * v.time->clock_max_mhz;
    const double share = share_of(v.time->lost_setting, *v.time);
    if (below && share >= kWorthFixing) {
      held.push_back({v.time, v.gpu, v.part, share});
    } else if (is_locked(*v.gpu, *v.time, *v.part)) {
      const double locked = share_of(v.time->lost_setting + v.time->lost_unexplained, *v.time);
      held.push_back({v.time, v.gpu, v.part, locked});
    }
  }
  if (held.empty()) return;
  Finding finding = throttle_finding(Cause::kPowerThrottle, held, all.size());
  finding.title = "Clocks are set below the maximum";
  finding.confidence = Confidence::kMedium;
  finding.fix = "nvidia-smi -rac and -rgc, if nobody set the clocks on purpose.";
  out.findings.push_back(std::move(finding));
}

void add_notes(const std::vector<Victim>& all, Analysis& out) {
  size_t capped = 0, unexplained = 0;
  double cap_share = 0, unexplained_share = 0;
  for (const Victim& v : all) {
    const double cap = share_of(v.time->lost_power_cap, *v.time);
    const bool locked = is_locked(*v.gpu, *v.time, *v.part);
    const double open = locked ? 0 : share_of(v.time->lost_unexplained, *v.time);
    if (cap >= 0.005) ++capped;
    if (open >= kWorthFixing) ++unexplained;
    cap_share = std::max(cap_share, cap);
    unexplained_share = std::max(unexplained_share, open);
  }
  if (capped > 0) {
    out.notes.push_back(fmt::format(
        "{} of {} GPUs run at their power cap; it costs up to {:.1f} % of the busy time", capped,
        all.size(), 100 * cap_share));
  }
  if (unexplained > 0) {
    out.open.push_back(
        {fmt::format("{} GPUs run up to {:.1f} % below their highest clock while busy, and the "
                     "driver gives no reason",
                     unexplained, 100 * unexplained_share),
         "clocks_event_reasons.active and clocks.max.sm in the query log (DCGM fields 112, 113)"});
  }
}

ClockAccount account_of(const std::vector<GpuTime>& gpus) {
  ClockAccount mean;
  for (const GpuTime& t : gpus) {
    const double n = static_cast<double>(gpus.size());
    const Seconds thermal = t.lost_thermal + t.lost_slowdown;
    const Seconds cap = t.lost_power_cap + t.lost_setting;
    mean.observed += t.observed / n;
    mean.running += (t.busy - cap - thermal - t.lost_power_brake) / n;
    mean.power_cap += cap / n;
    mean.thermal += thermal / n;
    mean.facility_cap += t.lost_power_brake / n;
    mean.idle += t.idle / n;
  }
  return mean;
}

}  // namespace

HardwareDiagnosis diagnose_telemetry(const std::vector<Telemetry>& files,
                                     const HardwareContext& context) {
  HardwareDiagnosis out;
  std::vector<const GpuSeries*> series;
  std::vector<const Telemetry*> of;
  for (const Telemetry& file : files) {
    for (const GpuSeries& gpu : file.gpus) {
      if (gpu.size() == 0) continue;
      series.push_back(&gpu);
      of.push_back(&file);
    }
  }
  if (series.empty()) return out;
  const Part common = common_part(series, context);
  std::vector<Part> parts;
  for (size_t i = 0; i < series.size(); ++i) {
    parts.push_back(part_of(*series[i], common));
    out.gpus.push_back(time_of(*series[i], of[i]->file, parts[i]));
  }
  std::vector<Victim> all;
  for (size_t i = 0; i < series.size(); ++i) all.push_back({&out.gpus[i], series[i], &parts[i], 0});
  add_thermal(all, out.analysis);
  add_power_brake(all, out.analysis);
  add_lowered_limit(all, out.analysis);
  add_setting(all, out.analysis);
  add_notes(all, out.analysis);
  add_faults(series, out.gpus, out.analysis);
  add_work(series, out.gpus, context, out.analysis);
  add_slow_peers(series, out.gpus, out.analysis);
  out.clocks = account_of(out.gpus);
  return out;
}

}  // namespace assay
