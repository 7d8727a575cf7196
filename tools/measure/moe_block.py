"""Whole layers of experts as torchtitan writes them, forward and backward, eager and compiled, on one device that
holds all experts -> $OUT/h200_moe_block.csv; and the host's time for one of them -> $OUT/h200_moe_host.csv.

A router in 32 bits, rows sorted into the experts' order, gathered, weighted in 32 bits, padded to blocks of 16 for
torch's grouped matmul, put back and summed by scatter_add. GPT-OSS adds each expert's biases and clamps its gate;
its attention has sinks in the original and has none here. Device time by kind of kernel, per layer. Compiled 1: the
parts that torchtitan compiles, which are all but the way to the experts and back; 2: the whole layer as one graph.
"""
import time

import torch
import torch.nn.functional as F
from torch import nn

from clock import Table
from kinds import ATTENTION, MATMUL, least

BLOCK = 16
COLUMNS = ("model", "tokens", "seq", "compiled", "pass", "device_ms", "matmul_ms", "attention_ms", "rows_ms",
           "other_ms", "kernels")
HOST = ("model", "compiled", "tokens", "forward_ms", "backward_ms")
MODELS = {
    "gpt-oss-20b": dict(width=2880, heads=64, kv=8, dim=64, experts=32, topk=4, ffn=2880, oss=True, norm=False),
    "qwen3-30b-a3b": dict(width=2048, heads=32, kv=4, dim=128, experts=128, topk=8, ffn=768, oss=False, norm=True),
    "moonlight-shape": dict(width=2048, heads=16, kv=16, dim=128, experts=64, topk=6, ffn=1408, oss=False, norm=False),
    "mixtral-8x7b": dict(width=4096, heads=32, kv=8, dim=128, experts=8, topk=2, ffn=14336, oss=False, norm=False),
}


def rotate(x, freqs):
    y = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * freqs.view(1, x.shape[1], 1, -1)
    return torch.view_as_real(y).flatten(3).type_as(x)


def clamped(x, limit=7.0):
    gate, up = x[..., ::2], x[..., 1::2]
    gate, up = gate.clamp(max=limit), up.clamp(min=-limit, max=limit)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        e, w, f = c["experts"], c["width"], c["ffn"]
        self.c = c
        up = 2 * f if c["oss"] else f
        self.w1 = nn.Parameter(torch.randn(e, up, w) * 0.02)
        self.w3 = None if c["oss"] else nn.Parameter(torch.randn(e, f, w) * 0.02)
        self.w2 = nn.Parameter(torch.randn(e, w, f) * 0.02)
        if c["oss"]:
            self.b1, self.b2 = nn.Parameter(torch.zeros(e, up)), nn.Parameter(torch.zeros(e, w))

    def forward(self, x, counts):
        offs = torch.cumsum(counts, 0, dtype=torch.int32)
        h = torch._grouped_mm(x, self.w1.transpose(-2, -1), offs=offs)
        if self.c["oss"]:
            each = counts.long()
            h = h + self.b1.repeat_interleave(each, 0)
            y = torch._grouped_mm(clamped(h), self.w2.transpose(-2, -1), offs=offs)
            return y + self.b2.repeat_interleave(each, 0)
        h = F.silu(h) * torch._grouped_mm(x, self.w3.transpose(-2, -1), offs=offs)
        return torch._grouped_mm(h, self.w2.transpose(-2, -1), offs=offs)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        w, d = c["width"], c["dim"]
        self.n1, self.n2 = nn.RMSNorm(w), nn.RMSNorm(w)
        self.q, self.k, self.v = (nn.Linear(w, h * d, bias=c["oss"]) for h in (c["heads"], c["kv"], c["kv"]))
        self.o = nn.Linear(c["heads"] * d, w, bias=c["oss"])
        self.qn, self.kn = (nn.RMSNorm(d), nn.RMSNorm(d)) if c["norm"] else (None, None)
        self.router = nn.Linear(w, c["experts"], bias=c["oss"])
        self.experts = Experts(c)

    def attend(self, x, freqs):
        b, s, _ = x.shape
        d = self.c["dim"]
        q, k, v = (m(x).view(b, s, -1, d) for m in (self.q, self.k, self.v))
        if self.qn is not None:
            q, k = self.qn(q), self.kn(k)
        q, k = rotate(q, freqs), rotate(k, freqs)
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(b, s, -1))

    def route(self, x):
        topk, experts = self.c["topk"], self.c["experts"]
        scores = F.softmax(self.router(x).float(), 1)
        best, picked = scores.topk(topk, 1)
        counts = torch.histc(picked.view(-1).float(), experts, 0, experts)
        order = torch.argsort(picked.view(-1), stable=True)
        return best.view(-1)[order], order // topk, picked.view(-1)[order], counts

    def moe(self, x):
        tokens, w = x.shape
        topk, experts = self.c["topk"], self.c["experts"]
        weight, token, expert, counts = self.route(x)
        index = token.view(-1, 1).expand(-1, w)
        rows = torch.gather(x, 0, index)
        rows = (rows.float() * weight.view(-1, 1)).to(x.dtype)
        counts = counts.to(torch.int32)
        padded = (counts + BLOCK - 1) // BLOCK * BLOCK
        total = tokens * topk + experts * BLOCK
        slot = (torch.cumsum(padded, 0) - padded)[expert] + torch.arange(tokens * topk, device=x.device)
        slot = slot - (torch.cumsum(counts, 0) - counts)[expert]
        source = torch.full((total,), tokens * topk, device=x.device).scatter(
            0, slot.long(), torch.arange(tokens * topk, device=x.device))
        blocks = torch.vstack((rows, rows.new_zeros(w)))[source]
        last = padded.clone()
        last[-1] += total - padded.sum()
        blocks = self.experts(blocks, last)
        back = blocks.new_empty(tokens * topk + 1, w)
        back[source] = blocks
        return torch.zeros_like(x).scatter_add(0, index, back[:-1])

    def forward(self, x, freqs):
        x = x + self.attend(self.n1(x), freqs)
        return x + self.moe(self.n2(x).view(-1, x.shape[-1])).view_as(x)


