// When causes strike, before anybody asks what they strike.
//
// Every machine has its own clock for every cause, in calendar time: whether it works, waits as a
// spare or lies in repair does not shift it, nor does anything the job does. So two specs that
// differ in a policy meet the same arrivals. A machine's clock runs at its own rate (frailty) and
// faster in the first weeks (infant mortality): arrivals are spaced by the quantile of one draw
// each, in operational time s(t) = t + (m - 1) tau (1 - e^(-t / tau)).
#pragma once

#include "sim/prepare.h"

namespace assay {

enum class ArrivalKind : uint8_t { kFailure, kShock, kCorruption, kFailSlow, kSlowLink };

struct Arrival {
  Nanoseconds time = 0;
  ArrivalKind kind = ArrivalKind::kFailure;
  uint16_t cause = 0;   // process or shock
  int32_t entity = 0;   // machine, domain, or 0 for the job
  int32_t ordinal = 0;  // how many of this cause and entity came before
};

// All of them within the horizon, cause by cause.
std::vector<Arrival> draw_arrivals(const PreparedRun&, uint64_t seed);

// The same by time; at the same time in the order in which they were drawn.
std::vector<Arrival> by_time(const std::vector<Arrival>&);

// A stream for what else is to be drawn about an arrival; tied to it, whenever it is asked for.
Stream attributes(uint64_t seed, uint64_t cause, const Arrival&);

}  // namespace assay
