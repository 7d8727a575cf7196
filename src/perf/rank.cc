#include "perf/rank.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace assay {
namespace {

// Fewer bytes than this per weight: packed. Eight bits and their scales are 1.05.
constexpr double kPackedBytes = 1.5;

double word_bytes(Precision p) { return p == Precision::kFp32 || p == Precision::kTf32 ? 4 : 2; }

}  // namespace

bool quantised(Precision p) { return p >= Precision::kFp8; }

Precision unquantised(Precision p) { return quantised(p) ? Precision::kBf16 : p; }

int64_t whole(double x) { return std::max<int64_t>(1, std::llround(x)); }

void note(const Rank& r, const char* kind, std::string what, Seconds forward, Seconds backward) {
  r.record->push_back({r.layer, kind, std::move(what), forward, backward});
}

bool stored_packed(const Setting& s, const Plan& p) {
  return s.workload.task == Task::kLora && s.stack.weight_bytes < kPackedBytes &&
         !quantised(p.precision);
}

double gathered_bytes(const Setting& s, const Plan& p) {
  const Stack& st = s.stack;
  return stored_packed(s, p) ? std::min(st.weight_bytes, st.weight_comm_bytes)
                             : st.weight_comm_bytes;
}

Rank make_rank(const Setting& s, const Plan& p, const Layout& l, const Links& links) {
  const double seq = static_cast<double>(s.workload.seq);
  const double tokens = static_cast<double>(p.micro_batch) * seq / static_cast<double>(l.cp);
  const bool split = l.tp > 1 && p.sequence_parallel;
  const bool plain = !s.workload.model.gated_mlp && s.stack.traffic_plain > 0;
  const double traffic = plain ? s.stack.traffic_plain : s.stack.traffic;
  const double launches = (p.compiled ? s.stack.launches_compiled : 1.0) *
                          (p.cuda_graphs ? s.stack.launches_graphs : 1.0);
  return Rank{s,
              p,
              l,
              links,
              tokens,
              split ? tokens / static_cast<double>(l.tp) : tokens,
              seq,
              word_bytes(p.precision),
              traffic * (p.compiled ? s.stack.traffic_compiled : 1.0),
              launches,
              s.cluster.accelerator.memory_bandwidth * s.kernels.memory_efficiency,
              s.workload.task == Task::kLora,
              stored_packed(s, p)};
}

void stream(const Rank& r, LayerCost& c, double forward, double backward) {
  c.forward.memory += Bytes(forward * r.traffic) / r.memory;
  c.backward.memory += Bytes(backward * r.traffic) / r.memory;
  if (r.record) {
    note(r, "memory",
         fmt::format("{:.3g} + {:.3g} MB x {:.2f}", forward / 1e6, backward / 1e6, r.traffic),
         Bytes(forward * r.traffic) / r.memory, Bytes(backward * r.traffic) / r.memory);
  }
}

Seconds linear_time(const Rank& r, const MatmulShape& shape) {
  const Stack& st = r.s.stack;
  return grouped_time(shape, r.s.cluster.accelerator, r.s.kernels.matmul, st.experts_apart) /
         st.matmul_quality;
}

