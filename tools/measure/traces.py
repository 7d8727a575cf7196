"""Profiler traces of sick training steps on one GPU, each with its healthy twin measured without the profiler.

Writes under $OUT: NAME.json.gz (3 steps each, PyTorch profiler) packed into traces.tar, and traces.csv:
name, label, step_s without the profiler, twin, twin_s: the same step without the cause, measured here.
"""
import gc
import time

import torch
import torch.nn.functional as F

import harness
from launch import DEVICE, Block, Llama, rope

SMALL = dict(hidden=1024, layers=12, heads=16, ffn=2816, vocab=32000, seq=2048)
LARGE = dict(hidden=2048, layers=8, heads=16, ffn=5504, vocab=32000, seq=2048)
TINY = dict(hidden=768, layers=12, heads=12, ffn=2048, vocab=32000, seq=256)


class UnfusedBlock(Block):
    """Attention as matmul, mask, softmax, matmul."""

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        score = q @ k.transpose(-2, -1) / (q.shape[-1] ** 0.5)
        mask = torch.ones(s, s, dtype=torch.bool, device=x.device).tril()
        a = torch.softmax(score.masked_fill(~mask, float("-inf")).float(), -1).to(v.dtype) @ v
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class NaiveNorm(torch.nn.Module):
    """RMSNorm written out in single precision: six passes over memory instead of one."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class SyncBlock(Block):
    """Looks at a value of every layer on the host, as a check for NaN does."""

    def forward(self, x, cos, sin):
        x = super().forward(x, cos, sin)
        if not torch.isfinite(x.sum()).item():
            raise RuntimeError("not finite")
        return x


class ChattyBlock(Block):
    """Reads back a statistic after each half of a layer, for a log."""

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        self.seen = float(y.abs().max())
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        self.seen += float(q.norm()) + float(k.norm()) + float(v.norm())
        a = F.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
        self.seen += float(x.abs().max())
        y = self.norm2(x)
        gate, up = self.gate(y), self.up(y)
        self.seen += float(gate.norm()) + float(up.norm())
        return x + self.down(F.silu(gate) * up)


def build(shape, dtype=torch.bfloat16, block=Block, naive_norm=False):
    model = Llama(**{k: shape[k] for k in ("hidden", "layers", "heads", "ffn", "vocab", "seq")})
    for b in model.blocks:
        b.__class__ = block
        if naive_norm:
            b.norm1, b.norm2 = NaiveNorm(b.norm1.weight), NaiveNorm(b.norm2.weight)
    return model.to(DEVICE, dtype)


def make_step(shape, batch, dtype=torch.bfloat16, block=Block, before=None, compiled=False, loader=None,
              after=None, naive_norm=False, graph=False, fused=True):
    model = build(shape, dtype, block, naive_norm)
    run = torch.compile(model, mode="reduce-overhead" if graph else None) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused, foreach=False if not fused else None)
    fixed = torch.randint(0, shape["vocab"], (batch, shape["seq"]), device=DEVICE)

    def step():
        ids = next(loader) if loader else fixed
        if before:
            before()
        loss = run(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if after:
            after()

    return step


class Tokens(torch.utils.data.Dataset):
    """Text that a slow tokenizer turns into ids: `work` seconds of Python for each item."""

    def __init__(self, shape, work):
        self.seq, self.vocab, self.work = shape["seq"], shape["vocab"], work

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        end = time.perf_counter() + self.work
        while time.perf_counter() < end:
            pass
        return torch.randint(0, self.vocab, (self.seq,))


def loader(shape, batch, workers, work):
    it = iter(torch.utils.data.DataLoader(Tokens(shape, work), batch_size=batch, num_workers=workers, pin_memory=workers > 0,
                                          prefetch_factor=4 if workers else None))
    while True:
        yield next(it).to(DEVICE, non_blocking=workers > 0)


def copies(bytes_each, count, pinned):
    host = [torch.empty(bytes_each, dtype=torch.uint8, pin_memory=pinned) for _ in range(count)]
    stream = torch.cuda.Stream() if pinned else torch.cuda.current_stream()

    def copy():
        with torch.cuda.stream(stream):
            for h in host:
                h.to(DEVICE, non_blocking=True)

    return copy


def offload(size, pinned):
    """Optimizer state that lives on the host: back and forth once a step."""
    device = torch.empty(size, dtype=torch.uint8, device=DEVICE)
    host = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)

    def move():
        host.copy_(device, non_blocking=pinned)
        device.copy_(host, non_blocking=pinned)

    return move


def garbage(count):
    keep = [[i, [i]] for i in range(count)]

    def collect():
        gc.collect()
        return keep

    return collect


def cases():
    bf16, fp32 = torch.bfloat16, torch.float32
    wide = dict(LARGE, vocab=50257)
    odd = dict(LARGE, hidden=2040, heads=17, ffn=5001, vocab=50257)
    even = dict(odd, ffn=5008, vocab=50304)
    yield "host_sync", "host-sync", lambda: make_step(SMALL, 4, block=SyncBlock), lambda: make_step(SMALL, 4), False
    yield "host_sync_1b", "host-sync", lambda: make_step(LARGE, 4, block=ChattyBlock), lambda: make_step(LARGE, 4), False
    yield ("offload_pageable", "pageable-copies", lambda: make_step(LARGE, 4, after=offload(512 << 20, False)),
           lambda: make_step(LARGE, 4, after=offload(512 << 20, True)), False)
    yield ("plain_adamw", "launch-bound", lambda: make_step(SMALL, 4, fused=False), lambda: make_step(SMALL, 4), False)
    yield "healthy_3b", "healthy", lambda: make_step(dict(LARGE, hidden=2560, heads=20, ffn=6912), 8), None, False
    yield "healthy_long", "healthy", lambda: make_step(dict(LARGE, seq=8192), 2), None, False
    yield ("pageable_copies", "pageable-copies", lambda: make_step(SMALL, 4, before=copies(256 << 20, 4, False)),
           lambda: make_step(SMALL, 4, before=copies(256 << 20, 4, True)), False)
    yield "fp32", "no-tensor-cores", lambda: make_step(LARGE, 2, dtype=fp32), lambda: make_step(LARGE, 2), False
    yield "misaligned_vocab", "misaligned-shapes", lambda: make_step(wide, 4), lambda: make_step(dict(wide, vocab=50304), 4), False
    yield "misaligned_all", "misaligned-shapes", lambda: make_step(odd, 4), lambda: make_step(even, 4), True
    yield ("unfused_norms", "memory-bound", lambda: make_step(SMALL, 16, naive_norm=True),
           lambda: make_step(SMALL, 16, naive_norm=True, compiled=True), False)
    yield "empty_cache", "allocator", lambda: make_step(SMALL, 4, after=torch.cuda.empty_cache), lambda: make_step(SMALL, 4), False
    yield "garbage", "garbage-collection", lambda: make_step(SMALL, 4, after=garbage(600000)), lambda: make_step(SMALL, 4), False
    yield ("loader", "data-starved", lambda: make_step(SMALL, 4, loader=loader(SMALL, 4, 0, 0.02)),
           lambda: make_step(SMALL, 4, loader=loader(SMALL, 4, 8, 0.02)), False)
    yield "launch_160m", "launch-bound", lambda: make_step(TINY, 1), lambda: make_step(TINY, 1, compiled=True, graph=True), True
    yield "unfused_1b", "unfused-attention", lambda: make_step(LARGE, 4, block=UnfusedBlock), lambda: make_step(LARGE, 4), False
    yield "healthy_1b", "healthy", lambda: make_step(LARGE, 8), None, True
    yield "healthy_compiled", "healthy", lambda: make_step(LARGE, 8, compiled=True), None, False
    yield ("healthy_loader", "healthy", lambda: make_step(LARGE, 8, loader=loader(LARGE, 8, 8, 0.002)), None, False)


if __name__ == "__main__":
    harness.run("traces", cases())
    # Once more with 32-bit matmuls on tensor cores: what the smallest remedy for fp32 gives.
    torch.backends.cuda.matmul.allow_tf32 = True
    print("fp32 with tf32:", harness.seconds(make_step(LARGE, 2, dtype=torch.float32)), flush=True)
