// Matmuls, attention, held clocks and collectives as others measured them and published, by device,
// library and pass: test/data/public_*.csv, whose sources docs/models/{matmul,attention,clocks,
// collectives}.md name. A benchmark of matmuls repeats its kernel, so the clock is the one that the
// power limit leaves to it alone; attention is at burst clocks. The bars are what is true today,
// good or bad: a change that moves a figure either way shows here.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "perf/attention.h"
#include "perf/clocks.h"
#include "perf/collective.h"
#include "world/catalog.h"

namespace assay {
namespace {

// Predicted over measured time, less 1.
struct Bar {
  double bias;    // median
  double median;  // of the absolute error, at most
};
using Errors = std::map<std::string, std::vector<double>>;
constexpr double kMoved = 0.05;  // of a median, as a ratio

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
    EXPECT_NE(bar, bars.end()) << name << ": bias " << median(e) << ", median " << median(size);
    if (bar == bars.end()) continue;
    EXPECT_NEAR((1 + median(e)) / (1 + bar->second.bias), 1, kMoved) << name << ' ' << median(e);
    EXPECT_LE(median(size), bar->second.median) << name;
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
  alone.matmul_draw =
      work / peak(s.cluster.accelerator, f.precision) * precision_draw(f.precision, s.kernels);
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
  judge(errors, {{"a100-sxm4-80gb cuBLASLt fp16 azure", {0.100, 0.15}},
                 {"a100-sxm4-80gb cuBLASLt fp16 azure small", {-0.019, 0.04}},
                 {"b200-sxm-180gb cuBLASLt bf16 xla", {0.056, 0.09}},
                 {"b200-sxm-180gb cuBLASLt bf16 xla small", {-0.342, 0.36}},
                 {"b200-sxm-180gb cuBLASLt fp8 xla", {-0.157, 0.16}},
                 {"b200-sxm-180gb cuBLASLt fp8 xla small", {-0.408, 0.44}},
                 {"gaudi2-96gb synapse bf16 naver", {0.019, 0.06}},
                 {"gaudi2-96gb synapse fp8 naver", {0.031, 0.08}},
                 {"gb200-186gb cuBLASLt fp8 azure", {-0.027, 0.04}},
                 {"gb200-186gb cuBLASLt fp8 azure small", {0.049, 0.21}},
                 {"gb200-186gb cuBLASLt nvfp4 azure", {0.381, 0.42}},
                 {"gb200-186gb cuBLASLt nvfp4 azure small", {0.332, 0.45}},
                 {"mi300x-192gb grouped bf16 primus-turbo", {-0.034, 0.06}},
                 {"mi300x-192gb grouped bf16 primus-turbo backward", {-0.128, 0.15}},
                 {"mi300x-192gb grouped bf16 primus-turbo small", {-0.158, 0.18}},
                 {"mi300x-192gb grouped bf16 primus-turbo small backward", {-0.389, 0.42}},
                 {"mi300x-192gb hipBLASLt bf16 primus-turbo", {0.039, 0.06}},
                 {"mi300x-192gb hipBLASLt bf16 primus-turbo backward", {-0.036, 0.05}},
                 {"mi300x-192gb hipBLASLt bf16 rocm-blogs", {0.241, 0.26}},
                 {"mi300x-192gb hipBLASLt fp16 rocm-blogs", {0.239, 0.26}},
                 {"mi300x-192gb hipBLASLt fp8 azure", {-0.043, 0.15}},
                 {"mi300x-192gb hipBLASLt fp8 azure small", {-0.196, 0.21}},
                 {"mi300x-192gb hipBLASLt fp8 rocm-blogs", {0.186, 0.29}},
                 {"mi325x-256gb hipBLASLt bf16 rocm-blogs", {0.240, 0.26}},
                 {"mi325x-256gb hipBLASLt fp16 rocm-blogs", {0.262, 0.29}},
                 {"mi325x-256gb hipBLASLt fp8 rocm-blogs", {0.188, 0.29}},
                 {"mi350x-288gb hipBLASLt bf16 hipkittens", {0.056, 0.12}},
                 {"mi350x-288gb hipBLASLt bf16 hipkittens small", {-0.738, 0.78}},
                 {"mi355x-288gb hipBLASLt bf16 hipkittens", {0.025, 0.12}},
                 {"mi355x-288gb hipBLASLt bf16 hipkittens small", {-0.471, 0.50}},
                 {"tpu-v6e xla bf16 gpu-tpu-pedia", {0.312, 0.34}},
                 {"tpu-v7 xla bf16 gpu-tpu-pedia", {0.299, 0.32}}});
}

// Matmuls held for a fraction of a second to minutes under a stated power limit, on one part or on
// all eight of a node.
TEST(PublishedKernels, HeldUnderAPowerLimit) {
  const Table t("public_held.csv");
  Errors errors;
  for (const CsvRow& row : t.table.rows) {
    Setting s = setting_of(t.text(row, "device"));
    s.cluster.accelerator.tdp = Watts(t.number(row, "watts"));
    const MatmulShape f = shape_of(t, row);
    const Flops work(2 * static_cast<double>(f.m * f.n * f.k));
    const std::string all = t.whole(row, "busy") > 1 ? " all busy" : "";
    errors[t.text(row, "device") + all].push_back(
        held_seconds(s, f, false, work) * 1e12 * t.number(row, "tflops") / work.v - 1);
  }
  judge(errors, {{"a100-pcie-80gb", {0.179, 0.20}},
                 {"a100-sxm4-80gb", {0.114, 0.13}},
                 {"b200-sxm-180gb", {-0.002, 0.03}},
                 {"b200-sxm-180gb all busy", {0.167, 0.19}},
                 {"b300-sxm-288gb", {0.135, 0.15}},
                 {"b300-sxm-288gb all busy", {0.121, 0.13}},
                 {"gb300-288gb", {-0.056, 0.11}},
                 {"h100-sxm5-80gb", {0.011, 0.07}},
                 {"h200-sxm5-141gb", {-0.021, 0.04}}});
}

// How much slower the slowest of several parts holds a matmul than their mean.
TEST(PublishedKernels, SlowestOfManyParts) {
  const Table t("public_parts.csv");
  constexpr double kLuck = 0.018;  // twice the standard deviation of the slowest of eight
  const MatmulShape f{8192, 8192, 8192, 1, Precision::kBf16};
  const Flops work(2 * 8192.0 * 8192 * 8192);
  double sum = 0, predicted = 0;
  for (const CsvRow& row : t.table.rows) {
    Setting s = setting_of(t.text(row, "device"));
    s.cluster.accelerator.tdp = Watts(t.number(row, "watts"));
    const double mean = held_seconds(s, f, false, work);
    s.accelerators = t.whole(row, "parts");
    const double slower = 1 - mean / held_seconds(s, f, false, work);
    EXPECT_NEAR(slower, t.number(row, "slowest"), kLuck) << t.text(row, "source");
    sum += t.number(row, "slowest");
    predicted += slower;
  }
  EXPECT_NEAR(predicted / sum, 1, 0.25);
}

TEST(PublishedKernels, Attention) {
  const Table t("public_attention.csv");
  Errors errors;
  for (const CsvRow& row : t.table.rows) {
    const Setting s = setting_of(t.text(row, "device"));
    AttentionShape shape;
    shape.batch = t.whole(row, "batch");
    shape.heads = t.whole(row, "heads");
    shape.qk_dim = t.number(row, "qk_dim");
    shape.v_dim = t.number(row, "v_dim");
    shape.queries = shape.keys = t.number(row, "seq");
    if (shape.queries < 1024) continue;  // launches, not kernels, are timed there
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
  judge(errors, {{"a100-pcie-80gb FA2 128", {0.019, 0.04}},
                 {"a100-pcie-80gb FA2 128 backward", {0.022, 0.03}},
                 {"a100-pcie-80gb cudnn 128", {-0.040, 0.12}},
                 {"a100-pcie-80gb cudnn 128 backward", {-0.188, 0.22}},
                 {"b200-sxm-180gb FA2 128", {0.046, 0.05}},
                 {"b200-sxm-180gb FA2 128 backward", {0.040, 0.09}},
                 {"b200-sxm-180gb cudnn (PyTorch) 128", {-0.127, 0.14}},
                 {"b200-sxm-180gb cudnn (PyTorch) 128 backward", {-0.124, 0.16}},
                 {"b200-sxm-180gb cudnn 128", {0.003, 0.05}},
                 {"b200-sxm-180gb cudnn 128 backward", {-0.067, 0.09}},
                 {"gb200-186gb FA4 128", {0.034, 0.05}},
                 {"gb200-186gb FA4 128 backward", {-0.001, 0.08}},
                 {"gb200-186gb FA4 192", {0.042, 0.07}},
                 {"gb200-186gb FA4 192 backward", {-0.004, 0.05}},
                 {"gb200-186gb cudnn 128", {0.023, 0.05}},
                 {"gb200-186gb cudnn 128 backward", {0.053, 0.09}},
                 {"gb200-186gb cudnn 192", {0.040, 0.06}},
                 {"gb200-186gb cudnn 192 backward", {0.129, 0.15}},
                 {"gb300-288gb FA4 128", {0.002, 0.02}},
                 {"gb300-288gb FA4 128 backward", {0.034, 0.05}},
                 {"gb300-288gb cudnn 128", {-0.002, 0.02}},
                 {"gb300-288gb cudnn 128 backward", {0.001, 0.03}},
                 {"h200-sxm5-141gb FA4 128", {-0.003, 0.08}},
                 {"h200-sxm5-141gb FA4 128 backward", {0.099, 0.10}},
                 {"h200-sxm5-141gb cudnn 128", {-0.032, 0.08}},
                 {"h200-sxm5-141gb cudnn 128 backward", {-0.020, 0.04}},
                 {"mi300x-192gb Primus-Turbo 128", {-0.039, 0.07}},
                 {"mi300x-192gb Primus-Turbo 128 backward", {-0.094, 0.12}},
                 {"mi300x-192gb Primus-Turbo 192", {-0.055, 0.12}},
                 {"mi300x-192gb Primus-Turbo 192 backward", {0.028, 0.04}},
                 {"mi300x-192gb Primus-Turbo 64", {-0.022, 0.05}},
                 {"mi300x-192gb Primus-Turbo 64 backward", {0.095, 0.14}},
                 {"mi300x-192gb aiter 128", {0.078, 0.08}},
                 {"mi300x-192gb aiter 128 backward", {0.055, 0.07}},
                 {"mi350x-288gb AITER 128", {-0.214, 0.24}},
                 {"mi350x-288gb CK 128", {-0.146, 0.18}},
                 {"mi350x-288gb Triton 128", {-0.258, 0.33}},
                 {"mi355x-288gb AITER 128", {-0.092, 0.11}},
                 {"mi355x-288gb CK 128", {-0.001, 0.03}},
                 {"mi355x-288gb Triton 128", {-0.204, 0.26}},
                 {"mi355x-288gb aiter 128", {0.022, 0.05}},
                 {"mi355x-288gb aiter 128 backward", {0.026, 0.05}}});
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
           (ranks > 4 * domain ? ", many domains"
            : ranks > domain   ? ", domains"
                               : "") +
           (bytes < 1e8 ? ", below 100 MB" : "")]
        .push_back(time.v / seen - 1);
  }
  judge(errors, {{"b300-1024 all_reduce", {-0.004, 0.02}},
                 {"b300-1024 all_reduce, domains", {-0.094, 0.12}},
                 {"b300-1024 alltoall", {0.221, 0.24}},
                 {"b300-1024 alltoall, domains", {0.209, 0.23}},
                 {"gb200-nvl72-2304 all_reduce", {-0.014, 0.06}},
                 {"gb200-nvl72-2304 all_reduce, below 100 MB", {0.056, 0.07}},
                 {"gb200-nvl72-2304 all_reduce, domains", {-0.154, 0.18}},
                 {"gb200-nvl72-2304 all_reduce, many domains", {-0.604, 0.70}},
                 {"gb200-nvl72-2304 alltoall", {0.189, 0.21}},
                 {"gb200-nvl72-2304 alltoall, domains", {0.132, 0.15}},
                 {"gb300-1152 all_reduce", {0.001, 0.06}},
                 {"gb300-1152 all_reduce, domains", {-0.183, 0.23}},
                 {"gb300-1152 alltoall", {0.228, 0.25}},
                 {"gb300-1152 alltoall, domains", {-0.699, 0.75}},
                 {"h100-1024 all_reduce, many domains", {0.034, 0.05}},
                 {"mi300x-1024 all_reduce", {-0.038, 0.05}},
                 {"mi300x-1024 all_reduce, below 100 MB", {0.123, 0.23}},
                 {"mi300x-1024 all_reduce, domains", {0.061, 0.08}},
                 {"mi300x-1024 all_reduce, domains, below 100 MB", {-0.519, 0.55}},
                 {"mi355x-1024 all_reduce", {0.027, 0.04}},
                 {"mi355x-1024 all_reduce, domains", {-0.021, 0.03}},
                 {"mi355x-1024 all_reduce, domains, below 100 MB", {0.025, 0.13}},
                 {"mi355x-1024 alltoall", {0.012, 0.02}},
                 {"mi355x-1024 alltoall, domains", {0.156, 0.17}}});
}

}  // namespace
}  // namespace assay
