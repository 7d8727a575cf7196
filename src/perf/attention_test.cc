#include "perf/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "world/catalog.h"

namespace assay {
namespace {

struct Errors {
  std::vector<double> forward, backward;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Our own measurements on one H200, by kernel.
Errors errors(const char* file, AttentionKernel kernel) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/" + file);
  EXPECT_TRUE(table);
  const Catalog& known = catalog();
  const Accelerator& h200 = *find_accelerator(known, "h200-sxm5-141gb");
  const Kernels& kernels = *find_kernels(known, h200.architecture);
  Errors out;
  for (const CsvRow& row : table->rows) {
    const auto number = [&](const char* name) {
      return std::stod(std::string(table->cell(row, name)));
    };
    AttentionShape s;
    s.batch = static_cast<int64_t>(number("batch"));
    s.heads = static_cast<int64_t>(number("heads"));
    s.qk_dim = s.v_dim = number("head_dim");
    s.queries = s.keys = number("seq");
    s.causal = number("causal") > 0;
    const AttentionTime t = attention_time(s, kernel, h200, kernels);
    out.forward.push_back(std::abs(t.forward.v * 1e3 / number("fwd_ms") - 1));
    out.backward.push_back(std::abs(t.backward.v * 1e3 / number("bwd_ms") - 1));
  }
  return out;
}

TEST(Attention, PortableKernelOnTheH200) {
  const Errors e = errors("h200_attention.csv", AttentionKernel::kPortable);
  EXPECT_LE(median(e.forward), 0.06);
  EXPECT_LE(median(e.backward), 0.04);
}

TEST(Attention, VendorKernelOnTheH200) {
  const Errors e = errors("h200_attention_cudnn.csv", AttentionKernel::kVendor);
  EXPECT_LE(median(e.forward), 0.06);
  EXPECT_LE(median(e.backward), 0.05);
}

// cuDNN's kernel on the H200 with heads of 128, 192 and 128, and 256.
TEST(Attention, WideHeadsOfTheVendorsKernel) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_wide_heads.csv");
  ASSERT_TRUE(table);
  const Accelerator& h200 = *find_accelerator(catalog(), "h200-sxm5-141gb");
  const Kernels& kernels = *find_kernels(catalog(), h200.architecture);
  int seen = 0;
  for (const CsvRow& row : table->rows) {
    const auto number = [&](const char* name) {
      return std::stod(std::string(table->cell(row, name)));
    };
    AttentionShape s;
    s.batch = static_cast<int64_t>(number("batch"));
    s.heads = static_cast<int64_t>(number("heads"));
    s.qk_dim = number("qk_dim"), s.v_dim = number("v_dim");
    s.queries = s.keys = number("seq");
    const AttentionTime t = attention_time(s, AttentionKernel::kVendor, h200, kernels);
    // Heads of 256 are faster than told, short rows most.
    const double wide = s.qk_dim > 192 ? 0.33 : 0.17;
    EXPECT_NEAR(t.forward.v * 1e3 / number("fwd_ms"), 1, wide) << s.qk_dim << ' ' << s.queries;
    EXPECT_NEAR(t.backward.v * 1e3 / number("bwd_ms"), 1, 0.15) << s.qk_dim << ' ' << s.queries;
    ++seen;
  }
  EXPECT_EQ(seen, 18);
}

// Flash attention 2 on the H200 over packed documents of 64 to 2,048 tokens: right for uneven ones
// and for those that end inside a block; even ones that fill the kernel's blocks are told up to
// 71 % too slow.
TEST(Attention, PackedDocuments) {
  const auto table = read_csv(std::string(ASSAY_ROOT) + "/test/data/h200_documents.csv");
  ASSERT_TRUE(table);
  const Accelerator& h200 = *find_accelerator(catalog(), "h200-sxm5-141gb");
  const Kernels& kernels = *find_kernels(catalog(), h200.architecture);
  std::vector<double> uneven, all;
  for (const CsvRow& row : table->rows) {
    const auto number = [&](const char* name) {
      return std::stod(std::string(table->cell(row, name)));
    };
    AttentionShape s;
    s.heads = static_cast<int64_t>(number("heads"));
    s.qk_dim = s.v_dim = number("dim");
    s.queries = s.keys = number("document");
    s.documents = number("tokens") / number("document");
    const AttentionTime t = attention_time(s, AttentionKernel::kPortable, h200, kernels);
    const double measured = number("fwd_ms") + number("bwd_ms");
    const double error = std::abs((t.forward.v + t.backward.v) * 1e3 / measured - 1);
    EXPECT_LE(error, 0.72) << number("document");
    if (number("spread") > 0) uneven.push_back(error);
    all.push_back(error);
  }
  ASSERT_EQ(all.size(), 40u);
  EXPECT_LE(median(uneven), 0.12);
  EXPECT_LE(median(all), 0.2);
}

// Documents are sequences of their own to a fused kernel, and end inside its blocks.
TEST(Attention, DocumentsAreShortSequences) {
  const Accelerator& h100 = *find_accelerator(catalog(), "h100");
  const Kernels& kernels = *find_kernels(catalog(), h100.architecture);
  AttentionShape packed, apart, whole;
  packed.heads = apart.heads = whole.heads = 32;
  packed.queries = packed.keys = 512, packed.documents = 8;
  apart.queries = apart.keys = 512, apart.batch = 8;
  whole.queries = whole.keys = 4096;
  for (const AttentionKernel kernel : {AttentionKernel::kVendor, AttentionKernel::kPortable}) {
    const AttentionTime a = attention_time(packed, kernel, h100, kernels);
    const AttentionTime b = attention_time(apart, kernel, h100, kernels);
    EXPECT_EQ(a.flops.v, b.flops.v);
    EXPECT_GT(a.forward, b.forward);
    EXPECT_LT(a.forward, b.forward * 1.3);
    EXPECT_LT(a.backward, b.backward * 1.3);
    EXPECT_LT(a.forward, attention_time(whole, kernel, h100, kernels).forward);
  }
}

// Ranks that share packed documents share what is rounded up; a window masks at both ends.
TEST(Attention, DocumentsOverRanksAndWindows) {
  const Accelerator& h100 = *find_accelerator(catalog(), "h100");
  const Kernels& kernels = *find_kernels(catalog(), h100.architecture);
  AttentionShape one, eighth;
  one.heads = 32, one.documents = 64, one.queries = one.keys = 1024;
  eighth = one;
  eighth.queries = 128;
  const AttentionTime a = attention_time(one, AttentionKernel::kVendor, h100, kernels);
  const AttentionTime b = attention_time(eighth, AttentionKernel::kVendor, h100, kernels);
  EXPECT_NEAR(a.forward / b.forward, 8, 0.8);
  AttentionShape all;
  all.heads = 32, all.queries = 4096, all.keys = 128, all.causal = false;
  AttentionShape window = all;
  window.window = true;
  EXPECT_GT(attention_time(window, AttentionKernel::kVendor, h100, kernels).forward,
            attention_time(all, AttentionKernel::kVendor, h100, kernels).forward);
}

TEST(Attention, MaskHalvesTheWorkAndLongerIsSlower) {
  const Catalog& known = catalog();
  const Accelerator& h100 = *find_accelerator(known, "h100");
  const Kernels& kernels = *find_kernels(known, h100.architecture);
  AttentionShape s;
  s.batch = 2, s.heads = 32, s.queries = s.keys = 4096;
  const AttentionTime causal = attention_time(s, AttentionKernel::kVendor, h100, kernels);
  s.causal = false;
  const AttentionTime full = attention_time(s, AttentionKernel::kVendor, h100, kernels);
  EXPECT_EQ(full.flops.v, 2 * causal.flops.v);
  EXPECT_GT(full.forward, causal.forward);
  s.queries = s.keys = 8192;
  EXPECT_GT(attention_time(s, AttentionKernel::kVendor, h100, kernels).forward, full.forward * 3);
  EXPECT_GT(attention_time(s, AttentionKernel::kUnfused, h100, kernels).forward,
            attention_time(s, AttentionKernel::kVendor, h100, kernels).forward * 2);
}

// A ring's blocks are shorter, so less efficient, and no less work: the mean of 1 / visible keys
// over its steps, counted one by one, is what the closed form takes. One step of them is on the
// diagonal: it alone ends a block late and masks keys.
TEST(Attention, RingOfShorterBlocks) {
  const Catalog& known = catalog();
  const Accelerator& h100 = *find_accelerator(known, "h100");
  const Kernels& kernels = *find_kernels(known, h100.architecture);
  AttentionShape s;
  s.heads = 32, s.queries = 2048, s.keys = 8192;
  const AttentionTime whole = attention_time(s, AttentionKernel::kVendor, h100, kernels);
  const double half = kernels.attention_vendor_half;
  const double waves = 2048.0 / 128 * 32 / static_cast<double>(h100.compute_units);
  const double uneven = waves / (waves + 1);
  const double even = 1 - 0.6 * (std::ceil(waves) - waves) / std::ceil(waves);
  for (const int cp : {2, 4, 8}) {
    const double block = s.keys / cp;
    double inverse = 1 / (block / 2);  // its own block, half of it under the mask
    for (int step = 1; step < cp; ++step) inverse += (1 / (block / 2) + 1 / block) / 2;
    inverse /= cp;
    s.steps = cp;
    const AttentionTime ring = attention_time(s, AttentionKernel::kVendor, h100, kernels);
    EXPECT_EQ(ring.flops.v, whole.flops.v);
    const double floor = kernels.kernel_floor.v;
    const double fill = uneven / cp + even * (cp - 1) / cp;
    const double masked = half - 90.0 * (cp - 1) / cp;
    EXPECT_NEAR((ring.forward.v - floor) / (whole.forward.v - floor),
                (1 + masked * inverse) / (1 + half * 2 / s.keys) * uneven / fill, 1e-9);
    EXPECT_GT(ring.backward, whole.backward * 0.8);
  }
}

}  // namespace
}  // namespace assay