KINDS = (ATTENTION, MATMUL, ("rows", ("index", "scatter", "gather", "sort", "radix", "topk", "cat", "scan", "histogram")))


def build(name, tokens, seq, compiled):
    c = MODELS[name]
    torch._dynamo.reset()
    torch._dynamo.config.capture_scalar_outputs = True
    torch.manual_seed(1)
    layer = Layer(c).cuda().bfloat16()
    if compiled == 1:
        for part in ("attend", "route", "n1", "n2"):
            setattr(layer, part, torch.compile(getattr(layer, part)))
        layer.experts.forward = torch.compile(layer.experts.forward)
    run = torch.compile(layer, dynamic=False) if compiled == 2 else layer
    angle = torch.outer(torch.arange(seq).float(), 1e-4 ** torch.linspace(0, 1, c["dim"] // 2))
    freqs = torch.polar(torch.ones_like(angle), angle).cuda()
    x = torch.randn(tokens // seq, seq, c["width"], device="cuda").bfloat16().requires_grad_()
    return run, freqs, x


def device(table, name, tokens, seq, compiled):
    run, freqs, x = build(name, tokens, seq, compiled)
    grad = torch.randn_like(x)
    for _ in range(3):
        run(x, freqs).backward(grad)
    state = {}
    def forward():
        run.zero_grad(set_to_none=True)  # sharded weights get a fresh gradient: nothing is added up
        x.grad = None
        state["y"] = run(x, freqs)
    passes = (("forward", forward, lambda: None), ("backward", lambda: state["y"].backward(grad), forward))
    for what, call, prepare in passes:
        sums, count = least(call, KINDS, prepare)
        total = sum(sums.values())
        row = (name, tokens, seq, compiled, what, f"{total:.3f}",
               *(f"{sums[k]:.3f}" for k in ("matmul", "attention", "rows", "other")), count)
        table.add(*row)
        print(*row, flush=True)


def host(table, name, compiled, tokens=256):
    run, freqs, x = build(name, tokens, tokens, compiled)
    grad = torch.randn_like(x)
    for _ in range(5):
        run(x, freqs).backward(grad)
    forward, backward = [], []
    for _ in range(30):
        torch.cuda.synchronize()
        t0 = time.perf_counter()
        y = run(x, freqs)
        t1 = time.perf_counter()
        y.backward(grad)
        t2 = time.perf_counter()
        forward.append(t1 - t0)
        backward.append(t2 - t1)
    row = (name, compiled, tokens, f"{1e3 * sorted(forward)[15]:.3f}", f"{1e3 * sorted(backward)[15]:.3f}")
    table.add(*row)
    print("host", *row, flush=True)


def attempt(what, *args):
    try:
        what(*args)
    except Exception as e:
        print("failed", what.__name__, *args[1:], str(e)[:300].replace("\n", " "), flush=True)
    torch.cuda.empty_cache()


def main():
    table, hosts = Table("h200_moe_block.csv", COLUMNS), Table("h200_moe_host.csv", HOST)
    for name in MODELS:
        for compiled in (0, 1, 2):
            for tokens in (8192, 32768):
                attempt(device, table, name, tokens, 4096, compiled)
            attempt(host, hosts, name, compiled)


if __name__ == "__main__":
    main()
