// The catalog's model of the device that a trace was taken on.
#pragma once

#include "diagnose/kernel_waste.h"
#include "diagnose/trace_causes.h"

namespace assay {

// What the context says, else the catalog's entry for the device's name: the whole name first
// (`NVIDIA H200`), then the parts of it that look like a model (`Tesla V100-DGXS-32GB`: `V100`).
DeviceModel device_model(const Trace&, const TraceContext&);

}  // namespace assay
