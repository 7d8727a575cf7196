#include "world/node_power.h"

#include <algorithm>

namespace assay {
namespace {

constexpr double kTrainingOverNameplate = 0.76;  // arXiv:2506.14551; 0.70 to 0.83
constexpr double kIdleOverNameplate = 0.18;      // DGX H100: 1.8 of 10.2 kW, an estimate
// Accelerators: 650 of 700 W in training (test/data/telemetry/h200_telemetry_train.csv.gz).
constexpr double kUsualOverLimit = 0.92;

}  // namespace

NodePower node_power(const Cluster& c, Watts accelerator) {
  const Node& n = c.node;
  const auto accelerators = static_cast<double>(n.accelerators);
  const Watts usual = n.host_power + kUsualOverLimit * accelerators * c.accelerator.tdp;
  NodePower p;
  p.nameplate_stated = n.nameplate.v > 0;
  p.idle_stated = n.idle_power.v > 0;
  p.nameplate = p.nameplate_stated ? n.nameplate : usual / kTrainingOverNameplate;
  p.training = accelerator.v > 0 ? n.host_power + accelerators * accelerator : usual;
  p.training = std::min(p.training, p.nameplate);
  p.idle = p.idle_stated ? n.idle_power : kIdleOverNameplate * p.nameplate;
  p.idle = std::min(p.idle, p.training);
  return p;
}

}  // namespace assay
