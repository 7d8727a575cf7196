"""What the host needs for one layer of Megatron's model code of 2021 -> $OUT/h200_host_layer.csv.

Run: python3 tools/measure/host_layer.py

The layer as Megatron-LM and Megatron-DeepSpeed ran it before Transformer Engine: own autograd functions around
the tensor-parallel regions, scripted bias + gelu and bias + dropout + add, unfused attention with a softmax of
one kernel, fp16 with a loss scale. Small shapes, so that the device always waits: the time of a pass is the host's.
Columns: host microseconds and kernels of a layer's forward, of its backward, and of both under the
checkpoint of the time (forward without a graph, then forward and backward again). `tensor` runs every region's
all-reduce through the communication library in a group of one rank: the same calls, nothing on the wire."""
import os
import statistics
import subprocess
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

DEVICE = "cuda"


@torch.jit.script
def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    y = x + bias
    return y * 0.5 * (1.0 + torch.tanh(0.79788456 * y * (1 + 0.044715 * y * y)))


@torch.jit.script
def bias_dropout_add(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, p: float) -> torch.Tensor:
    return residual + F.dropout(x + bias, p=p, training=True)


class Enter(torch.autograd.Function):
    """Identity forward, all-reduce backward."""

    @staticmethod
    def forward(ctx, x, tensor):
        ctx.tensor = tensor
        return x

    @staticmethod
    def backward(ctx, g):
        if ctx.tensor:
            dist.all_reduce(g)
        return g, None


class Leave(torch.autograd.Function):
    """All-reduce forward, identity backward."""

    @staticmethod
    def forward(ctx, x, tensor):
        if tensor:
            dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Scores(torch.autograd.Function):
    """Scaled masked softmax, one kernel each way (what the fused extension did)."""

    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, dim=-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return torch._softmax_backward_data(g, y, -1, y.dtype)


class Column(torch.nn.Module):
    def __init__(self, n_in, n_out, tensor):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n_out, n_in) * 0.02)
        self.bias = torch.nn.Parameter(torch.zeros(n_out))
        self.tensor = tensor

    def forward(self, x, with_bias):
        x = Enter.apply(x, self.tensor) if self.tensor else x
        return (F.linear(x, self.weight, self.bias), None) if with_bias else (F.linear(x, self.weight), self.bias)


class Row(torch.nn.Module):
    def __init__(self, n_in, n_out, tensor):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n_out, n_in) * 0.02)
        self.bias = torch.nn.Parameter(torch.zeros(n_out))
        self.tensor = tensor

    def forward(self, x):
        y = F.linear(x, self.weight)
        return (Leave.apply(y, self.tensor) if self.tensor else y), self.bias


class Attention(torch.nn.Module):
    def __init__(self, hidden, heads, tensor):
        super().__init__()
        self.heads, self.dim = heads, hidden // heads
        self.qkv, self.out = Column(hidden, 3 * hidden, tensor), Row(hidden, hidden, tensor)

    def forward(self, x):
        mixed, _ = self.qkv(x, True)
        s, b = mixed.shape[:2]
        mixed = mixed.view(s, b, self.heads, 3 * self.dim)
        q, k, v = (t.contiguous() for t in torch.split(mixed, self.dim, dim=3))
        q, k, v = (t.reshape(s, b * self.heads, self.dim) for t in (q, k, v))
        empty = torch.empty(b * self.heads, s, s, dtype=x.dtype, device=x.device)
        scores = torch.baddbmm(empty, q.transpose(0, 1), k.transpose(0, 1).transpose(1, 2), beta=0.0, alpha=0.125)
        probabilities = Scores.apply(scores.view(b, self.heads, s, s))
        probabilities = F.dropout(probabilities, 0.1, True)
        y = torch.bmm(probabilities.view(b * self.heads, s, s), v.transpose(0, 1))
        y = y.view(b, self.heads, s, self.dim).permute(2, 0, 1, 3).contiguous().view(s, b, -1)
        return self.out(y)


class Layer(torch.nn.Module):
    def __init__(self, hidden, heads, tensor):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads, tensor)
        self.up, self.down = Column(hidden, 4 * hidden, tensor), Row(4 * hidden, hidden, tensor)

    def forward(self, x):
        y, bias = self.attention(self.norm1(x))
        x = bias_dropout_add(y, bias.expand_as(x), x, 0.1)
        y, bias = self.up(self.norm2(x), False)
        y, bias = self.down(bias_gelu(y, bias))
        return bias_dropout_add(y, bias.expand_as(x), x, 0.1)


class Checkpoint(torch.autograd.Function):
    """As Megatron's: random states kept and put back, forward without a graph, again with one in backward."""

    @staticmethod
    def forward(ctx, run, x):
        ctx.run, ctx.state = run, torch.cuda.get_rng_state()
        with torch.no_grad():
            y = run(x)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        now = torch.cuda.get_rng_state()
        torch.cuda.set_rng_state(ctx.state)
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.run(x)
        torch.cuda.set_rng_state(now)
        torch.autograd.backward(y, g)
        return None, x.grad


def passes(layers, x, grad, again):
    y = x
    for layer in layers:
        y = Checkpoint.apply(layer, y) if again else layer(y)
    return y


def host_us(layers, x, grad, again):
    """Medians of the host's microseconds per layer: forward, backward. The device is far behind."""
    marks = []
    for _ in range(30):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        y = passes(layers, x, grad, again)
        middle = time.perf_counter()
        y.backward(grad)
        end = time.perf_counter()
        torch.cuda.synchronize()
        marks.append((middle - begin, end - middle, time.perf_counter() - begin))
    late = marks[10:]
    return [statistics.median(m[i] for m in late) * 1e6 / len(layers) for i in range(3)]


def kernels(layers, x, grad, again):
    counts = []
    for backward in (False, True):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            y = passes(layers, x, grad, again)
            if backward:
                y.backward(grad)
            torch.cuda.synchronize()
        counts.append(sum(e.count for e in p.key_averages()
                          if e.device_type == torch.autograd.DeviceType.CUDA) / len(layers))
    return counts[0], counts[1] - counts[0]


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl", rank=0, world_size=1)
    print(subprocess.run("lscpu | grep -E 'Model name|MHz|^CPU\\(s\\)'; nproc", shell=True, capture_output=True, text=True).stdout)
    print(torch.__version__)
    out = open(os.path.join(os.environ["OUT"], "h200_host_layer.csv"), "w")
    out.write("round,hidden,seq,tensor,checkpoint,forward_us,backward_us,wall_us,forward_kernels,backward_kernels\n")
    for round_ in range(3):
        for hidden, seq in ((256, 128), (512, 256)):
            for tensor in (False, True):
                for again in (False, True):
                    layers = torch.nn.ModuleList(Layer(hidden, 4, tensor) for _ in range(16)).to(DEVICE, torch.float16)
                    x = torch.randn(seq, 1, hidden, device=DEVICE, dtype=torch.float16, requires_grad=True)
                    grad = torch.randn_like(x)
                    for p in layers.parameters():
                        p.grad = torch.zeros_like(p)
                    f, b, wall = host_us(layers, x, grad, again)
                    kf, kb = kernels(layers, x, grad, again) if round_ == 0 else (0, 0)
                    line = f"{round_},{hidden},{seq},{int(tensor)},{int(again)},{f:.1f},{b:.1f},{wall:.1f},{kf:.1f},{kb:.1f}"
                    print(line, flush=True)
                    out.write(line + "\n")
    out.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
