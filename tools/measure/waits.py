"""Matmuls held for seconds between waits, by the wait's share, kind and grain; attention held.

A case repeats `grain` matmuls and one wait for a few seconds and keeps, from the second half, the
mean time of a matmul, the device's power and its clock -> $OUT/h200_waits.csv. Waits: sleep (one
thread spins) and copy (24 blocks copy, as a collective's kernel does). Rows without matmuls hold
the wait alone; rows of attention hold its forward or backward.
"""
import time

import torch
import triton
import triton.language as tl

from clock import Table, timed
from mixed import Watch

M, K, N = 4096, 8192, 7168
COLUMNS = ("case", "grain", "share", "burst_ms", "held_ms", "wait_ms", "power_w", "sm_mhz",
           "temperature_c")
BLOCKS = 24


@triton.jit
def copy_blocks(source, target, rounds, size: tl.constexpr):
    start = tl.program_id(0) * rounds * size
    for i in range(rounds):
        at = start + i * size + tl.arange(0, size)
        tl.store(target + at, tl.load(source + at))


def held(table, name, grain, share, work, wait, seconds=4.0):
    burst = timed(work) if work else 0.0
    rounds, begin = [], time.time()
    with Watch() as watch:
        while time.time() - begin < seconds:
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
            marks[0].record()
            for _ in range(grain):
                work()
            marks[1].record()
            if wait:
                wait()
            marks[2].record()
            rounds.append(marks)
            behind = max(2, int(40 / max(1.0, grain * burst)))
            if len(rounds) > behind:
                rounds[-behind][2].synchronize()
        torch.cuda.synchronize()
    half = rounds[len(rounds) // 2:]
    mean = lambda a, b: sum(m[a].elapsed_time(m[b]) for m in half) / len(half)
    row = (name, grain, share, f"{burst:.4f}", f"{mean(0, 1) / max(1, grain):.4f}",
           f"{mean(1, 2):.4f}", *(f"{v:.0f}" for v in watch.means()))
    table.add(*row)
    print(*row, flush=True)


def matmuls(table):
    a = torch.randn(M, K, device="cuda").bfloat16()
    b = (torch.randn(K, N, device="cuda") * 0.02).bfloat16()
    c = torch.empty(M, N, device="cuda", dtype=torch.bfloat16)
    mm = lambda: torch.mm(a, b, out=c)
    source = torch.randn(BLOCKS * 4096 * 4096, device="cuda").bfloat16()
    target = torch.empty_like(source)
    copy = lambda rounds: copy_blocks[(BLOCKS,)](source, target, rounds, size=4096, num_warps=16)
    spin_ms = timed(lambda: torch.cuda._sleep(1000000))
    copy_ms = timed(lambda: copy(64)) / 64
    print("copy of 24 blocks", 2 * 2 * BLOCKS * 4096 / copy_ms / 1e6, "GB/s read and written")
    spin = lambda ms: torch.cuda._sleep(int(1e6 * ms / spin_ms))
    waits = {"sleep": spin, "copy": lambda ms: copy(max(1, min(4096, round(ms / copy_ms))))}
    held(table, "none", 1, 0, mm, None)
    base = timed(mm) * 1.18
    for kind, wait in waits.items():
        for grain, share in ((1, 0.1), (1, 0.25), (1, 0.5), (16, 0.25)):
            ms = grain * base * share / (1 - share)
            if kind == "copy" and ms > 4000 * copy_ms:
                continue
            held(table, kind, grain, share, mm, lambda: wait(ms))
        held(table, kind, 0, 1, None, lambda: wait(5))
    held(table, "none", 1, 0, mm, None)


def attention(table):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        for seq in (4096, 32768):
            q, k, v = (torch.randn(1, 32, seq, 128, device="cuda", dtype=torch.bfloat16,
                                   requires_grad=True) for _ in range(3))
            name = f"{backend.name.split('_')[0].lower()}_{seq}"
            with sdpa_kernel(backend):
                forward = lambda: torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=True)
                with torch.no_grad():
                    held(table, name + "_forward", 4, 0, forward, None, 3.0)
                out = forward()
                grad = torch.randn_like(out)
                backward = lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)
                held(table, name + "_backward", 4, 0, backward, None, 3.0)


if __name__ == "__main__":
    results = Table("h200_waits.csv", COLUMNS)
    matmuls(results)
    attention(results)
