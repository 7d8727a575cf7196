"""cuDNN's attention with wide heads on one GPU: latent attention's 192 and 128, and 256, beside 128.
Causal work is counted as half. -> $OUT/h200_wide_heads.csv
"""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

from clock import Table, timed

COLUMNS = ("batch", "heads", "qk_dim", "v_dim", "seq", "fwd_ms", "bwd_ms", "fwd_tflops", "bwd_tflops")


def measure(table, batch, heads, qk, v, seq):
    make = lambda d: torch.randn(batch, heads, seq, d, device="cuda", dtype=torch.bfloat16,
                                 requires_grad=True)
    operands = make(qk), make(qk), make(v)
    call = lambda: sdpa(*operands, is_causal=True)
    with torch.no_grad():
        forward = timed(call)
    y = call()
    g = torch.randn_like(y)
    backward = timed(lambda: torch.autograd.grad(y, operands, g, retain_graph=True), wait_us=1500)
    flops = 1e-9 * batch * heads * seq * seq * (qk + v)
    table.add(batch, heads, qk, v, seq, f"{forward:.5f}", f"{backward:.5f}",
              f"{flops / forward:.1f}", f"{2.5 * flops / backward:.1f}")


def main():
    table = Table("h200_wide_heads.csv", COLUMNS)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for qk, v in ((128, 128), (192, 128), (256, 256)):
            for batch, heads, seq in ((8, 32, 1024), (4, 32, 2048), (2, 32, 4096), (1, 32, 8192),
                                      (1, 128, 4096), (1, 16, 16384)):
                try:
                    measure(table, batch, heads, qk, v, seq)
                except Exception as error:
                    print(qk, v, seq, str(error).splitlines()[0][:120])


if __name__ == "__main__":
    main()
