"""Layers of experts one after another, as Hugging Face's models ran them up to release 4 -> $OUT/h200_expert_loop.csv.

Each expert is a module of three matrices; the host asks the device which tokens are its own
(torch.where), picks them, runs the gated MLP, weights the result and adds it in place
(models/qwen3_moe, mixtral of that time). Forward and backward are timed apart, three layers in a
row, by events around all of it, so that waits for the host count. bf16 weights.
"""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from clock import Table
from kinds import by_kind

COLUMNS = ("hidden", "ffn", "experts", "topk", "tokens", "hit_only", "forward_ms", "backward_ms",
           "forward_device_ms", "matmul_ms", "device_ms", "kernels")
LAYERS = 3


class Expert(nn.Module):
    def __init__(self, h, f):
        super().__init__()
        self.gate, self.up = nn.Linear(h, f, bias=False), nn.Linear(h, f, bias=False)
        self.down = nn.Linear(f, h, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, h, f, experts, k, hit_only):
        super().__init__()
        self.router, self.k, self.hit_only = nn.Linear(h, experts, bias=False), k, hit_only
        self.experts = nn.ModuleList(Expert(h, f) for _ in range(experts))

    def forward(self, x):
        weights, chosen = torch.topk(F.softmax(self.router(x), dim=1, dtype=torch.float), self.k, -1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        which = range(len(self.experts))
        if self.hit_only:
            which = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for e in which:
            i, rows = torch.where(mask[e].squeeze(0))
            mine = x[None, rows].reshape(-1, x.shape[-1])
            out.index_add_(0, rows, self.experts[e](mine) * weights[rows, i, None])
        return out


SHAPES = [(2048, 768, 128, 8, t, 1) for t in (1024, 4096, 16384)] + \
         [(2048, 1024, 64, 8, t, 1) for t in (4096, 16384)] + \
         [(4096, 14336, 8, 2, t, 0) for t in (1024, 4096, 16384)]


def one(h, f, experts, k, tokens, hit_only):
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = nn.Sequential(*(Block(h, f, experts, k, hit_only) for _ in range(LAYERS)))
    torch.set_default_dtype(torch.float32)
    x = torch.randn(tokens, h, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    g = torch.randn_like(x)
    best = None
    for _ in range(5):
        model.zero_grad()
        torch.cuda.synchronize()
        t0 = time.perf_counter()
        y = model(x)
        torch.cuda.synchronize()
        t1 = time.perf_counter()
        y.backward(g)
        torch.cuda.synchronize()
        t2 = time.perf_counter()
        now = (t1 - t0, t2 - t1)
        best = now if best is None or sum(now) < sum(best) else best
    forward, _ = by_kind(lambda: model(x))
    both, count = by_kind(lambda: model(x).backward(g))
    each = 1e3 / LAYERS
    return (h, f, experts, k, tokens, hit_only, f"{best[0] * each:.3f}", f"{best[1] * each:.3f}",
            f"{sum(forward.values()) / LAYERS:.3f}", f"{both['matmul'] / LAYERS:.3f}",
            f"{sum(both.values()) / LAYERS:.3f}", count // LAYERS)


def main():
    deadline = time.time() + float(sys.argv[1] if len(sys.argv) > 1 else 200)
    table = Table("h200_expert_loop.csv", COLUMNS)
    for shape in SHAPES:
        if time.time() > deadline:
            break
        table.add(*one(*shape))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
