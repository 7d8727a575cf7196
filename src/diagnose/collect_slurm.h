// Slurm's outputs in a diagnosis: all of them together are one period of one cluster.
#pragma once

#include <string>
#include <string_view>

#include "diagnose/diagnose.h"
#include "ingest/slurm.h"

namespace assay {

// Adds one file to the reading and says in `file` what it held.
void collect_slurm(FileKind, std::string_view text, const std::string& path, SlurmReading&,
                   FileRead& file, Diagnostics& problems);

// The ledger of the period, its largest losses, and the nodes on which jobs die.
void analyse_slurm(const SlurmReading&, Diagnosis&);

}  // namespace assay
