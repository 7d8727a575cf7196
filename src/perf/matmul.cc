// A matmul is cut into tiles of the output; each compute unit works on one tile at a time, so tiles
// run in waves of as many as there are units. The library knows several tile sizes: large ones
// reuse operands better, small ones fill the last wave better. The model tries them all, as the
// library does, and takes the fastest. Example: 4096 x 4096 on 132 units is 512 tiles of 256 x 128,
// that is 3.88 waves; unsmoothed it would take 4.
//
// Libraries smooth the last wave by cutting k (split-k, stream-k). For a tile this is the second
// branch of wave_work: no rounding of waves at all, but a fixed price in k. Hence a small output
// with a long k costs its fraction of a wave plus that price.
//
// Every term grows with m, n and k, and a minimum of growing functions grows: more work is never
// predicted to be faster, except where it moves a row length onto an alignment that loads faster.
#include "perf/matmul.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/assert.h"

namespace assay {
namespace {

// The candidates, largest first. Powers of two: the division by a tile is an exact multiplication.
struct Tile {
  double m, n;
};
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {64, 256},
                           {128, 64},  {64, 128},  {64, 64},   {64, 32}};
// Block-scaled 4-bit kernels have neither smaller tiles nor split k: measured on B200, a 16-row
// product takes 6.5 us + 1.8 ns k whatever n is, up to one wave.
constexpr int kFp4Tiles = 2;
constexpr double kNoSplit = 1e15;
constexpr double kLargestIntensity = 256.0 * 128.0 / (256.0 + 128.0);

// The hardware path that a precision takes on an accelerator.
struct Path {
  double peak;        // FLOP/s
  double efficiency;  // of it
  double in_bytes;    // per element of an operand, scales included
  double out_bytes;   // per element of the result
  int64_t alignment;  // elements in 16 bytes; 0: rows of any length run alike
  double demand = 1;  // bytes of operands asked for per second, over the 16-bit path's
  double fill = 1;    // depth lost to starting and ending a tile, over `MatmulParams::fill`
};

constexpr double kFp4Bytes = 0.5 + 1.0 / 16;  // one 8-bit scale per 16 elements (NVFP4)
constexpr double kMxfp8Bytes = 1 + 1.0 / 32;  // one 8-bit scale per 32 elements (OCP MX)
// Without a 32-bit path, fp32 takes six bf16 passes (three-way split of both operands).
constexpr double kPassesOfFp32 = 6;

// Starting and ending a tile takes a time, not a depth: what an H200, whose units make so many
// FLOP/s in 32 bits, loses in `fill` (test/data/h200_fp32.csv), slower units lose in less of it.
constexpr double kFp32Unit = 67e12 / 132;

Path path16(const Accelerator& a, const MatmulParams& p, bool bf16) {
  const double first = bf16 ? a.bf16.v : a.fp16.v;
  const double other = bf16 ? a.fp16.v : a.bf16.v;
  if (first > 0) return {first, p.efficiency, 2, 2, 8};
  if (other > 0) return {other, p.efficiency, 2, 2, 8};
  return {a.fp32.v, p.efficiency_fp32, 2, 2, 0};
}

Path path_fp32(const Accelerator& a, const MatmulParams& p) {
  if (a.fp32.v > 0) {
    // Without tensor cores arithmetic is slow enough for small tiles to feed it.
    const double half = std::max(a.bf16.v, a.fp16.v);
    const double demand = std::min(1.0, 2 * a.fp32.v / std::max(half, 1.0));
    const double unit = a.fp32.v / real(std::max<int64_t>(1, a.compute_units));
    return {a.fp32.v, p.efficiency_fp32, 4, 4, 0, demand, std::min(1.0, unit / kFp32Unit)};
  }
  if (a.tf32.v > 0) return {a.tf32.v, p.efficiency_tf32, 4, 4, 4};
  const Path narrow = path16(a, p, true);
  return {narrow.peak / kPassesOfFp32, narrow.efficiency, 4, 4, 0};
}

Path path_of(const Accelerator& a, const MatmulParams& p, Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return path_fp32(a, p);
    case Precision::kTf32:
      if (a.tf32.v > 0) return {a.tf32.v, p.efficiency_tf32, 4, 4, 4};
      return path_fp32(a, p);
    case Precision::kFp16:
      return path16(a, p, false);
    case Precision::kBf16:
      return path16(a, p, true);
    case Precision::kInt8:
      if (a.int8.v > 0) return {a.int8.v, p.efficiency_int8, 1, 4, 16};
      if (a.fp8.v > 0) return {a.fp8.v, p.efficiency_fp8, 1, 2, 16};
      return path16(a, p, true);
    case Precision::kNvfp4:
    case Precision::kMxfp4:
      if (a.fp4.v > 0) return {a.fp4.v, p.efficiency_fp4, kFp4Bytes, 2, 32};
      [[fallthrough]];
    case Precision::kMxfp8:
    case Precision::kFp8:
      if (a.fp8.v > 0) {
        const double bytes = precision == Precision::kFp8 ? 1 : kMxfp8Bytes;
        return {a.fp8.v, p.efficiency_fp8, bytes, 2, 16};
      }
      return path16(a, p, true);
  }
  return path16(a, p, true);
}

// Largest power of two, up to `most`, that divides all the numbers or-ed together.
int64_t common_power(int64_t bits, int64_t most) { return std::min(bits & -bits, most); }

