// The way of a job's state to storage and back: what a save and a restart cost, from sizes and
// bandwidths alone.
//
// A model's state is W bytes of weights and O bytes of optimizer, once. The job holds several
// copies of either: every data-parallel rank has the weights, unless they are sharded; the
// optimizer is usually sharded, so there is one copy of it. With N nodes of g accelerators:
//
//   save      every accelerator copies its part of one copy to host memory, (W + O) / (N g), and
//             the nodes write it: all of it at what storage gives to writers, each node's part at
//             the node's own limit, whichever is slower.
//   restart   `once`: one copy is read, spread over all nodes, and the network brings every
//             accelerator what it lacks. `every`: each replica reads for itself, so storage serves
//             W x copies + O x copies and the time grows with the number of accelerators.
//   peer      the same part goes to another node's memory over the accelerator's share of the
//             ports, and comes back that way.
//
// Input that is read from the same storage takes its share of it: of writes only what it leaves,
// but never less than half; and if that is not enough for the input, the steps starve meanwhile.
#pragma once

#include "base/units.h"

namespace assay {

struct StatePath {
  double nodes = 1, accelerators = 8;  // of one node
  Bytes weights, optimizer;            // one copy of each
  double weight_copies = 1;            // among all accelerators
  double optimizer_copies = 1;
  Bandwidth read, write;                  // of storage, all clients together
  Bandwidth node;                         // one node's way to storage; zero: not limiting
  Bandwidth ports;                        // of one node, to other nodes; zero: a single node
  Bandwidth host_copy = Bandwidth(25e9);  // one accelerator to host memory and back
  Bandwidth input;                        // what training reads from the same storage
  bool every_replica_reads = false;
};

struct StateTimes {
  Seconds copy;           // accelerator to host memory
  Seconds persist;        // host memory to storage, while training reads its input
  Seconds persist_alone;  // the same while nobody trains
  Seconds restore;        // from storage into every accelerator
  Seconds peer_persist, peer_restore;
  Seconds heal;        // a whole replica copies the state of another
  Bytes read;          // what storage serves at a restart
  double demand = 0;   // of input, over what storage can read
  double starved = 0;  // excess of a step whose input storage cannot deliver, always
  double starves = 0;  // and in addition while a save is persisted
};

StateTimes state_times(const StatePath&);

}  // namespace assay
