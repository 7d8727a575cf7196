#include "config/text_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

// Bytes of the UTF-8 character at `i`, or 0 when it is malformed. Overlong forms and surrogates are
// malformed, too.
size_t utf8_size(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) -> unsigned {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u;
  };
  const auto follows = [&](size_t k) { return (byte(k) & 0xC0u) == 0x80u; };
  const unsigned a = byte(i);
  const unsigned b = byte(i + 1);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a <= 0xDF) return follows(i + 1) ? 2 : 0;
  if (a >= 0xE0 && a <= 0xEF) {
    if (!follows(i + 1) || !follows(i + 2)) return 0;
    const bool overlong = a == 0xE0 && b < 0xA0;
    const bool surrogate = a == 0xED && b > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (a >= 0xF0 && a <= 0xF4) {
    if (!follows(i + 1) || !follows(i + 2) || !follows(i + 3)) return 0;
    const bool overlong = a == 0xF0 && b < 0x90;
    const bool beyond = a == 0xF4 && b > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

std::optional<Diagnostic> check_characters(const Source& source) {
  const std::string_view text = source.text;
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == 0) {
      return problem_at({&source, i}, "a NUL byte: this is not a text file",
                        "YAML is expected; UTF-16 must be saved as UTF-8");
    }
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      return problem_at({&source, i}, fmt::format("control character 0x{:02x}", c),
                        "remove it; is this a text file at all?");
    }
    const size_t size = utf8_size(text, i);
    if (size == 0) {
      return problem_at({&source, i}, fmt::format("byte 0x{:02x} is not valid UTF-8", c),
                        "save the file as UTF-8");
    }
    i += size;
  }
  return {};
}

std::optional<Diagnostic> check_indentation(const Source& source) {
  const std::string_view text = source.text;
  for (size_t begin : source.line_starts) {
    const size_t content = text.find_first_not_of(" \t", begin);
    if (content == std::string_view::npos) return {};
    const char first = text[content];
    if (first == '\n' || first == '\r' || first == '#') continue;
    const size_t tab = text.substr(begin, content - begin).find('\t');
    if (tab != std::string_view::npos) {
      return problem_at({&source, begin + tab}, "a tab indents this line",
                        "YAML forbids tabs there; use spaces");
    }
    if (first == '%' && content == begin) {
      return problem_at({&source, begin}, "YAML directives are not supported",
                        "remove the line that starts with `%`");
    }
  }
  return {};
}

// A cheap bound on what the library may have to queue. Brackets inside quotes are counted as well:
// the count need not be exact, it must only be impossible to get below it.
std::optional<Diagnostic> check_nesting(const Source& source, const YamlLimits& limits) {
  constexpr std::string_view kIndicators = "[]{},:-?&*!|>";
  size_t indicators = 0;
  int run = 0;  // brackets opened with nothing but blanks and dashes between them
  for (size_t i = 0; i < source.text.size(); ++i) {
    const char c = source.text[i];
    if (kIndicators.find(c) != std::string_view::npos) ++indicators;
    if (indicators > limits.indicators) {
      return problem_at({&source, i}, "too much structure for a description",
                        fmt::format("at most {} brackets, colons, commas and dashes are read",
                                    limits.indicators));
    }
    if (c == '[' || c == '{') {
      if (++run > limits.depth) {
        return problem_at({&source, i}, fmt::format("nested deeper than {} levels", limits.depth),
                          "no description is: is it the right file?");
      }
    } else if (c != ' ' && c != '\n' && c != '\r' && c != '\t' && c != '-') {
      run = 0;
    }
  }
  return {};
}

}  // namespace

std::optional<Diagnostic> check_text(const Source& source, const YamlLimits& limits) {
  if (std::optional<Diagnostic> d = check_characters(source)) return d;
  if (std::optional<Diagnostic> d = check_indentation(source)) return d;
  return check_nesting(source, limits);
}

}  // namespace assay
