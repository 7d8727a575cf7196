// The smallest JSON scanner that a profiler trace needs: it finds where values begin and end in a
// window of bytes, reads numbers as decimal text, and looks closely only at what is asked for.
//
// It is lenient on purpose. Real traces hold raw control characters, invalid UTF-8 and NaN, which a
// strict parser refuses together with the other million rows; here a text ends at the next quote
// that no backslash escapes, a bare word ends at the next delimiter, and what was skipped was not
// judged. It never recurses: nesting is a counter.
//
// REQUIRES of every function: kScanPadding readable bytes from `end` on, the first of them zero.
// Running into `end` is never an error here: the caller gets null and asks again with more bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace assay::scan {

constexpr size_t kScanPadding = 32;
constexpr int kDepthMost = 512;  // honest traces nest six deep

inline bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Files are indented, so a run of blanks is either one or two long or many.
inline const char* skip_blanks(const char* p) {
  if (!blank(*p)) return p;
  if (!blank(*++p)) return p;
#if defined(__SSE2__)
  for (;; p += 16) {  // stops at the zeros after the window
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i spaces = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '));
    const __m128i lines = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')));
    const __m128i tabs = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    const __m128i hit = _mm_or_si128(_mm_or_si128(spaces, lines), tabs);
    const unsigned others = ~static_cast<unsigned>(_mm_movemask_epi8(hit)) & 0xFFFFu;
    if (others != 0) return p + std::countr_zero(others);
  }
#else
  while (blank(*p)) ++p;  // stops at the zero after the window
  return p;
#endif
}

// The first quote or backslash at or after `p`; `end` when there is none.
inline const char* find_quote(const char* p, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i slash = _mm_set1_epi8('\\');
  for (; p < end; p += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash));
    const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
    if (mask != 0) {
      p += std::countr_zero(mask);
      return p < end ? p : end;
    }
  }
  return end;
#else
  while (p < end && *p != '"' && *p != '\\') ++p;
  return p;
#endif
}

// The first of " [ ] { } at or after `p`; `end` when there is none.
inline const char* find_bracket(const char* p, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i fold = _mm_set1_epi8(0x20);  // [ and ] differ from { and } in this bit
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  for (; p < end; p += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i folded = _mm_or_si128(bytes, fold);
    const __m128i brackets =
        _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close));
    const __m128i hit = _mm_or_si128(brackets, _mm_cmpeq_epi8(bytes, quote));
    const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
    if (mask != 0) {
      p += std::countr_zero(mask);
      return p < end ? p : end;
    }
  }
  return end;
#else
  while (p < end && *p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}') ++p;
  return p;
#endif
}

enum class Kind : uint8_t { kNone, kText, kEscapedText, kContainer, kWord };

// A value as it stands in the window: a text without its quotes, or a number, word or container.
struct Slice {
  const char* begin = nullptr;
  uint32_t size = 0;
  Kind kind = Kind::kNone;
  std::string_view view() const { return {begin, size}; }
  bool text() const { return kind == Kind::kText || kind == Kind::kEscapedText; }
};

// `p` is after the opening quote. Returns the closing quote, or null at the end of the window.
inline const char* end_of_text(const char* p, const char* end, bool& escaped) {
  escaped = false;
  for (;;) {
    p = find_quote(p, end);
    if (p == end) return nullptr;
    if (*p == '"') return p;
    escaped = true;
    p += 2;
    if (p >= end) return nullptr;
  }
}

enum class Scan : uint8_t { kOk, kMore, kBad };

// Skips the container whose opening bracket is at `p`; `p` is then after its closing one. With
// `depth` 1, the rest of a container that was entered already.
Scan skip_container(const char*& p, const char* end, int depth = 0);

// Which bytes end a number or a bare word.
constexpr std::array<bool, 256> kEndsWord = [] {
  std::array<bool, 256> ends{};
  for (const char c : std::string_view(",:\"[]{} \n\r\t"))
    ends[static_cast<unsigned char>(c)] = true;
  return ends;
}();
inline bool ends_word(char c) { return kEndsWord[static_cast<unsigned char>(c)]; }

