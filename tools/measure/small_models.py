"""Whole steps of small models as people write them, held for seconds: time, clock, power, and where
the device's time goes by kind of kernel -> $OUT/h200_small_models.csv.

GPT-2 (layer norms, GELU, learned positions), BERT (the same, every position seen, dropout) and a
Llama (RMS norms by torch's operator, rotary embedding, gated MLP), under autocast with 32-bit weights
or all in bf16, compiled or not, with flash attention 2.
"""
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from clock import Table
from kinds import ATTENTION, MATMUL, by_kind
from long_attention import Meter

COLUMNS = ("model", "layers", "width", "ffn", "heads", "kv_heads", "vocab", "seq", "micro", "compiled",
           "autocast", "step_ms", "clock_mhz", "watts", "matmul_ms", "attention_ms",
           "norm_ms", "activation_ms", "loss_ms", "optimizer_ms", "other_ms", "kernels")


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        w, self.c = c["width"], c
        norm = nn.RMSNorm if c["llama"] else nn.LayerNorm
        bias = not c["llama"]
        self.n1, self.n2 = norm(w), norm(w)
        kv = w * c["kv_heads"] // c["heads"]
        self.sizes = (w, kv, kv)
        self.qkv, self.out = nn.Linear(w, w + 2 * kv, bias=bias), nn.Linear(w, w, bias=bias)
        self.up = nn.Linear(w, c["ffn"] * (2 if c["llama"] else 1), bias=bias)
        self.down = nn.Linear(c["ffn"], w, bias=bias)
        self.drop = nn.Dropout(c["dropout"])

    def attend(self, x, place):
        b, t, w = x.shape
        d = w // self.c["heads"]
        q, k, v = (y.view(b, t, -1, d).transpose(1, 2) for y in self.qkv(x).split(self.sizes, 2))
        if self.c["llama"]:
            q, k = rotate(q, *place), rotate(k, *place)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.c["causal"],
                                           enable_gqa=self.c["kv_heads"] != self.c["heads"])
        return self.drop(self.out(y.transpose(1, 2).reshape(b, t, w)))

    def mlp(self, x):
        if self.c["llama"]:
            gate, up = self.up(x).chunk(2, -1)
            return self.down(F.silu(gate) * up)
        return self.drop(self.down(F.gelu(self.up(x))))

    def forward(self, x, place):
        x = x + self.attend(self.n1(x), place)
        return x + self.mlp(self.n2(x))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        w = c["width"]
        self.token = nn.Embedding(c["vocab"], w)
        self.places = None if c["llama"] else nn.Embedding(c["seq"], w)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.norm = nn.RMSNorm(w) if c["llama"] else nn.LayerNorm(w)
        self.head = nn.Linear(w, c["vocab"], bias=False)
        if not c["llama"]:
            self.head.weight = self.token.weight
        angle = torch.outer(torch.arange(c["seq"]).float(), 1e-4 ** torch.linspace(0, 1, w // c["heads"] // 2))
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cos", angle.cos()[None, None], persistent=False)
        self.register_buffer("sin", angle.sin()[None, None], persistent=False)

    def forward(self, ids, labels):
        x = self.token(ids)
        if self.places is not None:
            x = x + self.places(torch.arange(ids.shape[1], device=ids.device))
        place = (self.cos.to(x.dtype), self.sin.to(x.dtype))
        for block in self.blocks:
            x = block(x, place)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), labels.view(-1))


KINDS = (ATTENTION, MATMUL, ("loss", ("softmax", "nll")), ("optimizer", ("multi_tensor", "adam")),
         ("norm", ("norm",)), ("activation", ("gelu", "silu")))


def split(step):
    sums, count = by_kind(step, KINDS)
    order = ("matmul", "attention", "norm", "activation", "loss", "optimizer", "other")
    return [f"{sums[k]:.2f}" for k in order] + [count]


def measure(table, name, c, micro, compiled, autocast):
    torch.compiler.reset()
    torch.cuda.empty_cache()
    torch.set_float32_matmul_precision("high")
    model = Model(c).cuda()
    if not autocast:
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    run = torch.compile(model) if compiled else model
    ids = torch.randint(0, c["vocab"], (micro, c["seq"]), device="cuda")
    backend = SDPBackend.FLASH_ATTENTION

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast), sdpa_kernel(backend):
            value = run(ids, ids)
        with sdpa_kernel(backend):
            value.backward()
        optimizer.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    count = max(4, int(4.0 / (time.perf_counter() - begin)))
    meter = Meter()
    begin = time.perf_counter()
    meter.start()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - begin) / count * 1000
    clock, watts = meter.means()
    table.add(name, c["layers"], c["width"], c["ffn"], c["heads"], c["kv_heads"], c["vocab"], c["seq"],
              micro, int(compiled), int(autocast), f"{ms:.2f}", f"{clock:.0f}", f"{watts:.0f}", *split(step))


def shape(layers, width, heads, vocab, seq, *, ffn=0, kv=0, llama=False, causal=True, dropout=0.0):
    return {"layers": layers, "width": width, "heads": heads, "kv_heads": kv or heads, "vocab": vocab,
            "seq": seq, "ffn": ffn or 4 * width, "llama": llama, "causal": causal, "dropout": dropout}


def main():
    table = Table("h200_small_models.csv", COLUMNS)
    gpt2 = shape(12, 768, 12, 50304, 1024)
    medium = shape(24, 1024, 16, 50304, 1024)
    xl = shape(12, 1600, 25, 50304, 1024)
    bert = shape(24, 1024, 16, 30528, 384, causal=False)
    dropped = shape(24, 1024, 16, 30528, 384, causal=False, dropout=0.1)
    llama = shape(22, 2048, 32, 32000, 2048, ffn=5632, kv=4, llama=True)
    wide = shape(8, 4096, 32, 32000, 4096, ffn=14336, kv=8, llama=True)
    for name, c, micro in (("gpt2", gpt2, 64), ("gpt2-medium", medium, 32), ("gpt2-xl", xl, 32),
                           ("bert-large", bert, 64), ("bert-large dropout", dropped, 64),
                           ("llama-1.1b", llama, 8), ("llama-8b", wide, 4)):
        for compiled, autocast in ((False, True), (True, True), (False, False)):
            measure(table, name, c, micro, compiled, autocast)
            print(name, compiled, autocast, flush=True)


if __name__ == "__main__":
    main()
