"""Traces of several ranks from one GPU: NCCL over sockets, each rank made to believe in a host of its own.

The ranks share one device, so only what they wait for is real (arrival, wire time over loopback, order), not how fast
they compute. Writes $OUT/ranks.csv (name, label, ranks, step_s, twin_s) and ranks.tar with CASE/rankN.json.gz."""
import os
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(__file__))
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

from launch import Llama

SHAPE = dict(hidden=1024, layers=3, heads=16, ffn=2816, vocab=1024, seq=1024)


def make(case, rank):
    torch.manual_seed(0)
    model = Llama(**SHAPE).to("cuda", torch.bfloat16)
    batch = 72 if case == "uneven" and rank == 1 else 48
    ids = torch.randint(0, SHAPE["vocab"], (batch, SHAPE["seq"]), device="cuda")
    run = model if case in ("naive", "late_naive") else DistributedDataParallel(model, bucket_cap_mb=50)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        if case == "late" and rank == 1 or case == "late_naive" and rank == 0:
            time.sleep(0.06)
        loss = run(ids, ids)
        loss.backward()
        if run is model:
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()  # the host does not run ahead, so that a late one is late on the device too

    return step


def seconds(step):
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / 10


def rank_main(rank, ranks, cases, folder):
    os.environ.update(NCCL_HOSTID=f"host{rank}", MASTER_ADDR="127.0.0.1", MASTER_PORT="29531", NCCL_SOCKET_IFNAME="lo",
                      NCCL_IB_DISABLE="1", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_MAX_NCHANNELS="4",
                      NCCL_NSOCKS_PERTHREAD="4", NCCL_SOCKET_NTHREADS="2")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    for case in cases:
        step = make(case, rank)
        took = seconds(step)
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)) as p:
            for _ in range(5):
                step()
                p.step()
            torch.cuda.synchronize()
        os.makedirs(f"{folder}/{case}", exist_ok=True)
        p.export_chrome_trace(f"{folder}/{case}/rank{rank}.json")
        os.system(f"gzip -9 -f {folder}/{case}/rank{rank}.json")
        if rank == 0:
            with open(f"{folder}/steps.csv", "a") as out:
                out.write(f"{case},{ranks},{took:.6f}\n")
            print(case, ranks, f"{took:.6f}", flush=True)
        del step
        dist.barrier()
        torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(os.environ.get("RANKS", "2"))
    folder = "/tmp/ranks"
    os.makedirs(folder, exist_ok=True)
    mp.spawn(rank_main, (ranks, ["ddp", "naive", "late", "late_naive", "uneven"], folder), nprocs=ranks)
    with tarfile.open(os.path.join(os.environ.get("OUT", "."), f"ranks{ranks}.tar"), "w") as tar:
        tar.add(folder, arcname="ranks")
