// The values of a Hugging Face config.json by the names that families give them. Internal to world.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/value.h"
#include "world/workload.h"

namespace assay {

using Keys = std::initializer_list<const char*>;

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
  // The same, and a problem where it is 0.
  int64_t needed(Keys);
  // The same as whole(), and nobody is told: for who asks before the value is due.
  int64_t peek(Keys) const;
  std::optional<bool> flag(const char* key) const;
  std::string word(const char* key) const;
  // The items of a list; none where it is something else.
  std::vector<Value> items(const char* key) const;

  void problem(const Mark& at, std::string message, std::string help);
  // Where a number was read, for whoever finds it out of range; the whole file where it was not.
  Mark place_of(double number) const;

 private:
  const Value& root_;
  const Value* text_;  // the language model's part
  std::string type_;
  Diagnostics& problems_;
  std::vector<std::pair<double, Mark>> numbers_;
};

// A number as JSON writes it.
std::optional<double> config_number(const Value&);

// hf_mixer.cc: the recurrent mixer of a hybrid, if the config tells of one; then, when the model's
// layers are known, how many of them have it.
bool read_mixer(ConfigValues&, Model&);
void count_mixer_layers(ConfigValues&, Model&);
// Layers by a list of their kinds, for configs that state no number.
int64_t listed_layers(const ConfigValues&);

}  // namespace assay
