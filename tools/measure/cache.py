"""What a last-level cache saves memory-bound kernels: layers of a Llama, forward and backward, from few tokens to
many, and two plain streams by size -> $OUT/h200_cache_layers.csv, $OUT/h200_cache_streams.csv.

Layers: device time by kind of kernel per layer and pass, eager and compiled, in a stack of six, so that what one
layer saves for its backward pass is evicted as in training. Streams: y = 2 x between two buffers of one size, again
and again: what was written last is read next.
"""
import torch

from clock import Table
from kinds import ATTENTION, MATMUL, least
from small_models import Block

COLUMNS = ("width", "ffn", "tokens", "compiled", "pass", "norm_ms", "activation_ms", "other_ms", "matmul_ms",
           "attention_ms", "kernels")
LAYERS = 6
KINDS = (ATTENTION, MATMUL, ("norm", ("norm", "rsqrt", "mean")), ("activation", ("silu", "sigmoid")))


def stack(width, ffn, tokens, compiled):
    torch._dynamo.reset()
    torch.manual_seed(1)
    heads = width // 128
    c = dict(width=width, ffn=ffn, heads=heads, kv_heads=heads, llama=True, causal=True, dropout=0.0, seq=512)
    blocks = [Block(c).cuda().bfloat16() for _ in range(LAYERS)]
    runs = [torch.compile(b, dynamic=False) for b in blocks] if compiled else blocks
    angle = torch.outer(torch.arange(512).float(), 1e-4 ** torch.linspace(0, 1, 64))
    angle = torch.cat((angle, angle), -1)
    place = tuple(t[None, None].cuda().bfloat16() for t in (angle.cos(), angle.sin()))
    x = torch.randn(tokens // 512, 512, width, device="cuda").bfloat16().requires_grad_()
    return blocks, runs, place, x


def run_forward(blocks, runs, place, x):
    for b in blocks:
        b.zero_grad(set_to_none=True)
    x.grad = None
    for run in runs:
        x = run(x, place)
    return x


def layers(table, width, ffn, tokens, compiled):
    parts = stack(width, ffn, tokens, compiled)
    grad = torch.randn_like(parts[-1])
    state = {}

    def forward():
        state["y"] = run_forward(*parts)

    for _ in range(3):
        forward()
        state["y"].backward(grad)
    passes = (("forward", forward, lambda: None), ("backward", lambda: state["y"].backward(grad), forward))
    for what, call, prepare in passes:
        sums, count = least(call, KINDS, prepare)
        row = (width, ffn, tokens, compiled, what,
               *(f"{sums[k] / LAYERS:.5f}" for k in ("norm", "activation", "other", "matmul", "attention")),
               f"{count / LAYERS:.1f}")
        table.add(*row)
        print(*row, flush=True)


def streams(table, megabytes, steps=64):
    count = int(megabytes * 1e6) // 2
    pair = [torch.empty(count, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(steps):
            torch.mul(pair[i % 2], 2, out=pair[(i + 1) % 2])
    graph.replay()
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    us = 1000 * sorted(times)[3] / steps
    row = (megabytes, f"{us:.3f}", f"{2 * megabytes / us:.3f}")
    table.add(*row)
    print("stream", *row, flush=True)


def main():
    print(torch.cuda.get_device_properties(0), flush=True)
    table = Table("h200_cache_streams.csv", ("megabytes", "us", "tb_s"))
    for megabytes in (0.5, 1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 256):
        streams(table, megabytes)
    table = Table("h200_cache_layers.csv", COLUMNS)
    for compiled in (0, 1):
        for width, ffn in ((1024, 2816), (2048, 5632), (4096, 11008)):
            for tokens in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536):
                if tokens * width <= 65536 * 2048:
                    layers(table, width, ffn, tokens, compiled)


if __name__ == "__main__":
    main()
