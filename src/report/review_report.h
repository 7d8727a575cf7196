// The screen and the document of `assay review`.
#pragma once

#include "economics/review.h"
#include "report/screen.h"

namespace assay {

struct ReviewInput {
  const Site* site = nullptr;
  const Cluster* cluster = nullptr;
  const std::vector<Assumption>* assumed = nullptr;
};

std::string review_text(const Review&, const ReviewInput&, const Style&, const Stamp&);
std::string review_json(const Review&, const ReviewInput&, const Stamp&);

}  // namespace assay
