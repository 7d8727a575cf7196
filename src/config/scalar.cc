#include "config/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/text.h"

namespace assay {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

// Decimal prefixes are 1000-fold everywhere, as vendors count; only the `i` forms are binary.
constexpr double kKi = 1024.0;
constexpr std::array kByteUnits = {Unit{"B", 1},
                                   Unit{"kB", 1e3},
                                   Unit{"KB", 1e3},
                                   Unit{"MB", 1e6},
                                   Unit{"GB", 1e9},
                                   Unit{"TB", 1e12},
                                   Unit{"PB", 1e15},
                                   Unit{"KiB", kKi},
                                   Unit{"MiB", kKi* kKi},
                                   Unit{"GiB", kKi* kKi* kKi},
                                   Unit{"TiB", kKi* kKi* kKi* kKi},
                                   Unit{"PiB", kKi* kKi* kKi* kKi* kKi}};
constexpr std::array kBandwidthUnits = {Unit{"B/s", 1},
                                        Unit{"kB/s", 1e3},
                                        Unit{"MB/s", 1e6},
                                        Unit{"GB/s", 1e9},
                                        Unit{"TB/s", 1e12},
                                        Unit{"MBps", 1e6},
                                        Unit{"GBps", 1e9},
                                        Unit{"TBps", 1e12},
                                        Unit{"MiB/s", kKi* kKi},
                                        Unit{"GiB/s", kKi* kKi* kKi},
                                        Unit{"TiB/s", kKi* kKi* kKi* kKi},
                                        Unit{"b/s", 0.125},
                                        Unit{"Mb/s", 0.125e6},
                                        Unit{"Gb/s", 0.125e9},
                                        Unit{"Tb/s", 0.125e12},
                                        Unit{"bps", 0.125},
                                        Unit{"Mbps", 0.125e6},
                                        Unit{"Gbps", 0.125e9},
                                        Unit{"Tbps", 0.125e12},
                                        Unit{"Mbit/s", 0.125e6},
                                        Unit{"Gbit/s", 0.125e9},
                                        Unit{"Tbit/s", 0.125e12}};
constexpr std::array kFlopRateUnits = {
    Unit{"FLOPS", 1},      Unit{"MFLOPS", 1e6},   Unit{"GFLOPS", 1e9},   Unit{"TFLOPS", 1e12},
    Unit{"PFLOPS", 1e15},  Unit{"EFLOPS", 1e18},  Unit{"FLOP/s", 1},     Unit{"GFLOP/s", 1e9},
    Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}, Unit{"EFLOP/s", 1e18}, Unit{"TFLOPs", 1e12},
    Unit{"PFLOPs", 1e15},  Unit{"GOPS", 1e9},     Unit{"TOPS", 1e12},    Unit{"POPS", 1e15}};
constexpr std::array kFlopsUnits = {Unit{"FLOP", 1},     Unit{"GFLOP", 1e9},  Unit{"TFLOP", 1e12},
                                    Unit{"PFLOP", 1e15}, Unit{"EFLOP", 1e18}, Unit{"ZFLOP", 1e21}};
constexpr std::array kWattUnits = {Unit{"W", 1}, Unit{"kW", 1e3}, Unit{"MW", 1e6}, Unit{"GW", 1e9},
                                   Unit{"mW", 1e-3}};
constexpr std::array kJouleUnits = {Unit{"J", 1},       Unit{"kJ", 1e3},    Unit{"MJ", 1e6},
                                    Unit{"Wh", 3600},   Unit{"kWh", 3.6e6}, Unit{"MWh", 3.6e9},
                                    Unit{"GWh", 3.6e12}};
constexpr std::array kSecondUnits = {Unit{"s", 1},
                                     Unit{"ms", 1e-3},
                                     Unit{"us", 1e-6},
                                     Unit{"\xC2\xB5s", 1e-6},
                                     Unit{"\xCE\xBCs", 1e-6},
                                     Unit{"ns", 1e-9},
                                     Unit{"min", 60},
                                     Unit{"h", 3600},
                                     Unit{"sec", 1},
                                     Unit{"second", 1},
                                     Unit{"seconds", 1},
                                     Unit{"minute", 60},
                                     Unit{"minutes", 60},
                                     Unit{"hr", 3600},
                                     Unit{"hour", 3600},
                                     Unit{"hours", 3600},
                                     Unit{"d", 86400},
                                     Unit{"day", 86400},
                                     Unit{"days", 86400}};
