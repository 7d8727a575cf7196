#include "diagnose/trace_ledger.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "ingest/breakdown.h"
#include "perf/matmul.h"

namespace assay {
namespace {

Seconds seconds(int64_t ns) { return Seconds(static_cast<double>(ns) * 1e-9); }

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
  int64_t known = 0, all = 0;
  std::map<Account, double> useful;
  for (size_t i = 0; i < t.device.size(); ++i) {
    const DeviceEvent& e = t.device[i];
    const KernelClass& k = table.of(i);
    if (!is_math_kind(k.kind) || e.start_ns < view.from_ns || e.start_ns >= view.to_ns) continue;
    all += std::max<int64_t>(e.duration_ns, 0);
    const auto flops = recorded_flops(t, e);
    if (!flops) continue;
    known += std::max<int64_t>(e.duration_ns, 0);
    if (!counted.insert(e.op).second) continue;  // a second kernel of the same operator
    m.flops += *flops;
    if (d.accelerator == nullptr) continue;
    const bool vector = k.precision_known && k.precision == Precision::kFp32;
    const Precision p = vector ? Precision::kFp32 : k.precision;
    const FlopRate rate = peak(*d.accelerator, p);
    if (rate.v <= 0) continue;
    const Account account =
        k.kind == KernelKind::kAttention ? Account::kAttention : Account::kMatmul;
    useful[account] += (*flops / rate).v;
  }
  m.flops_known = all > 0 ? static_cast<double>(known) / static_cast<double>(all) : 0;
  for (const auto& [account, time] : useful) {
    const Seconds taken(std::min(time, m.ledger[account].v));
    m.ledger[account] -= taken;
    m.ledger[Account::kUseful] += taken;
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
    m.ledger[claim.account] += seconds(length_ns(fresh));
    booked += length_ns(fresh);
    covered.insert(covered.end(), fresh.begin(), fresh.end());
    covered = union_of(std::move(covered));
  }
  for (int c = 0; c < kCauses; ++c) {
    const int64_t ns = idle.by_cause[static_cast<size_t>(c)];
    m.ledger[account_of(static_cast<Cause>(c))] += seconds(ns);
    booked += ns;
  }
  m.ledger[Account::kSync] += seconds(idle.unexplained_ns);
  booked += idle.unexplained_ns;
  ASSERT(booked == view.to_ns - view.from_ns);
  book_useful(t, view, table, d, m);
  return m;
}

}  // namespace assay
