"""The experts' matmuls of one pass, three ways, on their own: a burst of each from a CUDA graph.

One after another (loop), over four streams as Transformer Engine runs them (streams), and in one
grouped kernel (grouped, PyTorch's). Passes as in perf/matmul.h. -> $OUT/h200_grouped.csv
"""
import torch

from clock import Table, timed

COLUMNS = ("way", "pass", "experts", "m", "n", "k", "ms", "of_peak")
PEAK = 989.4e12
SHAPES = ((3072, 5120), (5120, 1536), (4096, 7168), (7168, 2048), (1536, 2048), (2048, 768),
          (5760, 2880), (2880, 2880), (28672, 4096), (4096, 14336))
TOKENS = (128, 256, 512, 1024, 2048, 4096)
STREAMS = 4


def calls(way, experts, m, n, k, kind):
    """A list of functions, one per expert, that do its matmul of this pass (y = x w^T)."""
    x = torch.randn(experts, m, k, device="cuda").bfloat16()
    w = (torch.randn(experts, n, k, device="cuda") * 0.02).bfloat16()
    g = torch.randn(experts, m, n, device="cuda").bfloat16()
    if kind == "forward":
        left, right = x, w.transpose(1, 2)
    elif kind == "input_grad":
        left, right = g, w
    else:
        left, right = g.transpose(1, 2), x
    if way == "grouped":
        if kind == "weight_grad":
            ends = torch.arange(m, (experts + 1) * m, m, device="cuda", dtype=torch.int32)
            a, b = g.reshape(-1, n).t(), x.reshape(-1, k)
            return [lambda: torch._grouped_mm(a, b, offs=ends)]
        ends = torch.arange(m, (experts + 1) * m, m, device="cuda", dtype=torch.int32)
        a = left.reshape(experts * m, -1)
        return [lambda: torch._grouped_mm(a, right, offs=ends)]
    out = torch.empty(experts, left.shape[1], right.shape[2], device="cuda", dtype=torch.bfloat16)
    return [lambda i=i: torch.mm(left[i], right[i], out=out[i]) for i in range(experts)]


def captured(way, functions):
    side = [torch.cuda.Stream() for _ in range(STREAMS)]
    def once():
        if way != "streams":
            for f in functions:
                f()
            return
        main = torch.cuda.current_stream()
        for s in side:
            s.wait_stream(main)
        for i, f in enumerate(functions):
            with torch.cuda.stream(side[i % STREAMS]):
                f()
        for s in side:
            main.wait_stream(s)
    once()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        once()
    return graph


def main():
    table = Table("h200_grouped.csv", COLUMNS)
    for n, k in SHAPES:
        for m in TOKENS:
            experts = max(4, min(64, 16384 // m))
            for kind in ("forward", "input_grad", "weight_grad"):
                line = []
                for way in ("loop", "streams", "grouped"):
                    try:
                        graph = captured(way, calls(way, experts, m, n, k, kind))
                    except RuntimeError as error:
                        print(way, kind, m, n, k, str(error)[:100])
                        torch.cuda.synchronize()
                        continue
                    ms = timed(graph.replay, most=5)
                    share = 2 * experts * m * n * k / (ms * 1e-3) / PEAK
                    table.add(way, kind, experts, m, n, k, f"{ms:.5f}", f"{share:.4f}")
                    line.append(f"{way} {share:.3f}")
                    del graph
                print(kind, experts, m, n, k, *line, flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