constexpr std::array kHertzUnits = {Unit{"Hz", 1}, Unit{"kHz", 1e3}, Unit{"MHz", 1e6},
                                    Unit{"GHz", 1e9}};
constexpr std::array kDollarUnits = {Unit{"$", 1},   Unit{"USD", 1}, Unit{"k$", 1e3},
                                     Unit{"k", 1e3}, Unit{"M", 1e6}, Unit{"B", 1e9}};
constexpr std::array kDollarRateUnits = {
    Unit{"$/h", 1.0 / 3600},   Unit{"$/hr", 1.0 / 3600},   Unit{"$/hour", 1.0 / 3600},
    Unit{"USD/h", 1.0 / 3600}, Unit{"/h", 1.0 / 3600},     Unit{"/hr", 1.0 / 3600},
    Unit{"/hour", 1.0 / 3600}, Unit{"$/day", 1.0 / 86400}, Unit{"/day", 1.0 / 86400}};
constexpr std::array kEnergyPriceUnits = {
    Unit{"$/kWh", 1 / kJoulesPerKwh}, Unit{"/kWh", 1 / kJoulesPerKwh},
    Unit{"$/MWh", 1e-3 / kJoulesPerKwh}, Unit{"/MWh", 1e-3 / kJoulesPerKwh}};
constexpr std::array kNumberUnits = {
    Unit{"k", 1e3},       Unit{"K", 1e3},        Unit{"M", 1e6},        Unit{"B", 1e9},
    Unit{"T", 1e12},      Unit{"%", 0.01},       Unit{"thousand", 1e3}, Unit{"million", 1e6},
    Unit{"billion", 1e9}, Unit{"trillion", 1e12}};

struct Family {
  std::string_view noun;     // `a bandwidth`
  std::string_view example;  // a unit to suggest
  std::span<const Unit> units;
};

Family family(Dimension d) {
  switch (d) {
    case Dimension::kNumber:
      return {"a number", "", kNumberUnits};
    case Dimension::kBytes:
      return {"a size", "GB", kByteUnits};
    case Dimension::kBandwidth:
      return {"a bandwidth", "GB/s", kBandwidthUnits};
    case Dimension::kFlopRate:
      return {"a compute rate", "TFLOPS", kFlopRateUnits};
    case Dimension::kFlops:
      return {"an amount of arithmetic", "PFLOP", kFlopsUnits};
    case Dimension::kWatts:
      return {"a power", "W", kWattUnits};
    case Dimension::kJoules:
      return {"an energy", "kWh", kJouleUnits};
    case Dimension::kSeconds:
      return {"a time", "s", kSecondUnits};
    case Dimension::kHertz:
      return {"a frequency", "GHz", kHertzUnits};
    case Dimension::kDollars:
      return {"an amount of money", "$", kDollarUnits};
    case Dimension::kDollarRate:
      return {"a price", "$/h", kDollarRateUnits};
    case Dimension::kEnergyPrice:
      return {"a price of energy", "$/kWh", kEnergyPriceUnits};
  }
  return {};
}

struct Number {
  double value = 0;
  std::string_view written;  // the digits as they stand in the text
  std::string_view rest;     // what follows, trimmed
};

// Length of digits with single underscores between them.
size_t digits_length(std::string_view s) {
  size_t i = 0;
  while (i < s.size() && (is_digit(s[i]) || (s[i] == '_' && i > 0 && is_digit(s[i - 1]) &&
                                             i + 1 < s.size() && is_digit(s[i + 1])))) {
    ++i;
  }
  return i;
}

size_t number_length(std::string_view s) {
  size_t i = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
  const size_t sign = i;
  i += digits_length(s.substr(i));
  size_t digits = i - sign;
  if (i < s.size() && s[i] == '.') {
    const size_t fraction = digits_length(s.substr(i + 1));
    digits += fraction;
    if (fraction > 0) i += 1 + fraction;
  }
  if (digits == 0) return 0;
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    size_t j = i + 1;
    if (j < s.size() && (s[j] == '-' || s[j] == '+')) ++j;
    const size_t exponent = digits_length(s.substr(j));
    if (exponent > 0) i = j + exponent;
  }
  return i;
}

