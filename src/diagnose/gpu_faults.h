// Parts of diagnose_telemetry: what is broken, and whether busy GPUs work. Only for hardware.cc.
#pragma once

#include <vector>

#include "diagnose/hardware.h"

namespace assay {

// ECC errors, remapped rows, PCIe links, XIDs and the driver's own demand for a reset. `times` are
// those of `series`, one by one.
void add_faults(const std::vector<const GpuSeries*>& series, const std::vector<GpuTime>& times,
                Analysis&);

// A GPU whose clock is below its peers' for no reason that another finding gives.
void add_slow_peers(const std::vector<const GpuSeries*>& series, const std::vector<GpuTime>& times,
                    Analysis&);

// Utilisation that is not work, OFU against MFU, and GPUs that spin without doing anything.
void add_work(const std::vector<const GpuSeries*>& series, const std::vector<GpuTime>& times,
              const HardwareContext&, Analysis&);

}  // namespace assay
