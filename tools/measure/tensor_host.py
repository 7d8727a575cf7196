"""What tensor parallelism by DTensor costs: blocks of torchtitan's Llama, sharded eight ways by parallelize_module as
torchtitan's own plan does, on one device -> $OUT/h200_tensor_host.csv, $OUT/h200_tensor_device.csv.

The other seven ranks are a process group that answers at once (torch.testing's `fake` backend): everything around a
collective is real. Its all-gather copies the rank's part to every place, which is timed alone and taken off. Host: blocks so small that the device waits; time of a forward and a backward
pass per block, alone and with tensor parallelism, checkpointed as torchtitan does (the operators of its list kept, or
none), under FSDP2 and compiled. Device: blocks as wide as an eighth of Llama 70B and 8B; time by kind of kernel.
"""
import functools
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from clock import Table
from kinds import ATTENTION, MATMUL, least
from titan_block import rotate

RANKS = 8
KINDS = (ATTENTION, MATMUL, ("norm", ("norm", "rsqrt")), ("activation", ("silu", "sigmoid")))
KEPT = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_efficient_attention.default,
        torch.ops.aten._scaled_dot_product_flash_attention.default,
        torch.ops.aten._scaled_dot_product_cudnn_attention.default,
        torch.ops._c10d_functional.reduce_scatter_tensor.default}


class Attention(nn.Module):
    def __init__(self, h, heads, kv):
        super().__init__()
        self.dim, self.group = h // heads, heads // kv
        self.wq, self.wo = nn.Linear(h, h, bias=False), nn.Linear(h, h, bias=False)
        self.wk, self.wv = nn.Linear(h, kv * self.dim, bias=False), nn.Linear(h, kv * self.dim, bias=False)

    def forward(self, x, freqs):
        b, s, _ = x.shape
        q, k, v = (w(x).view(b, s, -1, self.dim) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, k, freqs)
        if self.group > 1:
            k, v = (t[:, :, :, None, :].expand(b, s, t.shape[2], self.group, self.dim).reshape(b, s, -1, self.dim)
                    for t in (k, v))
        y = nn.functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
        return self.wo(y.transpose(1, 2).contiguous().view(b, s, -1))


class Mlp(nn.Module):
    def __init__(self, h, ffn):
        super().__init__()
        self.w1, self.w3 = nn.Linear(h, ffn, bias=False), nn.Linear(h, ffn, bias=False)
        self.w2 = nn.Linear(ffn, h, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, h, heads, kv, ffn):
        super().__init__()
        self.attention, self.mlp = Attention(h, heads, kv), Mlp(h, ffn)
        self.norm1, self.norm2 = nn.RMSNorm(h), nn.RMSNorm(h)

    def forward(self, x, freqs):
        x = x + self.attention(self.norm1(x), freqs)
        return x + self.mlp(self.norm2(x))


def tensor_parallel(block, mesh):
    whole = dict(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None))
    parallelize_module(block, mesh, {
        "norm1": SequenceParallel(), "norm2": SequenceParallel(),
        "attention": PrepareModuleInput(**whole),
        "attention.wq": ColwiseParallel(), "attention.wk": ColwiseParallel(), "attention.wv": ColwiseParallel(),
        "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
        "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "mlp.w1": ColwiseParallel(), "mlp.w3": ColwiseParallel(),
        "mlp.w2": RowwiseParallel(output_layouts=Shard(1))})


def selected(block):
    """Every second matmul is run again, as torchtitan's policy has it."""
    def policy(counts, ctx, func, *args, **kwargs):
        mode = "again" if ctx.is_recompute else "first"
        if func == torch.ops.aten.mm.default:
            counts[mode] = counts.get(mode, 0) + 1
        keep = func in KEPT and not (func == torch.ops.aten.mm.default and counts[mode] % 2 == 0)
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = lambda: create_selective_checkpoint_contexts(functools.partial(policy, {}))
    return checkpoint_wrapper(block, context_fn=contexts, preserve_rng_state=False)


def build(ways, shape, layers, mesh):
    """`ways`: the words tensor, fsdp, kept or again, compiled."""
    torch._dynamo.reset()
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    blocks = []
    for _ in range(layers):
        block = Block(*shape).cuda()
        if "fsdp" not in ways:
            block = block.bfloat16()
        if "tensor" in ways:
            tensor_parallel(block, mesh["tp"])
        if "kept" in ways:
            block = selected(block)
        if "again" in ways:
            block = checkpoint_wrapper(block, preserve_rng_state=False)
        if "compiled" in ways:
            block.compile(fullgraph=True)
        if "fsdp" in ways:
            fully_shard(block, mesh=mesh["dp"], mp_policy=half, reshard_after_forward=True)
        blocks.append(block)
    return blocks