std::string shown(std::string_view text) { return sanitize(std::string(text), 40); }

tl::expected<Number, ScalarError> lex_number(std::string_view text) {
  const std::string_view s = trimmed(text);
  const size_t length = number_length(s);
  if (length == 0) {
    return tl::unexpected(ScalarError{fmt::format("must be a number, not `{}`", shown(s)), ""});
  }
  Number n;
  n.written = s.substr(0, length);
  n.rest = trimmed(s.substr(length));
  std::string plain;
  for (char c : n.written) {
    if (c != '_' && !(c == '+' && plain.empty())) plain += c;
  }
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), n.value);
  if (error == std::errc::result_out_of_range || !std::isfinite(n.value)) {
    return tl::unexpected(ScalarError{fmt::format("is out of range: `{}`", shown(s)),
                                      "no figure has so many digits; is it the right one?"});
  }
  if (n.written == "0" && n.rest.size() > 1 && lower(n.rest.substr(0, 1)) == "x") {
    uint64_t whole = 0;
    const char* last = n.rest.data() + n.rest.size();
    const auto [stop, wrong] = std::from_chars(n.rest.data() + 1, last, whole, 16);
    if (wrong == std::errc() && stop == last) {
      return tl::unexpected(ScalarError{fmt::format("must be a decimal number, not `{}`", shown(s)),
                                        fmt::format("write {}", whole)});
    }
  }
  if (n.rest.size() > 1 && n.rest[0] == ',' && is_digit(n.rest[1])) {
    return tl::unexpected(ScalarError{fmt::format("must be a number, not `{}`", shown(s)),
                                      "write it without commas, or with `_`: 1_000"});
  }
  return n;
}

// What such a quantity looks like, where all that is known is that this is none.
std::string written_like(const Family& f) {
  if (f.example.empty()) return "";
  return f.example.starts_with("$/")
             ? fmt::format("{} is written like `$2{}`", f.noun, f.example.substr(1))
             : fmt::format("{} is written like `10 {}`", f.noun, f.example);
}

ScalarError missing_unit(const Number& n, const Family& f) {
  ScalarError e;
  e.message = fmt::format("needs the unit {}", f.example);
  const bool price = f.example.starts_with("$/");
  if (price && n.value < 0) return {"must not be negative", "write what an hour costs"};
  e.help = price ? fmt::format("a bare number is ambiguous; write `${}{}`", n.written,
                               f.example.substr(1))
                 : fmt::format("a bare number is ambiguous; write `{} {}`", n.written, f.example);
  if (f.example == "GB/s") e.help += fmt::format(", or `{} Gb/s` for bits", n.written);
  return e;
}

// The same number without the unit would be another figure, so only what is known is advised.
ScalarError unit_of_plain_number(const Number& n) {
  ScalarError e;
  e.message = fmt::format("must be a plain number, `{}` is no unit for it", shown(n.rest));
  std::string unit = lower(n.rest);
  for (const std::string_view sign : {"\xC2\xB0", "deg", " "}) {
    if (unit.starts_with(sign)) unit = trimmed(std::string_view(unit).substr(sign.size()));
  }
  if (unit == "f" || unit == "fahrenheit") {
    e.help = fmt::format("temperatures are in degrees Celsius: `{:.4g}`", (n.value - 32) / 1.8);
  } else if (unit == "c" || unit == "celsius") {
    e.help = fmt::format("leave the unit out: `{}`", shown(n.written));
  } else {
    e.help = "write a number alone, in the key's own unit (docs/reference/yaml.md)";
  }
  return e;
}

// Units that a slip may have meant, the number with each: `400 GB/s` or `400 Gb/s` for `400G`. Bits
// and bytes, milli and mega differ only in case: never guess, but name the candidates.
std::string candidates(const Number& n, const Family& f) {
  enum class Likeness { kOtherCase, kStart, kStartInOtherCase };
  const auto alike = [&](std::string_view name, Likeness how) {
    if (how == Likeness::kStart) return name.starts_with(n.rest);
    if (how == Likeness::kOtherCase) return lower(name) == lower(n.rest);
    return lower(name).starts_with(lower(n.rest));
  };
  for (const Likeness how : {Likeness::kOtherCase, Likeness::kStart, Likeness::kStartInOtherCase}) {
    std::string out;
    std::vector<double> seen;  // several spellings of one unit are one candidate
    for (const Unit& unit : f.units) {
      const bool known = std::find(seen.begin(), seen.end(), unit.scale) != seen.end();
      const bool binary = contains(unit.name, "iB") && !contains(lower(n.rest), "i");
      const bool same = unit.name == n.rest;  // a price without its dollar: it is not the unit
      if (known || binary || same || !alike(unit.name, how)) continue;
      seen.push_back(unit.scale);
      out += fmt::format("{}`{} {}`", out.empty() ? "" : " or ", shown(n.written), unit.name);
    }
    if (!out.empty()) return out;
  }
  return "";
}

