// What a person gave on the command line, as sections of values: names are looked up, files are
// read, `--set` is laid over them. Nothing is interpreted here beyond what kind of thing it is.
#pragma once

#include <array>

#include "config/value.h"
#include "world/describe.h"

namespace assay {

struct Section {
  bool given = false;
  bool failed = false;  // it was given but could not be read at all; the reason is told already
  Value value;          // a mapping; null when nothing but its existence is known
  std::string label;  // a name for it when it has none itself: the catalog name or the file's stem
  std::string passed_over;  // a name that could have stood for it and was taken for another section
};

struct Inputs {
  Sources sources;
  Section workload, cluster, site, stack, plan, run;
};

// Reads everything that was given; problems are added, not thrown.
void gather_inputs(const Request&, const Catalog&, Inputs&, Diagnostics&);

// A model as values, so that a config.json can be overridden like any mapping.
Value to_value(const Model&, const Mark&);

}  // namespace assay
