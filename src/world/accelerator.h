// One accelerator as its data sheet describes it. Peaks are dense (no sparsity).
#pragma once

#include "world/fields.h"
#include "world/precision.h"

namespace assay {

// How the accelerators of one scale-up domain are wired.
enum class Wiring { kNone, kSwitch, kMesh, kTorus2d, kTorus3d, kRing };
constexpr std::array<std::string_view, 6> enum_names(Wiring) {
  return {"none", "switch", "mesh", "torus2d", "torus3d", "ring"};
}

struct Accelerator {
  std::string name;
  std::vector<std::string> aliases;  // other spellings, matched without case and punctuation
  std::string vendor;
  std::string
      architecture;  // names the entry of catalog/kernels that holds measured kernel behaviour
  FlopRate fp32, tf32, fp16, bf16, fp8, fp4, int8;  // zero: not supported natively
  Bytes memory;
  Bandwidth memory_bandwidth;
  Bytes l2;
  int64_t compute_units = 1;  // SMs, CUs, or tensor cores' hosts: what a wave of tiles fills
  std::string scaleup_link;
  Bandwidth scaleup_bandwidth;  // one direction, one accelerator, all its scale-up links
  Bandwidth bridge_bandwidth;   // one direction of a bridge that joins two; zero: takes none
  Wiring wiring = Wiring::kSwitch;
  Bandwidth pcie_bandwidth;  // one direction to the host
  Watts tdp, idle;
  Hertz clock;       // the clock at which the peaks are stated
  DollarRate price;  // a median on-demand price, for clusters that state none
};

template <class T, class V>
  requires std::is_same_v<std::remove_const_t<T>, Accelerator>
void fields(T& a, V&& visit) {
  visit("aliases", a.aliases, kAny, "other spellings of the name");
  visit("vendor", a.vendor, kAny, "vendor");
  visit("architecture", a.architecture, kAny,
        "entry of catalog/kernels with its measured behaviour");
  visit("fp32", a.fp32, kNotNegative, "dense peak without tensor cores");
  visit("tf32", a.tf32, kNotNegative, "dense peak, TF32");
  visit("fp16", a.fp16, kNotNegative, "dense peak, FP16");
  visit("bf16", a.bf16, kNotNegative, "dense peak, BF16");
  visit("fp8", a.fp8, kNotNegative, "dense peak, FP8");
  visit("fp4", a.fp4, kNotNegative, "dense peak, FP4");
  visit("int8", a.int8, kNotNegative, "dense peak, INT8");
  visit("memory", a.memory, kPositive, "device memory");
  visit("memory_bandwidth", a.memory_bandwidth, kPositive, "device memory bandwidth");
  visit("l2", a.l2, kNotNegative, "last-level cache");
  visit("compute_units", a.compute_units, kCount, "SMs, CUs or cores that a wave of tiles fills");
  visit("scaleup_link", a.scaleup_link, kAny, "name of the scale-up link");
  visit("scaleup_bandwidth", a.scaleup_bandwidth, kNotNegative,
        "scale-up bandwidth, one direction");
  visit("bridge_bandwidth", a.bridge_bandwidth, kNotNegative,
        "one direction of an NVLink bridge that joins two, where a run says it has one");
  visit("wiring", a.wiring, kAny, "how a scale-up domain is wired");
  visit("pcie_bandwidth", a.pcie_bandwidth, kNotNegative, "host link, one direction");
  visit("tdp", a.tdp, kPositive, "power limit");
  visit("idle", a.idle, kNotNegative, "idle power");
  visit("clock", a.clock, kPositive, "clock at which the peaks are stated");
  visit("price", a.price, kNotNegative, "median on-demand price");
}

}  // namespace assay