ScalarError wrong_unit(const Number& n, const Family& f) {
  if (f.example.empty()) return unit_of_plain_number(n);
  ScalarError e;
  e.message = fmt::format("has the wrong unit `{}`", shown(n.rest));
  const std::string meant = candidates(n, f);
  if (f.example == "$/h" && contains(lower(n.rest), "node")) {
    e.help = "prices are of one accelerator: divide it by those of a node, as in `$2/h`";
    return e;
  }
  e.help = meant.empty() ? written_like(f) : fmt::format("did you mean {}?", meant);
  return e;
}

const Unit* find_unit(std::string_view name, const Family& f, Dimension d) {
  for (const Unit& unit : f.units) {
    if (unit.name == name) return &unit;
  }
  // Where no two units differ in case only, case does not matter.
  const bool word = d == Dimension::kNumber && name.size() > 1;
  const bool caseless = word || d == Dimension::kFlopRate || d == Dimension::kHertz;
  for (const Unit& unit : f.units) {
    if (caseless && lower(unit.name) == lower(name)) return &unit;
  }
  return nullptr;
}

// What all write who mean an accelerator's hour, which every price here is of.
constexpr std::string_view kGpuHours[] = {"/gpu/h",  "/gpu-h",    "/gpuh",     "/gpu/hr",
                                          "/gpu-hr", "/gpu/hour", "/gpu-hour", "/gpuhour"};

// A unit as the tables have it: `GB / sec` is `GB/s`, `$/GPU-hour` is `$/h`.
std::string plain_unit(std::string_view written, Dimension d) {
  std::string unit;
  for (const char c : written) {
    if (c == '/') unit = trimmed(unit);
    if (!(is_blank(c) && unit.ends_with('/'))) unit += c;
  }
  for (const std::string_view second : {"/second", "/sec"}) {
    if (unit.ends_with(second)) unit.resize(unit.size() - second.size() + 2);
  }
  if (d != Dimension::kDollarRate) return unit;
  const size_t slash = unit.find('/');
  if (slash == unit.npos) return unit;
  std::string of = lower(unit.substr(slash));
  std::replace(of.begin(), of.end(), ' ', '-');
  if (std::find(std::begin(kGpuHours), std::end(kGpuHours), of) == std::end(kGpuHours)) return unit;
  return unit.substr(0, slash) + "/h";
}

constexpr const char* kPlainNumber = "write one, as in `8` or `1.5e12`";

// `2:1`, the way oversubscription is spoken of.
bool is_ratio(const Number& n) {
  return n.rest.size() > 1 && n.rest[0] == ':' && number_length(n.rest.substr(1)) > 0;
}

tl::expected<double, ScalarError> parse_ratio(const Number& n) {
  const tl::expected<Number, ScalarError> below = lex_number(n.rest.substr(1));
  if (!below) return tl::unexpected(below.error());
  const double ratio = n.value / below->value;
  if (!below->rest.empty() || !std::isfinite(ratio)) {
    return tl::unexpected(ScalarError{"is not a ratio such as 2:1", "write it so, or as a number"});
  }
  return ratio;
}

}  // namespace

