// Matmuls and attention as others measured them and published, by device, library and pass:
// test/data/public_matmul.csv and public_attention.csv, whose sources docs/models/matmul.md and
// attention.md name. A benchmark repeats its kernel, so the clock is the one that the power limit
// leaves to that kernel alone. The bars are what is true today, good or bad: a change that moves a
// figure shows here.
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "perf/attention.h"
#include "perf/clocks.h"
#include "perf/collective.h"
#include "world/catalog.h"

namespace assay {
namespace {

struct Bar {
  double median;  // of the absolute error of time
  double bias;
};
using Errors = std::map<std::string, std::vector<double>>;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Every group of the table has a bar, and every bar a group.
void judge(const Errors& errors, const std::map<std::string, Bar>& bars) {
  for (const auto& [name, e] : errors) {
    std::vector<double> size;
    for (const double x : e) size.push_back(std::abs(x));
    const auto bar = bars.find(name);
    EXPECT_NE(bar, bars.end()) << name << ": median " << median(size) << ", bias " << median(e);
    if (bar == bars.end()) continue;
    EXPECT_LE(median(size), bar->second.median) << name;
    EXPECT_LE(std::abs(median(e)), bar->second.bias) << name << " bias " << median(e);
  }
  EXPECT_EQ(errors.size(), bars.size());
}

struct Table {
  CsvTable table;
  explicit Table(const char* name) {
    auto read = read_csv(std::string(ASSAY_ROOT) + "/test/data/" + name);
    EXPECT_TRUE(read);
    if (read) table = std::move(*read);
  }
  std::string text(const CsvRow& row, const char* name) const {
    return std::string(table.cell(row, name));
  }
  double number(const CsvRow& row, const char* name) const { return std::stod(text(row, name)); }
  int64_t whole(const CsvRow& row, const char* name) const { return std::stoll(text(row, name)); }
};

Setting setting_of(const std::string& device) {
  Setting s;
  s.cluster.accelerator = *find_accelerator(catalog(), device);
  s.kernels = *find_kernels(catalog(), s.cluster.accelerator.architecture);
  return s;
}

// Seconds of a matmul, or of both gradients, at the clock that it can hold alone.
double held_seconds(const Setting& s, MatmulShape f, bool backward, Flops work) {
  const auto time = [&](MatmulShape shape) {
    return matmul_time(shape, s.cluster.accelerator, s.kernels.matmul);
  };
  PassCost alone;
  alone.matmul = backward
                     ? time({f.m, f.k, f.n, f.batch, f.precision, MatmulPass::kInputGradient}) +
                           time({f.n, f.k, f.m, f.batch, f.precision, MatmulPass::kWeightGradient})
                     : time(f);
  alone.matmul_peak = work / peak(s.cluster.accelerator, f.precision);
  return alone.matmul.v / held_clock(s, f.precision, alone, alone.matmul.v).clock;
}

MatmulShape shape_of(const Table& t, const CsvRow& row) {
  const std::map<std::string, Precision> precisions = {{"bf16", Precision::kBf16},
                                                       {"fp16", Precision::kFp16},
                                                       {"fp8", Precision::kFp8},
                                                       {"nvfp4", Precision::kNvfp4}};
  return {t.whole(row, "m"), t.whole(row, "n"), t.whole(row, "k"), 1,
          precisions.at(t.text(row, "dtype"))};
}

TEST(PublishedKernels, Matmul) {
  const Table t("public_matmul.csv");
  Errors errors;
  for (const CsvRow& row : t.table.rows) {
    MatmulShape f = shape_of(t, row);
    f.batch = t.whole(row, "batch");
    const bool backward = t.text(row, "pass") == "backward";
    const double products = static_cast<double>(f.m * f.n * f.k);
    const Flops work((backward ? 4 : 2) * products * static_cast<double>(f.batch));
    const bool small = std::min({f.m, f.n, f.k}) < 1024 || products < 8e9;
    errors[t.text(row, "device") + " " + t.text(row, "library") + " " + t.text(row, "dtype") + " " +
           t.text(row, "source") + (small ? " small" : "") + (backward ? " backward" : "")]
        .push_back(held_seconds(setting_of(t.text(row, "device")), f, backward, work) * 1e12 *
                       t.number(row, "tflops") / work.v -
                   1);
  }
  judge(errors, {{"a100-sxm4-80gb cuBLASLt fp16 azure", {0.16, 0.16}},
                 {"a100-sxm4-80gb cuBLASLt fp16 azure small", {0.04, 0.03}},
                 {"b200-sxm-180gb cuBLASLt bf16 xla", {0.18, 0.18}},
                 {"b200-sxm-180gb cuBLASLt bf16 xla small", {0.39, 0.39}},
                 {"b200-sxm-180gb cuBLASLt fp8 xla", {0.14, 0.10}},
                 {"b200-sxm-180gb cuBLASLt fp8 xla small", {0.47, 0.47}},
                 {"gaudi2-96gb synapse bf16 naver", {0.06, 0.03}},
                 {"gaudi2-96gb synapse fp8 naver", {0.09, 0.04}},
                 {"gb200-186gb cuBLASLt fp8 azure", {0.07, 0.07}},
                 {"gb200-186gb cuBLASLt fp8 azure small", {0.22, 0.06}},
                 {"gb200-186gb cuBLASLt nvfp4 azure", {0.57, 0.57}},
                 {"gb200-186gb cuBLASLt nvfp4 azure small", {0.49, 0.39}},
                 {"mi300x-192gb grouped bf16 primus-turbo", {0.06, 0.04}},
                 {"mi300x-192gb grouped bf16 primus-turbo backward", {0.16, 0.15}},
                 {"mi300x-192gb grouped bf16 primus-turbo small", {0.19, 0.19}},
                 {"mi300x-192gb grouped bf16 primus-turbo small backward", {0.45, 0.45}},
                 {"mi300x-192gb hipBLASLt bf16 primus-turbo", {0.06, 0.05}},
                 {"mi300x-192gb hipBLASLt bf16 primus-turbo backward", {0.05, 0.05}},
                 {"mi300x-192gb hipBLASLt bf16 rocm-blogs", {0.28, 0.28}},
                 {"mi300x-192gb hipBLASLt fp16 rocm-blogs", {0.28, 0.28}},
                 {"mi300x-192gb hipBLASLt fp8 azure", {0.17, 0.04}},
                 {"mi300x-192gb hipBLASLt fp8 azure small", {0.15, 0.15}},
                 {"mi300x-192gb hipBLASLt fp8 rocm-blogs", {0.32, 0.32}},
                 {"mi325x-256gb hipBLASLt bf16 rocm-blogs", {0.28, 0.28}},
                 {"mi325x-256gb hipBLASLt fp16 rocm-blogs", {0.31, 0.31}},
                 {"mi325x-256gb hipBLASLt fp8 rocm-blogs", {0.32, 0.32}},
                 {"mi350x-288gb hipBLASLt bf16 hipkittens", {0.12, 0.07}},
                 {"mi350x-288gb hipBLASLt bf16 hipkittens small", {0.85, 0.85}},
                 {"mi355x-288gb hipBLASLt bf16 hipkittens", {0.13, 0.03}},
                 {"mi355x-288gb hipBLASLt bf16 hipkittens small", {0.55, 0.55}},
                 {"tpu-v6e xla bf16 gpu-tpu-pedia", {0.33, 0.33}},
                 {"tpu-v7 xla bf16 gpu-tpu-pedia", {0.35, 0.35}}});
}

// Matmuls held for a fraction of a second to half a minute under a stated power limit.
TEST(PublishedKernels, HeldUnderAPowerLimit) {
  const Table t("public_held.csv");
  Errors errors;
  for (const CsvRow& row : t.table.rows) {
    Setting s = setting_of(t.text(row, "device"));
    s.cluster.accelerator.tdp = Watts(t.number(row, "watts"));
    const MatmulShape f = shape_of(t, row);
    const Flops work(2 * static_cast<double>(f.m * f.n * f.k));
    errors[t.text(row, "device")].push_back(
        held_seconds(s, f, false, work) * 1e12 * t.number(row, "tflops") / work.v - 1);
  }
  judge(errors, {{"a100-pcie-80gb", {0.25, 0.25}},
                 {"a100-sxm4-80gb", {0.18, 0.18}},
                 {"b200-sxm-180gb", {0.10, 0.10}},
                 {"b300-sxm-288gb", {0.38, 0.38}},
                 {"gb300-288gb", {0.12, 0.12}},
                 {"h100-sxm5-80gb", {0.07, 0.07}},
                 {"h200-sxm5-141gb", {0.04, 0.04}}});
}

TEST(PublishedKernels, Attention) {
  const Table t("public_attention.csv");
  Errors errors;
  for (const CsvRow& row : t.table.rows) {
    const Setting s = setting_of(t.text(row, "device"));
    AttentionShape shape;
    shape.batch = t.whole(row, "batch");
    shape.heads = t.whole(row, "heads");
    shape.kv_heads = t.whole(row, "kv_heads");
    shape.qk_dim = t.number(row, "qk_dim");
    shape.v_dim = t.number(row, "v_dim");
    shape.queries = shape.keys = t.number(row, "seq");
    if (shape.queries < 1024) continue;
    const bool backward = t.text(row, "direction") == "backward";
    const AttentionTime time = attention_time(
        shape,
        t.text(row, "kernel") == "vendor" ? AttentionKernel::kVendor : AttentionKernel::kPortable,
        s.cluster.accelerator, s.kernels);
    const double flops = (backward ? 2.5 : 1) * time.flops.v;
    const double seen = flops / (1e12 * t.number(row, "tflops"));
    errors[t.text(row, "device") + " " + t.text(row, "library") + " " + t.text(row, "qk_dim") +
           (backward ? " backward" : "")]
        .push_back((backward ? time.backward : time.forward).v / seen - 1);
  }
  judge(errors, {{"a100-pcie-80gb FA2 128", {0.04, 0.04}},
                 {"a100-pcie-80gb FA2 128 backward", {0.03, 0.03}},
                 {"a100-pcie-80gb cudnn 128", {0.08, 0.06}},
                 {"a100-pcie-80gb cudnn 128 backward", {0.23, 0.23}},
                 {"b200-sxm-180gb FA2 128", {0.05, 0.03}},
                 {"b200-sxm-180gb FA2 128 backward", {0.04, 0.03}},
                 {"b200-sxm-180gb cudnn (PyTorch) 128", {0.15, 0.14}},
                 {"b200-sxm-180gb cudnn (PyTorch) 128 backward", {0.17, 0.14}},
                 {"b200-sxm-180gb cudnn 128", {0.05, 0.03}},
                 {"b200-sxm-180gb cudnn 128 backward", {0.10, 0.08}},
                 {"gb200-186gb FA4 128", {0.04, 0.03}},
                 {"gb200-186gb FA4 128 backward", {0.08, 0.03}},
                 {"gb200-186gb FA4 192", {0.07, 0.07}},
                 {"gb200-186gb FA4 192 backward", {0.05, 0.03}},
                 {"gb200-186gb cudnn 128", {0.03, 0.03}},
                 {"gb200-186gb cudnn 128 backward", {0.06, 0.03}},
                 {"gb200-186gb cudnn 192", {0.06, 0.06}},
                 {"gb200-186gb cudnn 192 backward", {0.15, 0.15}},
                 {"gb300-288gb FA4 128", {0.03, 0.03}},
                 {"gb300-288gb FA4 128 backward", {0.04, 0.04}},
                 {"gb300-288gb cudnn 128", {0.03, 0.03}},
                 {"gb300-288gb cudnn 128 backward", {0.03, 0.03}},
                 {"h200-sxm5-141gb FA4 128", {0.10, 0.10}},
                 {"h200-sxm5-141gb FA4 128 backward", {0.19, 0.19}},
                 {"h200-sxm5-141gb cudnn 128", {0.10, 0.07}},
                 {"h200-sxm5-141gb cudnn 128 backward", {0.06, 0.06}},
                 {"mi300x-192gb Primus-Turbo 128", {0.07, 0.07}},
                 {"mi300x-192gb Primus-Turbo 128 backward", {0.13, 0.12}},
                 {"mi300x-192gb Primus-Turbo 192", {0.09, 0.09}},
                 {"mi300x-192gb Primus-Turbo 192 backward", {0.03, 0.03}},
                 {"mi300x-192gb Primus-Turbo 64", {0.03, 0.03}},
                 {"mi300x-192gb Primus-Turbo 64 backward", {0.14, 0.14}},
                 {"mi300x-192gb aiter 128", {0.08, 0.07}},
                 {"mi300x-192gb aiter 128 backward", {0.07, 0.05}},
                 {"mi350x-288gb AITER 128", {0.26, 0.23}},
                 {"mi350x-288gb CK 128", {0.19, 0.19}},
                 {"mi350x-288gb Triton 128", {0.36, 0.33}},
                 {"mi355x-288gb AITER 128", {0.12, 0.11}},
                 {"mi355x-288gb CK 128", {0.03, 0.03}},
                 {"mi355x-288gb Triton 128", {0.28, 0.25}},
                 {"mi355x-288gb aiter 128", {0.04, 0.03}},
                 {"mi355x-288gb aiter 128 backward", {0.05, 0.03}}});
}

// All-reduce and all-to-all that no constant was fitted to, from 1 MB up, in one scale-up domain
// and across several.
TEST(PublishedKernels, Collectives) {
  const Table t("public_collectives.csv");
  Errors errors;
  for (const CsvRow& row : t.table.rows) {
    Setting s;
    s.cluster = *find_cluster(catalog(), t.text(row, "cluster"));
    s.cluster.fabric.scaleup_domain = t.whole(row, "domain");
    s.cluster.node.nics = s.cluster.node.accelerators;
    s.cluster.node.nic_bandwidth = Bandwidth(1e9 * t.number(row, "nic_gb_s"));
    resolve(s, catalog());
    const int64_t ranks = t.whole(row, "ranks"), domain = t.whole(row, "domain");
    const Links links = resolve_links(s.cluster, s.scaleup_params, s.fabric_params);
    const bool exchange = t.text(row, "collective") == "alltoall";
    const Collective kind = exchange ? Collective::kAllToAll : Collective::kAllReduce;
    const double bytes = t.number(row, "bytes");
    const Seconds time =
        collective_time(kind, Bytes(bytes), {ranks, std::min(ranks, domain)}, links);
    const double seen = bytes * bus_factor(kind, ranks) / (1e9 * t.number(row, "busbw_gb_s"));
    errors[t.text(row, "cluster") + " " + t.text(row, "collective") +
           (ranks > 4 * domain ? ", 20 domains"
            : ranks > domain   ? ", domains"
                               : "") +
           (bytes < 1e8 ? ", below 100 MB" : "")]
        .push_back(time.v / seen - 1);
  }
  judge(errors, {{"b300-1024 all_reduce", {0.03, 0.03}},
                 {"b300-1024 all_reduce, domains", {0.12, 0.11}},
                 {"b300-1024 alltoall", {0.26, 0.26}},
                 {"b300-1024 alltoall, domains", {0.25, 0.25}},
                 {"gb200-nvl72-2304 all_reduce", {0.06, 0.03}},
                 {"gb200-nvl72-2304 all_reduce, 20 domains", {0.76, 0.70}},
                 {"gb200-nvl72-2304 all_reduce, below 100 MB", {0.07, 0.07}},
                 {"gb200-nvl72-2304 all_reduce, domains", {0.19, 0.18}},
                 {"gb200-nvl72-2304 alltoall", {0.22, 0.22}},
                 {"gb200-nvl72-2304 alltoall, domains", {0.16, 0.16}},
                 {"gb300-1152 all_reduce", {0.06, 0.03}},
                 {"gb300-1152 all_reduce, domains", {0.24, 0.22}},
                 {"gb300-1152 alltoall", {0.27, 0.27}},
                 {"gb300-1152 alltoall, domains", {0.81, 0.81}},
                 {"h100-1024 all_reduce, 20 domains", {0.04, 0.04}},
                 {"mi300x-1024 all_reduce", {0.05, 0.05}},
                 {"mi300x-1024 all_reduce, below 100 MB", {0.25, 0.15}},
                 {"mi300x-1024 all_reduce, domains", {0.08, 0.07}},
                 {"mi300x-1024 all_reduce, domains, below 100 MB", {0.60, 0.60}},
                 {"mi355x-1024 all_reduce", {0.04, 0.04}},
                 {"mi355x-1024 all_reduce, domains", {0.03, 0.03}},
                 {"mi355x-1024 all_reduce, domains, below 100 MB", {0.13, 0.03}},
                 {"mi355x-1024 alltoall", {0.03, 0.03}},
                 {"mi355x-1024 alltoall, domains", {0.18, 0.18}}});
}

}  // namespace
}  // namespace assay
