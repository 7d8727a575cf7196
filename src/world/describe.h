// From what a person gave (catalog names, YAML files, --set) to one complete, checked description.
//
// A YAML file has one or more of the sections `workload:`, `cluster:`, `site:`, `stack:`, `plan:`
// and `run:`; a section is a mapping, or a catalog name. A file named *.json with `hidden_size` (or
// the like) is a Hugging Face config and stands for a model. Everything not stated comes from the
// catalog, the stack's defaults or a rule, and is noted in `assumed`.
#pragma once

#include <optional>
#include <set>

#include "world/catalog.h"

namespace assay {

struct Request {
  std::vector<std::string> inputs;  // names, files or "-", in any order; kinds are recognised
  std::vector<std::string> sets;    // `plan.tp=8`, `cluster.nodes=64`, `workload.seq=4096`
  int64_t gpus = 0;                 // --gpus; zero: all
  double tokens = 0;                // --tokens
  bool needs_workload = true;
  bool needs_site = false;
  bool needs_operations = false;
};

struct Assumption {
  std::string path;   // `workload.global_batch`
  std::string value;  // `512`
  std::string why;    // `about 4 M tokens per step`
};

struct Description {
  Setting setting;
  Site site;              // where has_site; else a default one that must not be used
  Operations operations;  // how it is run; the catalog's `usual` where nothing is said
  bool has_workload = false, has_site = false, has_operations = false;
  Plan plan;                        // complete only as far as stated; the rest are stack defaults
  std::set<std::string> plan_keys;  // keys of `plan` that were stated; empty: search
  std::vector<Assumption> assumed;
  Origins origins;  // of every field that was stated or taken from the catalog
  Diagnostics warnings;
  std::string workload_name, cluster_name, site_name, stack_name, operations_name;
};

// All problems at once. Needs a cluster, and what the request says; without a stack, the catalog's
// default for the accelerator's vendor is used and noted.
tl::expected<Description, Diagnostics> describe(const Request&, const Catalog&);

// The same for whoever has more to find: what can be planned although something is wrong. Nothing
// where workload, cluster, stack or plan have problems; in `run` what is wrong is as usual; a site
// that has problems is read but not `has_site`.
struct DescribeAttempt {
  Diagnostics problems;
  std::optional<Description> readable;
  bool site_broken = false;
};
DescribeAttempt try_describe(const Request&, const Catalog&);

// More settings `run.*` and `site.*` over a description that is complete: what the request would
// have made of them. Nothing is changed where there are problems.
Diagnostics lay_over(const std::vector<std::string>& sets, const Catalog&, Operations&, Site&);

// For `check`: read each file, report every problem and what would be assumed, need nothing.
struct CheckReport {
  Diagnostics problems;
  std::vector<Assumption> assumed;
};
CheckReport check_file(const std::string& path, const Catalog&);

// A Hugging Face config.json -> Model. Hostile input safe.
tl::expected<Model, Diagnostics> read_hf_config(const std::string& text, const std::string& file);

}  // namespace assay
