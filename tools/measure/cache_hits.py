"""How much of what memory-bound kernels move is found in the last-level cache, by Nsight Compute's counters
-> $OUT/h200_cache_hits.csv. Run without arguments; it starts ncu on itself.

The layers of cache.py, one forward and one backward pass of six. ncu counts bytes that pass the cache (lts__t_bytes)
and bytes that reach memory (dram__bytes), summed over all kernels that are neither matmul nor attention. One pass,
no replay, caches left alone: each kernel finds what the last one left.
"""
import csv
import os
import subprocess
import sys

import torch

from cache import LAYERS, run_forward, stack
from clock import Table
from kinds import ATTENTION, MATMUL

SIZES = (1024, 2048, 3072, 4096, 6144, 8192, 16384, 32768)
MODES = (0, 1)  # eager, compiled
METRICS = ("lts__t_bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")


def run_one(width, ffn, tokens, compiled):
    parts = stack(width, ffn, tokens, compiled)
    grad = torch.randn_like(parts[-1])

    def step():
        y = run_forward(*parts)
        torch.cuda.synchronize()
        y.backward(grad)
        torch.cuda.synchronize()

    for _ in range(3):
        step()
    torch.cuda.cudart().cudaProfilerStart()
    step()
    torch.cuda.cudart().cudaProfilerStop()


def total(text):
    """Bytes by metric over memory-bound kernels, and how many there were."""
    sums, kernels = dict.fromkeys(METRICS, 0.0), set()
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    scale = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
    for row in csv.DictReader(lines[begin:]):
        name = row["Kernel Name"].lower()
        if any(w in name for _, words in (ATTENTION, MATMUL) for w in words):
            continue
        kernels.add(row["ID"])
        sums[row["Metric Name"]] += float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]]
    return sums, len(kernels)


def main():
    table = Table("h200_cache_hits.csv", ("width", "ffn", "tokens", "compiled", "passed_mb", "read_mb", "written_mb",
                                          "kernels"))
    for compiled in MODES:
        for tokens in SIZES:
            out = subprocess.run(
                ["ncu", "--csv", "--metrics", ",".join(METRICS), "--cache-control", "none", "--clock-control", "none",
                 "--profile-from-start", "off", "--replay-mode", "kernel", sys.executable, __file__, "2048", "5632",
                 str(tokens), str(compiled)], capture_output=True, text=True)
            if out.returncode:
                print("failed", tokens, compiled, out.stderr[-300:], out.stdout[-300:], flush=True)
                continue
            sums, kernels = total(out.stdout)
            row = (2048, 5632, tokens, compiled, *(f"{sums[m] / LAYERS / 1e6:.2f}" for m in METRICS),
                   f"{kernels / LAYERS:.1f}")
            table.add(*row)
            print(*row, os.times().elapsed, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_one(*map(int, sys.argv[1:]))
    else:
        main()
