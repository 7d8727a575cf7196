"""Does a model that has learned draw more power than a fresh one? A Llama of six layers learns sequences of a random automaton for
some minutes on one GPU; step time, clock and power as it goes, fresh weights at the end for comparison. -> $OUT/h200_trained.csv
"""
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from clock import Table
from long_attention import Meter

WIDTH, FFN, LAYERS, HEADS, VOCAB, SEQ, BATCH = 4096, 14336, 6, 32, 32000, 4096, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 2 * FFN, bias=False), nn.Linear(FFN, WIDTH, bias=False)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, s, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, s, WIDTH))
        gate, up = self.up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList([torch.compile(Layer()) for _ in range(LAYERS)])
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x):
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h))


def sequences(table):
    """Each state goes to one of four others, the first most often: half a bit to two bits a token."""
    x = torch.randint(VOCAB, (BATCH,), device="cuda")
    odds = torch.tensor([0.6, 0.2, 0.15, 0.05], device="cuda")
    picks = torch.multinomial(odds, BATCH * SEQ, replacement=True).view(SEQ, BATCH)
    out = [x]
    for i in range(SEQ):
        out.append(table[out[-1], picks[i]])
    return torch.stack(out, 1)


def trainer(table):
    model = Model().cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95), fused=True)
    stock = [sequences(table) for _ in range(40)]

    def step(i):
        x = stock[i % len(stock)]
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            loss = F.cross_entropy(model(x[:, :-1]).view(-1, VOCAB).float(), x[:, 1:].reshape(-1))
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def window(step, first, count):
    """Mean seconds a step, clock and power over `count` steps, and the last loss."""
    meter = Meter()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    meter.start()
    for i in range(first, first + count):
        loss = step(i)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begin) / count
    return [loss.item(), seconds, *meter.means()]


def main():
    out = Table("h200_trained.csv", ("case", "steps", "loss", "step_ms", "mhz", "watts"))
    torch.manual_seed(1)
    table = torch.randint(VOCAB, (VOCAB, 4), device="cuda")

    def tell(case, steps, row):
        loss, seconds, mhz, watts = row
        line = (case, steps, f"{loss:.3f}", f"{1e3 * seconds:.2f}", f"{mhz:.0f}", f"{watts:.0f}")
        out.add(*line)
        print(*line, flush=True)

    step = trainer(table)
    for i in range(6):
        step(i)
    done = 6
    for count in (40, 40, 80, 160, 160, 160):
        row = window(step, done, count)
        done += count
        tell("learning", done, row)
    del step
    torch.cuda.empty_cache()
    step = trainer(table)
    for i in range(6):
        step(i)
    tell("fresh", 46, window(step, 6, 40))


if __name__ == "__main__":
    main()
