#!/usr/bin/python3
"""Fit catalog/kernels.yaml's `matmul` blocks to measured matmuls and print the errors.

    tools/fit_matmul.py [architecture ...]

Reads test/data/h200_*.csv (our own) and, where present, ../shared/data/validation/gemm.csv (others'
measurements, most of them of NVIDIA's aiconfigurator; not part of this repository). Builds the shipped model from src/perf/matmul.cc, so
there is no second formula to keep in step. Half of the rows, chosen by a hash of the shape, are
fitted; the error is printed for both halves.

What is fitted besides the model's parameters, per data set, because it belongs to the measurement:
  clock     time over the time at burst clocks (a device that was warm, or under its power cap)
  droop     the same, for long kernels only: benchmarks that repeat a kernel without rest run into
            the power cap where it is long; share of time added to kernels of many milliseconds
  quantise  for 8- and 4-bit rows of inference libraries, which time the conversion of x as well:
            seconds per call, and bytes per element of x through memory
"""
import csv
import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np
import yaml
from scipy.optimize import least_squares

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OTHERS = os.path.join(ROOT, "..", "shared", "data", "validation", "gemm.csv")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "int8")
PASSES = {"forward": 0, "input_grad": 1, "weight_grad": 2, "batched": 0, "grouped": 0}
SCALE = {"TFLOPS": 1e12, "GB/s": 1e9, "TB/s": 1e12}

# Start, least and most of each parameter.
PARAMETERS = {
    "efficiency": (0.8, 0.2, 1.0), "efficiency_fp8": (0.7, 0.1, 1.0),
    "efficiency_fp4": (0.6, 0.1, 1.0), "efficiency_int8": (0.5, 0.1, 1.0),
    "efficiency_tf32": (0.75, 0.1, 1.0), "efficiency_fp32": (0.75, 0.1, 1.0),
    "tile_half": (20, 0, 400), "fill": (200, 0, 6000), "quantisation": (0.4, 0, 1),
    "split": (2000, 0, 60000), "quantisation_fp4": (0.9, 0, 1), "fill_fp4": (100, 0, 3000),
    "memory_efficiency": (0.85, 0.2, 1.0),
    "memory_latency": (1e-6, 0, 2e-5), "overlap_loss": (0.1, 0, 1), "latency": (2e-6, 5e-7, 2e-5),
    "aligned_partly": (0.35, 0.02, 1), "aligned_element": (0.18, 0.02, 1),
    "aligned_output": (0.12, 0.02, 1),
}
DROOP_S = 4e-3  # of one call, at which half of the droop shows
EVENT_S = 2.2e-6  # test/data/h200_overhead.csv: event pairs against graph replay, same matmuls
NUISANCES = {"droop": (0.1, 0, 0.5), "clock": (1.0, 0.8, 1.4), "quantise_s": (8e-6, 0, 5e-5),
             "quantise_bytes": (5.0, 0, 60)}
SHARED = ["tile_half", "fill", "quantisation", "split", "memory_efficiency", "memory_latency",
          "overlap_loss", "latency"]
ALIGNED = ["aligned_partly", "aligned_element", "aligned_output"]


def build():
    """The model as a shared library."""
    out = os.path.join(tempfile.mkdtemp(), "fit_matmul.so")
    sources = [os.path.join(ROOT, p) for p in
               ("tools/fit_matmul.cc", "src/perf/matmul.cc", "src/base/assert.cc")]
    subprocess.run(["g++", "-std=c++20", "-O2", "-ffp-contract=off", "-shared", "-fPIC",
                    "-I" + os.path.join(ROOT, "src"), *sources, "-lfmt", "-o", out], check=True)
    lib = ctypes.CDLL(out)
    lib.params_new.restype = lib.accelerator_new.restype = ctypes.c_void_p
    lib.params_set.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double)
    lib.accelerator_new.argtypes = (ctypes.c_void_p, ctypes.c_double, ctypes.c_long)
    lib.times.argtypes = (ctypes.c_void_p,) * 3 + (ctypes.c_long, ctypes.c_void_p)
    return lib


def quantity(text):
    number, unit = str(text).split()
    return float(number) * SCALE[unit]


