"""Matmuls held for seconds beside memory-bound work, by its share and by what the matrices hold.

Each case repeats one matmul and a number of vector additions for a few seconds and keeps, from the
second half, the mean time of each kind, the device's power and its clock -> $OUT/h200_mixed.csv.
Matrices: normal (standard normal), layer (activations after a norm, weights of standard deviation
0.02), gradient (the same times 1e-4), zero.
"""
import subprocess
import threading
import time

import torch

from clock import Table, timed

N = 8192
COLUMNS = ("data", "adds", "matmul_burst_ms", "matmul_ms", "add_burst_ms", "add_ms", "power_w",
           "sm_mhz", "temperature_c")
FILLS = {"normal": (1.0, 1.0), "layer": (1.0, 0.02), "gradient": (1e-4, 0.02), "zero": (0.0, 0.0)}


class Watch:
    """Power, clock and temperature, ten times a second while it is open."""

    def __enter__(self):
        self.log = subprocess.Popen(
            ["nvidia-smi", "--query-gpu=power.draw.instant,clocks.sm,temperature.gpu",
             "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True)
        self.seen = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        return self

    def read(self):
        for line in self.log.stdout:
            cells = line.split(",")
            if len(cells) == 3 and cells[0].strip().replace(".", "").isdigit():
                self.seen.append([float(c) for c in cells])

    def __exit__(self, *_):
        self.log.terminate()

    def means(self):
        half = self.seen[len(self.seen) // 2:]
        return [sum(row[i] for row in half) / max(1, len(half)) for i in range(3)]


def case(table, data, adds, seconds):
    left, right = FILLS[data]
    a = (torch.randn(N, N, device="cuda") * left).bfloat16()
    b = (torch.randn(N, N, device="cuda") * right).bfloat16()
    c = torch.empty(N, N, device="cuda", dtype=torch.bfloat16)
    x, y, z = (torch.randn(N * N, device="cuda").bfloat16() for _ in range(3))
    matmul_burst = timed(lambda: torch.mm(a, b, out=c))
    add_burst = timed(lambda: torch.add(x, y, out=z))
    rounds, begin = [], time.time()
    with Watch() as watch:
        while time.time() - begin < seconds:
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
            marks[0].record()
            for _ in range(4):
                torch.mm(a, b, out=c)
            marks[1].record()
            for _ in range(4 * adds):
                torch.add(x, y, out=z)
            marks[2].record()
            rounds.append(marks)
            if len(rounds) % 8 == 0:
                rounds[-8][2].synchronize()  # keep a few rounds queued, no more
        torch.cuda.synchronize()
    half = rounds[len(rounds) // 2:]
    matmul = sum(m[0].elapsed_time(m[1]) for m in half) / len(half) / 4
    add = sum(m[1].elapsed_time(m[2]) for m in half) / len(half) / (4 * adds) if adds else 0
    power, clock, temperature = watch.means()
    table.add(data, adds, f"{matmul_burst:.4f}", f"{matmul:.4f}", f"{add_burst:.4f}", f"{add:.4f}",
              f"{power:.0f}", f"{clock:.0f}", f"{temperature:.0f}")
    print(data, adds, f"{matmul_burst:.3f} -> {matmul:.3f}, {power:.0f} W, {clock:.0f} MHz",
          flush=True)


def main():
    table = Table("h200_mixed.csv", COLUMNS)
    for data in ("layer", "normal", "gradient", "zero"):
        for adds in (0, 2, 4, 8, 16) if data in ("layer", "normal") else (0, 8):
            case(table, data, adds, 5.0)


if __name__ == "__main__":
    main()
