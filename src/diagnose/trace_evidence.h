// Rows that a person can look at: the longest gaps, the weightiest kernels, the calls that held the
// host, each with the chain of operators around it. Text from the file is sanitised here.
#pragma once

#include "diagnose/trace_findings.h"

namespace assay {

std::vector<Evidence> evidence_of(const Priced&, const FindingInput&);

// Kernels by total time; only `ops` of the graph where given.
Evidence kernel_evidence(const FindingInput&, const std::vector<int32_t>& ops);
// The longest idle gaps whose main cause this is.
Evidence gap_evidence(const FindingInput&, Cause);
// Calls that held the host, by what they belong to.
Evidence call_evidence(const FindingInput&, Cause);

// `aten::item > aten::_local_scalar_dense`, outermost first: the operators around a time on a
// thread.
std::string op_chain(const Trace&, int32_t thread, int64_t at_ns);

}  // namespace assay
