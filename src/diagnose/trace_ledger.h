// The measured ledger of a step: its window, to the nanosecond, in the accounts of src/ledger, so
// that it can stand beside a predicted one.
//
// Where several things run at once, the one that does the model's work counts: arithmetic before
// memory-bound kernels before communication before copies. Idle time goes to the accounts of its
// causes. `useful` is the model's FLOPs at the device's peak as far as recorded shapes tell them;
// without shapes it is zero, all of a kernel's time stays in its own account, and the result says
// so.
#pragma once

#include <array>

#include "diagnose/kernel_waste.h"
#include "diagnose/trace_idle.h"
#include "ledger/ledger.h"

namespace assay {

struct MeasuredLedger {
  std::array<int64_t, kAccounts> ns{};  // they sum to `window_ns`, exactly
  int64_t window_ns = 0;
  int64_t math_ns = 0, known_ns = 0;  // of arithmetic kernels; of those whose FLOPs are known
  Flops flops;                        // of those

  Ledger ledger() const;
  double flops_known() const;  // share of arithmetic kernels' time
};
MeasuredLedger trace_ledger(const Trace&, const StepView&, const KernelTable&, const IdleSplit&,
                            const DeviceModel&);

void add(const MeasuredLedger& step, MeasuredLedger& sum);
// A sum's share of one step, in whole nanoseconds: what does not divide evenly goes to the largest
// account, so that they still sum to the window.
MeasuredLedger mean(MeasuredLedger sum, int64_t steps);

// The account of a collective, from its name and its group's: tensor-parallel groups name
// themselves, all-to-all is experts, gathers are parameters, reductions gradients.
Account comm_account(std::string_view kernel, std::string_view collective, std::string_view group);

}  // namespace assay
