// Machines of the catalog that a text names, and the one that usually carries an accelerator. A
// part of the choice of a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "world/catalog.h"

namespace assay {

// The node that usually carries so many of an accelerator, or else another number of them; of those
// whose names start with `prefix`.
const Node* reference_node(const Catalog&, const Accelerator&, int64_t per_node,
                           std::string_view prefix = "");

// For a part without a node of its own (another memory, another bin), that of its kin: the same
// silicon and link, no package of which it is a die, and the name nearest to its own.
const Node* kin_node(const Catalog&, const Accelerator&, int64_t per_node);

// Whether some node of the catalog carries just so many of an accelerator.
bool carries(const Catalog&, const Accelerator&, int64_t per_node);

// The machines and shapes of clouds that a text names by an alias without denying them: `NVLink
// (p3.16xlarge)`, `Jean-Zay`. In free notes a single word is no name (`frontier`).
std::vector<const Node*> nodes_named_in(const Catalog&, const std::string& text,
                                        bool notes = false);

// `a100` of `a100-sxm4-80gb`, `max-1550` of `max-1550-tile`.
std::string family_of(const Accelerator&);

}  // namespace assay