// The rate on rows of these lengths, over the rate on aligned ones.
double alignment_rate(const MatmulShape& s, const Path& path, const MatmulParams& p) {
  int64_t operands = s.pass == MatmulPass::kWeightGradient ? s.m : s.k;
  if (s.pass != MatmulPass::kForward) operands |= s.n;
  const int64_t operand = common_power(operands, path.alignment);
  const int64_t all = common_power(operands | s.n, path.alignment);
  if (all == path.alignment) return 1;
  if (all > 1 || path.in_bytes >= 4) return p.aligned_partly;
  return operand == 1 ? p.aligned_element : p.aligned_output;
}

// The same of a batch of such products, where the library runs them without tensor cores.
double plain_rate(const Path& path, const Accelerator& a, const MatmulParams& p) {
  return p.plain_batches * a.fp32.v * p.efficiency_fp32 / (path.peak * path.efficiency);
}

double transposed_rate(const MatmulShape& s, const Path& path, const MatmulParams& p) {
  if (path.in_bytes < 4 || path.alignment == 0 || s.pass == MatmulPass::kForward) return 1;
  return s.pass == MatmulPass::kInputGradient ? p.transposed_one : p.transposed_both;
}

// For positive x below 2^62. std::ceil would be a call: baseline x86-64 cannot round.
double round_up(double x) {
  const double whole = real(static_cast<int64_t>(x));
  return whole + (x > whole ? 1.0 : 0.0);
}

// Arithmetic time over the time that the peak would need for one multiply-add on every unit.
double wave_work(double m, double n, double k, double batch, double units, const Path& path,
                 const MatmulParams& p) {
  const bool fp4 = path.in_bytes < 1;
  const Tile* const end = fp4 ? kTiles + kFp4Tiles : std::end(kTiles);
  const double tile_half = p.tile_half * path.demand;
  const double fill = (fp4 ? p.fill_fp4 : p.fill) * path.fill / path.in_bytes;
  // The parts of a split product are added up through memory, which slow arithmetic waits less for;
  // by the root of it, as 28 products on one H200 have it (test/data/h200_fp32.csv).
  const double split = fp4 ? kNoSplit : p.split * std::sqrt(path.demand) / path.in_bytes;
  const double idle = fp4 ? p.quantisation_fp4 : p.quantisation;
  const double per_unit = batch / units;
  double best = 1e300;
  for (const Tile* t = kTiles; t != end; ++t) {
    const Tile tile = *t;
    const double intensity = tile.m * tile.n / (tile.m + tile.n);
    const double slower = (intensity + tile_half) / intensity;
    const double waves = round_up(m / tile.m) * round_up(n / tile.n) * per_unit;
    const double rounded = waves + idle * (round_up(waves) - waves);
    const double steps = std::min(rounded * (k + fill), waves * (k + fill) + split);
    best = std::min(best, steps * (tile.m * tile.n * slower));
  }
  return best * (kLargestIntensity / (kLargestIntensity + tile_half));
}

}  // namespace

double operand_bytes(const Accelerator& a, Precision precision) {
  return path_of(a, MatmulParams{}, precision).in_bytes;
}

FlopRate peak(const Accelerator& a, Precision precision) {
  const FlopRate rate(path_of(a, MatmulParams{}, precision).peak);
  ASSERT(rate.v > 0);
  return rate;
}

Seconds matmul_time(const MatmulShape& s, const Accelerator& a, const MatmulParams& p) {
  ASSERT(s.m >= 1 && s.n >= 1 && s.k >= 1 && s.batch >= 1);
  Path path = path_of(a, p, s.precision);
  double rate = 1;
  if (path.alignment != 0) {
    rate = std::min(alignment_rate(s, path, p), transposed_rate(s, path, p));
    if (rate < 1 && s.batch > 1 && p.plain_batches > 0)
      rate = std::min(rate, plain_rate(path, a, p));
    if (rate < 1 && path.in_bytes < 2) {
      // Narrow formats exist on the fast load path only: the library falls back to 16 bits.
      path = path16(a, p, true);
      rate = path.alignment != 0 ? alignment_rate(s, path, p) : 1;
    }
  }
  const double m = real(s.m);
  const double n = real(s.n);
  const double k = real(s.k);
  const double batch = real(s.batch);
  const double units = real(a.compute_units);
  const double unit_rate = path.peak * path.efficiency * rate / units;
  const double arithmetic = 2 * wave_work(m, n, k, batch, units, path, p) / unit_rate;
  const double bytes = batch * (path.in_bytes * k * (m + n) + path.out_bytes * m * n);
  const double memory = bytes / (a.memory_bandwidth.v * p.memory_efficiency) + p.memory_latency.v;
  return p.latency +
         Seconds(std::max(arithmetic, memory) + p.overlap_loss * std::min(arithmetic, memory));
}

Seconds grouped_time(const MatmulShape& s, const Accelerator& a, const MatmulParams& p,
                     double apart) {
  const Seconds together = matmul_time(s, a, p);
  if (s.batch == 1 || apart <= 0) return together;
  MatmulShape one = s;
  one.batch = 1;
  const Seconds each = matmul_time(one, a, p) * real(s.batch);
  return together + (each - together) * apart;
}

}  // namespace assay
