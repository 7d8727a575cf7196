// The verdict on a hang as findings, open questions and notes: the words only.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "diagnose/hang.h"

namespace assay {

struct Blamed {
  int index = -1;  // into HangModel::ranks, as all below
  Confidence confidence = Confidence::kMedium;
  std::string why;
};

struct HangView {
  const HangModel& model;
  const std::vector<FlightDump>& dumps;
  const std::vector<std::vector<int>>& waited_by;     // ops that lack a rank
  const std::vector<std::vector<int>>& maybe_waited;  // ops that may lack it
  std::vector<Blamed> blamed;
  std::vector<int> running;   // behind the others in dumps of a job that may still run
  std::vector<int> suspects;  // the recorder stopped; the order cannot tell
  size_t outside = 0;         // ranks that wait for something no dump shows
  bool early = false;         // dumps were written at different times
  bool soon = false;          // or too soon after the last collective
};

void describe_hang(const HangView&, const std::map<int, const RankEvidence*>&, bool hung,
                   Analysis&);

}  // namespace assay
