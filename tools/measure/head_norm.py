"""RMS norms of queries and keys (Qwen3, OLMo 2, Gemma 3), and attention by FlexAttention.

operator: torch's rms_norm, as torchtitan; written: upcast, mean of squares, weight, as Hugging
Face; compiled: the same under torch.compile. Device time of both passes over queries and keys, in
copies: one copy reads and writes them once.
flex: FlexAttention under torch.compile with a causal mask, beside the operator's kernel.
-> $OUT/h200_head_norm.csv, $OUT/h200_flex.csv
"""
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from clock import Table, timed

CASES = ((4096, 32, 8, 128), (16384, 32, 8, 128), (16384, 16, 8, 128), (8192, 64, 8, 128),
         (32768, 32, 4, 128))
ATTENTION = ((2, 4096, 32, 8, 128), (1, 8192, 32, 8, 128), (1, 16384, 32, 4, 128),
             (1, 8192, 64, 8, 64))


def operator(x, w):
    return F.rms_norm(x, (x.shape[-1],), w, 1e-6)


def written(x, w):
    y = x.to(torch.float32)
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
    return w * y.to(x.dtype)


def norms():
    table = Table("h200_head_norm.csv", ("way", "tokens", "heads", "kv_heads", "dim", "forward_ms",
                                         "backward_ms", "copy_ms", "forward_copies",
                                         "backward_copies"))
    ways = {"operator": operator, "written": written, "compiled": torch.compile(written)}
    for tokens, heads, kv, dim in CASES:
        both = [torch.randn(tokens, n, dim, device="cuda").bfloat16().requires_grad_()
                for n in (heads, kv)]
        w = [torch.ones(dim, device="cuda").bfloat16().requires_grad_() for _ in both]
        a = torch.randn(tokens, heads + kv, dim, device="cuda").bfloat16()
        b = torch.empty_like(a)
        copy = timed(lambda: b.copy_(a))
        for name, way in ways.items():
            def run():
                return [way(x, v) for x, v in zip(both, w)]
            out = run()
            grads = [torch.randn_like(y) for y in out]
            forward = timed(run, wait_us=2000)
            backward = timed(lambda: torch.autograd.grad(out, both + w, grads, retain_graph=True),
                             wait_us=2000)
            row = (name, tokens, heads, kv, dim, f"{forward:.4f}", f"{backward:.4f}",
                   f"{copy:.4f}", f"{forward / copy:.2f}", f"{backward / copy:.2f}")
            table.add(*row)
            print(*row, flush=True)


def flex():
    table = Table("h200_flex.csv", ("way", "batch", "seq", "heads", "kv_heads", "dim",
                                    "forward_ms", "backward_ms", "forward_tflops",
                                    "backward_tflops"))
    compiled = torch.compile(flex_attention)
    for batch, seq, heads, kv, dim in ATTENTION:
        q, k, v = (torch.randn(batch, n, seq, dim, device="cuda").bfloat16().requires_grad_()
                   for n in (heads, kv, kv))
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, seq, seq)
        ways = {"flex": lambda: compiled(q, k, v, block_mask=mask, enable_gqa=True),
                "operator": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                                   enable_gqa=True)}
        flops = 2.0 * batch * heads * seq * seq * dim
        for name, run in ways.items():
            out = run()
            grad = torch.randn_like(out)
            forward = timed(run, wait_us=1000)
            backward = timed(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True),
                             wait_us=1000)
            row = (name, batch, seq, heads, kv, dim, f"{forward:.4f}", f"{backward:.4f}",
                   f"{flops / forward / 1e9:.0f}", f"{2.5 * flops / backward / 1e9:.0f}")
            table.add(*row)
            print(*row, flush=True)


if __name__ == "__main__":
    import torch._functorch.config
    torch._functorch.config.donated_buffer = False  # each backward runs several times
    norms()
    flex()
