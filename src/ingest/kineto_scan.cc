#include "ingest/kineto_scan.h"

#include <array>

namespace assay::scan {

Scan skip_container(const char*& p, const char* end, int depth) {
  const char* at = p;
  for (;;) {
    at = find_bracket(at, end);
    if (at == end) return Scan::kMore;
    const char c = *at;
    if (c == '"') {
      bool escaped = false;
      at = end_of_text(at + 1, end, escaped);
      if (at == nullptr) return Scan::kMore;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMost) {
        p = at;
        return Scan::kBad;
      }
    } else if (--depth == 0) {
      p = at + 1;
      return Scan::kOk;
    }
    ++at;
  }
}

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number taken apart: its digits without the point, and where the point stands.
struct Decimal {
  bool negative = false;
  std::array<char, 64> digits{};  // significant ones, without leading zeros
  int count = 0;                  // of them
  bool more = false;              // digits that are not zero were left off at the end
  int point = 0;                  // the value is 0.d1d2d3... x 10^point
};

void take_digit(Decimal& d, char c) {
  if (d.count == 0 && c == '0') return;
  if (d.count < static_cast<int>(d.digits.size())) {
    d.digits[static_cast<size_t>(d.count++)] = c;
  } else if (c != '0') {
    d.more = true;
  }
}

