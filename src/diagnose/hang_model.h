// What a set of Flight Recorder dumps says about who waits for whom, before anyone is blamed.
//
// Every collective of a process group has a number. A member that has not enqueued number s holds
// up every member that has: an operation `lacks` it. Point-to-point operations are paired by their
// order on the way from one rank to another: when the sender has three sends in flight and the
// receiver two receives, the third send lacks the receiver.
//
// Two kinds of false appearance are removed first:
//  - A recorder that stopped (its device or its watchdog died) shows operations as in flight
//    which a peer has completed. A symmetric collective (all-reduce, all-gather, reduce-scatter,
//    all-to-all, barrier) that one member completed was executed by all, so it is done for
//    everybody.
//  - A dump that was written earlier than the others lacks what its rank did later: a peer has
//    completed a symmetric collective that this rank seems not to have enqueued. Such a rank's
//    record proves nothing about what it did not enqueue.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/flight_recorder.h"

namespace assay {

// One operation that somebody has in flight.
struct HangOp {
  int group = -1;         // index into HangModel::groups
  int64_t sequence = -1;  // collectives; -1: point to point
  FlightKind kind = FlightKind::kCollective;
  std::string name, sizes;
  std::vector<int> waiting;  // ranks (indices) that have it in flight
  std::vector<int> lacks;    // members known not to have enqueued it
  std::vector<int> unknown;  // members of which nothing is known
  int peer = -1;             // point to point: the other side's index
};

struct HangGroup {
  std::string name, description;
  std::vector<int> members;  // indices of ranks
  std::vector<int64_t>
      enqueued;  // by member: the last collective known to be enqueued; -1: unknown
  std::vector<int64_t> completed;  // by member; -1: unknown
  bool point_to_point = false;     // has been used for sends and receives
  int64_t proven = -1;             // every member executed the collectives up to here
};

// A recorder that misses this many operations which a peer proves done has stopped.
constexpr int kStopped = 2;

struct HangRank {
  int rank = -1;                 // as the job counts
  int dump = -1;                 // index into the dumps; -1: none
  bool early = false;            // its dump was written before the others'
  int stale = 0;                 // operations it shows in flight though they are proven done
  std::vector<int> in_flight;    // indices of ops, in the order of enqueueing
  std::vector<int64_t> records;  // their record ids
  int64_t last_ns = -1;          // when it enqueued its last known operation
  bool lists_completed = false;  // its dump holds completed operations too
  bool records_starts = false;   // its recorder sees operations start
};

// Ranks of one group that called different things under one number.
struct HangMismatch {
  int group = -1;
  int64_t sequence = -1;
  std::vector<std::string> calls;         // `all_reduce 120 Float`
  std::vector<std::vector<int>> callers;  // indices of ranks, by call; the largest side first
};

struct HangModel {
  std::vector<HangRank> ranks;  // ascending; also those that left no dump
  std::vector<HangGroup> groups;
  std::vector<HangOp> ops;
  std::vector<HangMismatch> mismatches;
  int64_t timeout_ms = -1;  // the shortest of those in flight
};

HangModel model_hang(const std::vector<FlightDump>&);

// All members leave with the same knowledge: one's completion proves that all took part.
bool symmetric_collective(std::string_view name);

}  // namespace assay
