"""What a low-rank adapter beside a frozen projection costs the device -> $OUT/h200_adapters.csv.

Kernel time and kernels, forward and backward apart, of everything but the frozen product itself: that is a function here that returns
tensors made before, so the gradient of the input is still summed. Ways: PEFT's (input cast to the adapter's type, down, up, scaled,
added, cast back) with 16-bit and 32-bit adapters and under autocast, with and without dropout; in place into the product, as fused
trainers do. Compiled: the real product, less the product alone.

Run: python3 tools/measure/adapters.py
"""
import time

import torch
from torch import nn

from clock import Table
from kinds import by_kind

COLUMNS = ("way", "dropout", "rank", "tokens", "inputs", "outputs", "forward_ms", "backward_ms", "kernels_forward", "kernels_backward")
SHAPES = ((2048, 4096, 4096), (8192, 4096, 4096), (8192, 4096, 1024), (8192, 4096, 14336), (8192, 14336, 4096), (16384, 8192, 8192))
WAYS = (("bf16", 0.0), ("bf16", 0.05), ("fp32", 0.0), ("fp32", 0.05), ("autocast", 0.0), ("autocast", 0.05), ("in_place", 0.0),
        ("compiled", 0.0), ("compiled", 0.05), ("compiled_autocast", 0.0))


class Product(torch.autograd.Function):
    """The frozen product, at no cost."""

    @staticmethod
    def forward(ctx, x, y, gradient):
        ctx.gradient = gradient
        return y.detach()

    @staticmethod
    def backward(ctx, _):
        return ctx.gradient, None, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, down, up, gradient):
        low = x @ down.t()
        y.addmm_(low, up.t(), alpha=2.0)
        ctx.save_for_backward(x, low, down, up)
        ctx.gradient = gradient
        return y.detach()

    @staticmethod
    def backward(ctx, g):
        x, low, down, up = ctx.saved_tensors
        wide = g @ up
        up_gradient = g.t() @ low * 2.0
        down_gradient = wide.t() @ x * 2.0
        return ctx.gradient.addmm_(wide, down, alpha=2.0), None, down_gradient, up_gradient, None


class Adapter(nn.Module):
    def __init__(self, inputs, outputs, rank, dropout, dtype):
        super().__init__()
        self.down = nn.Linear(inputs, rank, bias=False, device="cuda", dtype=dtype)
        self.up = nn.Linear(rank, outputs, bias=False, device="cuda", dtype=dtype)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x, y):
        return (y + self.up(self.down(self.drop(x.to(self.down.weight.dtype)))) * 2.0).to(y.dtype)


class Whole(nn.Module):
    def __init__(self, adapter, inputs, outputs):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False, device="cuda", dtype=torch.bfloat16).requires_grad_(False)
        self.adapter = adapter

    def forward(self, x):
        y = self.base(x)
        return self.adapter(x, y) if self.adapter else y


def least(call, rounds=4):
    found = []
    for _ in range(rounds):
        sums, count = by_kind(call)
        found.append((sum(sums.values()), count))
        time.sleep(0.02)
    return min(found)


def passes(forward, x, g, trained):
    """Milliseconds and kernels of a forward pass and of the backward pass after it."""
    def both():
        for t in (x, *trained):
            t.grad = None
        forward().backward(g)
    for _ in range(3):
        both()
    f, nf = least(forward)
    b, nb = least(both)
    return f, b - f, nf, nb - nf


def measure(way, dropout, rank, tokens, inputs, outputs):
    x = torch.randn(tokens, inputs, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    y, g = (torch.randn(tokens, outputs, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    back = torch.randn_like(x)
    adapter = Adapter(inputs, outputs, rank, dropout, torch.bfloat16 if way in ("bf16", "in_place", "compiled") else torch.float32)
    cast = torch.autocast("cuda", torch.bfloat16, enabled="autocast" in way)
    trained = list(adapter.parameters())
    if way.startswith("compiled"):
        def run(whole):
            compiled = torch.compile(whole)

            def call():
                with cast:
                    return compiled(x)
            return passes(call, x, g, trained)
        have, least_ = run(Whole(adapter, inputs, outputs)), run(Whole(None, inputs, outputs))
        torch._dynamo.reset()
        return [a - b for a, b in zip(have, least_)]

    def call():
        with cast:
            if way == "in_place":
                return InPlace.apply(x, y, adapter.down.weight, adapter.up.weight, back)
            return adapter(x, Product.apply(x, y, back))
    return passes(call, x, g, trained)


def main():
    table = Table("h200_adapters.csv", COLUMNS)
    for way, dropout in WAYS:
        for shape in SHAPES:
            for rank in (16, 64) if shape == SHAPES[1] else (16,):
                try:
                    f, b, nf, nb = measure(way, dropout, rank, *shape)
                except Exception as error:  # one way that fails must not lose the others
                    print(way, shape, repr(error)[:200], flush=True)
                    continue
                table.add(way, dropout, rank, *shape, f"{f:.4f}", f"{b:.4f}", nf, nb)
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
