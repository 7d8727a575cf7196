// Kernels that do the model's work in a slower way than the device could, and how long each would
// take in the better one. Every rule returns new durations for the operations of a step graph; the
// replay then says what the step gains, for a faster kernel helps only where nothing else limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "diagnose/gain_graph.h"
#include "diagnose/kernel_table.h"
#include "world/accelerator.h"
#include "world/kernels.h"

namespace assay {

struct Waste {
  Cause cause = Cause::kHealthy;
  std::vector<int64_t> duration_ns;  // per operation of the graph; -1: as it is
  std::vector<int32_t> ops;          // the operations to blame
  int64_t before_ns = 0;             // their part of the device's busy time
  int64_t saved_ns = 0;              // of the busy time, all operations
  // memory-bound: of `before_ns`, the optimizer's, and that of norms and activations written out;
  // time in kernels that only move data and in arithmetic, with what was found before taken out
  // (zero: the optimizer or what is written out alone is to blame).
  int64_t optimizer_ns = 0, written_ns = 0, memory_ns = 0, math_ns = 0;
  // no-tensor-cores: casts that the host then launches beside the operation; empty: none.
  std::vector<double> casts;
  bool biased = false;  // unfused-attention: a bias is added to the scores
  bool layout = false;  // memory-bound: convolutions on planes, and nothing else
  Confidence confidence = Confidence::kMedium;
  std::string what;  // figures for the finding's text: `4 x 16 heads of 64, 4096 tokens`
};
Waste waste_of(const StepGraph&, Cause);  // nothing replaced yet
// Gives an operation a new time, at most its old one; `blame`: it is one of those at fault.
void replace_op(const StepGraph&, Waste&, size_t op, int64_t duration_ns, bool blame);
// The same for the one that takes over the work of others: it may get longer.
void set_op(const StepGraph&, Waste&, size_t op, int64_t duration_ns, bool blame);
// A kernel without work still takes this on any device (catalog: kernel_floor).
constexpr int64_t kKernelFloor = 2'000;  // ns

// What is known of the device. REQUIRES: both or neither.
struct DeviceModel {
  const Accelerator* accelerator = nullptr;
  const Kernels* kernels = nullptr;
};

// Matmuls, convolutions and attention in fp32 on vector units, on a device with tensor cores; the
// better way is `to`: 16 bit (where most of the arithmetic is in fp32 the model's own tensors are,
// and all its kernels then move half the bytes; else no more is saved than those kernels take) or
// TF32 (only matmuls and convolutions change).
Waste no_tensor_cores(const StepGraph&, const Trace&, const KernelTable&, const DeviceModel&,
                      Precision to);
// The 16-bit format of a device: bf16, or fp16 where it has no bf16.
Precision half_of(const Accelerator&);

// Scores, softmax and weighted values as kernels of their own, instead of one fused kernel.
Waste unfused_attention(const StepGraph&, const Trace&, const KernelTable&, const DeviceModel&);

// Matmuls whose row lengths keep the library from its fast loads, and attention whose head size the
// framework pads before and cuts after every call, and convolutions whose channels the library pads
// (kernel_align.cc). `what` names them.
Waste misaligned_shapes(const StepGraph&, const Trace&, const KernelTable&, const DeviceModel&);

// The time of a tensor-core matmul with aligned rows over its time as it is; 1 where they are.
double aligned_rate(const KernelClass&, const DeviceModel&);

// Convolutions on tensors that lie in planes: turning them to the library's order and back, and
// matmuls whose rows are pixels (kernel_layout.cc).
Waste plane_layout(const StepGraph&, const Trace&, const KernelTable&, const DeviceModel&);
bool in_planes(const StepGraph&, const Trace&);
bool in_convolution(const Trace&, const DeviceEvent&);

// Runs of memory-bound kernels that a compiler would fuse: each run then takes as long as its
// longest kernel, for every tensor is read and written once (healthy_1b of our own H200 runs: 11.0
// ms by this rule, 9.2 measured with torch.compile; with norms written out: 21.6, measured 24).
// Passes of a batch norm stay apart: its sums run over the whole batch. A scatter (index_add,
// scatter_add) becomes the write of the passes before it, however slow its own kernel is.
Waste fusable_kernels(const StepGraph&, const Trace&, const KernelTable&);
// Adam in one pass per operation instead of a fused kernel (kernel_optimizer.cc); `what` is a
// sentence about it.
Waste optimizer_passes(const StepGraph&, const Trace&);
// The same for an optimizer that is written out in single operations (kernel_update.cc).
Waste hand_updates(const StepGraph&, const Trace&, const KernelTable&);
// Tensors that a single element-wise operation reads and writes, by its kernel's name.
int tensors_moved(std::string_view kernel);
// Norms and activations that are written out in single operations (kernel_written.cc).
Waste written_out(const StepGraph&, const Trace&, const KernelTable&);
// Adds a rule's changes to another's. REQUIRES: no operation is changed by both.
void join(Waste& to, const Waste& other);
// A step is memory-bound when memory-bound kernels take more time than arithmetic, most of it in
// runs of kRunLeast and more (many small passes, not the few large ones of a convolutional model);
// or when those that follow one another, however few at a time, take more than arithmetic by
// themselves, without the passes of batch norms.
bool is_memory_bound(const StepGraph&, const Trace&, const KernelTable&);
constexpr size_t kRunLeast = 4;
// Device time of memory-bound kernels and of arithmetic.
int64_t memory_time_ns(const StepGraph&, const KernelTable&);
int64_t math_time_ns(const StepGraph&, const KernelTable&);

}  // namespace assay