tl::expected<double, ScalarError> parse_quantity(std::string_view text, Dimension d,
                                                 std::string_view usual_unit) {
  Family f = family(d);
  if (!usual_unit.empty()) f.example = usual_unit;
  std::string_view s = trimmed(text);
  const bool money =
      d == Dimension::kDollars || d == Dimension::kDollarRate || d == Dimension::kEnergyPrice;
  const bool dollar_first = money && !s.empty() && s[0] == '$';
  if (dollar_first) s.remove_prefix(1);
  const tl::expected<Number, ScalarError> n = lex_number(s);
  if (!n) {
    ScalarError error = n.error();
    if (error.help.empty()) error.help = written_like(f);
    if (error.help.empty()) error.help = kPlainNumber;
    return tl::unexpected(std::move(error));
  }
  if (n->rest.empty()) {
    const bool bare = d == Dimension::kNumber || (d == Dimension::kDollars && dollar_first);
    if (bare || n->value == 0) return n->value;
    return tl::unexpected(missing_unit(*n, f));
  }
  if (d == Dimension::kNumber && is_ratio(*n)) return parse_ratio(*n);
  const Unit* unit = find_unit(plain_unit(n->rest, d), f, d);
  // `/h` needs the dollar in front, `$/h` must not have it twice.
  const bool dollar_in_unit = unit != nullptr && unit->name.find_first_of("$U") != unit->name.npos;
  if (unit == nullptr || (money && dollar_in_unit == dollar_first)) {
    return tl::unexpected(wrong_unit(*n, f));
  }
  const double value = n->value * unit->scale;
  if (!std::isfinite(value))
    return tl::unexpected(ScalarError{"is out of range", "is the unit right?"});
  return value;
}

tl::expected<double, ScalarError> parse_whole(std::string_view text) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const tl::expected<Number, ScalarError> n = lex_number(text);
  if (!n) {
    ScalarError error = n.error();
    if (error.help.empty()) error.help = kPlainNumber;
    return tl::unexpected(std::move(error));
  }
  if (n->rest == "k" || n->rest == "K") {
    return tl::unexpected(
        ScalarError{fmt::format("must be a whole number, `{}` is ambiguous", shown(trimmed(text))),
                    fmt::format("write {} or {}", n->value * 1000, n->value * 1024)});
  }
  const Unit* unit = find_unit(n->rest, family(Dimension::kNumber), Dimension::kNumber);
  if (unit != nullptr && n->value * unit->scale == std::floor(n->value * unit->scale)) {
    return tl::unexpected(
        ScalarError{fmt::format("must be a whole number, not `{}`", shown(trimmed(text))),
                    fmt::format("write {:.0f}", n->value * unit->scale)});
  }
  if (!n->rest.empty()) {
    // What stands before a slip may be no good number itself.
    const bool usable = n->value >= 1 && n->value == std::floor(n->value);
    return tl::unexpected(
        ScalarError{fmt::format("must be a whole number, not `{}`", shown(trimmed(text))),
                    fmt::format("write digits alone, as in `{}`",
                                usable ? shown(n->written) : std::string("4096"))});
  }
  if (n->value != std::floor(n->value)) {
    return tl::unexpected(ScalarError{
        fmt::format("must be a whole number, not {}", shown(n->written)),
        fmt::format("write {:.0f} or {:.0f}", std::floor(n->value), std::ceil(n->value))});
  }
  return std::clamp(n->value, -kExact, kExact);  // the limits of any field refuse such an extreme
}

tl::expected<bool, ScalarError> parse_bool(std::string_view text) {
  const std::string s = lower(trimmed(text));
  if (s == "true" || s == "on" || s == "yes") return true;
  if (s == "false" || s == "off" || s == "no") return false;
  return tl::unexpected(
      ScalarError{fmt::format("must be true or false, not `{}`", shown(trimmed(text))),
                  "write `true` or `false`"});
}

namespace {

// Times span ten decades, so one unit does not read well for all of them.
std::string_view time_unit(double seconds) {
  if (seconds < 1e-3) return "us";
  if (seconds < 1) return "ms";
  if (seconds < 120) return "s";
  return seconds < 2 * kSecondsPerHour ? "min" : "h";
}

}  // namespace

std::string format_quantity(double value, Dimension d) {
  const Family f = family(d);
  if (d == Dimension::kNumber || value == 0) return fmt::format("{:.6g}", value);
  if (d == Dimension::kDollars) return fmt::format("${:.6g}", value);
  if (d == Dimension::kDollarRate) return fmt::format("${:.6g}/h", value * kSecondsPerHour);
  if (d == Dimension::kEnergyPrice) return fmt::format("${:.6g}/kWh", value * kJoulesPerKwh);
  const std::string_view name = d == Dimension::kSeconds ? time_unit(std::abs(value)) : f.example;
  const Unit* unit = find_unit(name, f, d);
  return fmt::format("{:.6g} {}", value / unit->scale, name);
}

}  // namespace assay
