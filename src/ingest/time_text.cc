#include "ingest/time_text.h"

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/units.h"
#include "ingest/text.h"

namespace assay {
namespace {

struct Civil {
  int64_t year = 0, month = 0, day = 0;
  double second_of_day = 0;
};

// Days from 1970-01-01 in the proleptic Gregorian calendar: whole 400-year eras of 146,097 days,
// with the year starting in March so that the leap day is its last.
int64_t days_of(const Civil& t) {
  const int64_t year = t.month <= 2 ? t.year - 1 : t.year;
  const int64_t era = year / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t month_from_march = (t.month + 9) % 12;
  const int64_t day_of_year = (153 * month_from_march + 2) / 5 + t.day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  constexpr int64_t kDaysTo1970 = 719468;
  return era * 146097 + day_of_era - kDaysTo1970;
}

bool in_range(const Civil& t) {
  return t.year >= 1970 && t.year < 10000 && t.month >= 1 && t.month <= 12 && t.day >= 1 &&
         t.day <= 31;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

// `n` digits taken off the front; -1 when they are not there.
int64_t take_digits(std::string_view& text, size_t n) {
  if (text.size() < n) return -1;
  int64_t value = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!digit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(n);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// One or two digits, perhaps after a blank (`Nov  5`).
int64_t take_day(std::string_view& text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  const size_t n = text.size() > 1 && digit(text[1]) ? 2 : 1;
  return take_digits(text, n);
}

// `06:48:40[.938]`
bool take_clock(std::string_view& text, double& second_of_day) {
  const int64_t hour = take_digits(text, 2);
  if (hour < 0 || hour > 24 || !take(text, ":")) return false;
  const int64_t minute = take_digits(text, 2);
  if (minute < 0 || minute > 59 || !take(text, ":")) return false;
  const int64_t second = take_digits(text, 2);
  if (second < 0 || second > 60) return false;
  second_of_day = static_cast<double>(hour * 3600 + minute * 60 + second);
  if (text.size() > 1 && (text[0] == '.' || text[0] == ',') && digit(text[1])) {
    text.remove_prefix(1);
    double unit = 0.1;
    while (!text.empty() && digit(text[0])) {
      second_of_day += unit * (text[0] - '0');
      unit /= 10;
      text.remove_prefix(1);
    }
  }
  return true;
}

// `+02:00`, `-0800`, `Z` or nothing: seconds to subtract.
double take_zone(std::string_view& text) {
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return 0;
  const double sign = text[0] == '+' ? 1 : -1;
  std::string_view rest = text.substr(1);
  const int64_t hours = take_digits(rest, 2);
  if (hours < 0 || hours > 14) return 0;
  take(rest, ":");
  const int64_t minutes = take_digits(rest, 2);
  if (minutes < 0 || minutes > 59) return 0;
  text = rest;
  return sign * static_cast<double>(hours * 3600 + minutes * 60);
}

int64_t take_month_name(std::string_view& text) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (size_t i = 0; i < kMonths.size(); ++i) {
    if (text.starts_with(kMonths[i]) && text.size() > 3 && text[3] == ' ') {
      text.remove_prefix(4);
      return static_cast<int64_t>(i) + 1;
    }
  }
  return -1;
}

std::optional<double> seconds_of(const Civil& t, double zone) {
  if (!in_range(t)) return std::nullopt;
  return static_cast<double>(days_of(t)) * kSecondsPerDay + t.second_of_day - zone;
}

std::optional<double> numeric_time(std::string_view text) {
  Civil t;
  t.year = take_digits(text, 4);
  if (t.year < 0 || !take(text, "-/")) return std::nullopt;
  t.month = take_digits(text, 2);
  if (t.month < 0 || !take(text, "-/")) return std::nullopt;
  t.day = take_digits(text, 2);
  if (t.day < 0 || !take(text, " T") || !take_clock(text, t.second_of_day)) return std::nullopt;
  return seconds_of(t, take_zone(text));
}

}  // namespace

std::optional<double> time_at(std::string_view text) {
  if (!text.empty() && digit(text[0])) return numeric_time(text);
  constexpr std::array<std::string_view, 7> kDays = {"Mon ", "Tue ", "Wed ", "Thu ",
                                                     "Fri ", "Sat ", "Sun "};
  for (const std::string_view day : kDays) {
    if (text.starts_with(day)) {
      text.remove_prefix(day.size());
      break;
    }
  }
  Civil t;
  t.month = take_month_name(text);
  if (t.month < 0) return std::nullopt;
  t.day = take_day(text);
  if (t.day < 0 || !take(text, " ")) return std::nullopt;
  // The year is before the clock (fabric manager) or after it (ctime).
  if (text.size() > 4 && text[2] != ':') {
    t.year = take_digits(text, 4);
    if (t.year < 0 || !take(text, " ") || !take_clock(text, t.second_of_day)) return std::nullopt;
  } else {
    if (!take_clock(text, t.second_of_day) || !take(text, " ")) return std::nullopt;
    t.year = take_digits(text, 4);
  }
  return seconds_of(t, 0);
}

std::optional<double> syslog_time_at(std::string_view text, int year) {
  Civil t;
  t.year = year;
  t.month = take_month_name(text);
  if (t.month < 0) return std::nullopt;
  t.day = take_day(text);
  if (t.day < 0 || !take(text, " ") || !take_clock(text, t.second_of_day)) return std::nullopt;
  return seconds_of(t, 0);
}

double epoch_seconds(double count) {
  constexpr double kSecondsMost = 1e11;  // the year 5138; milliseconds of 1973
  for (const double unit : {1.0, 1e3, 1e6, 1e9}) {
    if (count >= 0 && count < kSecondsMost * unit) return count / unit;
  }
  return 0;
}

double sample_time(std::string_view text) {
  const std::optional<double> number = whole_number(text);
  return number ? epoch_seconds(*number) : time_at(text).value_or(0);
}

// The inverse of days_of, by the same eras.
std::string date_words(double at_s) {
  constexpr double kEnd = 253402300800.0;  // of the year 9999
  if (!(at_s >= 0) || at_s >= kEnd) return "-";
  const int64_t seconds = static_cast<int64_t>(at_s);
  const int64_t days = seconds / 86400 + 719468;
  const int64_t era = days / 146097, day_of_era = days % 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const int64_t year = era * 400 + year_of_era + (month <= 2 ? 1 : 0);
  const int64_t clock = seconds % 86400;
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", year, month, day, clock / 3600,
                     clock / 60 % 60, clock % 60);
}

}  // namespace assay