// Reads one value of any kind at `p` (blanks already skipped); `p` is then after it.
inline Scan read_value(const char*& p, const char* end, Slice& value) {
  if (p >= end) return Scan::kMore;
  const char* begin = p;
  if (*p == '"') {
    bool escaped = false;
    const char* close = end_of_text(p + 1, end, escaped);
    if (close == nullptr) return Scan::kMore;
    value = {begin + 1, static_cast<uint32_t>(close - begin - 1),
             escaped ? Kind::kEscapedText : Kind::kText};
    p = close + 1;
    return Scan::kOk;
  }
  if (*p == '{' || *p == '[') {
    const Scan skipped = skip_container(p, end);
    if (skipped != Scan::kOk) return skipped;
    value = {begin, static_cast<uint32_t>(p - begin), Kind::kContainer};
    return Scan::kOk;
  }
  const char* at = p;
  while (at < end && !ends_word(*at)) ++at;
  if (at == end) return Scan::kMore;
  if (at == begin) return Scan::kBad;
  value = {begin, static_cast<uint32_t>(at - begin), Kind::kWord};
  p = at;
  return Scan::kOk;
}

// Reads `"key" :` at `p`; `p` is then at the value.
inline Scan read_key(const char*& p, const char* end, Slice& key) {
  if (p >= end) return Scan::kMore;
  if (*p != '"') return Scan::kBad;
  bool escaped = false;
  const char* close = end_of_text(p + 1, end, escaped);
  if (close == nullptr) return Scan::kMore;
  const char* at = skip_blanks(close + 1);
  if (at >= end) return Scan::kMore;
  if (*at != ':') {
    p = at;
    return Scan::kBad;
  }
  at = skip_blanks(at + 1);
  if (at >= end) return Scan::kMore;
  key = {p + 1, static_cast<uint32_t>(close - p - 1), escaped ? Kind::kEscapedText : Kind::kText};
  p = at;
  return Scan::kOk;
}

// Calls `each(key, value)` for the members of the object in `object`, which must be whole and lie
// in the window; false when it is not an object or is broken.
template <class Each>
bool for_each_member(std::string_view object, Each each) {
  const char* p = object.data();
  const char* end = p + object.size();
  if (object.empty() || *p != '{') return false;
  p = skip_blanks(p + 1);
  while (p < end && *p != '}') {
    Slice key, value;
    if (read_key(p, end, key) != Scan::kOk || read_value(p, end, value) != Scan::kOk) return false;
    each(key, value);
    p = skip_blanks(p);
    if (p < end && *p == ',') p = skip_blanks(p + 1);
  }
  return p < end;
}

// Calls `each(value)` for the elements of the array in `array`; as for_each_member.
template <class Each>
bool for_each_element(std::string_view array, Each each) {
  const char* p = array.data();
  const char* end = p + array.size();
  if (array.empty() || *p != '[') return false;
  p = skip_blanks(p + 1);
  while (p < end && *p != ']') {
    Slice value;
    if (read_value(p, end, value) != Scan::kOk) return false;
    each(value);
    p = skip_blanks(p);
    if (p < end && *p == ',') p = skip_blanks(p + 1);
  }
  return p < end;
}

// Decimal microseconds as text to integer nanoseconds, half to even, never through a double.
// Nothing when it is not a number (NaN, a word) or is beyond +-kTimeMost.
constexpr int64_t kTimeMost_ns = 4'000'000'000'000'000'000;  // 126 years; 2096 as wall-clock time
std::optional<int64_t> microseconds_to_ns(std::string_view decimal);

// The whole part of a number; nothing when it is no number or does not fit.
std::optional<int64_t> whole_number(std::string_view decimal);
std::optional<uint64_t> natural_number(std::string_view decimal);
// Clamped to 32 bits; `otherwise` where the slice is absent or no number.
int32_t small_number(Slice, int32_t otherwise);

// What a text says, escapes resolved. Raw control characters and invalid UTF-8 become '?', and
// `repaired` is set. Lone surrogates become '?' without that, as they are valid JSON.
std::string decode(Slice text, bool& repaired);

// Whether `text` is valid UTF-8 without control characters.
bool clean(std::string_view text);

}  // namespace assay::scan
