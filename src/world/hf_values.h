// The values of a Hugging Face config.json by the names that families give them. Internal to world.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/value.h"
#include "world/hf_keys.h"
#include "world/rules.h"
#include "world/workload.h"

namespace assay {

class ConfigValues {
 public:
  ConfigValues(const Value& root, Diagnostics& problems);

  // The text model's type where there is one: `gemma3_text`, not `gemma3`.
  const std::string& type() const { return type_; }

  // The value of a key that says something: null is as good as nothing. `ffn_config.moe_top_k` is
  // one inside a mapping.
  const Value* find(const char* key) const;
  // The first of the keys that is there, as a whole number; 0 when none is. Bad values are
  // problems.
  int64_t whole(Keys);
  // The same where a list may say it layer by layer: its mean, and a warning where layers differ.
  int64_t mean(Keys);
  // The same as whole() or mean(), and a problem where it is 0.
  int64_t needed(Keys);
  int64_t needed_mean(Keys);
  // The same as whole(), and nobody is told: for who asks before the value is due.
  int64_t peek(Keys) const;
  std::optional<bool> flag(const char* key) const;
  std::string word(const char* key) const;
  // The items of a list; none where it is something else.
  std::vector<Value> items(const char* key) const;
  // A list that has one item for each layer.
  void check_length(const char* key, int64_t listed, int64_t layers);

  void problem(const Mark& at, std::string message, std::string help);
  void warn(const Mark& at, std::string message, std::string help);
  const Diagnostics& warnings() const { return warnings_; }
  // The config as a whole, and the place of a key in it, else the whole.
  Mark whole_place() const { return root_.at; }
  Mark place(const char* key) const;
  // Where the fields of a Model are stated.
  ModelPlaces places() const;

 private:
  const char* known_key(std::string_view field) const;
  int64_t number(const char* key, const Value& stated);
  int64_t list_mean(const char* key, const Value& list);
  int64_t first(Keys, bool per_layer);
  int64_t at_least_one(Keys, bool per_layer);

  const Value& root_;
  const Value* text_;  // the language model's part
  std::string type_;
  Diagnostics& problems_;
  Diagnostics warnings_;
};

// A number as JSON writes it.
std::optional<double> config_number(const Value&);
// The multiple of `step` that is nearest to a positive number, and at least one of it.
int64_t nearest_multiple(double number, int64_t step);

// hf_mixer.cc: the recurrent mixer of a hybrid, if the config tells of one; then, when the model's
// layers are known, how many of them have it.
bool read_mixer(ConfigValues&, Model&);
void count_mixer_layers(ConfigValues&, Model&);
// Generations of RWKV that are described.
bool is_rwkv(const std::string& type);
// Layers by a list of their kinds, for configs that state no number.
int64_t listed_layers(const ConfigValues&);

// hf_vision.cc: an encoder of images, whose tokens are patches and whose words are classes. False:
// the type is none.
bool read_vision(ConfigValues&, Model&);

// hf_beside.cc: what stands beside attention and MLP or is shared; a layer that is two (LongCat).
void read_beside(ConfigValues&, Model&);
void read_pairs(ConfigValues&, Model&);

// hf_layers.cc: models whose layers differ, by their mean. False: the config lists no such layers.
bool read_blocks(ConfigValues&, Model&);
bool read_multipliers(ConfigValues&, Model&);
// An encoder and a decoder with a shape each (T5Gemma).
void read_halves(ConfigValues&, Model&);
// Key-value heads that divide the heads, after a mean of either.
void settle_heads(ConfigValues&, Model&);
// Which layers have experts, from a list of zeros and ones.
void expert_layers(ConfigValues&, Model&);

}  // namespace assay
