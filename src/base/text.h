// Bytes of text without a locale: the same on every machine. Only ASCII has case, digits and
// blanks.
#pragma once

#include <string>
#include <string_view>

namespace assay {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

constexpr bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A word as a shell takes it back: as it is where nothing in it means anything to a shell, else in
// quotes. Bytes that a terminal would act on are escaped, as bash, zsh and ksh read them.
std::string shell_quoted(std::string_view word);

}  // namespace assay
