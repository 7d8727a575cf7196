// What an operation of a pipelined step is, by the name of its type: who must be there with it, and
// what it waits for. Shared by the builder of the graph and by the scenarios.
#pragma once

#include <string_view>

#include "ingest/straggler_csv.h"

namespace assay {

enum class StepRole : uint8_t {
  kForward,
  kBackward,
  kForwardSend,
  kForwardReceive,
  kBackwardSend,
  kBackwardReceive,
  kGather,     // parameters, over the ranks of a stage
  kReduce,     // gradients, over the ranks of a stage
  kEmbedding,  // gradients of a shared embedding, over the stages of a dp rank
  kNorm,       // of the gradients, over everybody
  kLocal,      // anything else: it runs on its rank, after what came before
};

StepRole step_role(std::string_view type);

inline bool is_transfer(StepRole role) {
  return role >= StepRole::kForwardSend && role <= StepRole::kBackwardReceive;
}
// Whether others take part: then only the time after the last arrival is its own.
inline bool is_shared(StepRole role) {
  return role >= StepRole::kForwardSend && role != StepRole::kLocal;
}

}  // namespace assay
