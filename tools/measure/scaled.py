"""8-bit matmuls with a scale per tensor and per row, the quantisation before them, and grouped matmuls
-> $OUT/h200_scaled.csv.

Run: python3 tools/measure/scaled.py

Columns: what, m, n, k, groups, ms. `tensor` and `row` are torch._scaled_mm (cuBLAS and CUTLASS); `cast_tensor` and
`cast_row` are the compiled quantisation of one operand of m x k as torchao writes it: absolute maximum, scale, cast,
for a matmul and for its gradients (the row-wise one once along each side); `grouped` is torch's grouped matmul over
`groups` experts of m tokens each, forward, input gradient and weight gradient; `batched` the same as one bmm.
`split_copy` gathers eight pieces of m/8 x k along the sequence: the copy behind a functional all-gather."""
import os
import statistics

import torch

DEVICE = "cuda"
E4M3 = torch.float8_e4m3fn
TOP = 448.0


def ms(run, repeat=20):
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeat):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        run()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return statistics.median(times)


def cast_tensor(x):
    scale = TOP / x.abs().amax().float().clamp(min=1e-12)
    y = (x.float() * scale).clamp(-TOP, TOP).to(E4M3)
    return y, scale.reciprocal()


def cast_row(x):
    scale = TOP / x.abs().amax(dim=-1, keepdim=True).float().clamp(min=1e-12)
    y = (x.float() * scale).clamp(-TOP, TOP).to(E4M3)
    return y, scale.reciprocal()


def cast_both(x):
    a, sa = cast_row(x)
    b, sb = cast_row(x.t())
    return a, sa, b.contiguous(), sb


def cast_column(x):
    b, sb = cast_row(x.t())
    return b.contiguous(), sb


class Csv:
    def __init__(self):
        self.file = open(os.path.join(os.environ["OUT"], "h200_scaled.csv"), "w")
        self.file.write("what,m,n,k,groups,ms\n")

    def add(self, what, m, n, k, groups, value):
        line = f"{what},{m},{n},{k},{groups},{value:.5f}"
        print(line, flush=True)
        self.file.write(line + "\n")
        self.file.flush()


def scaled(out):
    one = torch.tensor(1.0, device=DEVICE)
    for m, n, k in ((16384, 4096, 4096), (16384, 14336, 4096), (16384, 4096, 14336), (98304, 768, 4096),
                    (98304, 3584, 4096), (98304, 4096, 1792), (131072, 7168, 8192), (131072, 8192, 3584),
                    (4096, 98304, 768), (8192, 8192, 8192)):
        a = torch.randn(m, k, device=DEVICE).to(E4M3)
        b = torch.randn(n, k, device=DEVICE).to(E4M3).t()
        run = lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
        out.add("tensor", m, n, k, 1, ms(run))
        slow = lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=False)
        out.add("tensor_exact", m, n, k, 1, ms(slow))
        sa, sb = torch.ones(m, 1, device=DEVICE), torch.ones(1, n, device=DEVICE)
        row = lambda: torch._scaled_mm(a, b, sa, sb, out_dtype=torch.bfloat16, use_fast_accum=True)
        out.add("row", m, n, k, 1, ms(row))
        exact = lambda: torch._scaled_mm(a, b, sa, sb, out_dtype=torch.bfloat16, use_fast_accum=False)
        out.add("row_exact", m, n, k, 1, ms(exact))
        x, w = torch.randn(m, k, device=DEVICE, dtype=torch.bfloat16), torch.randn(n, k, device=DEVICE, dtype=torch.bfloat16)
        out.add("bf16", m, n, k, 1, ms(lambda: x @ w.t()))
        del a, b, x, w
    for m, k in ((16384, 4096), (16384, 14336), (98304, 4096), (98304, 1792), (8192, 8192)):
        x = torch.randn(m, k, device=DEVICE, dtype=torch.bfloat16)
        for name, f in (("cast_tensor", cast_tensor), ("cast_row", cast_row), ("cast_column", cast_column), ("cast_both", cast_both)):
            g = torch.compile(f)
            out.add(name, m, 0, k, 1, ms(lambda: g(x)))
        pieces = torch.randn(8, m // 8, k, device=DEVICE, dtype=torch.bfloat16)
        out.add("split_copy", m, 0, k, 8, ms(lambda: torch.cat(pieces.view(8, 4, m // 32, k).unbind(0), dim=1)))


def grouped(out):
    f = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    for h, n in ((4096, 3072), (7168, 4096), (2048, 1536), (4096, 28672), (1536, 4096), (2048, 7168)):
        for groups in (1, 4, 8, 16, 32):
            for each in (128, 512, 1024, 2048, 8192):
                if groups * each > 65536 or (n > 20000 and groups > 8):
                    continue
                x = torch.randn(groups * each, h, device=DEVICE, dtype=torch.bfloat16)
                w = torch.randn(groups, h, n, device=DEVICE, dtype=torch.bfloat16)
                g = torch.randn(groups * each, n, device=DEVICE, dtype=torch.bfloat16)
                ends = torch.arange(1, groups + 1, device=DEVICE, dtype=torch.int32) * each
                out.add("grouped", each, n, h, groups, ms(lambda: f(x, w, offs=ends)))
                wt = w.transpose(-2, -1)
                out.add("grouped_input", each, h, n, groups, ms(lambda: f(g, wt, offs=ends)))
                out.add("grouped_weight", h, n, each, groups, ms(lambda: f(x.t(), g, offs=ends)))
                out.add("batched", each, n, h, groups, ms(lambda: torch.bmm(x.view(groups, each, h), w)))

                def loop():
                    for i in range(groups):
                        x[i * each:(i + 1) * each] @ w[i]
                out.add("looped", each, n, h, groups, ms(loop))
                del x, w, g


def main():
    out = Csv()
    for part in (scaled, grouped):
        try:
            part(out)
        except Exception as error:  # what this version of torch lacks must not cost the rest
            print(part.__name__, "failed:", repr(error)[:500], flush=True)


if __name__ == "__main__":
    main()
