"""Training steps of GPT-style models on one GPU -> $OUT/h200_train_extra.csv.

Pre-norm blocks with LayerNorm, biases, GELU (tanh), ffn of 4 hidden, learned positions, flash
attention, untied head, loss on logits.float(). bf16 parameters, gradients and AdamW (fused) states.
A step is zero_grad, forward, backward, optimizer; the time is the median of steps after warm-up.
Arguments: seconds to spend (no new row is begun after that), and the first row to run.
"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from clock import Table

COLUMNS = ("model", "params", "hidden", "layers", "heads", "kv_heads", "ffn", "vocab", "seq",
           "micro_batch", "grad_accum", "recompute", "compiled", "dtype", "step_s", "tokens_per_s",
           "model_tflops", "peak_alloc_gib", "peak_reserved_gib", "status")
RUNS = (  # name, hidden, layers, heads, vocab, seq, micro-batch, compiled
    ("gpt-125m", 768, 12, 12, 50304, 1024, 8, 0), ("gpt-125m", 768, 12, 12, 50304, 1024, 32, 0),
    ("gpt-125m", 768, 12, 12, 50257, 1024, 32, 0), ("gpt-350m", 1024, 24, 16, 50304, 1024, 16, 0),
    ("gpt-760m", 1536, 24, 16, 50304, 2048, 4, 0), ("gpt-1.3b", 2048, 24, 16, 50304, 2048, 4, 0),
    ("gpt-1.3b", 2048, 24, 16, 50304, 2048, 8, 0), ("gpt-6.7b-L8", 4096, 8, 32, 50304, 2048, 4, 0),
    ("gpt-13b-L6", 5120, 6, 40, 50304, 2048, 4, 0), ("gpt-13b-L6", 5120, 6, 40, 50304, 8192, 1, 0),
    ("gpt-125m", 768, 12, 12, 50304, 1024, 32, 1), ("gpt-125m", 768, 12, 12, 50304, 1024, 1, 0),
    ("gpt-1.3b", 2048, 24, 16, 50304, 512, 16, 0),
    ("gpt-2.7b-L16", 2560, 16, 32, 50304, 2048, 8, 0),
    ("gpt-1.3b-L8-v50257", 2048, 8, 16, 50257, 2048, 4, 0),
    ("gpt-6.7b-L4", 4096, 4, 32, 50304, 2048, 4, 1),
    ("gpt-1.3b-L6", 2048, 6, 16, 50304, 2048, 8, 1))


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, h // self.heads).unbind(2)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                           is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, hidden, layers, heads, vocab, seq):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, hidden), nn.Embedding(seq, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocab, bias=False)

    def forward(self, ids, target):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), target.view(-1))


def run(table, name, hidden, layers, heads, vocab, seq, batch, compiled):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = Gpt(hidden, layers, heads, vocab, seq).to(device="cuda", dtype=torch.bfloat16)
    count = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    forward = torch.compile(model) if compiled else model
    ids = torch.randint(0, vocab, (batch, seq), device="cuda")
    times = []
    for i in range(13):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        forward(ids, ids).backward()
        optimizer.step()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(time.perf_counter() - begin)
    step = statistics.median(times)
    tokens = batch * seq
    flops = tokens * (6 * (count - (vocab + seq) * hidden) + 6 * layers * seq * hidden)
    table.add(name, count, hidden, layers, heads, heads, 4 * hidden, vocab, seq, batch, 1, "none",
              compiled, "bfloat16", f"{step:.6f}", f"{tokens / step:.0f}",
              f"{flops / step * 1e-12:.1f}", f"{torch.cuda.max_memory_allocated() / 2**30:.3f}",
              f"{torch.cuda.max_memory_reserved() / 2**30:.3f}", "ok")


def main():
    limit = time.time() + float(sys.argv[1]) if len(sys.argv) > 1 else float("inf")
    table = Table("h200_train_extra.csv", COLUMNS)
    for spec in RUNS[int(sys.argv[2]) if len(sys.argv) > 2 else 0:]:
        if time.time() > limit:
            break
        try:
            run(table, *spec)
        except Exception as error:
            print(spec, str(error).splitlines()[0][:160])
    print("train rows", table.rows)


if __name__ == "__main__":
    main()
