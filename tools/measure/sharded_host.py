"""What sharding's hooks and checkpointing cost the host: blocks so small that the device waits,
alone, checkpointed, compiled, and wrapped by DDP, FSDP and FSDP2 on one rank. Host time of a forward and a backward pass
per block, and of the step around them.
-> $OUT/h200_sharded_host.csv
"""
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, fully_shard
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from clock import Table

WIDTH, LAYERS, SEQ = 256, 24, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).chunk(3, -1)
        heads = [t.view(x.shape[0], SEQ, 4, -1).transpose(1, 2) for t in (q, k, v)]
        a = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Net(nn.Module):
    def __init__(self, again=None):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.again = again

    def forward(self, x):
        for b in self.blocks:
            x = b(x) if self.again is None else checkpoint(b, x, use_reentrant=self.again)
        return x


def sharded(net, block, way):
    """The net by FSDP or FSDP2, block by block: 16-bit weights, gradients reduced in 32."""
    if way == "fsdp":
        half = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        return FullyShardedDataParallel(net, auto_wrap_policy=ModuleWrapPolicy({block}),
                                        mixed_precision=half, use_orig_params=True)
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for b in net.blocks:
        fully_shard(b, mp_policy=half)
    return fully_shard(net, mp_policy=half)


def wrapped(way):
    if way in ("checkpoint", "reentrant"):
        return Net(way == "reentrant").cuda().bfloat16()
    net = Net().cuda()
    if way.startswith("compiled"):
        for b in net.blocks:
            b.compile()
        way = way.removeprefix("compiled_")
    if way in ("alone", "compiled"):
        return net.bfloat16()
    if way == "ddp":
        return DistributedDataParallel(net.bfloat16())
    return sharded(net, Block, way)


def passes(net, x):
    """Median host milliseconds of forward and of backward, the device kept idle before each."""
    forward, backward = [], []
    for i in range(30):
        torch.cuda.synchronize()
        t0 = time.perf_counter()
        loss = net(x).float().pow(2).mean()
        t1 = time.perf_counter()
        loss.backward()
        t2 = time.perf_counter()
        torch.cuda.synchronize()
        net.zero_grad(set_to_none=True)
        if i >= 10:
            forward.append(1e3 * (t1 - t0))
            backward.append(1e3 * (t2 - t1))
    return sorted(forward)[10], sorted(backward)[10]


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29501", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    table = Table("h200_sharded_host.csv", ("round", "way", "layers", "forward_ms", "backward_ms",
                                            "forward_us_layer", "backward_us_layer"))
    x = torch.randn(1, SEQ, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    for round_ in range(3):
        for way in ("alone", "checkpoint", "reentrant", "ddp", "fsdp", "fsdp2", "compiled",
                    "compiled_fsdp2"):
            f, b = passes(wrapped(way), x)
            row = (round_, way, LAYERS, f"{f:.3f}", f"{b:.3f}", f"{1e3 * f / LAYERS:.0f}",
                   f"{1e3 * b / LAYERS:.0f}")
            table.add(*row)
            print(*row, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
