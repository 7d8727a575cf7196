"""cuDNN's attention held for seconds on one GPU, by sequence: rate, clock and power, forward and backward, and both in turn as
a layer with recomputation runs them. Causal work is counted as half. -> $OUT/h200_long_attention.csv
"""
import subprocess
import threading
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

from clock import Table

HEADS, KV, DIM = 32, 8, 128


class Meter(threading.Thread):
    """Clock (MHz) and power (W), sampled while it runs; means of the second half."""

    def __init__(self):
        super().__init__(daemon=True)
        self.rows, self.on = [], True

    def run(self):
        query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"]
        while self.on:
            text = subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0]
            self.rows.append([float(v) for v in text.split(",")])
            time.sleep(0.1)

    def means(self):
        self.on = False
        self.join()
        late = self.rows[len(self.rows) // 2:]
        return [sum(c) / len(late) for c in zip(*late)]


def held(call, seconds=6.0):
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    meter = Meter()
    meter.start()
    begin, times = time.perf_counter(), []
    while time.perf_counter() - begin < seconds:
        t = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - t)
    late = sorted(times[len(times) // 2:])
    return [late[len(late) // 2], *meter.means()]


def main():
    table = Table("h200_long_attention.csv", ("batch", "seq", "pass", "tflops", "mhz", "watts"))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for batch, seq in ((64, 4096), (16, 16384), (2, 131072)):
            make = lambda h: torch.randn(batch, h, seq, DIM, device="cuda", dtype=torch.bfloat16,
                                         requires_grad=True)
            q, k, v = make(HEADS), make(KV), make(KV)
            forward = lambda: sdpa(q, k, v, is_causal=True, enable_gqa=True)
            y = forward()
            g = torch.randn_like(y)
            back = lambda: torch.autograd.grad(y, (q, k, v), g, retain_graph=True)
            flops = 2e-12 * batch * HEADS * seq * seq * DIM
            for name, call, work in (("forward", lambda: forward().detach(), 1.0),
                                     ("backward", back, 2.5),
                                     ("layer", lambda: (forward().detach(), forward().detach(), back()), 4.5)):
                s, mhz, watts = held(call)
                row = (batch, seq, name, f"{work * flops / s:.1f}", f"{mhz:.0f}", f"{watts:.0f}")
                table.add(*row)
                print(*row, flush=True)
            del q, k, v, y, g
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
