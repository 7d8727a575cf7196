// Dates and times as tools print them, to seconds since 1970. A time without a zone is taken as
// UTC: within one file differences are right, and that is what the analyses use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

// `2026/11/15 06:48:40.938`, `2025-01-21T04:41:44,283302+00:00`, `2021-12-06 04:19:35`,
// `Sun Nov 15 06:48:40 2026`, `Feb 25 2025 13:59:45`. The text may go on after the time. None when
// it does not begin with one of them, or a field is out of range.
std::optional<double> time_at(std::string_view text);

// `Nov 15 06:48:40` of syslog has no year; this one is given.
std::optional<double> syslog_time_at(std::string_view text, int year);

// A count since 1970 in seconds, milliseconds, microseconds or nanoseconds, told by its size; zero
// where it is none of them.
double epoch_seconds(double count);
// Either of the above, as a sampler writes its time; zero where it is none.
double sample_time(std::string_view text);

// `2026-11-15 06:48:40`. Times outside of the years 1970 to 9999 are `-`.
std::string date_words(double at_s);

}  // namespace assay
