"""Training steps of vision transformers as timm ran them before fused attention -> $OUT/h200_vision.csv.

Pre-norm blocks: qkv with bias, scores by matmul, softmax, matmul, no mask and no dropout, GELU;
32-bit weights under autocast to fp16, or all in bf16; the residual stream is what autocast makes of
it. SGD with momentum. Kernel time is split by the profiler.
"""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from clock import Table
from hub_layers import measure

COLUMNS = ("attention", "autocast", "hidden", "layers", "heads", "tokens", "batch", "classes",
           "step_ms", "matmul_ms", "attention_ms", "other_ms", "kernels", "peak_alloc_gib")


class Block(nn.Module):
    def __init__(self, h, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.norm1, self.norm2 = nn.LayerNorm(h, eps=1e-6), nn.LayerNorm(h, eps=1e-6)
        self.qkv, self.proj = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.fc1, self.fc2 = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def attend(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5).softmax(dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, n, c))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, h, layers, heads, tokens, fused):
        super().__init__()
        self.position = nn.Parameter(torch.zeros(1, tokens, h))
        self.patch = nn.Linear(768, h)
        self.blocks = nn.Sequential(*(Block(h, heads, fused) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(h, eps=1e-6), nn.Linear(h, 1000)

    def forward(self, x):
        x = self.blocks(self.patch(x) + self.position)
        return self.head(self.norm(x)[:, 0])


SHAPES = ((384, 12, 6, 50, 512), (192, 12, 3, 197, 512), (384, 12, 6, 197, 384),
          (768, 12, 12, 197, 192), (1024, 24, 16, 197, 64), (768, 12, 12, 577, 64),
          (1024, 24, 16, 257, 128), (384, 12, 6, 785, 64))


def one(fused, autocast, h, layers, heads, tokens, batch):
    torch.cuda.reset_peak_memory_stats()
    model = Vit(h, layers, heads, tokens, fused).cuda()
    if not autocast:
        model = model.bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = torch.randn(batch, tokens, 768, device="cuda", dtype=next(model.parameters()).dtype)
    y = torch.randint(0, 1000, (batch,), device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16, enabled=autocast):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    ms, sums, count = measure(step)
    return ("fused" if fused else "matmuls", int(autocast), h, layers, heads, tokens, batch, 1000,
            f"{ms:.3f}", *(f"{sums[k]:.3f}" for k in ("matmul", "attention", "other")), count,
            f"{torch.cuda.max_memory_allocated() / 2**30:.2f}")


def main():
    deadline = time.time() + float(sys.argv[1] if len(sys.argv) > 1 else 240)
    table = Table("h200_vision.csv", COLUMNS)
    for fused, autocast in ((False, True), (True, True), (False, False), (True, False)):
        for shape in SHAPES:
            if time.time() > deadline:
                return
            table.add(*one(fused, autocast, *shape))
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
