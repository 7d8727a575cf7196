#include "diagnose/trace_findings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "diagnose/gain_share.h"
#include "diagnose/gain_whatif.h"
#include "diagnose/trace_evidence.h"
#include "ingest/breakdown.h"

namespace assay {
namespace {

std::string ms(double ns) { return fmt::format("{:.1f} ms", ns * 1e-6); }
std::string ms(int64_t ns) { return ms(static_cast<double>(ns)); }
std::string ms(Seconds s) { return ms(s.v * 1e9); }

int64_t idle_of(const FindingInput& in, Cause cause) {
  return in.idle.by_cause[static_cast<size_t>(cause)];
}

// A step that a slower host would lengthen by this share depends on how fast the host really is.
constexpr double kHostTells = 0.10;

// A recording of fewer is no steady state, whatever it shows: the smallest model that anybody
// trains launches more in one step.
constexpr size_t kDeviceOperationsLeast = 100;

struct Words {
  std::string title, detail, fix;
};

Words data_words(const Priced& p, const FindingInput& in) {
  const int64_t data = data_ns(in.graph), pins = pin_ns(in.graph);
  if (pins > data) {
    return {"The loader's pinning thread holds the interpreter",
            fmt::format("For {} a step nothing is launched while a thread of the loader copies the "
                        "next batch to pinned memory.",
                        ms(pins)),
            "move fewer bytes through it: pictures as uint8 that the device converts (a quarter of "
            "float32), tokens as int32"};
  }
  const double step = std::max(p.after.v, 1e-9);
  const int workers =
      std::clamp(static_cast<int>(std::ceil(static_cast<double>(data) * 1e-9 / step)) + 1, 2, 64);
  Words w;
  w.title = "The device waits for the next batch";
  w.detail =
      in.graph.loader_in_process
          ? fmt::format(
                "Every step the host spends {} on input before it launches anything; the device "
                "idles {} of it. The loader runs inside the training process.",
                ms(data), ms(idle_of(in, Cause::kDataStarved)))
          : fmt::format(
                "The host waits {} a step for its loader workers, which set the pace; the device "
                "idled {} of it beside the profiler.",
                ms(data), ms(idle_of(in, Cause::kDataStarved)));
  w.fix =
      in.graph.loader_in_process
          ? fmt::format("DataLoader(..., num_workers={}, pin_memory=True, persistent_workers=True)",
                        workers)
          : "more loader workers (num_workers=...), a larger prefetch_factor, or data that is "
            "decoded once and stored so";
  return w;
}

Words sync_words(const Priced& p, const FindingInput& in) {
  int calls = 0;
  for (const HostCall& call : in.graph.calls) {
    calls += (call.kind == CallKind::kSync && !call.after_copy) ? 1 : 0;
  }
  Words w;
  w.title = "The host waits for the device inside the step";
  w.detail = fmt::format(
      "{} synchronisation{} a step empt{} the device's queue; until the host is ahead again the "
      "device runs dry after every kernel.",
      calls, calls == 1 ? "" : "s", calls == 1 ? "ies" : "y");
  if (const int64_t reads = read_ns(in.graph); reads > 0) {
    w.detail += fmt::format(
        " For {} more the host works on values that it has read, and launches nothing.", ms(reads));
  }
  int64_t only_read = 0;
  for (const HostCall& call : in.graph.calls) {
    for (int32_t i = 0; call.for_read && i < call.ops; ++i) {
      only_read += in.graph.ops[static_cast<size_t>(call.first_op + i)].busy_ns;
    }
  }
  if (static_cast<double>(only_read) * 1e-9 >= kWorthFixing * p.base.v) {
    w.detail += fmt::format(" {} of kernels a step only make what is read.", ms(only_read));
  }
  if (in.graph.anomaly_mode) {
    w.title = "PyTorch's anomaly mode checks every gradient";
    w.fix =
        "torch.autograd.set_detect_anomaly(False): turn it on only to find a NaN that has been "
        "seen; the price is without its checks and without the stacks that it keeps";
    return w;
  }
  w.fix =
      "keep values on the device: no .item(), .cpu(), print(tensor), nonzero() or "
      "torch.cuda.synchronize() inside the step; read the loss every N steps, or copy it with "
      "non_blocking=True and read it a step later";
  return w;
}

bool trains(const FindingInput& in) {
  return std::any_of(in.graph.ops.begin(), in.graph.ops.end(), [&](const DeviceOp& op) {
    return in.table.of(static_cast<size_t>(op.event)).kind == KernelKind::kOptimizer;
  });
}

Words launch_words(const Priced& p, const FindingInput& in) {
  int64_t host = 0;
  for (const HostCall& call : in.graph.calls) host += call.work_ns + call.call_ns;
  const int64_t device = busy_ns(in.graph);
  Words w;
  w.title = "The device waits for launches";
  w.detail = fmt::format(
      "The host takes {} to launch {} operations that the device finishes in {}: {} each, {} of "
      "work.",
      ms(host), in.graph.ops.size(), ms(device),
      fmt::format("{:.1f} us", static_cast<double>(host) * 1e-3 /
                                   static_cast<double>(std::max<size_t>(in.graph.ops.size(), 1))),
      fmt::format("{:.1f} us", static_cast<double>(device) * 1e-3 /
                                   static_cast<double>(std::max<size_t>(in.graph.ops.size(), 1))));
  constexpr const char* kGraphs =
      "model = torch.compile(model, mode=\"reduce-overhead\")  # CUDA graphs";
  w.fix = fmt::format("{}; also: {}larger {}", kGraphs,
                      trains(in) ? "a fused optimizer (fused=True), " : "",
                      trains(in) ? "micro-batches" : "batches");
  if (p.alternative.v <= 0) return w;
  w.detail +=
      fmt::format(" With an optimizer that is launched once the step would take {}, in graphs {}.",
                  ms(p.alternative), ms(p.after));
  // Graphs are the larger change to a program: what does most of it comes first.
  constexpr double kMostOfIt = 0.8;
  if (p.base - p.alternative > (p.base - p.after) * kMostOfIt) {
    w.fix = fmt::format("torch.optim.AdamW(..., fused=True)  # then: {}", kGraphs);
  }
  return w;
}

Words copy_words(const FindingInput& in) {
  int64_t bytes = 0, time = 0;
  int copies = 0;
  for (const HostCall& call : in.graph.calls) {
    if (call.kind != CallKind::kCopy || call.small_copy) continue;
    for (int32_t i = 0; i < call.ops; ++i) {
      const DeviceOp& op = in.graph.ops[static_cast<size_t>(call.first_op + i)];
      bytes += in.trace.device[static_cast<size_t>(op.event)].bytes;
      time += op.duration_ns + op.late_ns;  // the driver stages before it moves
      ++copies;
    }
  }
  Words w;
  w.title = "Copies of pageable memory hold host and device";
  w.detail = fmt::format(
      "{} cop{} a step move {:.1f} MB through pageable memory in {} ({:.1f} GB/s), and the host "
      "waits for each.",
      copies, copies == 1 ? "y" : "ies", static_cast<double>(bytes) * 1e-6, ms(time),
      static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(time, 1)));
  w.fix =
      "pin the host memory (DataLoader(pin_memory=True) or tensor.pin_memory()) and copy with "
      ".to(device, non_blocking=True); bring the next batch over on a stream of its own";
  return w;
}

Words allocator_words(const FindingInput& in) {
  int calls = 0;
  int64_t time = 0;
  for (const HostCall& call : in.graph.calls) {
    if (call.kind != CallKind::kAllocate) continue;
    ++calls;
    time += call.call_ns + call.waited_ns;
  }
  Words w;
  w.title = "Device memory is allocated and freed inside the step";
  w.detail = fmt::format(
      "{} calls of the driver's allocator a step take {}, and every free waits for the device.",
      calls, ms(time));
  w.fix =
      "no torch.cuda.empty_cache() in the loop; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
      "against fragmentation; fixed shapes, or a smaller batch where memory is full";
  return w;
}

Words pause_words(const FindingInput& in) {
  Words w;
  w.title = in.graph.pause_annotated ? "The garbage collector stops the host"
                                     : "The interpreter pauses, and nothing says why";
  w.detail = fmt::format(
      "For {} a step no thread that launches work records anything{}.", ms(pause_ns(in.graph)),
      in.graph.pause_annotated ? " but a garbage collection"
                               : "; garbage collection is the usual reason, logging or "
                                 "checkpointing in the training process are others");
  w.fix =
      "gc.disable() after the first steps and gc.collect() every few hundred of them; "
      "gc.freeze() after set-up; profile once with with_stack=True to see the frame";
  return w;
}

Words tensor_core_words(const Priced& p) {
  Words w;
  w.title = "Matrix arithmetic runs without tensor cores";
  const bool fp64 = p.waste.what == "fp64";
  w.detail = fmt::format("{} a step go to {}.", ms(p.waste.before_ns),
                         fp64 ? "matmuls in double precision: somewhere a tensor became float64"
                              : "matmuls, convolutions and attention in fp32");
  if (p.alternative.v > 0) {
    w.detail += fmt::format(" With TF32 alone the step would take {}, in 16 bit {}.",
                            ms(p.alternative), ms(p.base - p.alone));
  }
  w.fix = fp64 ? "find what made it float64 (NumPy arrays and .double() do) and give it a dtype: "
                 "x.to(torch.bfloat16)"
               : "with torch.autocast(\"cuda\", dtype=torch.bfloat16): ...  # or at least "
                 "torch.set_float32_matmul_precision(\"high\") for TF32";
  return w;
}

Words attention_words(const Priced& p) {
  Words w;
  w.title = "Attention runs as separate matmuls and softmax";
  w.detail = fmt::format("{} a step go to attention whose scores pass through memory{}.",
                         ms(p.waste.before_ns),
                         p.waste.what.empty() ? std::string() : " (" + p.waste.what + ")");
  w.fix = p.waste.biased
              ? "torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)  # or "
                "flex_attention with the bias as its score_mod"
              : "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # or "
                "attn_implementation=\"sdpa\" / \"flash_attention_2\"";
  return w;
}

Words alignment_words(const Priced& p) {
  Words w;
  w.title = "Shapes keep the libraries from their fast kernels";
  w.detail = fmt::format("{} a step go to {}.", ms(p.waste.before_ns), p.waste.what);
  w.fix =
      "pad the sizes to multiples of 64 (at least 8 in 16 bit): vocabulary, hidden, feed-forward "
      "and head size, channels; e.g. 50257 -> 50304";
  return w;
}

Words memory_words(const Priced& p, const FindingInput& in) {
  constexpr const char* kFused = "torch.optim.AdamW(..., fused=True)";
  constexpr const char* kWritten =
      "torch.nn.functional.rms_norm, layer_norm, gelu(approximate=\"tanh\") instead of formulas";
  Words w;
  if (p.waste.layout) {
    w.title = "Convolutions run on planes (NCHW) and are turned for every one";
    w.detail = fmt::format(
        "{} a step go to turning tensors to the order that tensor cores take and back, and to "
        "matmuls whose rows are the pixels of a plane. Batch norm will be faster as well, which is "
        "not counted.",
        ms(p.waste.before_ns));
    w.fix =
        "model = model.to(memory_format=torch.channels_last), and the same for the input "
        "(channels_last_3d for volumes and video)";
    return w;
  }
  if (p.waste.memory_ns == 0) {
    const bool update = p.waste.optimizer_ns > 0, written = p.waste.written_ns > 0;
    w.title = p.waste.written_ns > p.waste.optimizer_ns
                  ? "Norms or activations are written out in single operations"
                  : "The optimizer passes over the parameters again and again";
    w.detail = p.waste.what;
    w.fix = fmt::format("{}{}{}", update ? kFused : "", update && written ? "; " : "",
                        written ? kWritten : "");
    return w;
  }
  w.title = "Memory-bound kernels take more time than arithmetic";
  const bool others = p.waste.math_ns < of_the_mean(in, math_time_ns(in.graph, in.table));
  w.detail = fmt::format(
      "{} a step in kernels that only move data, {} in arithmetic{}; {} of them follow one another "
      "and could be fused.",
      ms(p.waste.memory_ns), ms(p.waste.math_ns),
      others ? " once it is mended by the other findings" : "",
      ms(p.waste.before_ns - p.waste.optimizer_ns));
  w.fix = "model = torch.compile(model)  # or fused norms, activations and losses";
  if (p.alternative.v > 0) {
    w.detail += fmt::format(
        " Norms and activations are written out in single operations: with the framework's own "
        "fused ones alone the step would take {}.",
        ms(p.alternative));
    w.fix = fmt::format("model = torch.compile(model)  # or at least {}", kWritten);
  }
  if (p.waste.what.empty()) return w;
  w.detail += fmt::format(" {}", p.waste.what);
  w.fix += fmt::format("; {}", kFused);
  return w;
}

Words comm_words(const Priced& p, const FindingInput& in) {
  const bool bubble = p.cause == Cause::kPipelineBubble;
  const Breakdown b = breakdown(in.trace, in.view.from_ns, in.view.to_ns);
  Words w;
  w.title = bubble ? "The stage waits for its neighbours" : "Communication is not hidden";
  w.detail = fmt::format(
      "{} of {} a step in communication are beside no arithmetic. One rank cannot tell the wire "
      "from waiting for others: give the traces of all ranks.",
      ms(b.exposed_communication_ns), ms(b.communication_ns));
  w.fix = bubble ? "more micro-batches per step, or an interleaved schedule"
                 : "overlap it: larger buckets or prefetch (DDP bucket_cap_mb, FSDP "
                   "forward_prefetch), sharding that moves less, or larger micro-batches";
  return w;
}

Words words_of(const Priced& p, const FindingInput& in) {
  switch (p.cause) {
    case Cause::kDataStarved:
      return data_words(p, in);
    case Cause::kHostSync:
      return sync_words(p, in);
    case Cause::kLaunchBound:
      return launch_words(p, in);
    case Cause::kPageableCopies:
      return copy_words(in);
    case Cause::kAllocator:
      return allocator_words(in);
    case Cause::kGarbageCollection:
      return pause_words(in);
    case Cause::kNoTensorCores:
      return tensor_core_words(p);
    case Cause::kUnfusedAttention:
      return attention_words(p);
    case Cause::kMisalignedShapes:
      return alignment_words(p);
    case Cause::kMemoryBound:
      return memory_words(p, in);
    default:
      return comm_words(p, in);
  }
}

}  // namespace

