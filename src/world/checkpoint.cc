#include "world/checkpoint.h"

#include "world/model_size.h"

namespace assay {
namespace {

// Adapters are below a hundredth of the model; the frozen weights are not saved again.
constexpr double kAdapterShare = 0.01;

}  // namespace

Bytes checkpoint_bytes(const Workload& w) {
  const double share = w.task == Task::kLora ? kAdapterShare : 1;
  return Bytes(share * parameters(w.model) * (kWeightBytesSaved + kOptimizerBytesSaved));
}

}  // namespace assay
