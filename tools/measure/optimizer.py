"""AdamW's step and gradient clipping as PyTorch runs them: fused, over lists of tensors (the
default), and tensor by tensor; the weights of a Llama of 0.9 B parameters.

Time over that of one pass at a large copy's bandwidth: the step reads weight, gradient and two
moments and writes all but the gradient; clipping reads, reads and writes the gradient.
-> $OUT/h200_optimizer.csv
"""
import torch

from clock import Table, timed

HIDDEN, FFN, LAYERS, VOCAB = 2048, 5632, 16, 32000


def weights(dtype):
    shapes = [(VOCAB, HIDDEN)] * 2
    for _ in range(LAYERS):
        shapes += [(HIDDEN, HIDDEN)] * 4 + [(FFN, HIDDEN)] * 2 + [(HIDDEN, FFN)] + [(HIDDEN,)] * 2
    out = [torch.nn.Parameter(0.02 * torch.randn(s, device="cuda", dtype=dtype)) for s in shapes]
    for p in out:
        p.grad = torch.randn_like(p)
    return out


def main():
    table = Table("h200_optimizer.csv", ("what", "weights", "tensors", "parameters", "ms",
                                         "passes", "host_ms"))
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    bandwidth = 2 * a.numel() / timed(lambda: b.copy_(a))  # bytes a millisecond
    for dtype in (torch.float32, torch.bfloat16):
        ps = weights(dtype)
        count = sum(p.numel() for p in ps)
        size = ps[0].element_size()
        ways = {"fused": dict(fused=True), "foreach": dict(foreach=True),
                "loop": dict(foreach=False, fused=False)}
        for name, options in ways.items():
            optimizer = torch.optim.AdamW(ps, lr=1e-4, **options)
            optimizer.step()
            ms = timed(optimizer.step, wait_us=30000)
            torch.cuda.synchronize()
            begin = __import__("time").perf_counter()
            optimizer.step()
            host = 1e3 * (__import__("time").perf_counter() - begin)
            torch.cuda.synchronize()
            passes = ms / (7 * size * count / bandwidth)
            row = (name, str(dtype)[6:], len(ps), count, f"{ms:.3f}", f"{passes:.2f}", f"{host:.2f}")
            table.add(*row)
            print(*row, flush=True)
            del optimizer
        ms = timed(lambda: torch.nn.utils.clip_grad_norm_(ps, 1.0), wait_us=30000)
        row = ("clip", str(dtype)[6:], len(ps), count, f"{ms:.3f}",
               f"{ms / (3 * size * count / bandwidth):.2f}", "")
        table.add(*row)
        print(*row, flush=True)
        del ps
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
