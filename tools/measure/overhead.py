"""What a pair of events adds to a reading -> $OUT/h200_overhead.csv.

The same matmuls three ways: `event` as in matmul.py (one call between two events, flushed L2);
`graph` a CUDA graph of 32 calls over 8 sets of operands, per call (back to back, as in a training
step whose host is ahead); `warm` the same graph over one set. And the tiniest kernel.
"""
import torch

from clock import Table, timed

SHAPES = ((1, 64, 64), (64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512),
          (1024, 1024, 1024), (2048, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096),
          (16, 2048, 2048), (16, 4096, 4096), (64, 8192, 1024), (64, 1024, 8192),
          (2048, 8192, 8192), (8192, 8192, 8192), (512, 4096, 512), (2048, 2048, 256),
          (8192, 768, 768))


def graph_ms(calls, repeat=4):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeat):
            for call in calls:
                call()
    return timed(graph.replay, budget_ms=60, most=9) / (repeat * len(calls))


def main():
    table = Table("h200_overhead.csv", ("what", "m", "n", "k", "event_ms", "graph_ms", "warm_ms"))
    one = torch.zeros(1, device="cuda")
    table.add("add_one", 0, 0, 0, f"{timed(lambda: one.add_(1)):.5f}",
              f"{graph_ms([lambda: one.add_(1)] * 8):.5f}", "")
    for m, n, k in SHAPES:
        sets = [(torch.randn(m, k, device="cuda", dtype=torch.bfloat16),
                 torch.randn(n, k, device="cuda", dtype=torch.bfloat16).t(),
                 torch.empty(m, n, device="cuda", dtype=torch.bfloat16)) for _ in range(8)]
        calls = [lambda x=x, w=w, y=y: torch.mm(x, w, out=y) for x, w, y in sets]
        table.add("matmul", m, n, k, f"{timed(calls[0]):.5f}", f"{graph_ms(calls):.5f}",
                  f"{graph_ms(calls[:1] * 8):.5f}")
    print(open(table.file.name).read())


if __name__ == "__main__":
    main()
