// Whose kernel log and telemetry is whose: joins what other files say about devices to the ranks of
// a hang.
//
// A rank's device is known when a file's name states the rank (`dmesg_rank14.log`), when a list of
// ranks with their hosts and buses is among the files (nccl-tests prints one), or when the job has
// a single host and ranks are its devices in order. What cannot be joined is left out: a wrong join
// would convict an innocent.
#pragma once

#include "diagnose/hang.h"
#include "ingest/kernel_log.h"
#include "ingest/nccl_tests.h"
#include "ingest/telemetry.h"

namespace assay {

HangEvidence hang_evidence(const std::vector<FlightDump>&, const std::vector<KernelLog>&,
                           const std::vector<Telemetry>&, const std::vector<NcclTests>&);

}  // namespace assay
