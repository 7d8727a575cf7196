"""What code written by hand costs: a small GPT under autocast, compiled or not, its loss alone, and
an optimizer on the host -> $OUT/h200_hand.csv.

The GPT keeps 32-bit weights and runs under autocast, as most training loops found in tutorials do.
The host's optimizer is PyTorch's fused AdamW on one thread (torchrun sets OMP_NUM_THREADS to 1), on
four and on all, with the casts, the norm and the scaling that a mixed-precision engine adds.
"""
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

from clock import Table
from kinds import by_kind

COLUMNS = ("case", "detail", "value", "unit", "matmul_ms", "attention_ms", "other_ms",
           "peak_alloc_gib", "peak_reserved_gib")


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2)
                   for y in self.qkv(self.n1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, vocab, seq):
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(seq, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        self.head.weight = self.token.weight

    def forward(self, ids, labels):
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


def split(step):
    sums, _ = by_kind(step)
    return [f"{sums[k]:.2f}" for k in ("matmul", "attention", "other")]


def wall(step, repeat):
    for _ in range(3):
        step()
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times)


def gpt(table, layers, width, heads, micro, compiled, autocast):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.set_float32_matmul_precision("high")
    seq, vocab = 1024, 50304
    model = Gpt(layers, width, heads, vocab, seq).cuda()
    if not autocast:
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model) if compiled else model
    ids = torch.randint(0, vocab, (micro, seq), device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            _, value = run(ids, ids)
        value.backward()
        optimizer.step()

    ms = wall(step, 4)
    gib = [f"{x / 2**30:.2f}" for x in (torch.cuda.max_memory_allocated(),
                                        torch.cuda.max_memory_reserved())]
    table.add(f"gpt {layers}x{width}", f"micro {micro} compiled {int(compiled)} "
              f"autocast {int(autocast)}", f"{ms:.2f}", "ms", *split(step), *gib)


def loss(table, rows, vocab, compiled):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    logits = torch.randn(rows, vocab, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(0, vocab, (rows,), device="cuda")

    def one(x, y):
        return F.cross_entropy(x.float(), y)

    f = torch.compile(one) if compiled else one

    def step():
        logits.grad = None
        f(logits, labels).backward()

    ms = wall(step, 8)
    table.add("loss", f"{rows} x {vocab} fp32 compiled {int(compiled)}", f"{ms:.3f}", "ms", "",
              "", "", f"{torch.cuda.max_memory_allocated() / 2**30:.2f}", "")


def host(table, count, threads):
    torch.set_num_threads(threads)
    weight = torch.zeros(count, requires_grad=True)
    short = torch.full((count,), 1e-3, dtype=torch.bfloat16)
    weight.grad = torch.zeros(count)
    optimizer = torch.optim.AdamW([weight], lr=1e-4, fused=True)
    optimizer.step()
    for name, call in (("cast down", lambda: weight.grad.copy_(short)),
                       ("norm", weight.grad.norm), ("scale", lambda: weight.grad.mul_(0.5)),
                       ("adam", optimizer.step), ("cast up", lambda: short.copy_(weight.detach()))):
        begin = time.perf_counter()
        call()
        ns = (time.perf_counter() - begin) / count * 1e9
        table.add("host", f"{name} threads {threads}", f"{ns:.2f}", "ns per parameter", "", "", "",
                  "", "")


def copies(table):
    source = torch.zeros(1 << 28, dtype=torch.uint8, device="cuda")
    for name, pinned in (("pinned", True), ("pageable", False)):
        target = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=pinned)
        table.add("copy", f"256 MiB to the host {name}",
                  f"{wall(lambda: target.copy_(source), 4):.3f}", "ms", "", "", "", "", "")


def main():
    table = Table("h200_hand.csv", COLUMNS)
    for threads in (1, 4, 16):
        host(table, 1 << 27, threads)
    copies(table)
    for compiled in (False, True):
        loss(table, 32768, 50304, compiled)
    for micro, compiled, autocast in ((64, True, True), (32, True, True), (64, False, True),
                                      (64, False, False), (64, True, False)):
        gpt(table, 12, 768, 12, micro, compiled, autocast)


if __name__ == "__main__":
    main()
