#include "runs.h"

#include "base/assert.h"

namespace assay {

Description story_description(const std::string& file) {
  Request request;
  request.inputs = {file};
  request.needs_operations = true;
  tl::expected<Description, Diagnostics> d = describe(request, catalog());
  ASSERT(d && "an example of this folder is valid");
  return std::move(*d);
}

StoryRun story_run(const std::string& file, double days, double tokens, int runs,
                   const Change& change) {
  StoryRun r;
  r.description = story_description(file);
  if (change) change(r.description);
  StudyOptions options;
  options.what_ifs = false;
  r.plan = study(r.description, catalog(), options);
  ASSERT(r.plan.fits);
  SpecInput input;
  input.setting = &r.plan.description.setting;
  input.plan = &r.plan.plan;
  input.prediction = &r.plan.prediction;
  input.operations = &r.description.operations;
  input.site = r.description.has_site ? &r.description.site : nullptr;
  input.period = Seconds(days * kSecondsPerDay);
  input.tokens = tokens;
  r.spec = make_spec(input);
  ManyOptions many;
  many.runs = runs;
  r.many = simulate_many(r.spec.spec, many);
  return r;
}

}  // namespace assay
