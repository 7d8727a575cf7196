// Kernels of recurrent mixers: what stands between their convolution and their gate.
#pragma once

#include "world/setting.h"

namespace assay {

struct ScanShape {
  MixerKind kind = MixerKind::kMamba2;
  double batch = 1, seq = 0;
  double heads = 0, head_dim = 0;  // values
  double groups = 1, state = 0;    // keys; value heads share them
};

struct ScanTime {
  Seconds forward, backward;
};

// At burst clocks, in 16 bits; what `kConvolution` takes is none of this.
ScanTime scan_time(const ScanShape&, const Setting&);

}  // namespace assay
