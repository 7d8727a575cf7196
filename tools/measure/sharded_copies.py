"""What DDP, FSDP and FSDP2 move on the device around their collectives: one rank, so that the
collectives themselves are copies or nothing; blocks large enough that the host is never waited for.

Device time of forward and backward over that of the bare model, in bytes a parameter at a large
copy's bandwidth.
-> $OUT/h200_sharded_copies.csv
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from clock import Table, timed
from sharded_host import sharded

WIDTH, LAYERS, TOKENS = 4096, 8, 4096


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


def wrapped(way):
    net = Net().cuda()
    if way == "alone":
        return net.bfloat16()
    if way.startswith("ddp"):
        return DistributedDataParallel(net.bfloat16(), gradient_as_bucket_view=way == "ddp_view")
    return sharded(net, Block, way)


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29502", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    bandwidth = 2 * a.numel() / timed(lambda: b.copy_(a))
    count = 8 * WIDTH * WIDTH * LAYERS
    table = Table("h200_sharded_copies.csv", ("way", "parameters", "ms", "bytes_a_parameter"))
    x = torch.randn(1, TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    base = None
    for way in ("alone", "ddp", "ddp_view", "fsdp", "fsdp2", "alone"):
        net = wrapped(way)

        def step():
            net(x).float().pow(2).mean().backward()
            net.zero_grad(set_to_none=True)
        for _ in range(3):
            step()
        ms = timed(step, wait_us=60000, budget_ms=400, most=9, rest=2)
        base = base or ms
        row = (way, count, f"{ms:.3f}", f"{(ms - base) * bandwidth / count:.1f}")
        table.add(*row)
        print(*row, flush=True)
        del net
        torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
