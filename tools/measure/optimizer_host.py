"""What clipping and AdamW cost the host a step, by how tensors are held: plain, and FSDP2's DTensors
on one rank; so small that the device waits. -> $OUT/h200_optimizer_host.csv
"""
import os
import time

import torch
import torch.distributed as dist

from clock import Table
from sharded_host import LAYERS, SEQ, WIDTH, wrapped


def host_ms(call):
    times = []
    for i in range(25):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if i >= 5:
            times.append(1e3 * (time.perf_counter() - begin))
    return sorted(times)[len(times) // 2]


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29502", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    table = Table("h200_optimizer_host.csv",
                  ("round", "way", "tensors", "clip_ms", "fused_ms", "foreach_ms", "zero_ms"))
    x = torch.randn(1, SEQ, WIDTH, device="cuda", dtype=torch.bfloat16)
    for round_ in range(3):
        for way in ("alone", "fsdp", "fsdp2"):
            net = wrapped(way)
            net(x).float().pow(2).mean().backward()
            weights = list(net.parameters())
            clip = net.clip_grad_norm_ if way == "fsdp" else (
                lambda most: torch.nn.utils.clip_grad_norm_(weights, most, foreach=True))
            times = [host_ms(lambda: clip(1.0))]
            for kind in ({"fused": True}, {"foreach": True}):
                times.append(host_ms(torch.optim.AdamW(weights, **kind).step))
            times.append(host_ms(lambda: torch.optim.AdamW(weights).zero_grad()))
            table.add(round_, way, len(weights), *(f"{t:.3f}" for t in times))
            print(round_, way, len(weights), LAYERS, *(f"{t:.3f}" for t in times), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
