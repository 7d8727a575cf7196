// Collectives of one rank as compact records, and the same collective found again on other ranks.
//
// With metadata (process group, its ranks, sequence number) the records carry a key that is equal
// on all members. Where the sequence number is missing (PyTorch of 2023) the how-manieth of its
// name and group in its profiler step stands in. Point-to-point transfers are counted by pair of
// ranks.
//
// Without metadata (2021-2022, NCCL kernels only) ranks are matched after all of them are known:
// streams of communication in order of their number, kernels of a stream in order, names equal. A
// rank whose order disagrees with the others (kernels missing, a window that began later) is
// matched by time: members of a collective end together, so the clock difference is the one that
// most pairs of ends of the same name agree on, and each collective goes to the one that ends
// nearest.
#pragma once

#include <vector>

#include "diagnose/ranks.h"

namespace assay {

// Appends the records of a trace's communication to the summary, and what lies between them.
void summarise_collectives(const Trace&, RankSummary&);

// Gives a key to records that have none. Returns the ranks (indices) that could not be matched.
std::vector<int32_t> match_by_order(std::vector<RankSummary>&);

// A rank's clock against the others', from ends of collectives that share a key: the median of the
// differences, and their median deviation from it. Zero where a rank shares none.
struct ClockOffset {
  int64_t offset_ns = 0, noise_ns = 0;
};
std::vector<ClockOffset> clock_offsets(const std::vector<RankSummary>&);

}  // namespace assay
