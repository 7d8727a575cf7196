// Every field of a description as a flat list of leaves, in one fixed order.
//
// Two settings give lists of the same length and order, so a comparison walks both at once, and one
// leaf can be copied from one to the other without knowing its type. Built from `fields` (world).
#pragma once

#include <string>
#include <vector>

#include "world/setting.h"
#include "world/operations.h"
#include "world/site.h"

namespace assay {

struct LeafOps {
  std::string (*text)(const void*);
  bool (*same)(const void*, const void*);
  void (*copy)(void* to, const void* from);
};

struct Leaf {
  std::string path;  // `plan.tp`, `cluster.node.nic_bandwidth`
  void* at = nullptr;
  const LeafOps* ops = nullptr;

  std::string text() const { return ops->text(at); }
  bool same(const Leaf& o) const { return ops->same(at, o.at); }
  void copy_from(const Leaf& o) const { ops->copy(at, o.at); }
};

// The leaves of a setting and a plan; they point into both. `stack.defaults` is left out: it speaks
// only where a plan says nothing, and this plan is complete. The last leaf is `accelerators`.
std::vector<Leaf> leaves(Setting&, Plan&);

// The leaves of one catalog entry; paths start at the entry.
std::vector<Leaf> leaves(Accelerator&);
std::vector<Leaf> leaves(Node&);
std::vector<Leaf> leaves(Fabric&);
std::vector<Leaf> leaves(Cluster&);
std::vector<Leaf> leaves(Model&);
std::vector<Leaf> leaves(Stack&);
std::vector<Leaf> leaves(Kernels&);
std::vector<Leaf> leaves(CollectiveParams&);
std::vector<Leaf> leaves(Climate&);
std::vector<Leaf> leaves(Tariff&);
std::vector<Leaf> leaves(Cooling&);
std::vector<Leaf> leaves(Tier&);
std::vector<Leaf> leaves(Storage&);
std::vector<Leaf> leaves(Offer&);
std::vector<Leaf> leaves(Site&);
std::vector<Leaf> leaves(Reliability&);
std::vector<Leaf> leaves(Operations&);

}  // namespace assay
