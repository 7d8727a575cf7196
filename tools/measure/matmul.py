"""Matmuls by shape on one GPU -> $OUT/h200_matmul.csv. Run: python3 tools/measure/matmul.py

y[m,n] = x[m,k] w[k,n] in the three memory layouts of training, named by the pass that uses them:
  forward      x is [m,k], w is stored [n,k]          leading dimensions k, k, output n
  input_grad   x is [m,k], w is stored [k,n]          leading dimensions k, n, output n
  weight_grad  x is stored [k,m], w is stored [k,n]   leading dimensions m, n, output n
`batched` is torch.bmm with forward layouts, `grouped` torch._grouped_mm with equal groups.
fp8 is torch._scaled_mm with per-tensor scales: fp8 with the fast accumulation of forward passes,
fp8_precise without. Seeded: the same shapes every time.
"""
import random

import torch

from clock import Table, timed

PASSES = ("forward", "input_grad", "weight_grad")
TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32,
         "tf32": torch.float32}


def rand(rows, columns, dtype, batch=0):
    size = (batch, rows, columns) if batch else (rows, columns)
    return torch.randn(size, device="cuda", dtype=dtype)


def make(dtype, layout, batch, m, n, k):
    """The call to time."""
    if dtype.startswith("fp8"):
        x = rand(m, k, torch.bfloat16).to(torch.float8_e4m3fn)
        w = rand(n, k, torch.bfloat16).to(torch.float8_e4m3fn).t()
        one = torch.ones((), device="cuda")
        fast = dtype == "fp8"
        return lambda: torch._scaled_mm(x, w, scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                        use_fast_accum=fast)
    if dtype == "int8":
        x = torch.randint(-127, 127, (m, k), device="cuda", dtype=torch.int8)
        w = torch.randint(-127, 127, (n, k), device="cuda", dtype=torch.int8).t()
        return lambda: torch._int_mm(x, w)
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    t = TORCH[dtype]
    if layout == "batched":
        x, w = rand(m, k, t, batch), rand(n, k, t, batch).transpose(1, 2)
        return lambda: torch.bmm(x, w)
    if layout == "grouped":
        x, w = rand(m * batch, k, t), rand(n, k, t, batch).transpose(1, 2)
        ends = (torch.arange(1, batch + 1, device="cuda") * m).to(torch.int32)
        return lambda: torch._grouped_mm(x, w, offs=ends)
    x = rand(k, m, t).t() if layout == "weight_grad" else rand(m, k, t)
    w = rand(n, k, t).t() if layout == "forward" else rand(k, n, t)
    return lambda: torch.mm(x, w)


def misaligned():
    """Training sizes with one or two dimensions moved off a multiple of eight."""
    r = random.Random(20261115)
    sizes = (1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 11008, 14336, 16384)
    for layout in PASSES:
        for off in (1, 2, 4):
            for which in ("n", "k", "m", "nk", "mn"):
                for _ in range(5):
                    while True:
                        m, n, k = r.choice(sizes), r.choice(sizes), r.choice(sizes)
                        if 2e9 < m * n * k < 4e11:
                            break
                    step = off * r.choice((1, 3)) if off < 4 else 4
                    step = step if r.random() < 0.5 else -step
                    m += step if "m" in which else 0
                    n += step if "n" in which else 0
                    k += step if "k" in which else 0
                    yield "bf16", layout, 1, m, n, k
    for vocab in (32001, 50257, 50258, 50260, 50264, 128257, 151669, 151670, 151676):
        for hidden in (768, 2048, 4096):
            tokens = r.choice((2048, 4096, 8192))
            yield "bf16", "forward", 1, tokens, vocab, hidden
            yield "bf16", "input_grad", 1, tokens, hidden, vocab
            yield "bf16", "weight_grad", 1, vocab, hidden, tokens
    for off in (1, 2, 4):
        for m, n, k in ((16, 4096, 4096), (64, 11008, 4096), (32, 50256, 2048), (256, 8192, 8192)):
            yield "bf16", "forward", 1, m, n + off, k
            yield "bf16", "forward", 1, m, n, k + off
    for off in (1, 2, 4):
        for dtype in ("fp16", "tf32", "fp32"):
            for m, n, k in ((4096, 4096, 4096), (8192, 2048, 8192)):
                yield dtype, "forward", 1, m, n + off, k
                yield dtype, "forward", 1, m, n, k + off
                yield dtype, "weight_grad", 1, m + off, n, k