void linear(const Rank& r, LayerCost& c, double tokens, double n, double k, double groups,
            Precision precision, bool adapter) {
  const Accelerator& a = r.s.cluster.accelerator;
  const int64_t batch = whole(groups), t = whole(tokens), ni = whole(n), ki = whole(k);
  const bool weight_gradient = !r.frozen;
  const Seconds forward_before = c.forward.matmul, backward_before = c.backward.matmul;
  c.forward.matmul += linear_time(r, {t, ni, ki, batch, precision});
  c.backward.matmul += linear_time(r, {t, ki, ni, batch, precision, MatmulPass::kInputGradient});
  if (weight_gradient) {
    c.backward.matmul += linear_time(r, {ni, ki, t, batch, precision, MatmulPass::kWeightGradient});
  }
  if (r.record) {
    note(r, "matmul",
         fmt::format("{} of {} x {} x {} {}", batch, t, ni, ki,
                     enum_names(precision)[static_cast<size_t>(precision)]),
         c.forward.matmul - forward_before, c.backward.matmul - backward_before);
  }
  const Seconds ideal = Flops(2 * tokens * n * k * groups) / peak(a, r.p.precision);
  c.forward.matmul_peak += ideal;
  c.backward.matmul_peak += ideal * (weight_gradient ? 2.0 : 1.0);
  if (quantised(precision)) {
    const double once = r.p.zero >= 3 ? 1.0 : 1.0 / static_cast<double>(r.l.microbatches);
    const bool blocks = precision >= Precision::kMxfp8 && precision <= Precision::kMxfp4;
    const double q = blocks ? r.s.stack.quantize_blocks : r.s.stack.quantize_traffic;
    const double weights = n * k * groups * once;
    c.forward.memory += Bytes((tokens * k * groups + weights) * q) / r.memory;
    c.backward.memory += Bytes(tokens * n * groups * q) / r.memory;
    c.forward.launches += r.s.stack.launches_quantize * r.launches;
    c.backward.launches += r.s.stack.launches_quantize * r.launches;
  }
  if (r.packed) {
    const Seconds unpack = Bytes(n * k * groups * r.s.stack.dequantize_traffic) / r.memory;
    c.forward.memory += unpack;
    c.backward.memory += unpack;
    if (r.record) {
      note(r, "memory", fmt::format("{:.3g} M weights unpacked", n * k * groups / 1e6), unpack,
           unpack);
    }
  }
  if (r.frozen && adapter) {  // x A and (x A) B beside the frozen product: memory-bound
    stream(r, c, tokens * (k + 2 * n) * r.word, tokens * (2 * k + 2 * n) * r.word);
    c.forward.launches += r.s.stack.launches_adapter * r.launches;
    c.backward.launches += 2 * r.s.stack.launches_adapter * r.launches;
  }
}

Seconds tensor_region(const Rank& r, LayerCost& c) {
  if (r.l.tp == 1) return Seconds{};
  Seconds closing;
  const Bytes b(r.tokens * static_cast<double>(r.s.workload.model.hidden) * r.word);
  const double hidden = r.s.stack.overlap_tp_backward;
  const double left = r.p.overlap_tp ? 1 - r.s.stack.overlap_tp : 1.0;
  const Seconds forward_before = c.forward.tensor, backward_before = c.backward.tensor;
  if (r.p.sequence_parallel) {
    const Seconds gather = collective_time(Collective::kAllGather, b, r.l.tensor, r.links);
    const Seconds scatter = collective_time(Collective::kReduceScatter, b, r.l.tensor, r.links);
    closing = scatter * left;
    c.forward.tensor += gather * left + closing;
    c.backward.tensor += (gather + scatter * (1 - hidden)) * left;
  } else {
    const Seconds reduce = collective_time(Collective::kAllReduce, b, r.l.tensor, r.links);
    closing = reduce * left;
    c.forward.tensor += closing;
    c.backward.tensor += reduce * (1 - hidden) * left;
  }
  // Gathering or scattering along a dimension that is not the first copies the whole tensor.
  if (r.p.sequence_parallel && r.s.stack.tensor_copies > 0) {
    const Seconds copies = b * (2 * 2 * r.s.stack.tensor_copies) / r.memory;
    c.forward.memory += copies;
    c.backward.memory += copies;
  }
  if (r.record) {
    note(r, "tensor",
         fmt::format("{:.3g} MB over {} ranks, {:.0f} % exposed", b.v / 1e6, r.l.tp, left * 100),
         c.forward.tensor - forward_before, c.backward.tensor - backward_before);
  }
  return closing;
}

}  // namespace assay