// An exponent, held within +-100,000 so that nothing overflows.
std::optional<int> exponent(const char* p, const char* end) {
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  if (p == end) return std::nullopt;
  int value = 0;
  for (; p < end; ++p) {
    if (!digit(*p)) return std::nullopt;
    if (value < 100'000) value = value * 10 + (*p - '0');
  }
  return negative ? -value : value;
}

std::optional<Decimal> take_apart(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  Decimal d;
  d.negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  const char* first = p;
  int whole = 0, zeros = 0;  // digits before the point that count; zeros right after it
  for (; p < end && digit(*p); ++p) {
    take_digit(d, *p);
    if (d.count > 0 && whole < 1'000'000'000) ++whole;
  }
  bool any = p > first;
  if (p < end && *p == '.') {
    for (++p; p < end && digit(*p); ++p) {
      any = true;
      if (d.count == 0 && *p == '0' && zeros < 1'000'000'000) ++zeros;
      take_digit(d, *p);
    }
  }
  if (!any) return std::nullopt;
  d.point = whole > 0 ? whole : -zeros;
  if (p < end && (*p == 'e' || *p == 'E')) {
    const std::optional<int> e = exponent(p + 1, end);
    if (!e) return std::nullopt;
    d.point += *e;
    p = end;
  }
  if (p != end) return std::nullopt;
  return d;
}

// The digits before the point as an integer, the rest rounded half to even.
std::optional<int64_t> rounded(const Decimal& d, int point, int64_t most) {
  if (d.count == 0 || point < 0) return 0;
  constexpr int kDigitsMost = 19;
  if (point > kDigitsMost) return std::nullopt;
  const auto at = [&](int i) { return i < d.count ? d.digits[static_cast<size_t>(i)] - '0' : 0; };
  uint64_t value = 0;  // 19 digits fit
  for (int i = 0; i < point; ++i) value = value * 10 + static_cast<uint64_t>(at(i));
  bool beyond = d.more;
  for (int i = point + 1; i < d.count; ++i) beyond = beyond || at(i) != 0;
  const int next = at(point);
  if (next > 5 || (next == 5 && (beyond || value % 2 == 1))) ++value;
  if (value > static_cast<uint64_t>(most)) return std::nullopt;
  const int64_t result = static_cast<int64_t>(value);
  return d.negative ? -result : result;
}

}  // namespace

std::optional<int64_t> microseconds_to_ns(std::string_view decimal) {
  // Nearly all times are up to 16 digits, a point, and up to three digits more.
  const char* p = decimal.data();
  const char* end = p + decimal.size();
  const bool negative = p < end && *p == '-';
  if (negative) ++p;
  const char* first = p;
  uint64_t value = 0;  // at most 19 digits: no overflow
  const auto take = [&] { value = value * 10 + static_cast<uint64_t>(*p++ - '0'); };
  while (p < end && digit(*p) && p - first < 16) take();
  if (p > first && (p == end || *p == '.')) {
    int left = 3;
    if (p < end) ++p;
    for (; p < end && digit(*p) && left > 0; --left) take();
    for (; left > 0; --left) value *= 10;
    if (p == end && value <= static_cast<uint64_t>(kTimeMost_ns)) {
      return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
    }
  }
  const std::optional<Decimal> d = take_apart(decimal);
  constexpr int kNanosecondDigits = 3;
  return d ? rounded(*d, d->point + kNanosecondDigits, kTimeMost_ns) : std::nullopt;
}

int32_t small_number(Slice s, int32_t otherwise) {
  const bool absent = s.kind == Kind::kNone;
  const int64_t n = absent ? otherwise : whole_number(s.view()).value_or(otherwise);
  return static_cast<int32_t>(std::clamp<int64_t>(n, INT32_MIN, INT32_MAX));
}

std::optional<int64_t> whole_number(std::string_view decimal) {
  const char* p = decimal.data();
  const char* end = p + decimal.size();
  const bool negative = p < end && *p == '-';
  if (negative) ++p;
  const char* first = p;
  int64_t value = 0;
  while (p < end && digit(*p) && p - first < 18) value = value * 10 + (*p++ - '0');
  if (p == end && p > first) return negative ? -value : value;
  std::optional<Decimal> d = take_apart(decimal);
  if (!d) return std::nullopt;
  if (d->point < d->count) {  // the fraction is dropped, not rounded
    d->count = d->point > 0 ? d->point : 0;
    d->more = false;
  }
  return rounded(*d, d->point, INT64_MAX);
}

std::optional<uint64_t> natural_number(std::string_view decimal) {
  uint64_t value = 0;
  for (const char c : decimal) {
    if (!digit(c)) {
      const std::optional<int64_t> number = whole_number(decimal);
      if (!number || *number < 0) return std::nullopt;
      return static_cast<uint64_t>(*number);
    }
    const uint64_t next = static_cast<uint64_t>(c - '0');
    if (value > (UINT64_MAX - next) / 10) return std::nullopt;
    value = value * 10 + next;
  }
  return decimal.empty() ? std::nullopt : std::optional<uint64_t>(value);
}

namespace {

// The length of the UTF-8 character at `i`, or 0 when it is none.
size_t character(std::string_view s, size_t i) {
  const auto at = [&](size_t k) {
    return k < s.size() ? static_cast<unsigned char>(s[k]) : static_cast<unsigned char>(0);
  };
  const auto follows = [&](size_t k) { return (at(k) & 0xC0) == 0x80; };
  const unsigned char c = at(i);
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return follows(i + 1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {
    const bool overlong = c == 0xE0 && at(i + 1) < 0xA0;
    const bool surrogate = c == 0xED && at(i + 1) > 0x9F;
    return follows(i + 1) && follows(i + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    const bool overlong = c == 0xF0 && at(i + 1) < 0x90;
    const bool beyond = c == 0xF4 && at(i + 1) > 0x8F;
    const bool whole = follows(i + 1) && follows(i + 2) && follows(i + 3);
    return whole && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::optional<uint32_t> four_hex(std::string_view s, size_t i) {
  if (i + 4 > s.size()) return std::nullopt;
  uint32_t value = 0;
  for (size_t k = i; k < i + 4; ++k) {
    const char c = static_cast<char>(s[k] | 0x20);
    if (digit(s[k])) {
      value = value * 16 + static_cast<uint32_t>(s[k] - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + static_cast<uint32_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

// The escape at `s[i]` (after the backslash). Returns how many bytes it took.
size_t escape(std::string_view s, size_t i, std::string& out, bool& repaired) {
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  if (const size_t k = kFrom.find(s[i]); k != std::string_view::npos) {
    out.push_back(kTo[k]);
    return 1;
  }
  const std::optional<uint32_t> code = s[i] == 'u' ? four_hex(s, i + 1) : std::nullopt;
  if (!code) {  // an escape that JSON does not know, as Windows paths make them: kept as it is
    out.push_back('\\');
    repaired = true;
    return 0;
  }
  if (*code < 0xD800 || *code > 0xDFFF) {
    append_utf8(out, *code);
    return 5;
  }
  const bool pair = *code < 0xDC00 && i + 6 < s.size() && s[i + 5] == '\\' && s[i + 6] == 'u';
  const std::optional<uint32_t> low = pair ? four_hex(s, i + 7) : std::nullopt;
  if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
    append_utf8(out, 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00));
    return 11;
  }
  out.push_back('?');
  return 5;
}

}  // namespace

bool clean(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t size = character(text, i);
    if (size == 0 || static_cast<unsigned char>(text[i]) < 0x20) return false;
    i += size;
  }
  return true;
}

std::string decode(Slice text, bool& repaired) {
  const std::string_view s = text.view();
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    if (s[i] == '\\' && i + 1 < s.size()) {
      i += 1 + escape(s, i + 1, out, repaired);
      continue;
    }
    const size_t size = character(s, i);
    if (size == 0 || static_cast<unsigned char>(s[i]) < 0x20) {
      out.push_back('?');
      repaired = true;
      ++i;
    } else {
      out.append(s.substr(i, size));
      i += size;
    }
  }
  return out;
}

}  // namespace assay::scan
