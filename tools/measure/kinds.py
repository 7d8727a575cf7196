"""Device time of a call by kind of kernel, as the profiler names them."""
import torch
from torch.profiler import ProfilerActivity, profile

ATTENTION = ("attention", ("flash", "fmha", "sdpa", "attention"))
MATMUL = ("matmul", ("gemm", "nvjet", "cutlass", "xmma", "wgmma", "splitk"))


def by_kind(call, kinds=(ATTENTION, MATMUL)):
    """Milliseconds by kind, the first whose words a kernel's name holds, else `other`; and how many kernels ran."""
    sums, count = {k: 0.0 for k, _ in kinds} | {"other": 0.0}, 0
    with profile(activities=[ProfilerActivity.CUDA]) as run:
        call()
        torch.cuda.synchronize()
    for event in run.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            low = event.name.lower()
            kind = next((k for k, words in kinds if any(w in low for w in words)), "other")
            sums[kind] += event.device_time / 1000
            count += 1
    return sums, count


def least(call, kinds, prepare=lambda: None, rounds=3):
    """by_kind of the shortest of a few rounds, each after prepare()."""
    found = []
    for _ in range(rounds):
        prepare()
        torch.cuda.synchronize()
        found.append(by_kind(call, kinds))
    return min(found, key=lambda f: sum(f[0].values()))
