// Offers side by side: the same job on two or more sites with their clusters and prices.
#pragma once

#include "report/simulate_report.h"

namespace assay {

struct OfferSide {
  std::string name;  // `offer-a.yaml`
  SimulateResult run;
};

struct OffersResult {
  std::vector<OfferSide> sides;
  double deadline_days = 0;  // zero: none asked for
  bool partial = false;      // interrupted: runs or whole sides are missing
};

// What one offer comes to. Days and dollars are to the target where there is one.
struct OfferFigures {
  Band days, tokens;
  double done = 1;  // share of runs that reach the target; 1 without one
  double cost_usd = 0;
  double usd_per_useful_exaflop = 0;
  double kwh = 0;
  double carbon_kg = 0, water_l = 0;  // zero: not known
  double missed = 0;                  // share of runs that are not done by the deadline
};
OfferFigures offer_figures(const SimulateResult&, double deadline_days);

std::string offers_text(const OffersResult&, const Style&, const Stamp&);
std::string offers_json(const OffersResult&, const Stamp&);

}  // namespace assay
