"""More sick and healthy steps, of other kinds than traces.py: to see that rules hold for causes, not for files."""
import gc
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import harness
import traces
from traces import DEVICE, LARGE, SMALL, TINY, Block, Llama, make_step, rope
from launch import Norm

class Bottleneck(nn.Module):
    def __init__(self, cin, mid, stride):
        super().__init__()
        out = mid * 4
        self.a, self.b, self.c = nn.Conv2d(cin, mid, 1, bias=False), nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.Conv2d(mid, out, 1, bias=False)
        self.na, self.nb, self.nc = nn.BatchNorm2d(mid), nn.BatchNorm2d(mid), nn.BatchNorm2d(out)
        self.down = nn.Sequential(nn.Conv2d(cin, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride > 1 or cin != out else nn.Identity()

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = F.relu(self.nb(self.b(y)))
        return F.relu(self.nc(self.c(y)) + self.down(x))


def resnet():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    cin = 64
    for mid, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(n):
            layers.append(Bottleneck(cin, mid, stride if i == 0 else 1))
            cin = mid * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)).to(DEVICE)


def vision_step(batch, amp, tf32=True, graph=False):
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    model = resnet().to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, foreach=True)
    x = torch.randn(batch, 3, 224, 224, device=DEVICE).to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (batch,), device=DEVICE)

    def step():
        torch.backends.cudnn.allow_tf32 = tf32
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)

    if not graph:
        return step
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    opt.zero_grad(set_to_none=True)
    with torch.cuda.graph(g):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    return g.replay


class Stop(Block):
    def forward(self, x, cos, sin):
        x = super().forward(x, cos, sin)
        torch.cuda.synchronize()
        return x


class Masked(Block):
    def forward(self, x, cos, sin):
        x = super().forward(x, cos, sin)
        keep = (x[..., 0] > 1e9).nonzero()
        return x + 0 * keep.shape[0]


class Bert(Block):
    """Unmasked attention with dropout, by hand."""

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        p = F.dropout(torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * 0.125, -1), 0.1)
        x = x + self.o(torch.matmul(p, v).transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.silu(self.gate(self.norm2(x))) * self.up(x))


class BertFused(Bert):
    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.silu(self.gate(self.norm2(x))) * self.up(x))


class Poly(Block):
    """An activation written out, in many passes."""

    def forward(self, x, cos, sin):
        x = super().forward(x, cos, sin)
        y = self.gate(self.norm2(x))
        y = 0.5 * y * (1 + torch.tanh(0.79788 * (y + 0.044715 * y * y * y)))
        y = torch.clamp(y * 0.99 + 0.01, -30, 30)
        y = y * torch.sigmoid(y.float()).to(y.dtype) + y.abs() * 0.1
        return x + self.down(y)


def scaler_step(shape, batch):
    model = Llama(**{k: shape[k] for k in ("hidden", "layers", "heads", "ffn", "vocab", "seq")}).to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    scaler = torch.amp.GradScaler("cuda")
    ids = torch.randint(0, shape["vocab"], (batch, shape["seq"]), device=DEVICE)

    def step():
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(ids, ids)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)

    return step


def logged(shape, batch):
    model = Llama(**{k: shape[k] for k in ("hidden", "layers", "heads", "ffn", "vocab", "seq")}).to(DEVICE, torch.bfloat16)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 1000)
    host = torch.randint(0, shape["vocab"], (batch, shape["seq"])).pin_memory()
    log = []

    def step():
        ids = host.to(DEVICE, non_blocking=True)
        loss = model(ids, ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        opt.zero_grad(set_to_none=True)
        log.append(loss.item())

    return step


def own_loader(shape, batch, work):
    rng = np.random.default_rng(0)
    while True:
        end = time.perf_counter() + work
        while time.perf_counter() < end:
            rng.standard_normal(1000).sum()
        yield torch.from_numpy(rng.integers(0, shape["vocab"], (batch, shape["seq"]))).to(DEVICE)


def cyclic(count):
    keep = [[i, [i]] for i in range(count)]
    gc.enable()
    gc.set_threshold(700, 10, 3)

    class Churn(Block):
        def forward(self, x, cos, sin):
            gc.enable()
            junk = [[] for _ in range(4000)]
            for j in junk:
                j.append(j)
            del junk
            return super().forward(x, cos, sin)

    return Churn, keep


def cases():
    m410 = dict(hidden=1024, layers=24, heads=16, ffn=2816, vocab=32000, seq=2048)
    fp32 = torch.float32
    yield "x_cuda_sync", "host-sync", lambda: make_step(LARGE, 2, block=Stop), lambda: make_step(LARGE, 2), False
    yield "x_nonzero", "host-sync", lambda: make_step(SMALL, 8, block=Masked), lambda: make_step(SMALL, 8), True
    yield "x_bert", "unfused-attention", lambda: make_step(dict(SMALL, seq=1024), 16, block=Bert), lambda: make_step(dict(SMALL, seq=1024), 16, block=BertFused), False
    yield "x_fp32_small", "no-tensor-cores", lambda: make_step(SMALL, 4, dtype=fp32), lambda: make_step(SMALL, 4), False
    yield "x_own_loader", "data-starved", lambda: make_step(LARGE, 4, loader=own_loader(LARGE, 4, 0.06)), lambda: make_step(LARGE, 4), False
    yield "x_slow_workers", "data-starved", lambda: make_step(SMALL, 4, loader=traces.loader(SMALL, 4, 2, 0.05)), lambda: make_step(SMALL, 4), False
    yield "x_logged", "healthy", lambda: logged(LARGE, 4), None, False
    yield "x_scaler", "healthy", lambda: scaler_step(LARGE, 4), None, False
    yield "x_vision_amp", "healthy", lambda: vision_step(256, True), None, False
    yield "x_vision_small", "launch-bound", lambda: vision_step(4, False), lambda: vision_step(4, False, graph=True), False
    yield "x_vision_fp32", "no-tensor-cores", lambda: vision_step(128, False, tf32=False), lambda: vision_step(128, True), True
    yield "x_misaligned_ffn", "misaligned-shapes", lambda: make_step(dict(SMALL, ffn=2815), 8), lambda: make_step(dict(SMALL, ffn=2816), 8), False
    yield "x_410m_8x2048", "healthy", lambda: make_step(m410, 8), None, False
    yield "x_410m_4x4096", "healthy", lambda: make_step(dict(m410, seq=4096), 4), None, False
    yield "x_churn", "garbage-collection", lambda: make_step(SMALL, 8, block=cyclic(1500000)[0]), lambda: make_step(SMALL, 8), False
    yield "x_poly", "memory-bound", lambda: make_step(SMALL, 16, block=Poly), lambda: make_step(SMALL, 16, block=Poly, compiled=True), False
    yield "x_graphed", "healthy", lambda: make_step(SMALL, 8, compiled=True, graph=True), None, False


if __name__ == "__main__":
    harness.run("heldout", cases(), steps=6, rounds=3, collecting=("x_churn",))
