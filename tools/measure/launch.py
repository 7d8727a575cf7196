"""Small Llama-shaped training steps on one GPU, where the host cannot launch as fast as the device runs:
step time by depth, width and tokens. Writes launch.csv (columns of test/data/h200_train.csv) under $OUT.

Three rounds over all shapes, so that a change of the host's clock during the run shows as scatter."""
import os
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"


def rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Norm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight)


class Block(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = Norm(hidden), Norm(hidden)
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, hidden, layers, heads, ffn, vocab, seq):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, ffn) for _ in range(layers))
        self.norm, self.head = Norm(hidden), nn.Linear(hidden, vocab, bias=False)
        angles = torch.outer(torch.arange(seq), 1e4 ** (-torch.arange(0, hidden // heads, 2) / (hidden // heads)))
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids, target):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), target.view(-1))


def step_seconds(hidden, layers, heads, ffn, vocab, seq, batch):
    torch.cuda.empty_cache()
    model = Llama(hidden, layers, heads, ffn, vocab, seq).to(DEVICE, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, vocab, (batch, seq), device=DEVICE)

    def step():
        loss = model(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(8):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(10):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / 10)
    return statistics.median(times)


SHAPES = [  # name, hidden, layers, heads, ffn, seq, batch
    ("160m", 768, 12, 12, 2048, 256, 1), ("160m", 768, 12, 12, 2048, 1024, 1),
    ("160m", 768, 12, 12, 2048, 1024, 2), ("160m", 768, 12, 12, 2048, 1024, 4),
    ("160m", 768, 12, 12, 2048, 2048, 2),
    ("410m", 1024, 24, 16, 2816, 256, 1), ("410m", 1024, 24, 16, 2816, 1024, 1),
    ("410m", 1024, 24, 16, 2816, 2048, 1), ("410m", 1024, 24, 16, 2816, 1024, 4),
    ("410m", 1024, 24, 16, 2816, 2048, 2),
    ("160m-L24", 768, 24, 12, 2048, 512, 1), ("410m-L12", 1024, 12, 16, 2816, 512, 1),
    ("410m-L48", 1024, 48, 16, 2816, 512, 1),
]


def main():
    folder = os.environ.get("OUT", ".")
    with open(os.path.join(folder, "launch.csv"), "w") as out:
        out.write("round,model,hidden,layers,heads,ffn,vocab,seq,micro_batch,step_s\n")
        for turn in range(3):
            for name, hidden, layers, heads, ffn, seq, batch in SHAPES:
                seconds = step_seconds(hidden, layers, heads, ffn, 32000, seq, batch)
                line = f"{turn},{name},{hidden},{layers},{heads},{ffn},32000,{seq},{batch},{seconds:.6f}"
                out.write(line + "\n")
                print(line, flush=True)


if __name__ == "__main__":
    main()
