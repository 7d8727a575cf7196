// Any bytes as each of Slurm's outputs, and as a list of hosts: readings within their limits.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/hostlist.h"
#include "ingest/slurm.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  assay::SlurmReading out;
  assay::read_sacct(text, "fuzz", out);
  assay::read_sinfo(text, "fuzz", out);
  assay::read_squeue(text, "fuzz", out);
  assay::read_scontrol(text, "fuzz", out);
  for (const assay::SlurmJob& job : out.jobs) {
    if (!std::isfinite(job.gpus) || job.gpus < 0 || job.id.empty()) std::abort();
  }
  for (const assay::SlurmNode& node : out.nodes) {
    if (!std::isfinite(node.gpus) || node.gpus < 0) std::abort();
  }
  assay::render(out.problems);
  const auto hosts = assay::expand_hostlist(text.substr(0, 200), 1000);
  if (hosts && hosts->size() > 1000) std::abort();
  return 0;
}
