// What joins nodes of which nobody says what does: the transport that machines with such an
// accelerator, or of such a name, usually have, and the catalog's fabric of that kind for ports of
// a speed.
#pragma once

#include "world/catalog.h"
#include "world/cluster.h"

namespace assay {

inline constexpr double kGbit = 1e9 / 8;  // bytes per second of one Gb/s
// What a node's ports together must carry to be worth RDMA: below are those of plain Ethernet.
constexpr Bandwidth kLeastRdma{60 * kGbit};

FabricKind usual_fabric_kind(const Accelerator&, const Node&);

// A bare fabric of that kind where none is listed. `ports` a node.
Fabric fabric_of_kind(const Catalog&, FabricKind, Bandwidth port, int64_t ports = 8);

// Chips that form their own network, whatever their hosts have.
bool wired_as_torus(const Accelerator&);
Fabric torus_of(const Catalog&, const Accelerator&);

}  // namespace assay
