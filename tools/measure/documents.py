"""Attention over packed documents on one GPU: the same tokens as one sequence or as many short ones that see only
themselves, by flash attention 2 (cuDNN's operator plans anew at every call, which hides its kernel).
`document` is the mean over tokens. -> $OUT/h200_documents.csv
"""
import torch

from clock import Table, timed

COLUMNS = ("kernel", "tokens", "heads", "kv_heads", "dim", "document", "spread", "fwd_ms", "bwd_ms")


def lengths(tokens, document, spread):
    """Documents that fill `tokens`: of one length, or of lengths spread by a factor of about four around it."""
    generator = torch.Generator().manual_seed(1)
    left, out = tokens, []
    while left > 0:
        factor = 4 ** (torch.rand(1, generator=generator).item() - 0.5) if spread else 1
        take = min(left, max(1, round(document * factor)))
        out.append(take)
        left -= take
    return out


def operands(tokens, heads, kv_heads, dim):
    make = lambda h: torch.randn(tokens, h, dim, device="cuda", dtype=torch.bfloat16)
    return make(heads), make(kv_heads), make(kv_heads)


def flash(q, k, v, starts, longest):
    aten = torch.ops.aten
    ahead = lambda: aten._flash_attention_forward(q, k, v, starts, starts, longest, longest, 0.0, True, False)
    out, lse, seed, offset, _ = ahead()
    grad = torch.randn_like(out)
    back = lambda: aten._flash_attention_backward(grad, q, k, v, out, lse, starts, starts, longest, longest, 0.0, True,
                                                  seed, offset)
    return ahead, back


def main():
    table = Table("h200_documents.csv", COLUMNS)
    for tokens, heads, kv_heads, dim in ((4096, 32, 8, 128), (8192, 64, 8, 128), (32768, 8, 8, 128), (16384, 32, 32, 64)):
        for document, spread in ((64, 0), (128, 0), (200, 0), (230, 1), (256, 0), (512, 0), (700, 1), (1024, 0), (2048, 0), (tokens, 0)):
            q, k, v = operands(tokens, heads, kv_heads, dim)
            parts = lengths(tokens, document, spread)
            starts = torch.tensor([0] + parts, device="cuda").cumsum(0).to(torch.int32)
            ahead, back = flash(q, k, v, starts, max(parts))
            weighted = sum(p * p for p in parts) / tokens
            table.add("flash2", tokens, heads, kv_heads, dim, f"{weighted:.0f}", spread, f"{timed(ahead):.5f}",
                      f"{timed(back):.5f}")


if __name__ == "__main__":
    main()