int64_t of_the_mean(const FindingInput& in, int64_t ns) {
  return std::llround(static_cast<double>(ns) * in.longer);
}

Finding describe(const Priced& p, const FindingInput& in) {
  Finding f;
  f.cause = p.cause;
  f.confidence = p.confidence;
  Words w = words_of(p, in);
  f.title = std::move(w.title);
  f.detail = std::move(w.detail);
  f.fix = std::move(w.fix);
  f.gain = p.gain;
  f.share = p.base.v > 0 ? f.gain / p.base : 0;
  f.step_after = p.after;
  if (in.trace.device.size() < kDeviceOperationsLeast) {
    f.confidence = Confidence::kLow;
    f.detail += fmt::format(
        " Only {} device operations were recorded: what comes once (loading kernels, the first "
        "allocations) may be most of it.",
        in.trace.device.size());
  }
  if ((p.slow_host - p.after).v > kHostTells * p.after.v) {
    f.detail += fmt::format(
        " The host would then set the pace, which a profile tells only roughly: {:.1f} to {:.1f} "
        "ms.",
        p.fast_host.v * 1e3, p.slow_host.v * 1e3);
    f.step_range = {p.fast_host, p.slow_host};
  }
  if (p.alternative.v > 0) {
    f.alternative = {p.cause == Cause::kNoTensorCores ? "tf32"
                     : p.cause == Cause::kMemoryBound ? "fused-operations"
                                                      : "fused-optimizer",
                     p.alternative};
  }
  if (in.trace.rank >= 0) f.where.push_back(fmt::format("rank {}", in.trace.rank));
  f.evidence = evidence_of(p, in);
  return f;
}

Finding healthy(const FindingInput& in, Seconds step) {
  Finding f;
  f.cause = Cause::kHealthy;
  f.title = "Nothing wrong";
  f.detail = "No fault that this trace can show takes 3 % of the step.";
  f.confidence = Confidence::kHigh;
  if (static_cast<double>(in.idle.unexplained_ns) * 1e-9 >= kWorthFixing * step.v) {
    f.confidence = Confidence::kLow;
    f.detail += fmt::format(" But {} of idle time are unexplained.", ms(in.idle.unexplained_ns));
  }
  f.step_after = step;
  f.evidence = {kernel_evidence(in, {})};
  return f;
}

}  // namespace assay
