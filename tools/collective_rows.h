// Measured collectives (nccl-tests and the like) as the model sees them: the rows of a table of
// published measurements, joined with what is known of each machine. Used by the calibration
// (tools/fit_collectives.cc) and by the accuracy test, so that both judge alike.
#pragma once

#include <string>
#include <vector>

#include "base/csv.h"
#include "perf/collective.h"

namespace assay {

struct CollectiveRow {
  std::string system;   // as the table names it
  std::string scaleup;  // entry of catalog/collectives.yaml
  std::string fabric;   // empty: one scale-up domain
  Collective kind = Collective::kAllReduce;
  Bytes bytes;  // nccl-tests' convention, whatever the source's was
  Group group;
  Links links;  // nominal; parameters are not filled in
  Seconds measured;
  bool calibrates = true;  // false: for judging only (odd harness, unknown details)
};

struct CollectiveRows {
  std::vector<CollectiveRow> rows;
  int64_t unknown_machine = 0;  // rows whose links are not stated, or whose system is new to us
  int64_t failed = 0;           // rows that mark a failed measurement
};

CollectiveRows collective_rows(const CsvTable&);

// Single published figures of other machines, mostly of very large messages, that the table lacks.
std::vector<CollectiveRow> anchor_rows();

// Fills a row's links with parameters by entry name. REQUIRES: the names are in `entries`.
Links links_of(const CollectiveRow&, const std::vector<CollectiveParams>& entries);

}  // namespace assay
