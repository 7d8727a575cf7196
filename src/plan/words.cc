#include "plan/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace assay {
namespace {

struct Unit {
  double size;
  std::string_view name;
};

// The largest unit that leaves at least one before the point; the last one otherwise. A value that
// would round up to 1000 of a unit moves on to the next.
template <size_t N>
Unit unit_for(double value, const std::array<Unit, N>& units) {
  for (const Unit& u : units) {
    if (std::abs(value) >= u.size * 0.9995) return u;
  }
  return units.back();
}

constexpr std::array<Unit, 5> kPlain{
    {{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}, {1, ""}}};
constexpr std::array<Unit, 4> kPower{{{1e9, " GW"}, {1e6, " MW"}, {1e3, " kW"}, {1, " W"}}};
constexpr std::array<Unit, 4> kMoney{{{1e9, " B"}, {1e6, " M"}, {1e3, " k"}, {1, ""}}};
constexpr std::array<Unit, 3> kSeconds{{{1, " s"}, {1e-3, " ms"}, {1e-6, " us"}}};
constexpr std::array<Unit, 5> kDuration{
    {{730 * 86400.0, " years"}, {86400, " days"}, {3600, " hours"}, {60, " min"}, {1, " s"}}};
constexpr std::array<Unit, 4> kEnergy{{{1e6, " GWh"}, {1e3, " MWh"}, {1, " kWh"}, {1e-3, " Wh"}}};
constexpr std::array<Unit, 3> kBandwidth{{{1e12, " TB/s"}, {1e9, " GB/s"}, {1e6, " MB/s"}}};

// Years start to be used at two of them, but count in ones.
double divisor(const Unit& u) { return u.size == 730 * 86400.0 ? 365 * 86400.0 : u.size; }

std::string with_unit(double value, const Unit& u) {
  return significant(value / divisor(u)) + std::string(u.name);
}

std::string ends(double low, double high, double size) {
  return fmt::format("({}-{})", significant(low / size, 2), significant(high / size, 2));
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string grouped(std::string digits) {
  const size_t point = std::min(digits.find('.'), digits.size());
  for (size_t i = point; i > 3 && digits[i - 4] != '-'; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double step = std::pow(10.0, magnitude - digits + 1);
  const double rounded = std::round(value / step) * step;
  const int magnitude_rounded = static_cast<int>(std::floor(std::log10(std::abs(rounded)) + 1e-9));
  const int decimals = std::clamp(digits - 1 - magnitude_rounded, 0, 12);
  return grouped(fmt::format("{:.{}f}", rounded, decimals));
}

std::string scaled(double value) { return with_unit(value, unit_for(value, kPlain)); }
std::string watts(double w) { return with_unit(w, unit_for(w, kPower)); }
std::string count(int64_t value) { return grouped(fmt::format("{}", value)); }
std::string percent(double fraction) { return significant(fraction * 100) + " %"; }

std::string signed_percent(double fraction) {
  const double value = fraction * 100;
  const int decimals = std::abs(value) < 9.95 ? 1 : 0;
  return fmt::format("{:+.{}f} %", value, decimals);
}

std::string points(double fraction) {
  const std::string text = fmt::format("{:+.1f}", fraction * 100);
  return text == "-0.0" ? "+0.0" : text;
}
std::string seconds(double s) { return with_unit(s, unit_for(s, kSeconds)); }
std::string duration(double s) { return with_unit(s, unit_for(s, kDuration)); }

std::string dollars(double usd) {
  const std::string text = with_unit(std::abs(usd), unit_for(usd, kMoney));
  return (usd < 0 ? "-$" : "$") + text;
}

std::string signed_dollars(double usd) { return (usd < 0 ? "" : "+") + dollars(usd); }
std::string energy(double kwh) { return with_unit(kwh, unit_for(kwh, kEnergy)); }
std::string gibibytes(double bytes) { return significant(bytes / kGiB.v) + " GiB"; }
std::string bandwidth(double bytes_per_s) {
  return with_unit(bytes_per_s, unit_for(bytes_per_s, kBandwidth));
}

std::string seconds_range(const Interval& r) {
  return ends(r.low, r.high, unit_for(r.value, kSeconds).size);
}
std::string duration_range(const Interval& r) {
  return ends(r.low, r.high, divisor(unit_for(r.value, kDuration)));
}
std::string dollars_range(const Interval& r) {
  return ends(r.low, r.high, unit_for(r.value, kMoney).size);
}
std::string energy_range(const Interval& r) {
  return ends(r.low, r.high, unit_for(r.value, kEnergy).size);
}
std::string percent_range(const Interval& r) { return ends(r.low, r.high, 0.01); }
std::string scaled_range(const Interval& r) {
  return ends(r.low, r.high, unit_for(r.value, kPlain).size);
}
std::string gibibytes_range(const Interval& r) { return ends(r.low, r.high, kGiB.v); }
std::string plain_range(const Interval& r) { return ends(r.low, r.high, 1); }

std::string recompute_words(const Plan& p) {
  if (p.recompute == Recompute::kNone || p.recompute_layers <= 0) return "none";
  std::string words(enum_names(p.recompute)[static_cast<size_t>(p.recompute)]);
  if (p.recompute_layers < 1)
    words += fmt::format(" on {:.0f} % of layers", p.recompute_layers * 100);
  return words;
}

std::string layout(const Plan& p, int64_t dp, const std::string& gap) {
  std::string pipeline = fmt::format("PP {}", p.pp);
  if (p.vpp > 1) pipeline += fmt::format(" (interleaved x{})", p.vpp);
  if (p.pp > 1 && p.vpp <= 1 && p.schedule != Schedule::kOneFOneB)
    pipeline += fmt::format(" ({})", enum_names(p.schedule)[static_cast<size_t>(p.schedule)]);
  std::vector<std::string> items{fmt::format("TP {}", p.tp)};
  if (p.pp > 1 || p.zero < 3) items.push_back(pipeline);
  if (p.cp > 1) {
    const std::string_view kind = enum_names(p.context)[static_cast<size_t>(p.context)];
    const bool ring = p.context == ContextKind::kRing;
    items.push_back(fmt::format("CP {}{}", p.cp, ring ? "" : fmt::format(" ({})", kind)));
  }
  if (p.ep > 1) items.push_back(fmt::format("EP {}", p.ep));
  if (p.ep > 1 && p.etp > 0 && p.etp != p.tp) items.push_back(fmt::format("ETP {}", p.etp));
  items.push_back(fmt::format("{} {}", p.zero >= 3 ? "FSDP" : "DP", dp));
  items.push_back(fmt::format("micro-batch {}", p.micro_batch));
  items.push_back("recompute: " + recompute_words(p));
  return fmt::format("{}", fmt::join(items, gap));
}

std::string policy(const Plan& p, int64_t dp) {
  std::vector<std::string> items{upper(enum_names(p.precision)[static_cast<size_t>(p.precision)])};
  if (p.zero >= 1) items.push_back(fmt::format("ZeRO-{}", p.zero));
  if (p.zero >= 1 && p.sharding_group > 0) {
    items.push_back(fmt::format("sharded over {} ranks", p.sharding_group));
  }
  if (p.tp > 1 && p.sequence_parallel) items.push_back("sequence parallel");
  if (p.overlap_grad && dp * p.cp > 1) items.push_back("overlapped gradient reduction");
  if (p.zero >= 3 && !p.overlap_param) items.push_back("gathers not overlapped");
  if (p.overlap_tp && p.tp > 1) items.push_back("overlapped tensor traffic");
  if (p.overlap_expert && p.ep > 1) items.push_back("overlapped expert traffic");
  if (p.expert_skew == 1 && p.ep > 1) items.push_back("experts balanced by force");
  if (p.expert_skew > 1) items.push_back(fmt::format("busiest experts x{:g}", p.expert_skew));
  if (p.expert_capacity > 0)
    items.push_back(fmt::format("expert capacity {:g}", p.expert_capacity));
  if (p.compiled) items.push_back("compiled");
  if (p.cuda_graphs) items.push_back("CUDA graphs");
  if (!p.flash_attention) items.push_back("unfused attention");
  if (p.offload_parameters > 0) items.push_back("weights on the host");
  if (p.offload_optimizer > 0) items.push_back("optimizer on the host");
  if (p.offload_activations > 0) items.push_back("activations parked on the host");
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string account_name(Account a) {
  const AccountInfo& about = info(a);
  if (about.name.empty()) return std::string(about.group);
  return fmt::format("{}: {}", about.group, about.name);
}

std::string account_phrase(Account a) {
  switch (a) {
    case Account::kMatmul:
      return "matmuls below peak";
    case Account::kAttention:
      return "attention below peak";
    case Account::kMemoryBound:
      return "memory-bound kernels";
    case Account::kOptimizer:
      return "the optimizer step";
    case Account::kRecompute:
      return "recompute";
    case Account::kPowerCap:
      return "the power cap";
    case Account::kThermal:
      return "heat";
    case Account::kFacilityCap:
      return "the facility's power";
    case Account::kCommTensor:
      return "tensor-parallel traffic";
    case Account::kCommContext:
      return "context-parallel traffic";
    case Account::kCommExpert:
      return "expert traffic";
    case Account::kCommParam:
      return "gathering sharded weights";
    case Account::kCommGrad:
      return "gradient traffic";
    case Account::kCommPipeline:
      return "traffic between stages";
    case Account::kBubble:
      return "the pipeline bubble";
    case Account::kStageImbalance:
      return "unequal pipeline stages";
    case Account::kExpertImbalance:
      return "unequal expert load";
    case Account::kStraggler:
      return "the slowest of many ranks";
    case Account::kLaunch:
      return "the host launching kernels";
    case Account::kSync:
      return "host work per step";
    case Account::kAllocator:
      return "the memory allocator";
    case Account::kGarbage:
      return "garbage collection";
    case Account::kStorage:
      return "waiting for storage";
    case Account::kDecode:
      return "decoding on the host";
    case Account::kHostCopy:
      return "copies from the host";
    default:
      return account_name(a);
  }
}

Account largest_loss(const Ledger& ledger) {
  Account worst = Account::kMatmul;
  for (int i = 1; i < kAccounts; ++i) {
    const Account a = static_cast<Account>(i);
    if (ledger[a] > ledger[worst]) worst = a;
  }
  return worst;
}

std::string why_slower(const Prediction& winner, const Prediction& loser) {
  struct Part {
    Account account;
    double seconds;
  };
  const Ledger difference = loser.ledger - winner.ledger;
  const double total = (loser.step - winner.step).v;
  std::vector<Part> worse;
  Part saved{Account::kUseful, 0};
  for (int i = 1; i < kAccounts; ++i) {
    const Part part{static_cast<Account>(i), difference[static_cast<Account>(i)].v};
    if (part.seconds > 0.02 * winner.step.v || part.seconds > 0.25 * std::abs(total)) {
      worse.push_back(part);
    }
    if (part.seconds < saved.seconds) saved = part;
  }
  std::stable_sort(worse.begin(), worse.end(),
                   [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  if (worse.size() > 2) worse.resize(2);
  std::vector<std::string> words;
  for (const Part& p : worse) {
    words.push_back(fmt::format("{} more {}", seconds(p.seconds), account_name(p.account)));
  }
  std::string text =
      words.empty() ? "about the same everywhere" : fmt::format("{}", fmt::join(words, " and "));
  if (-saved.seconds > 0.01 * winner.step.v) {
    text += fmt::format("; {} less {}", seconds(-saved.seconds), account_name(saved.account));
  }
  double rest = total - saved.seconds;
  for (const Part& p : worse) rest -= p.seconds;
  if (std::abs(rest) > 0.005 * winner.step.v) {
    text += fmt::format("{} {} {} elsewhere", text.find(';') == std::string::npos ? ";" : ",",
                        seconds(std::abs(rest)), rest > 0 ? "more" : "less");
  }
  if (loser.extrapolated && !winner.extrapolated) text += "; outside what was ever measured";
  if (loser.memory.tight() && !winner.memory.tight()) text += "; hardly fits in memory";
  return text;
}

}  // namespace assay
