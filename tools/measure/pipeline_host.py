"""What torch's pipeline schedule costs the host: the first of two stages of small blocks under 1F1B, its neighbour a
process group that answers at once, against the same blocks run micro-batch by micro-batch -> $OUT/h200_pipeline_host.csv.

The host is a shared virtual machine: test/data holds two sessions.
"""
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.testing._internal.distributed.fake_pg import FakeStore

from clock import Table
from tensor_host import build, forward, inputs

SHAPE, LAYERS, SEQ, MICRO = (512, 8, 8, 1024), 4, 128, 8


class Stage(torch.nn.Module):
    def __init__(self, ways, mesh):
        super().__init__()
        self.blocks = torch.nn.ModuleList(build(ways, SHAPE, LAYERS, mesh))
        self.freqs = inputs(ways, SHAPE, SEQ, 1)[1]

    def forward(self, x):
        return forward(self.blocks, x, self.freqs)


def median(call, rounds=14, skip=5):
    spent = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - begin)
    return 1e3 * sorted(spent[skip:])[(rounds - skip) // 2]


def main():
    dist.init_process_group("fake", rank=0, world_size=128, store=FakeStore())
    mesh = init_device_mesh("cuda", (2, 8, 8), mesh_dim_names=("pp", "dp", "tp"))
    table = Table("h200_pipeline_host.csv", ("way", "layers", "microbatches", "plain_ms", "schedule_ms",
                                             "more_ms_microbatch"))
    for ways in ((), ("fsdp",), ("tensor",), ("tensor", "fsdp")):
        own = SEQ // 8 if "tensor" in ways else SEQ
        stage = Stage(ways, mesh)
        whole = torch.randn(MICRO, own, SHAPE[0], device="cuda").bfloat16()
        parts = whole.split(1)

        def plain():
            for p in parts:
                y = stage(p.detach().requires_grad_())
                y.backward(torch.ones_like(y))
            stage.zero_grad(set_to_none=True)

        one = parts[0].detach()
        pipe = PipelineStage(stage, 0, 2, torch.device("cuda"), input_args=(one,), output_args=(torch.empty_like(one),),
                             group=mesh["pp"].get_group())
        schedule = Schedule1F1B(pipe, MICRO, loss_fn=lambda y, _: y.sum())  # without one it runs no backward

        def scheduled():
            schedule.step(whole)
            stage.zero_grad(set_to_none=True)

        a, b = median(plain), median(scheduled)
        row = ("+".join(ways) or "alone", LAYERS, MICRO, f"{a:.2f}", f"{b:.2f}", f"{(b - a) / MICRO:.2f}")
        table.add(*row)
        print("pipe", *row, flush=True)


if __name__ == "__main__":
    main()
