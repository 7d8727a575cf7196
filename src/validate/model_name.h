// A part of model_choice.cc: the catalog's model that a row means by its name, or by its shape.
#pragma once

#include "validate/run.h"
#include "world/catalog.h"

namespace assay {

// By its name, also with what people append to it (`DeepSeek-V3-0324`, `Llama-2-70B-LoRA`, `Qwen3
// 30B-A3B cut to 12 layers`) or leave out (`Qwen3-235B`); null: none.
const Model* named_model(const Catalog&, const Run&);

// A model with latent attention of the row's width, heads and experts: nothing else in a row says
// how its attention is made, and nobody else has these three together.
const Model* latent_twin(const Catalog&, const Run&);

}  // namespace assay
