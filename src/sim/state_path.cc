#include "sim/state_path.h"

#include <algorithm>

#include "base/assert.h"

namespace assay {
namespace {

// Of storage that input wants whole, what a save still gets: both are equals there.
constexpr double kSaveShareLeast = 0.5;

// Time of `all` at a common limit and of `each` at one's own; a limit of zero does not bind.
Seconds slower(Bytes all, Bandwidth common, Bytes each, Bandwidth own) {
  Seconds time(0);
  if (common.v > 0) time = all / common;
  if (own.v > 0) time = std::max(time, each / own);
  return time;
}

}  // namespace

StateTimes state_times(const StatePath& p) {
  ASSERT(p.nodes >= 1 && p.accelerators >= 1 && p.host_copy.v > 0);
  const double all = p.nodes * p.accelerators;
  const Bytes once = p.weights + p.optimizer;
  const Bytes part = once / all;
  // What one accelerator holds.
  const Bytes held = p.weights * (p.weight_copies / all) + p.optimizer * (p.optimizer_copies / all);
  StateTimes t;
  t.copy = part / p.host_copy;
  t.persist_alone = slower(once, p.write, once / p.nodes, p.node);

  const double wanted = p.read.v > 0 ? p.input.v / p.read.v : 0;
  const double save_share = std::max(kSaveShareLeast, 1 - wanted);
  t.persist = slower(once, p.write * save_share, once / p.nodes, p.node);
  t.demand = wanted;
  t.starved = std::max(0.0, wanted - 1);
  t.starves = std::max(0.0, wanted / kSaveShareLeast - 1) - t.starved;

  t.read = p.every_replica_reads ? held * all : once;
  const Bytes missing = p.every_replica_reads ? Bytes(0) : std::max(Bytes(0), held - part);
  const Bandwidth port = p.ports / p.accelerators;
  const Seconds spread = port.v > 0 ? missing / port : Seconds(0);
  const Seconds into = held / p.host_copy;
  t.restore = std::max(slower(t.read, p.read, t.read / p.nodes, p.node), into) + spread;
  t.peer_persist = port.v > 0 ? part / port : Seconds(0);
  t.peer_restore = t.peer_persist + part / p.host_copy + spread;
  t.heal = port.v > 0 ? held / port : into;
  return t;
}

}  // namespace assay
