// One cause taken out of a step graph, everything else kept. Each edit returns the changed graph;
// edits compose, so causes can be taken out one after another.
#pragma once

#include <vector>

#include "base/units.h"
#include "diagnose/gain_graph.h"
#include "diagnose/kernel_table.h"
#include "world/accelerator.h"

namespace assay {

// The same step without the profiler. It costs the host kProfilerCost for every operator and call
// that it writes down, but never more than half of the host's work; and what a launch takes where
// the queue is short tells whether it slows the host beyond that. Over the 22 H200 traces in which
// the host sets the pace and whose step was timed before the profiler was ever loaded
// (test/data/h200_profiler_cost.csv) profiled hosts are 1.0 to 2.5 times as slow, and the replay
// misses by 7.6 % in the mean (17 within 10 %; -32 to +39 %); fitted to the eleventh set alone it
// misses the others by 10, fitted to those the eleventh by 5. What else is recorded (shapes,
// memory, stacks) shows no cost of its own above the scatter. Once loaded, the profiler leaves the
// host 16 % slower in the median (-2 to +41 % in eight of these): so are steps that were timed
// after it, as most of labels.csv, blind.csv, habits.csv and ninth.csv in test/data/traces.
StepGraph without_profiler(StepGraph);
constexpr int64_t kProfilerCost = 2'500;  // ns
// On hosts of older devices, with the profilers of their time; assumed (a V100 station's steps are
// known with the profiler alone).
constexpr int64_t kProfilerCostOlder = 400;  // ns
constexpr int64_t kLaunchUsual = 5'600;      // ns of a launch on a host that is not slowed
constexpr double kProfiledMost = 1.5;        // times as slow

// The same step at the pace of loader workers. Where the host has to wait for them they have
// nothing in stock, and a host that is faster than the profiled one waits as much longer: the
// period of the run stays what was measured. Steps whose loader runs inside the training process,
// or that wait for less than kWaitLeast of the period, stay as they are.
StepGraph paced_by_loader(StepGraph, Seconds measured);
constexpr double kWaitLeast = 0.03;
constexpr double kPeriodMost = 3600;  // s; a longer step is some profiler's mistake

// Batches are ready when asked for. The loader's work does not vanish: it moves to worker
// processes, and three things follow where it ran inside the training process.
//   - The host shares caches, memory and clocks with the workers and gets slower: by 13 % on the
//     20-core host of a V100 station (ResNet-50, 0 against 4 workers), by at least 6 % on an H200
//     server (8 workers). kBesideWorkers stands between the two.
//   - The batch arrives in shared memory that this process has not touched: the copy to the device
//     takes a page fault for every page (kPageFault).
//   - Everything the stall had hidden stays: a pageable copy still drains the queue every step.
// Where the thread that pins batches holds the host for longer than fetching does, that goes
// instead, and nothing else.
StepGraph without_data(StepGraph, const Trace&);
constexpr double kBesideWorkers = 1.10;
constexpr int64_t kPageFault = 250;  // ns for a minor fault of Linux on shared memory
constexpr int64_t kPageBytes = 4096;

// No call waits for the device but copies of real size: results are read later, in bulk. Nor does
// the host work on values that it has read: they stay on the device, or wait.
StepGraph without_syncs(StepGraph);
// A call that waits for the device and need not: a synchronisation, or a copy of a few bytes.
bool waits(const HostCall&);

// Memory is asked for once: no allocation inside the step.
StepGraph without_allocation(StepGraph);

// The interpreter never pauses.
StepGraph without_pauses(StepGraph);

// Host memory is pinned and copies are asynchronous. Each runs at the link's rate; those that bring
// a step its input are made ahead, on a stream of their own, beside the step before.
StepGraph with_pinned_copies(StepGraph, const Trace&, const Accelerator*);
// A pinned copy reaches this share of the link's rate (test/data/h200_hostlink.csv: 55.4 of 64
// GB/s).
constexpr double kPinnedShare = 0.865;
constexpr double kPinnedDefault = 25e9;  // B/s where the device is unknown: PCIe 4.0 x16, about

// The launches of the step are captured into graphs and replayed by one call each. Calls that
// cannot be captured (synchronisation, held copies, allocation) and waits for data stay.
StepGraph with_graphs(StepGraph);
// From the end of one node of a graph to the start of the next. Ten steps that were captured whole
// on H200s, run without the profiler, take 0.0 to 0.5 us a node more than their kernels, 0.32 in
// the mean; the cautious end is taken, since a gain is a promise. The profiler adds to it: in its
// traces gaps are 0.1 to 0.84 us.
constexpr int64_t kGraphGap = 500;        // ns
constexpr int64_t kGraphLaunch = 10'000;  // ns of the host for one graph launch

// The optimizer's kernels are launched by one call, as a fused optimizer is; the device does what
// it did. Returns the step as it is where they are too few to matter (kOptimizerCalls).
StepGraph with_one_optimizer_call(StepGraph, const KernelTable&);
constexpr int kOptimizerCalls = 20;

// Operations take the given times; -1 keeps the measured one. One entry per operation.
StepGraph with_durations(StepGraph, const std::vector<int64_t>& duration_ns);
// The host does not launch the operations whose time is 0: they are part of another one.
StepGraph without_launches(StepGraph, const std::vector<int64_t>& duration_ns);

// The host launches so many operations more beside each, at what a launch of this step takes it on
// average. What they do on the device is priced with the operation. REQUIRES: one entry per
// operation, or none at all.
StepGraph with_more_launches(StepGraph, const std::vector<double>& launches);

// Communication that no arithmetic hid is hidden, or that share of it: each operation keeps the
// part of its time that something else covered. `point_to_point` selects sends and receives (a
// pipeline's), else all others.
StepGraph with_hidden_communication(StepGraph, const Trace&, const KernelTable&,
                                    bool point_to_point, double share = 1);
bool is_point_to_point(const Trace&, const DeviceEvent&);

// Share of a step that goes to waiting for data etc.: sums over the calls of a graph.
int64_t data_ns(const StepGraph&);
int64_t pin_ns(const StepGraph&);
int64_t read_ns(const StepGraph&);
int64_t pause_ns(const StepGraph&);

}  // namespace assay
