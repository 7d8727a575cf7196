// The measured ledger of a step: its window, to the nanosecond, in the accounts of src/ledger, so
// that it can stand beside a predicted one.
//
// Where several things run at once, the one that does the model's work counts: arithmetic before
// memory-bound kernels before communication before copies. Idle time goes to the accounts of its
// causes. `useful` is the model's FLOPs at the device's peak as far as recorded shapes tell them;
// without shapes it is zero, all of a kernel's time stays in its own account, and the result says
// so.
#pragma once

#include "diagnose/kernel_waste.h"
#include "diagnose/trace_idle.h"
#include "ledger/ledger.h"

namespace assay {

struct MeasuredLedger {
  Ledger ledger;           // leaves sum to the window
  double flops_known = 0;  // share of arithmetic kernels' time whose FLOPs are known
  Flops flops;             // of those
};
MeasuredLedger trace_ledger(const Trace&, const StepView&, const KernelTable&, const IdleSplit&,
                            const DeviceModel&);

// The account of a collective, from its name and its group's: tensor-parallel groups name
// themselves, all-to-all is experts, gathers are parameters, reductions gradients.
Account comm_account(std::string_view kernel, std::string_view collective, std::string_view group);

}  // namespace assay
