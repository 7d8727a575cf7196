"""One GPT layer whose attention is not fused -> $OUT/h200_unfused.csv.

Run: python3 tools/measure/unfused.py

The layer as frameworks without a fused attention kernel run it: scores = baddbmm, masked_fill,
softmax, bmm; torch's own layer norm, gelu and additions; no dropout. tf32 is fp32 with tf32
matmuls, as the vendor's containers set them. Forward and backward are timed apart, held for two
seconds, so that the clocks are those of a training run.
"""
import time

import torch
from torch.nn import LayerNorm, Linear

from clock import Table

SEQ = 2048
TORCH = {"tf32": torch.float32, "fp16": torch.float16}


class Layer(torch.nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = LayerNorm(hidden), LayerNorm(hidden)
        self.qkv, self.out = Linear(hidden, 3 * hidden), Linear(hidden, hidden)
        self.up, self.down = Linear(hidden, 4 * hidden), Linear(4 * hidden, hidden)

    def attention(self, x, mask):
        s, b, h = x.shape
        n, d = b * self.heads, h // self.heads
        q, k, v = (t.reshape(s, n, d).transpose(0, 1)
                   for t in self.qkv(x).view(s, b, self.heads, 3 * d).split(d, dim=-1))
        empty = torch.empty(n, s, s, dtype=x.dtype, device=x.device)
        scores = torch.baddbmm(empty, q, k.transpose(1, 2), beta=0)
        scores = scores.view(b, self.heads, s, s).masked_fill_(mask, -10000.0)
        y = torch.bmm(torch.softmax(scores, dim=-1).view(n, s, s), v).view(b, self.heads, s, d)
        return self.out(y.permute(2, 0, 1, 3).contiguous().view(s, b, h))

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


def held(layer, x, mask, seconds=2.0):
    """Mean milliseconds of forward and backward in the second half of a while."""
    grad, marks, begin = torch.randn_like(x), [], time.time()
    while time.time() - begin < seconds:
        e = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        e[0].record()
        y = layer(x, mask)
        e[1].record()
        y.backward(grad)
        e[2].record()
        x.grad = None
        layer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        marks.append(e)
    late = marks[len(marks) // 2:]
    return [sum(e[i].elapsed_time(e[i + 1]) for e in late) / len(late) for i in (0, 1)]


def main():
    torch.backends.cuda.matmul.allow_tf32 = True
    columns = ["dtype", "batch", "seq", "hidden", "heads", "forward_ms", "backward_ms"]
    table = Table("h200_unfused.csv", columns)
    mask = torch.ones(1, 1, SEQ, SEQ, device="cuda", dtype=torch.bool).triu(1)
    for hidden, heads in ((2560, 20), (1024, 16), (4096, 32)):
        for dtype, torch_type in TORCH.items():
            layer = Layer(hidden, heads).to(device="cuda", dtype=torch_type)
            for batch in (2, 4, 8):
                x = torch.randn(SEQ, batch, hidden, device="cuda", dtype=torch_type,
                                requires_grad=True)
                held(layer, x, mask)  # once for libraries that load on first use
                times = [f"{t:.3f}" for t in held(layer, x, mask)]
                table.add(dtype, batch, SEQ, hidden, heads, *times)


if __name__ == "__main__":
    main()
