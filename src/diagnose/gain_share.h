// How the device's busy time divides among the operations that ran in it.
//
// Where streams overlap (a recurrent layer of cuDNN runs on a dozen), durations sum to more than
// the step, and a kernel takes longer than it would alone because it has the device only in part.
// So every instant is divided evenly among the kernels that run in it. Communication and copies use
// other parts of the device: they have what no kernel covers. The parts of all operations sum to
// the time at which anything ran, those of the kernels to the time at which any kernel ran.
#pragma once

#include "diagnose/gain_graph.h"

namespace assay {

// Sets DeviceOp::busy_ns and DeviceOp::computes of all operations, from when they ran. O(n log n).
void share_busy_time(const Trace&, StepGraph&);

// Gives an operation another time, and its part of the busy time in proportion.
void set_duration(DeviceOp&, int64_t duration_ns);

// Time at which any operation, or any kernel that computes, ran.
int64_t busy_ns(const StepGraph&);
int64_t computing_ns(const StepGraph&);

// Kernels run beside one another for so much of their time that they slow one another down: what
// one saves then comes back to the others.
bool overlaps(const StepGraph&);
constexpr double kOverlapLeast = 0.1;  // of the kernels' durations; assumed

}  // namespace assay
