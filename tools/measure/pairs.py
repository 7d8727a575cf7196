"""Pairwise products of a recommendation model's vectors, thousands of small ones -> $OUT/h200_pairs.csv.

Run: python3 tools/measure/pairs.py

Forward is x x^T of every sample, backward the gradient by either operand, without the copies that
autograd adds. Twenty of each are captured in one graph, so that no launch shows.
"""
import torch

from clock import Table

COLUMNS = ["dtype", "batch", "features", "dim", "forward_us", "backward_us"]
FEATURES = (8, 14, 20, 27, 28, 30, 31, 32, 33, 34, 36, 40, 41, 48, 49, 56, 63, 64, 65, 72, 80, 97,
            128, 129)
REPEATS = 20


def microseconds(work):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEATS):
            work()
    graph.replay()
    torch.cuda.synchronize()
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / REPEATS * 1e3


def main():
    table = Table("h200_pairs.csv", COLUMNS)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for batch in (2048, 8192):
            for dim in (128, 64):
                for features in FEATURES:
                    x = torch.randn(batch, features, dim, device="cuda", dtype=dtype)
                    g = torch.randn(batch, features, features, device="cuda", dtype=dtype)
                    xt = x.transpose(1, 2)
                    forward = microseconds(lambda: torch.bmm(x, xt))
                    backward = microseconds(lambda: (torch.bmm(g, x), torch.bmm(xt, g)))
                    table.add(str(dtype)[6:], batch, features, dim, round(forward, 1),
                              round(backward, 1))


if __name__ == "__main__":
    main()