def aligned():
    r = random.Random(7)
    square = (64, 128, 192, 256, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048,
              2304, 2560, 2816, 3072, 3328, 3584, 4096, 5120, 6144)
    for s in square:
        yield "bf16", "forward", 1, s, s, s
    # The three passes of the linear layers of common models.
    layers = ((2048, 2048), (6144, 2048), (11008, 2048), (4096, 4096), (12288, 4096), (6144, 4096),
              (28672, 4096), (4096, 14336), (4096, 11008), (5120, 5120), (27648, 5120),
              (5120, 13824),
              (8192, 8192), (10240, 8192), (8192, 28672), (57344, 8192), (3072, 768), (2304, 768),
              (1024, 1024), (4096, 1024), (128256, 4096), (50304, 1600), (32000, 2560))
    for out, inner in layers:
        for tokens in (2048, 8192):
            yield "bf16", "forward", 1, tokens, out, inner
            yield "bf16", "input_grad", 1, tokens, inner, out
            yield "bf16", "weight_grad", 1, out, inner, tokens
    for m in (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512):
        for n, k in ((2048, 2048), (6144, 4096), (4096, 14336), (28672, 8192), (1024, 8192)):
            yield "bf16", "forward", 1, m, n, k
    for _ in range(60):  # shapes off the usual grid, multiples of eight
        m, n, k = (8 * r.randrange(16, 1500) for _ in range(3))
        if m * n * k < 1.5e12:
            yield "bf16", r.choice(PASSES), 1, m, n, k


def groups():
    experts = ((1408, 2048), (2048, 1408), (768, 2048), (2048, 768), (4096, 7168), (7168, 2048),
               (14336, 4096), (4096, 14336), (2816, 2048))
    r = random.Random(11)
    for count in (2, 8, 16, 32, 64):
        for n, k in experts:
            for m in r.sample((32, 64, 128, 256, 512, 1024, 2048, 4096), 3):
                if count * m * n * k < 2e12:
                    yield "bf16", "batched", count, m, n, k
                    yield "bf16", "grouped", count, m, n, k
    for heads, seq, dim in ((32, 1024, 64), (32, 2048, 128), (96, 2048, 128), (512, 512, 64)):
        yield "bf16", "batched", heads, seq, seq, dim
        yield "bf16", "batched", heads, seq, dim, seq


def precisions():
    shapes = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192),
              (4096, 12288, 4096), (8192, 28672, 4096), (8192, 4096, 14336), (2048, 8192, 1024),
              (16384, 2048, 2048), (512, 4096, 4096), (16384, 6144, 6144), (8192, 57344, 8192),
              (1024, 8192, 28672), (4096, 1024, 8192))
    skinny = ((16, 4096, 4096), (64, 28672, 8192), (32, 8192, 8192))
    for dtype in ("fp8", "fp8_precise", "int8", "fp16", "tf32", "fp32"):
        for m, n, k in shapes + (() if dtype == "int8" else skinny):
            if dtype == "fp32" and m * n * k > 6e11:
                continue
            yield dtype, "forward", 1, m, n, k
    r = random.Random(5)
    for _ in range(30):
        m, n, k = (128 * r.randrange(4, 100) for _ in range(3))
        yield "fp8", "forward", 1, m, n, k
    for _ in range(12):
        m, n, k = (16 * r.randrange(32, 500) for _ in range(3))
        yield "fp8", "forward", 1, m, n, k
    for _ in range(15):
        m, n, k = (128 * r.randrange(4, 60) for _ in range(3))
        yield "tf32", r.choice(PASSES), 1, m, n, k
        yield "fp32", r.choice(PASSES), 1, m // 2, n // 2, k


def main():
    table = Table("h200_matmul.csv", ("dtype", "pass", "batch", "m", "n", "k", "ms", "tflops"))
    shapes = list(dict.fromkeys(s for generate in (misaligned, aligned, groups, precisions)
                                for s in generate()))
    random.Random(3).shuffle(shapes)
    failed = 0
    for shape in shapes:
        dtype, layout, batch, m, n, k = shape
        try:
            ms = timed(make(*shape))
        except Exception as error:  # a shape that this library refuses is not a measurement
            failed += 1
            print(shape, str(error).splitlines()[0][:120])
            continue
        table.add(dtype, layout, batch, m, n, k, f"{ms:.5f}",
                  f"{2e-9 * batch * m * n * k / ms:.1f}")
    print("matmul rows", table.rows, "failed", failed)


if __name__ == "__main__":
    main()
