// Findings of a job's operation trace: who or what makes the step longer than an even spread of the
// same work would be, priced by replaying the job without it (what_if.h).
//
// The three parts of the slowdown are judged apart: stages that differ (uneven partition), ranks of
// a stage that differ (slow machines), and operations of a rank that differ from each other (uneven
// microbatches, or pauses). Each is a finding of its own when it is worth fixing. The pipeline's
// inherent bubble is a finding where a schedule with twice the chunks would give back enough.
#pragma once

#include "diagnose/finding.h"
#include "diagnose/what_if.h"

namespace assay {

Analysis diagnose_operations(const OperationTrace&, const WhatIf&);

}  // namespace assay
