"""Memory-bound operations in eager PyTorch on one GPU -> $OUT/h200_membound.csv.

`bytes_moved` counts each input read once and each output written once, as a perfectly fused kernel
would: gb_per_s then shows what eager mode loses. Forward and backward are timed apart; backward is
the whole autograd call of the operation. `elements` counts the activation, or the parameters for an
optimizer, or the logits for cross entropy.
"""
import torch
import torch.nn.functional as F

from clock import Table, timed

BF16 = torch.bfloat16


def leaf(*size, dtype=BF16):
    return torch.randn(*size, device="cuda", dtype=dtype, requires_grad=True)


def both(table, name, make, inputs, elements, forward_bytes, backward_bytes, wait_us=1500):
    with torch.no_grad():
        ms = timed(lambda: make(*inputs))
    table.add(name + "_fwd", elements, forward_bytes, f"{ms:.5f}",
              f"{1e-6 * forward_bytes / ms:.1f}")
    y = make(*inputs)
    g = torch.randn_like(y)
    ms = timed(lambda: torch.autograd.grad(y, inputs, g, retain_graph=True), wait_us=wait_us)
    table.add(name + "_bwd", elements, backward_bytes, f"{ms:.5f}",
              f"{1e-6 * backward_bytes / ms:.1f}")


def rope(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


def activations(table):
    for rows, width in ((2048, 1024), (2048, 4096), (8192, 2048), (8192, 4096), (8192, 8192),
                        (16384, 5120), (8192, 14336), (32768, 4096)):
        e = rows * width
        weight, bias = leaf(width), leaf(width)
        both(table, "rms_norm", lambda x, w: F.rms_norm(x, (width,), w),
             (leaf(rows, width), weight), e, 4 * e, 6 * e)
        both(table, "layer_norm", lambda x, w, b: F.layer_norm(x, (width,), w, b),
             (leaf(rows, width), weight, bias), e, 4 * e, 6 * e)
        both(table, "silu_mul", lambda a, b: F.silu(a) * b, (leaf(rows, width), leaf(rows, width)),
             e, 6 * e, 10 * e)
        both(table, "gelu", F.gelu, (leaf(rows, width),), e, 4 * e, 6 * e)
        both(table, "gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), (leaf(rows, width),), e,
             4 * e, 6 * e)
        both(table, "dropout", lambda x: F.dropout(x, 0.1, True), (leaf(rows, width),), e, 5 * e,
             5 * e)
        both(table, "bias_add", lambda x, b: x + b, (leaf(rows, width), bias), e, 4 * e, 2 * e)
        a, b = leaf(rows, width), leaf(rows, width)
        with torch.no_grad():
            ms = timed(lambda: a + b)
        table.add("residual_add_fwd", e, 6 * e, f"{ms:.5f}", f"{6e-6 * e / ms:.1f}")
        both(table, "fp32_cast", lambda x: x.float(), (leaf(rows, width),), e, 6 * e, 6 * e)


def ropes(table):
    for batch, heads, seq, dim in ((1, 32, 2048, 128), (4, 32, 2048, 128), (1, 32, 8192, 128),
                                   (2, 64, 4096, 128), (8, 16, 2048, 64), (1, 8, 8192, 128)):
        cos = torch.randn(seq, dim, device="cuda", dtype=BF16)
        sin = torch.randn(seq, dim, device="cuda", dtype=BF16)
        e = batch * heads * seq * dim
        both(table, "rope", lambda x: rope(x, cos, sin), (leaf(batch, heads, seq, dim),), e, 4 * e,
             4 * e)


def losses(table):
    for tokens in (2048, 8192):
        for vocab in (32000, 50257, 50304, 100352, 128256):
            e = tokens * vocab
            target = torch.randint(0, vocab, (tokens,), device="cuda")
            x = leaf(tokens, vocab)
            both(table, "cross_entropy_bf16", lambda z: F.cross_entropy(z, target), (x,), e, 2 * e,
                 4 * e)
            both(table, "cross_entropy_float", lambda z: F.cross_entropy(z.float(), target), (x,),
                 e, 2 * e, 4 * e)


def optimizers(table):
    layers = ((4096, 4096), (4096, 11008), (1024, 1024), (4096,))
    for state, dtype, per in (("bf16", BF16, 14), ("fp32", torch.float32, 28)):
        for kind in ("fused", "foreach"):
            for copies in (1, 4, 16):
                parameters = [torch.nn.Parameter(torch.randn(s, device="cuda", dtype=dtype))
                              for _ in range(copies) for s in layers]
                for p in parameters:
                    p.grad = torch.randn_like(p)
                count = sum(p.numel() for p in parameters)
                step = torch.optim.AdamW(parameters, lr=1e-5, **{kind: True}).step
                ms = timed(step, wait_us=3000)
                table.add(f"adamw_{kind}_{state}_state", count, per * count, f"{ms:.5f}",
                          f"{1e-6 * per * count / ms:.1f}")
                ms = timed(lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0), wait_us=3000)
                moved = 3 * count * parameters[0].element_size()
                table.add(f"clip_grad_norm_{state}", count, moved, f"{ms:.5f}",
                          f"{1e-6 * moved / ms:.1f}")


def embeddings(table):
    for tokens, vocab, width in ((8192, 32000, 4096), (8192, 128256, 4096), (16384, 50304, 2048)):
        index = torch.randint(0, vocab, (tokens,), device="cuda")
        e = tokens * width
        both(table, "embedding", lambda w: F.embedding(index, w), (leaf(vocab, width),), e, 4 * e,
             2 * e + 2 * vocab * width)


def main():
    table = Table("h200_membound.csv", ("op", "elements", "bytes_moved", "ms", "gb_per_s"))
    for section in (activations, ropes, losses, optimizers, embeddings):
        try:
            section(table)
        except Exception as error:
            print(section.__name__, str(error).splitlines()[0][:160])
        torch.cuda.empty_cache()
    print("membound rows", table.rows)


if __name__ == "__main__":
    main()
