"""Flash attention forward and backward on one GPU -> $OUT/h200_attention.csv.

torch sdpa held to its flash backend (the default on Hopper in torch 2.11 for these shapes), and the
cuDNN backend for some shapes in h200_attention_cudnn.csv. Causal work is counted as half. Tensors lie as
a projection leaves them, tokens before heads: with heads first the flash kernel takes an eighth longer
forward and a quarter longer backward at 1,024 tokens. Without rests between calls the same times come out.
"""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

from clock import Table, timed

COLUMNS = ("batch", "heads", "kv_heads", "head_dim", "seq", "causal", "fwd_ms", "bwd_ms",
           "fwd_tflops", "bwd_tflops")
SHAPES = (
    (32, 12, 12, 64, 512, 1), (16, 12, 12, 64, 1024, 1), (8, 16, 16, 64, 2048, 0),
    (4, 16, 16, 64, 4096, 1), (2, 16, 16, 64, 8192, 1), (1, 32, 32, 64, 4096, 0),
    (1, 12, 12, 64, 1024, 1), (64, 12, 12, 64, 512, 0), (1, 25, 25, 64, 1024, 1),
    (8, 25, 25, 64, 1024, 1), (4, 20, 20, 64, 16384, 1), (2, 32, 8, 64, 8192, 1),
    (4, 24, 24, 96, 2048, 1), (2, 32, 32, 96, 4096, 1), (1, 32, 8, 96, 8192, 1),
    (4, 32, 32, 96, 1024, 0), (1, 48, 48, 96, 2048, 1), (8, 16, 16, 128, 512, 1),
    (8, 32, 32, 128, 1024, 1), (16, 32, 32, 128, 512, 0), (1, 32, 32, 128, 2048, 1),
    (1, 40, 40, 128, 2048, 1), (4, 32, 8, 128, 4096, 1), (8, 32, 8, 128, 2048, 1),
    (1, 64, 8, 128, 4096, 1), (2, 64, 8, 128, 8192, 1), (1, 16, 2, 128, 8192, 1),
    (1, 128, 8, 128, 8192, 1), (1, 32, 8, 128, 32768, 1), (1, 64, 64, 128, 2048, 1),
    (1, 8, 8, 128, 4096, 1), (1, 4, 4, 128, 16384, 1), (2, 32, 32, 128, 2048, 0),
    (1, 16, 16, 128, 16384, 0), (4, 16, 16, 256, 2048, 1), (2, 16, 8, 256, 4096, 1),
    (1, 8, 4, 256, 8192, 1), (1, 16, 16, 256, 8192, 0), (1, 32, 16, 256, 2048, 1),
    (1, 8, 1, 256, 16384, 1), (1, 96, 96, 128, 4096, 1), (1, 32, 32, 128, 512, 1))
# Full batches of 32,768 tokens, as small models train on.
FULL = (
    (256, 16, 16, 64, 128, 0), (85, 16, 16, 64, 384, 0), (64, 16, 16, 64, 512, 0),
    (64, 12, 12, 64, 512, 1), (32, 12, 12, 64, 1024, 1), (16, 16, 16, 64, 2048, 1),
    (16, 32, 4, 64, 2048, 1), (4, 16, 16, 64, 8192, 1), (64, 16, 16, 128, 512, 1),
    (32, 16, 16, 128, 1024, 1), (16, 32, 8, 128, 2048, 1), (8, 32, 8, 128, 4096, 1),
    (4, 32, 8, 128, 8192, 1), (16, 16, 16, 128, 2048, 0))


def measure(table, shape):
    batch, heads, kv_heads, dim, seq, causal = shape
    make = lambda h: torch.randn(batch, seq, h, dim, device="cuda", dtype=torch.bfloat16,
                                 requires_grad=True)
    leaves = make(heads), make(kv_heads), make(kv_heads)
    q, k, v = (x.transpose(1, 2) for x in leaves)
    call = lambda: sdpa(q, k, v, is_causal=bool(causal), enable_gqa=heads != kv_heads)
    with torch.no_grad():
        forward = timed(call)
    y = call()
    g = torch.randn_like(y)
    backward = timed(lambda: torch.autograd.grad(y, leaves, g, retain_graph=True), wait_us=1500)
    flops = 4e-9 * batch * heads * seq * seq * dim * (0.5 if causal else 1)
    table.add(*shape, f"{forward:.5f}", f"{backward:.5f}", f"{flops / forward:.1f}",
              f"{2.5 * flops / backward:.1f}")


def main():
    for name, backend, shapes in (
            ("h200_attention.csv", SDPBackend.FLASH_ATTENTION, SHAPES + FULL),
            ("h200_attention_cudnn.csv", SDPBackend.CUDNN_ATTENTION, SHAPES[::3] + FULL)):
        table = Table(name, COLUMNS)
        with sdpa_kernel(backend):
            for shape in shapes:
                try:
                    measure(table, shape)
                except Exception as error:
                    print(name, shape, str(error).splitlines()[0][:120])
        print(name, table.rows)


if __name__ == "__main__":
    main()
