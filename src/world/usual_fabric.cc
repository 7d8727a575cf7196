#include "world/usual_fabric.h"

#include <algorithm>

#include "world/names.h"

namespace assay {
namespace {

// The catalog's name of a fabric for ports of so many Gbit/s.
const char* fabric_name(FabricKind kind, double gbit, int64_t ports) {
  switch (kind) {
    case FabricKind::kInfiniband:
      return gbit > 500   ? "xdr-800"
             : gbit > 300 ? "ndr-400-rail"
             : gbit > 150 ? "hdr-200"
                          : "edr-100";
    case FabricKind::kRoce:
      return gbit > 500   ? "roce-800"
             : gbit > 300 ? "roce-400"
             : gbit > 150 ? "roce-200"
                          : "roce-100";
    case FabricKind::kEfa:
      return gbit > 300 ? "efa-v4" : gbit > 150 ? "efa-v3" : ports > 8 ? "efa-v2" : "efa-v1";
    case FabricKind::kTcp:
      return gbit > 300  ? "ethernet-400g"
             : gbit > 50 ? "ethernet-100g"
             : gbit > 15 ? "ethernet-25g"
                         : "ethernet-10g";
    case FabricKind::kSlingshot:
      return "slingshot-11";
    case FabricKind::kOmnipath:
      return "omnipath-100";
    case FabricKind::kTorus:
      return "tpu-torus-3d";
    case FabricKind::kNone:
      return "single-node";
  }
  return "single-node";
}

}  // namespace

FabricKind usual_fabric_kind(const Accelerator& a, const Node& node) {
  const std::string vendor = normalised(a.vendor);
  const auto named = [&](std::initializer_list<std::string_view> prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](std::string_view p) { return node.name.starts_with(p); });
  };
  const bool slow = node.nic_bandwidth * static_cast<double>(node.nics) < kLeastRdma;
  if (vendor == "aws" || vendor == "amazon" || (named({"aws-"}) && !slow)) return FabricKind::kEfa;
  if (named({"gcp-a2", "gcp-a3-high", "gcp-a3-mega"})) return FabricKind::kTcp;
  if (named({"jean-zay"})) return FabricKind::kOmnipath;
  if (named({"frontier", "lumi", "el-capitan", "aurora", "perlmutter", "mi250x-4"}))
    return FabricKind::kSlingshot;
  if (named({"gcp-", "oci-"})) return FabricKind::kRoce;
  if (vendor == "amd" || vendor == "intel" || vendor == "habana" || vendor == "huawei")
    return FabricKind::kRoce;
  return slow ? FabricKind::kTcp : FabricKind::kInfiniband;
}

Fabric fabric_of_kind(const Catalog& catalog, FabricKind kind, Bandwidth port, int64_t ports) {
  const std::string name = fabric_name(kind, port.v / kGbit, ports);
  if (const Fabric* f = find_fabric(catalog, name)) return *f;
  Fabric bare;
  bare.name = name;
  bare.kind = kind;
  return bare;
}

bool wired_as_torus(const Accelerator& a) { return normalised(a.scaleup_link) == "ici"; }

Fabric torus_of(const Catalog& catalog, const Accelerator& a) {
  for (const Fabric& f : catalog.fabrics) {
    if (f.kind == FabricKind::kTorus && f.name.starts_with(a.name)) return f;
  }
  const bool flat = a.wiring == Wiring::kTorus2d;
  if (const Fabric* f = find_fabric(catalog, flat ? "tpu-torus-2d" : "tpu-torus-3d")) return *f;
  return fabric_of_kind(catalog, FabricKind::kTorus, Bandwidth(0));
}

}  // namespace assay
