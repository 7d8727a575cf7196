// Figures and plans in words: the place that decides how a number looks to a person. (World, which
// may not include this, and the tables of validate format a few themselves.)
//
// Three significant digits everywhere. A figure and its range share one unit. Plain ASCII.
#pragma once

#include <string>

#include "perf/predict.h"

namespace assay {

// A figure with its 90 % range.
struct Interval {
  double value = 0, low = 0, high = 0;
};

std::string significant(double value, int digits = 3);  // `4.03`, `46.8`, `1,944`
std::string scaled(double value);                       // `1.04 M`, `547 k`, `2.00 T`; B is 1e9
std::string watts(double w);                            // `1.31 MW`
std::string count(int64_t value);                       // `1,944`
std::string percent(double fraction);                   // `46.8 %`
std::string signed_percent(double fraction);            // `-19 %`
std::string points(double fraction);                    // `+23.0`, for a difference of shares
std::string seconds(double s);                          // `4.03 s`, `310 ms`
std::string duration(double s);                         // `22.2 days`, `5.10 hours`
std::string dollars(double usd);                        // `$1.36 M`, `$2.49`
std::string signed_dollars(double usd);                 // `-$1.31 M`
std::string energy(double kwh);                         // `871 MWh`
std::string gibibytes(double bytes);        // `58.1 GiB`: device memory, as allocators count
std::string bandwidth(double bytes_per_s);  // `450 GB/s`

// Two-digit ends of a range in the unit that the value's text uses: `(3.8-4.4)`.
std::string seconds_range(const Interval&);
std::string duration_range(const Interval&);
std::string dollars_range(const Interval&);
std::string energy_range(const Interval&);
std::string percent_range(const Interval&);
std::string scaled_range(const Interval&);
std::string gibibytes_range(const Interval&);
std::string plain_range(const Interval&);  // of a number without a unit

// `TP 8   PP 4 (interleaved x2)   DP 32   micro-batch 1   recompute: selective`; degrees of one
// that say nothing (CP 1, EP 1) are left out. `gap` is what stands between two items.
std::string layout(const Plan&, int64_t dp, const std::string& gap = ", ");
// `BF16, ZeRO-1, sequence parallel, overlapped gradient reduction`
std::string policy(const Plan&, int64_t dp);
std::string recompute_words(const Plan&);

// `kernels: matmul`, `useful`.
std::string account_name(Account);
// The same in a sentence: `tensor-parallel traffic`.
std::string account_phrase(Account);
// The largest account that is not useful work.
Account largest_loss(const Ledger&);

// Why `loser` is slower than `winner`, from the difference of their ledgers: at most three
// accounts.
std::string why_slower(const Prediction& winner, const Prediction& loser);

}  // namespace assay
