// Small tools for readers of foreign text: lines, words, numbers. Nothing here allocates more than
// its result, throws, or depends on the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/text.h"

namespace assay {

// The next line without its end (LF or CRLF), taken off `rest`. False at the end of the text.
bool next_line(std::string_view& rest, std::string_view& line);

bool contains_any_case(std::string_view text, std::string_view lower_case_part);

// Words between runs of blanks and tabs; at most `max`, the rest is dropped.
std::vector<std::string_view> words(std::string_view, size_t max = 256);
// Fields between single separators, each trimmed; at most `max`.
std::vector<std::string_view> fields(std::string_view, char separator, size_t max = 4096);

// The number a text begins with (`1980 MHz`, `0.65`, `1e3`), or none. NaN, infinities, hexadecimal
// and numbers beyond a double are none: a measurement is a finite number.
std::optional<double> leading_number(std::string_view);
// The same, where nothing but blanks may follow.
std::optional<double> whole_number(std::string_view);
// An integer of the given base; a `0x` before base 16 is allowed; nothing but blanks may follow.
std::optional<uint64_t> unsigned_number(std::string_view, int base = 10);

// Text without terminal escapes (`\x1b[4m`), which nvidia-smi and trainers leave in their logs.
std::string without_escapes(std::string_view);

// What is wrong with a file, in which line; 0: of the whole file.
Diagnostic problem(Severity, std::string message, const std::string& file, int line = 0);

}  // namespace assay