def inputs(ways, shape, seq, micro):
    h, heads = shape[:2]
    own = seq // RANKS if "tensor" in ways else seq
    x = torch.randn(micro, own, h, device="cuda").bfloat16().requires_grad_()
    turn = torch.randn(seq, h // heads // 2)
    return x, torch.polar(torch.ones_like(turn), turn).cuda()


def forward(blocks, x, freqs):
    for b in blocks:
        x = b(x, freqs)
    return x


def clear(blocks, x):
    x.grad = None
    for b in blocks:
        b.zero_grad(set_to_none=True)


def host(table, round_, ways, mesh):
    shape, layers = (512, 8, 8, 1024), 8
    blocks = build(ways, shape, layers, mesh)
    x, freqs = inputs(ways, shape, 128, 1)
    spent = []
    for _ in range(24):
        torch.cuda.synchronize()
        t0 = time.perf_counter()
        y = forward(blocks, x, freqs)
        t1 = time.perf_counter()
        y.backward(torch.ones_like(y))
        t2 = time.perf_counter()
        torch.cuda.synchronize()
        clear(blocks, x)
        spent.append((t1 - t0, t2 - t1))
    times = [1e6 * sorted(s[i] for s in spent[8:])[8] / layers for i in (0, 1)]
    row = (round_, "+".join(ways) or "alone", *(f"{t:.0f}" for t in times))
    table.add(*row)
    print("host", *row, flush=True)


def exchange_ms(shape, seq, micro, mesh):
    """What the fake collectives of a pass take by themselves: two all-gathers, two reduce-scatters."""
    group = mesh["tp"].get_group()
    whole = torch.empty(seq * micro, shape[0], device="cuda", dtype=torch.bfloat16)
    part = torch.empty(seq * micro // RANKS, shape[0], device="cuda", dtype=torch.bfloat16)

    def run():
        for _ in range(2):
            dist.all_gather_into_tensor(whole, part, group=group)
            dist.reduce_scatter_tensor(part, whole, group=group)

    run()
    sums, count = least(run, KINDS)
    return sum(sums.values()), count


def device(table, ways, shape, seq, micro, mesh):
    layers = 4
    fake, fake_kernels = exchange_ms(shape, seq, micro, mesh)
    blocks = build(ways, shape, layers, mesh)
    x, freqs = inputs(ways, shape, seq, micro)
    state = {}

    def run():
        clear(blocks, x)
        state["y"] = forward(blocks, x, freqs)

    run()
    grad = torch.randn_like(state["y"])
    for _ in range(3):
        state["y"].backward(grad)
        run()
    back = lambda: state["y"].backward(grad)
    for what, call, prepare in (("forward", run, lambda: None), ("backward", back, run)):
        sums, count = least(call, KINDS, prepare)
        sums["other"] -= layers * fake
        row = ("+".join(ways) or "alone", *shape, seq, micro, what,
               *(f"{sums[k] / layers:.4f}" for k in ("norm", "activation", "other", "matmul", "attention")),
               f"{count / layers - fake_kernels:.1f}", f"{fake:.4f}")
        table.add(*row)
        print("device", *row, flush=True)


def hosts(mesh):
    table = Table("h200_tensor_host.csv", ("round", "way", "forward_us", "backward_us"))
    sets = [(), ("tensor",), ("kept",), ("again",), ("tensor", "kept"), ("tensor", "again"), ("fsdp",),
            ("tensor", "fsdp"), ("tensor", "fsdp", "kept"), ("tensor", "fsdp", "again"), ("compiled",),
            ("tensor", "compiled"), ("tensor", "fsdp", "compiled"), ("tensor", "fsdp", "kept", "compiled"),
            ("tensor", "fsdp", "again", "compiled")]
    for round_ in range(3):
        for ways in sets:
            try:
                host(table, round_, ways, mesh)
            except Exception as e:  # one way that this release cannot run must not lose the others
                print("host", ways, type(e).__name__, str(e)[:300], flush=True)


def devices(mesh):
    columns = ("way", "hidden", "heads", "kv", "ffn", "seq", "micro", "pass", "norm_ms", "activation_ms", "other_ms",
               "matmul_ms", "attention_ms", "kernels", "fake_ms")
    table = Table("h200_tensor_device.csv", columns)
    for shape in ((8192, 64, 8, 28672), (4096, 32, 8, 14336)):
        for seq, micro in ((8192, 1), (4096, 2)):
            for ways in (("tensor",), ("tensor", "compiled")):
                try:
                    device(table, ways, shape, seq, micro, mesh)
                except Exception as e:
                    print("device", ways, type(e).__name__, str(e)[:300], flush=True)


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29503")
    dist.init_process_group("fake", rank=0, world_size=RANKS * RANKS, store=FakeStore())
    mesh = init_device_mesh("cuda", (RANKS, RANKS), mesh_dim_names=("dp", "tp"))
    if "--device" not in sys.argv:
        hosts(mesh)
    devices(mesh)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
