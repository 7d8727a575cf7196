#include "diagnose/trace_ledger.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "ingest/breakdown.h"
#include "perf/matmul.h"

namespace assay {
namespace {

int64_t& account(MeasuredLedger& m, Account a) { return m.ns[static_cast<size_t>(a)]; }

// Accounts in the order in which they claim time.
struct Claim {
  int order;
  Account account;
  auto operator<=>(const Claim&) const = default;
};

Claim claim_of(const Trace& t, const DeviceEvent& e, const KernelClass& k) {
  switch (k.kind) {
    case KernelKind::kMatmul:
    case KernelKind::kConvolution:
      return {0, Account::kMatmul};
    case KernelKind::kAttention:
      return {1, Account::kAttention};
    case KernelKind::kOptimizer:
      return {2, Account::kOptimizer};
    case KernelKind::kCommunication: {
      std::string_view name, group;
      if (e.collective >= 0) {
        const CollectiveInfo& info = t.collectives[static_cast<size_t>(e.collective)];
        name = t.text(info.name);
        group = t.text(info.group);
      }
      if (name.empty()) name = op_name(t, e);
      return {4, comm_account(t.text(e.name), name, group)};
    }
    case KernelKind::kHostCopy:
      return {5, Account::kHostCopy};
    case KernelKind::kSet:
      return {6, Account::kMemoryBound};
    default:
      return {e.kind == DeviceKind::kKernel ? 3 : 6, Account::kMemoryBound};
  }
}

Account account_of(Cause cause) {
  switch (cause) {
    case Cause::kDataStarved:
      return Account::kDecode;
    case Cause::kPageableCopies:
      return Account::kHostCopy;
    case Cause::kAllocator:
      return Account::kAllocator;
    case Cause::kGarbageCollection:
      return Account::kGarbage;
    case Cause::kLaunchBound:
      return Account::kLaunch;
    default:
      return Account::kSync;
  }
}

// Takes the FLOPs that are known out of what a kernel account claimed.
void book_useful(const Trace& t, const StepView& view, const KernelTable& table,
                 const DeviceModel& d, MeasuredLedger& m) {
  std::set<int32_t> counted;
  std::map<Account, double> useful;
  for (size_t i = 0; i < t.device.size(); ++i) {
    const DeviceEvent& e = t.device[i];
    const KernelClass& k = table.of(i);
    if (!is_math_kind(k.kind) || e.start_ns < view.from_ns || e.start_ns >= view.to_ns) continue;
    m.math_ns += std::max<int64_t>(e.duration_ns, 0);
    const auto flops = recorded_flops(t, e);
    if (!flops) continue;
    m.known_ns += std::max<int64_t>(e.duration_ns, 0);
    if (!counted.insert(e.op).second) continue;  // a second kernel of the same operator
    m.flops += *flops;
    if (d.accelerator == nullptr) continue;
    const bool vector = k.precision_known && k.precision == Precision::kFp32;
    const Precision p = vector ? Precision::kFp32 : k.precision;
    const FlopRate rate = peak(*d.accelerator, p);
    if (rate.v <= 0) continue;
    const bool attention = k.kind == KernelKind::kAttention;
    useful[attention ? Account::kAttention : Account::kMatmul] += (*flops / rate).v;
  }
  for (const auto& [from, time] : useful) {
    const int64_t claimed = account(m, from);
    const int64_t taken =
        time * 1e9 < static_cast<double>(claimed) ? std::llround(time * 1e9) : claimed;
    account(m, from) -= taken;
    account(m, Account::kUseful) += taken;
  }
}

}  // namespace

Account comm_account(std::string_view kernel, std::string_view collective, std::string_view group) {
  const std::string name = lower(collective) + " " + lower(kernel);
  const std::string g = lower(group);
  if (contains(name, "alltoall") || contains(name, "all_to_all") || contains(name, "deep_ep") ||
      contains(name, "dispatch") || contains(name, "combine")) {
    return Account::kCommExpert;
  }
  if (contains(name, "send") || contains(name, "recv")) return Account::kCommPipeline;
  if (contains(g, "tensor") || contains(g, "tp")) return Account::kCommTensor;
  if (contains(g, "context") || contains(g, "cp")) return Account::kCommContext;
  if (contains(name, "allgather") || contains(name, "all_gather") || contains(name, "broadcast")) {
    return Account::kCommParam;
  }
  return Account::kCommGrad;
}

MeasuredLedger trace_ledger(const Trace& t, const StepView& view, const KernelTable& table,
                            const IdleSplit& idle, const DeviceModel& d) {
  MeasuredLedger m;
  std::map<Claim, Intervals> claims;
  for (size_t i = 0; i < t.device.size(); ++i) {
    const DeviceEvent& e = t.device[i];
    const int64_t start = std::max(e.start_ns, view.from_ns);
    const int64_t end = std::min(e.start_ns + e.duration_ns, view.to_ns);
    if (e.duration_ns <= 0 || end <= start) continue;
    claims[claim_of(t, e, table.of(i))].push_back({start, end});
  }
  Intervals covered;
  int64_t booked = 0;
  for (auto& [claim, intervals] : claims) {
    const Intervals all = union_of(std::move(intervals));
    const Intervals fresh = subtract(all, covered);
    account(m, claim.account) += length_ns(fresh);
    booked += length_ns(fresh);
    covered.insert(covered.end(), fresh.begin(), fresh.end());
    covered = union_of(std::move(covered));
  }
  for (int c = 0; c < kCauses; ++c) {
    const int64_t ns = idle.by_cause[static_cast<size_t>(c)];
    account(m, account_of(static_cast<Cause>(c))) += ns;
    booked += ns;
  }
  account(m, Account::kSync) += idle.unexplained_ns;
  booked += idle.unexplained_ns;
  m.window_ns = view.to_ns - view.from_ns;
  ASSERT(booked == m.window_ns);
  book_useful(t, view, table, d, m);
  return m;
}

Ledger MeasuredLedger::ledger() const {
  Ledger out;
  for (size_t a = 0; a < ns.size(); ++a) {
    out[static_cast<Account>(a)] = Seconds(static_cast<double>(ns[a]) * 1e-9);
  }
  return out;
}

double MeasuredLedger::flops_known() const {
  return math_ns > 0 ? static_cast<double>(known_ns) / static_cast<double>(math_ns) : 0;
}

void add(const MeasuredLedger& step, MeasuredLedger& sum) {
  for (size_t a = 0; a < sum.ns.size(); ++a) sum.ns[a] += step.ns[a];
  sum.window_ns += step.window_ns;
  sum.math_ns += step.math_ns;
  sum.known_ns += step.known_ns;
  sum.flops += step.flops;
}

MeasuredLedger mean(MeasuredLedger sum, int64_t steps) {
  ASSERT(steps > 0);
  sum.window_ns /= steps;
  sum.math_ns /= steps;
  sum.known_ns /= steps;
  sum.flops = sum.flops * (1.0 / static_cast<double>(steps));
  int64_t left = sum.window_ns;
  for (int64_t& ns : sum.ns) {
    ns /= steps;
    left -= ns;
  }
  *std::max_element(sum.ns.begin(), sum.ns.end()) += left;
  return sum;
}

}  // namespace assay
