#include "ledger/ledger.h"

namespace assay {
namespace {

constexpr std::array<AccountInfo, kAccounts> kInfo{{
    {"useful", "", "useful", "the model's own FLOPs at the accelerator's peak"},
    {"kernels", "matmul", "kernels.matmul",
     "matmuls below peak: tiles, waves, alignment, precision"},
    {"kernels", "attention", "kernels.attention", "attention below peak"},
    {"kernels", "memory", "kernels.memory", "memory-bound operations: norms, activations, loss"},
    {"kernels", "optimizer", "kernels.optimizer", "the optimizer step"},
    {"kernels", "recompute", "kernels.recompute", "activations computed a second time"},
    {"clocks", "power cap", "clocks.power_cap", "clocks held down by the power limit"},
    {"clocks", "thermal", "clocks.thermal", "clocks held down by temperature"},
    {"clocks", "facility", "clocks.facility", "clocks held down by the facility"},
    {"comm", "tensor", "comm.tensor", "tensor- and sequence-parallel traffic, exposed"},
    {"comm", "context", "comm.context", "context-parallel traffic, exposed"},
    {"comm", "expert", "comm.expert", "expert all-to-all, exposed"},
    {"comm", "parameters", "comm.parameters", "gathering sharded weights, exposed"},
    {"comm", "gradients", "comm.gradients", "reducing gradients, exposed"},
    {"comm", "pipeline", "comm.pipeline", "point-to-point between stages, exposed"},
    {"waiting", "bubble", "waiting.bubble", "pipeline fill and drain"},
    {"waiting", "imbalance", "waiting.imbalance", "unequal pipeline stages"},
    {"waiting", "experts", "waiting.experts", "unequal expert load"},
    {"waiting", "stragglers", "waiting.stragglers", "the slowest rank of each collective"},
    {"host", "launch", "host.launch", "the device waits for the host to launch"},
    {"host", "sync", "host.sync", "host work and synchronisation per step"},
    {"host", "allocator", "host.allocator", "memory allocator"},
    {"host", "garbage", "host.garbage", "garbage collection"},
    {"data", "storage", "data.storage", "waiting for storage"},
    {"data", "decode", "data.decode", "decoding on the host"},
    {"data", "copies", "data.copies", "host-to-device copies"},
    {"checkpoint", "", "checkpoint", "the blocking part of a save"},
    {"failure", "undetected", "failure.undetected", "running on after an undetected fault"},
    {"failure", "detection", "failure.detection", "until the fault is noticed"},
    {"failure", "replacement", "failure.replacement", "until a healthy node is found"},
    {"failure", "restart", "failure.restart", "until the job steps again"},
    {"failure", "lost work", "failure.lost_work", "steps since the last checkpoint"},
    {"failure", "corruption", "failure.corruption", "work lost to silent corruption"},
    {"start-up", "queue", "startup.queue", "waiting for the scheduler"},
    {"start-up", "image pull", "startup.image_pull", "fetching the container image"},
    {"start-up", "initialise", "startup.initialise", "process groups, weights, data set"},
    {"start-up", "compile", "startup.compile", "graph compilation"},
    {"start-up", "warm-up", "startup.warmup", "first slow steps"},
    {"facility", "outage", "facility.outage", "power or cooling lost"},
    {"facility", "maintenance", "facility.maintenance", "planned downtime"},
    {"facility", "curtailment", "facility.curtailment", "power held back by the grid or the site"},
    {"idle", "spares", "idle.spares", "spare nodes"},
    {"idle", "fragmentation", "idle.fragmentation", "free, but not in one piece"},
    {"idle", "unallocated", "idle.unallocated", "nobody asked for it"},
}};

}  // namespace

const AccountInfo& info(Account a) { return kInfo[static_cast<size_t>(a)]; }

Seconds Ledger::paid() const {
  Seconds sum;
  for (Seconds s : leaf) sum += s;
  return sum;
}

Ledger& Ledger::operator+=(const Ledger& o) {
  for (size_t i = 0; i < leaf.size(); ++i) leaf[i] += o.leaf[i];
  return *this;
}

Ledger& Ledger::operator*=(double s) {
  for (Seconds& t : leaf) t *= s;
  return *this;
}

Ledger operator-(const Ledger& a, const Ledger& b) {
  Ledger d;
  for (size_t i = 0; i < d.leaf.size(); ++i) d.leaf[i] = a.leaf[i] - b.leaf[i];
  return d;
}

}  // namespace assay
