"""What every set of traced steps shares: a step's seconds without the profiler, its trace, and the loop over cases.

A case is (name, label, sick, twin, record): two functions that build the step with its cause and without it (None:
nothing to remove), and what the profiler records: its arguments, or whether shapes. $ONLY picks cases by name; $OUT takes the results:
SET.csv (name, label, step_s, twin_s) and SET.tar with one NAME.json.gz of three steps each.

The profiler leaves the host slower once it was loaded (test/data/h200_profiler_cost.csv: 16 % in the median). Where the host
sets the pace, run one case a process ($ONLY): its step is then timed before that, its twin still after it."""
import gc
import os
import statistics
import tarfile
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule


def seconds(step, steps=12, rounds=4, collect=False):
    """Median of rounds. Python's own garbage collector is off unless it is what is measured."""
    gc.enable() if collect else gc.disable()
    for _ in range(6):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / steps)
    return statistics.median(times)


def trace(step, path, record):
    record = record if isinstance(record, dict) else dict(record_shapes=record)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], **record,
                 schedule=schedule(wait=1, warmup=1, active=3)) as p:
        for _ in range(5):
            step()
            p.step()
        torch.cuda.synchronize()
    p.export_chrome_trace(path)


def clean():
    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.cuda.set_per_process_memory_fraction(1.0)


def run(name, cases, steps=12, rounds=4, collecting=()):
    folder = os.environ.get("OUT", ".")
    only = os.environ.get("ONLY", "").split()
    work = "/tmp/" + name
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(folder, name + ".csv"), "w") as out, tarfile.open(os.path.join(folder, name + ".tar"), "w") as tar:
        out.write("name,label,step_s,twin_s\n")
        for case, label, sick, twin, record in cases:
            if only and case not in only:
                continue
            path = f"{work}/{case}.json"
            try:
                clean()
                step = sick()
                step_s = seconds(step, steps, rounds, case in collecting)
                trace(step, path, record)
                del step
                clean()
                os.system(f"gzip -9 -f {path}")
                tar.add(path + ".gz", arcname=case + ".json.gz")
                twin_s = seconds(twin(), steps, rounds) if twin else step_s
            except Exception as error:  # one case that fails must not lose the others
                print(case, "failed:", repr(error)[:300], flush=True)
                continue
            line = f"{case},{label},{step_s:.6f},{twin_s:.6f}"
            out.write(line + "\n")
            out.flush()
            print(line, os.path.getsize(path + ".gz"), flush=True)
