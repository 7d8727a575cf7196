#include "perf/predict.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/assert.h"
#include "perf/layer.h"
#include "perf/layout.h"
#include "perf/memory.h"
#include "perf/range.h"
#include "perf/rank.h"
#include "perf/step.h"
#include "world/model_size.h"

namespace assay {
namespace {

// The settings on which the plain cost of a micro-batch depends. Two plans that agree here share
// it.
struct CostKey {
  int64_t tp, cp, ep, etp, micro_batch, microbatches;
  int flags;
  double capacity;
  bool operator==(const CostKey&) const = default;
};

CostKey cost_key(const Stack& st, const Plan& p, const Layout& l) {
  int flags = static_cast<int>(p.precision);
  const auto bit = [&](int value, int width) { flags = flags << width | value; };
  bit(static_cast<int>(p.context), 1);
  bit(p.sequence_parallel, 1);
  bit(p.compiled, 1);
  bit(p.cuda_graphs, 1);
  bit(p.flash_attention, 1);
  bit(p.overlap_tp, 1);
  bit(p.overlap_expert, 1);
  bit(gathers_each_microbatch(st, p, l) > 0, 1);
  return {l.tp,          l.cp,
          l.ep,          l.etp,
          l.micro_batch, quantised(p.precision) ? l.microbatches : 0,
          flags,         p.expert_capacity};
}

size_t hash(const CostKey& k) {
  uint64_t h = 1469598103934665603ull;
  const auto mix = [&](uint64_t v) { h = (h ^ v) * 1099511628211ull; };
  mix(static_cast<uint64_t>(k.tp));
  mix(static_cast<uint64_t>(k.cp));
  mix(static_cast<uint64_t>(k.ep));
  mix(static_cast<uint64_t>(k.etp));
  mix(static_cast<uint64_t>(k.micro_batch));
  mix(static_cast<uint64_t>(k.microbatches));
  mix(static_cast<uint64_t>(k.flags));
  mix(std::bit_cast<uint64_t>(k.capacity));
  return h ^ h >> 29;
}

}  // namespace

// A direct-mapped cache: a slot holds the last cost that fell on it. It starts small, since most
// predictors answer one question, and grows while costs keep falling on each other. Bounded memory.
constexpr size_t kFirstSlots = 8, kMostSlots = 16384;

struct Predictor::State {
  Setting setting;
  std::optional<Setting> single, half;  // words of 32 bits, and fp16; made when first asked for
  Links links;
  double tokens = 0;
  Flops model_flops;
  struct Slot {
    CostKey key{};
    MicrobatchCost plain;
    bool full = false;
  };
  std::vector<Slot> slots = std::vector<Slot>(kFirstSlots);
  size_t evictions = 0;

  const MicrobatchCost& plain(const Setting& s, const Plan& p, const Layout& l) {
    const CostKey key = cost_key(s.stack, p, l);
    Slot& slot = slots[hash(key) % slots.size()];
    if (!slot.full || !(slot.key == key)) {
      if (slot.full && ++evictions > slots.size() && slots.size() < kMostSlots) {
        slots = std::vector<Slot>(slots.size() * 4);
        evictions = 0;
        return plain(s, p, l);
      }
      slot.plain = plain_cost(s, p, l, links);
      slot.key = key;
      slot.full = true;
    }
    return slot.plain;
  }

  MicrobatchCost cost(const Setting& s, const Plan& p, const Layout& l) {
    return with_recompute(s.stack, p, plain(s, p, l));
  }
};

Predictor::Predictor(const Setting& s) : state_(std::make_unique<State>()) {
  state_->setting = s;
  Stack& stack = state_->setting.stack;
  if (stack.pads_matmuls) {
    MatmulParams& m = state_->setting.kernels.matmul;
    m.aligned_partly = m.aligned_element = m.aligned_output = 1;
  }
  if (stack.launch_blocking) {  // the time for a launch adds to its kernel's
    state_->setting.kernels.kernel_floor += stack.launch;
    stack.launch_blocking = false;
  }
  if (state_->setting.accelerators == 0) state_->setting.accelerators = s.cluster.accelerators();
  state_->links = links_of(s);
  state_->tokens = real(s.workload.seq) * real(s.workload.global_batch);
  state_->model_flops = Flops(flops_per_token(s.workload) * state_->tokens);
}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

const Setting& Predictor::setting() const { return state_->setting; }
const Links& Predictor::links() const { return state_->links; }

const Setting& Predictor::setting_for(const Plan& p) const {
  const bool fp16 = p.precision == Precision::kFp16;
  if (!fp16 && !single_precision(p.precision)) return state_->setting;
  std::optional<Setting>& held = fp16 ? state_->half : state_->single;
  if (!held) {
    held = state_->setting;
    hold_words(held->stack, p.precision);
  }
  return *held;
}

MemoryUse Predictor::memory(const Plan& p) {
  const Setting& s = setting_for(p);
  const Layout l = make_layout(s, p);
  return memory_use(s, p, l, state_->cost(s, p, l));
}

Prediction Predictor::predict(const Plan& p) {
  const Setting& s = setting_for(p);
  const Layout l = make_layout(s, p);
  const MicrobatchCost c = state_->cost(s, p, l);
  const Step step = assemble_step(s, p, l, state_->links, c);
  Prediction r;
  r.ledger = step.ledger;
  r.step = step.ledger.paid();
  r.memory = memory_use(s, p, l, c);
  r.model_flops = state_->model_flops;
  const double n = real(l.ranks);
  const Seconds ideal = r.model_flops / (peak(s.cluster.accelerator, p.precision) * n);
  r.mfu = ideal / r.step;
  r.tokens_per_s = state_->tokens / r.step.v;
  r.dp = l.dp;
  r.microbatches = l.microbatches * l.ends;
  const Accelerator& a = s.cluster.accelerator;
  r.power = a.idle + (a.tdp - a.idle) * std::min(1.0, step.draw);
  // `useful` is defined by the model's FLOPs, not by those that a rank's shapes execute (padding,
  // replicated heads): move the difference to the matmuls.
  r.ledger[Account::kMatmul] += r.ledger[Account::kUseful] - ideal;
  r.ledger[Account::kUseful] = ideal;
  const Range range = prediction_range(s, p, l, r.ledger);
  r.low = std::min(r.step, std::max(r.step * range.low, ideal));  // no step beats the peak
  r.high = r.step * range.high;
  r.spread = range.spread;
  r.extrapolated = range.extrapolated;
  r.experts_wait = range.experts_wait;
  ASSERT(std::isfinite(r.step.v) && r.step.v > 0);
  return r;
}

}  // namespace assay
