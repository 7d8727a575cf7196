#include "base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

bool is_plain(char c) {
  const char l = lower(c);
  return (l >= 'a' && l <= 'z') || is_digit(c) || contains("_-./:=,+@%", std::string_view(&c, 1));
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  const bool controls = std::any_of(word.begin(), word.end(), is_control);
  std::string out = controls ? "$'" : "'";
  for (const char c : word) {
    if (is_control(c)) {
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else if (c == '\'') {
      out += controls ? "\\'" : "'\\''";
    } else if (c == '\\' && controls) {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace assay
