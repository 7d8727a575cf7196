// A run that tests of the mapping start from. For tests.
#pragma once

#include "validate/scenario.h"

namespace assay {

using TrainingRun = assay::Run;  // inside a test body, Run is a function of gtest

// A complete run of a dense model; tests change what they are about.
inline TrainingRun base() {
  TrainingRun r;
  r.id = "x";
  r.model_name = "Llama-3.1-8B";
  r.layers = 32;
  r.hidden = 4096;
  r.ffn = 14336;
  r.heads = 32;
  r.kv_heads = 8;
  r.vocab = 128256;
  r.seq = 8192;
  r.gpu = "H100";
  r.accelerators = 64;
  r.per_node = 8;
  r.framework = "NeMo 24.07";
  r.tp = 2;
  r.pp = 1;
  r.micro_batch = 1;
  r.global_batch = 128;
  r.task = "pretrain";
  return r;
}

// What a run is taken to mean; a refusal gives an empty one, which no test expects.
inline Scenario mapped(const TrainingRun& run) {
  const tl::expected<Scenario, Refusal> s = to_scenario(run, catalog());
  return s ? *s : Scenario{};
}

}  // namespace assay
