"""Matmuls in 32 bits without tensor cores, of BERT's and GPT-2's sizes, and batched ones of unfused attention
-> $OUT/h200_fp32.csv. One product a row: [m, k] x [k, n], `batch` of them."""
import torch

from clock import Table, timed

SHAPES = [(1, m, n, k) for m in (512, 1024, 2048, 4096)
          for n, k in ((1024, 1024), (3072, 1024), (4096, 1024), (1024, 4096), (768, 768), (3072, 768), (768, 3072))]
SHAPES += [(b, s, s, 64) for b, s in ((32, 512), (64, 384), (256, 128), (128, 512), (512, 128))]
SHAPES += [(b, s, 64, s) for b, s in ((32, 512), (64, 384), (256, 128), (128, 512), (512, 128))]


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    table = Table("h200_fp32.csv", ("batch", "m", "n", "k", "ms", "tflops"))
    for batch, m, n, k in SHAPES:
        shape = lambda *s: torch.randn(*((batch, *s) if batch > 1 else s), device="cuda")
        a, b = shape(m, k), shape(k, n)
        ms = timed(lambda: a @ b)
        row = (batch, m, n, k, f"{ms:.4f}", f"{2e-9 * batch * m * n * k / ms:.1f}")
        table.add(*row)
        print(*row, flush=True)


if __name__ == "__main__":
    main()
