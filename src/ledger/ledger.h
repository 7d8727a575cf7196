// The ledger of accelerator time: where every accelerator-second that was paid for went.
//
// One chart of accounts serves the prediction of a step, the simulation of a run and the
// measurement of a real one. Leaves never overlap, and they always sum to what was paid
// (`Ledger::paid`); code that fills a ledger asserts it, tests check it as a property. `useful` has
// one meaning: the model's own FLOPs at the accelerator's peak, so MFU is useful / paid.
#pragma once

#include <array>
#include <string_view>

#include "base/units.h"

namespace assay {

enum class Account {
  kUseful,
  // kernels: time beyond the model's FLOPs at peak, by what causes it
  kMatmul,
  kAttention,
  kMemoryBound,
  kOptimizer,
  kRecompute,
  // clocks
  kPowerCap,
  kThermal,
  kFacilityCap,
  // communication that no computation hides
  kCommTensor,
  kCommContext,
  kCommExpert,
  kCommParam,
  kCommGrad,
  kCommPipeline,
  // waiting
  kBubble,
  kStageImbalance,
  kExpertImbalance,
  kStraggler,
  // host
  kLaunch,
  kSync,
  kAllocator,
  kGarbage,
  // data
  kStorage,
  kDecode,
  kHostCopy,
  // run level
  kCheckpoint,
  kUndetected,
  kDetection,
  kReplacement,
  kRestart,
  kLostWork,
  kCorruption,
  kQueue,
  kImagePull,
  kInit,
  kCompile,
  kWarmup,
  kOutage,
  kMaintenance,
  kCurtailment,
  kSpare,
  kFragmentation,
  kUnallocated,
  kEnd
};
constexpr int kAccounts = static_cast<int>(Account::kEnd);

struct AccountInfo {
  std::string_view group;  // `kernels`
  std::string_view name;   // `matmul`; printed as `kernels: matmul`
  std::string_view key;    // `kernels.matmul`, for JSON and explain
  std::string_view help;
};
const AccountInfo& info(Account);

struct Ledger {
  std::array<Seconds, kAccounts> leaf{};

  Seconds& operator[](Account a) { return leaf[static_cast<size_t>(a)]; }
  Seconds operator[](Account a) const { return leaf[static_cast<size_t>(a)]; }
  Seconds paid() const;  // the sum of the leaves
  Ledger& operator+=(const Ledger&);
  Ledger& operator*=(double);
};
Ledger operator-(const Ledger&, const Ledger&);

}  // namespace assay