def accelerator(lib, entry):
    peaks = np.array([quantity(entry[key]) if key in entry else 0.0
                      for key in ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")])
    return lib.accelerator_new(peaks.ctypes.data, quantity(entry["memory_bandwidth"]),
                               int(entry["compute_units"]))


def held_out(m, n, k, batch):
    """True for the half of the shapes that is never fitted. matmul_test.cc has the same rule."""
    mixed = (((m * 31 + n) * 31 + k) * 31 + batch) * 2654435761
    return (mixed >> 20) % 2 == 1


class Data:
    """Rows measured in one way on one accelerator."""

    def __init__(self, name, part, rows, nuisances, weight=1.0, event=0.0):
        self.name, self.part, self.nuisances, self.weight = name, part, nuisances, weight
        self.event = event
        self.shapes = np.array([r[:6] for r in rows], dtype=np.int64).reshape(-1, 6)
        self.seconds = np.array([r[6] for r in rows])
        self.kind = np.array([r[7] for r in rows])
        self.held = np.array([held_out(*(int(v) for v in r[:4])) for r in rows])

    def predict(self, lib, params, nuisance):
        out = np.empty(len(self.seconds))
        lib.times(self.part, params, self.shapes.ctypes.data, len(out), out.ctypes.data)
        m, k = self.shapes[:, 0], self.shapes[:, 2]
        out = out * (1 + nuisance.get("droop", 0.0) * out / (out + DROOP_S))
        out = out * nuisance.get("clock", 1.0) + self.event
        if "quantise_s" in nuisance:
            out = out + nuisance["quantise_s"] + nuisance["quantise_bytes"] * m * k / self.bandwidth
        return out


def kind_of(dtype, layout, m, n, k):
    """The class of a row: its own error bar."""
    elements = {"fp32": 1, "tf32": 4, "fp8": 16, "int8": 16}.get(dtype, 8)
    rows = {"forward": (k, n), "input_grad": (k, n), "weight_grad": (m, n)}.get(layout, (k, n))
    if any(r % elements for r in rows):
        return "misaligned"
    if layout in ("batched", "grouped"):
        return layout
    if m <= 64:
        return "skinny"
    return "training" if min(m, n, k) >= 1024 else "between"


def own_rows(file, dtypes):
    rows = []
    for x in csv.DictReader(open(os.path.join(ROOT, "test", "data", file))):
        if x["dtype"] not in dtypes:
            continue
        layout = x.get("pass", "forward")
        m, n, k, batch = (int(x.get(c, 1)) for c in ("m", "n", "k", "batch"))
        rows.append((m, n, k, batch, PRECISIONS.index(x["dtype"]), PASSES[layout],
                     1e-3 * float(x["ms"]), kind_of(x["dtype"], layout, m, n, k)))
    return rows


def others_rows():
    rows = {}
    if not os.path.exists(OTHERS):
        print("absent, so only the H200 is fitted:", OTHERS)
        return rows
    for x in csv.DictReader(open(OTHERS)):
        if not x["source"].startswith("aic:"):
            continue
        m, n, k = int(x["M"]), int(x["N"]), int(x["K"])
        rows.setdefault((x["gpu"], x["dtype"]), []).append(
            (m, n, k, 1, PRECISIONS.index(x["dtype"]), 0, 1e-6 * float(x["time_us"]),
             kind_of(x["dtype"], "forward", m, n, k)))
    return rows


def data_sets(lib, catalog):
    """By architecture."""
    parts = {"A100": "a100-sxm4-80gb", "H100": "h100-sxm5-80gb", "H200": "h200-sxm5-141gb",
             "B200": "b200-sxm-180gb", "GB200": "gb200-186gb", "L40S": "l40s",
             "RTX-PRO-6000": "rtx-pro-6000-server", "Intel-B60": "arc-pro-b60"}
    sets = {}

    def add(name, gpu, rows, nuisances, weight=1.0, event=0.0):
        entry = catalog[parts[gpu]]
        data = Data(name, accelerator(lib, entry), rows, nuisances, weight, event)
        data.bandwidth = quantity(entry["memory_bandwidth"])
        sets.setdefault(entry["architecture"], []).append(data)

    for (gpu, dtype), rows in sorted(others_rows().items()):
        quantised = ["quantise_s", "quantise_bytes"] if dtype != "bf16" else []
        weight = {"bf16": 3.0, "fp8": 1.0, "nvfp4": 0.2}[dtype]
        add(f"{gpu} {dtype}", gpu, rows, ["droop"] + quantised, weight)
    for dtype in ("bf16", "fp16", "fp8", "int8", "tf32", "fp32"):
        rows = own_rows("h200_matmul.csv", (dtype,))
        add(f"H200 {dtype}", "H200", rows, [], 2.0 if dtype == "bf16" else 0.5, EVENT_S)
    add("H200 warm", "H200", own_rows("h200_gemm.csv", ("bf16",)), ["clock"], 0.5, EVENT_S)
    return sets


class Problem:
    """Least squares of log(predicted / measured) over one architecture."""

    def __init__(self, lib, sets):
        self.lib, self.sets, self.params = lib, sets, lib.params_new()
        precisions = {PRECISIONS[p] for d in sets for p in np.unique(d.shapes[:, 4])}
        path = {"fp8": "efficiency_fp8", "nvfp4": "efficiency_fp4", "int8": "efficiency_int8",
                "tf32": "efficiency_tf32", "fp32": "efficiency_fp32"}
        self.names = ["efficiency"] + sorted(path[p] for p in precisions if p in path) + SHARED
        if "nvfp4" in precisions:
            self.names += ["quantisation_fp4", "fill_fp4"]
        if any((d.kind == "misaligned").any() for d in sets):
            self.names += ALIGNED
        keys = [(i, key) for i, d in enumerate(sets) for key in d.nuisances]
        self.extra = [(i, key, len(self.names) + j) for j, (i, key) in enumerate(keys)]
        limits = [PARAMETERS[n] for n in self.names] + [NUISANCES[key] for _, key in keys]
        self.start, self.low, self.high = (np.array(v, dtype=float) for v in zip(*limits))

    def predict(self, x):
        for name, value in zip(self.names, x):
            assert self.lib.params_set(self.params, name.encode(), value)
        result = []
        for i, d in enumerate(self.sets):
            nuisance = {key: x[at] for j, key, at in self.extra if j == i}
            result.append(d.predict(self.lib, self.params, nuisance))
        return result

    def residuals(self, x):
        parts = []
        for d, seconds in zip(self.sets, self.predict(x)):
            weight = np.zeros(len(seconds))
            for kind in np.unique(d.kind):
                at = (d.kind == kind) & ~d.held
                weight[at] = (3.0 if kind == "training" else 1.0) / max(at.sum(), 25)
            parts.append(np.sqrt(d.weight * weight) * robust(np.log(seconds / d.seconds)))
        return np.concatenate(parts)

    def fit(self):
        best = None
        scale = np.maximum(np.abs(self.start), 1e-7)
        for share in (0.2, 0.7):
            start = self.start.copy()
            start[self.names.index("quantisation")] = share
            found = least_squares(self.residuals, start, bounds=(self.low, self.high),
                                  x_scale=scale, diff_step=1e-3, max_nfev=120)
            if best is None or found.cost < best.cost:
                best = found
        return best.x


def robust(r, scale=0.08):
    """Like an absolute error where |r| is large: one odd kernel must not bend the model."""
    return np.sign(r) * np.sqrt(2 * scale * scale * (np.sqrt(1 + (r / scale) ** 2) - 1))


def report(problem, x):
    for name, value in zip(problem.names, x):  # ready for catalog/kernels.yaml
        microseconds = name in ("latency", "memory_latency")
        print(f"    {name}: {1e6 * value:.2f} us" if microseconds else f"    {name}: {value:.4g}")
    for i, d in enumerate(problem.sets):
        for j, key, at in problem.extra:
            if j == i:
                print(f"    ({d.name}: {key} {x[at]:.4g})")
    for d, seconds in zip(problem.sets, problem.predict(x)):
        error = seconds / d.seconds - 1
        for kind in np.unique(d.kind):
            line = f"  {d.name:20s} {kind:11s}"
            for held in (False, True):
                e = error[(d.kind == kind) & (d.held == held)]
                if len(e):
                    line += (f" | {'held' if held else 'fit '} {len(e):4d} median "
                             f"{100 * np.median(np.abs(e)):5.1f} p90 "
                             f"{100 * np.percentile(np.abs(e), 90):5.1f} bias "
                             f"{100 * np.median(e):+5.1f}")
            print(line)


def main():
    lib = build()
    catalog = yaml.safe_load(open(os.path.join(ROOT, "catalog", "accelerators.yaml")))
    for architecture, sets in data_sets(lib, catalog).items():
        if len(sys.argv) > 1 and architecture not in sys.argv[1:]:
            continue
        print(architecture)
        problem = Problem(lib, sets)
        report(problem, problem.fit())


if __name__ == "__main__":
    main()
