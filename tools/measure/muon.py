"""Muon's step: five Newton-Schulz steps in bf16 over matrices of usual shapes, one by one and in batches (experts),
device and host time -> $OUT/h200_muon.csv.

Written as its authors describe it: the gradient is added to a momentum in 32 bits, cast, divided by its norm, turned
so that it is no taller than wide, iterated, and added to the weight. `wall_us`: many matrices after each other, as an
optimizer steps them; `device_us`: sum of the kernels of one; `host_us`: what the host takes to start one.
"""
import time

import torch

from clock import Table
from kinds import MATMUL, by_kind

STEPS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)


def orthogonal(g):
    a, b, c = COEFFICIENTS
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        s = x @ x.mT
        x = a * x + (b * s + c * s @ s) @ x
    return x.mT if tall else x


def step(weight, gradient, momentum):
    momentum.lerp_(gradient.float(), 0.05)
    weight.add_(orthogonal(momentum), alpha=-0.02)


def measure(table, experts, m, n):
    count = max(2, min(32, int(2e9 / (14 * experts * m * n))))
    shape = (experts, m, n) if experts > 1 else (m, n)
    sets = [(torch.randn(shape, device="cuda"), torch.randn(shape, device="cuda").bfloat16(),
             torch.zeros(shape, device="cuda")) for _ in range(count)]
    walls, hosts = [], []
    for _ in range(7):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for s in sets:
            step(*s)
        hosts.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
        walls.append(time.perf_counter() - begin)
    sums, kernels = by_kind(lambda: step(*sets[0]), (MATMUL,))
    row = (experts, m, n, f"{1e6 * sorted(walls)[3] / count:.1f}", f"{1e3 * sums['matmul']:.1f}",
           f"{1e3 * sums['other']:.1f}", f"{1e6 * min(hosts) / count:.1f}", kernels)
    table.add(*row)
    print(*row, flush=True)


def main():
    table = Table("h200_muon.csv", ("experts", "m", "n", "wall_us", "matmul_us", "other_us", "host_us", "kernels"))
    for m, n in ((512, 512), (768, 768), (768, 3072), (1024, 1024), (1536, 4096), (2048, 2048), (2048, 8192),
                 (4096, 1024), (4096, 4096), (4096, 14336), (5120, 17408), (8192, 8192), (8192, 28672)):
        measure(table, 1, m, n)
    for experts, m, n in ((8, 1024, 512), (64, 1024, 512), (64, 2560, 1280), (16, 2048, 768), (8, 4096, 14336)):
        measure(table, experts, m, n)


if __name__ == "__main__":
    main()
