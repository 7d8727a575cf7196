"""Makes the traces of this folder: four ranks of an H200 job, three steps each, a few hundred events.

    python3 make.py        # writes exposed/, pipeline/ and late/ beside it; the same bytes every time

exposed   gradients are reduced after the backward pass instead of beside it
pipeline  four stages of one micro-batch each: every stage waits for the one before it
late      rank 2 computes a third longer than its peers, who wait for it in the all-reduce
"""
import gzip
import json
import os

STEPS, RANKS = 3, 4
LAYERS = 12
LAUNCH_US = 8.0


class Trace:
    def __init__(self, rank):
        self.events, self.correlation, self.rank = [], 0, rank

    def host(self, cat, name, start, end, **args):
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 100, "tid": 100, "ts": round(start, 3),
             "dur": round(end - start, 3), "args": args})

    def kernel(self, name, launched, start, duration, stream=7, **args):
        self.correlation += 1
        c = self.correlation
        self.host("cuda_runtime", "cudaLaunchKernel", launched, launched + LAUNCH_US / 2, correlation=c)
        self.events.append(
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": round(start, 3),
             "dur": round(duration, 3),
             "args": {"device": 0, "stream": stream, "correlation": c, "grid": [132, 1, 1],
                      "block": [256, 1, 1], **args}})

    def collective(self, name, call, launched, start, duration, sequence, elements, **args):
        self.kernel(name, launched, start, duration, 20, **{
            "Collective name": call, "In msg nelems": elements, "Out msg nelems": elements,
            "dtype": "BFloat16", "Group size": RANKS, "Process Group Name": "0",
            "Process Group Ranks": str(list(range(RANKS))), "Seq": sequence, **args})

    def write(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        document = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9,
                                  "computeMinor": 0, "numSms": 132}],
            "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": RANKS},
            "baseTimeNanoseconds": 1794700000000000000,
            "traceEvents": self.events}
        with open(path, "wb") as raw:
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                packed.write(json.dumps(document).encode())


def compute(trace, at, count, duration, host):
    """Matmuls one after another, launched ahead; the end of the last, and of the host."""
    for _ in range(count):
        trace.host("cpu_op", "aten::mm", host, host + LAUNCH_US)
        trace.kernel("nvjet_tst_192x192_64x4_2x1_v_bz_coopA_TNT", host + 1, max(at, host + 5), duration)
        at, host = max(at, host + 5) + duration, host + LAUNCH_US
    return at, host


def data_parallel(folder, slow_rank, reduce_us):
    ready = [0.0] * RANKS
    traces = [Trace(r) for r in range(RANKS)]
    for step in range(STEPS):
        begin, ends, hosts = list(ready), [], []
        for r, trace in enumerate(traces):
            each = 400.0 * (4 / 3 if r == slow_rank else 1)
            at, host = compute(trace, ready[r], 3 * LAYERS, each, ready[r])
            ends.append(at)
            hosts.append(host)
        finish = max(ends) + reduce_us
        for r, trace in enumerate(traces):
            trace.collective("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                             "allreduce", hosts[r], ends[r] + 2, finish - ends[r] - 2, step, 1 << 28)
            at, host = compute(trace, finish, 2, 150.0, hosts[r] + LAUNCH_US)
            ready[r] = at + 20
            trace.host("user_annotation", f"ProfilerStep#{step + 1}", begin[r], at + 10)
    for r, trace in enumerate(traces):
        trace.write(f"{folder}/rank{r}.json.gz")


def pipeline(folder):
    """One micro-batch forward through the stages and back, one stage at a time."""
    forward, backward, hop = 4000.0, 8000.0, 60.0
    traces = [Trace(r) for r in range(RANKS)]
    ready = 0.0
    for step in range(STEPS):
        down = RANKS * (forward + hop)
        end = ready + down + RANKS * (backward + hop) + 50
        for r, trace in enumerate(traces):
            host = ready

            def transfer(call, peer, start, finish):
                nonlocal host
                pair = {"Src Rank": r, "Dst Rank": peer} if call == "send" else {
                    "Src Rank": peer, "Dst Rank": r}
                trace.collective("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", call, host,
                                 start, finish - start, step, 1 << 24, **pair)
                host += LAUNCH_US

            begin = ready + r * (forward + hop)
            if r > 0:
                transfer("recv", r - 1, ready + 20, begin)
            at, host = compute(trace, begin, 10, forward / 10, host)
            back = ready + down + (RANKS - 1 - r) * (backward + hop)
            if r < RANKS - 1:
                transfer("send", r + 1, at, begin + forward + hop)
                transfer("recv", r + 1, begin + forward + hop, back)
            at, host = compute(trace, back, 20, backward / 20, host)
            if r > 0:
                transfer("send", r - 1, at, back + backward + hop)
                at = back + backward + hop
            # The norm of the gradients is the first thing that all stages need together. The first
            # stage comes last to it, and that is nobody's fault.
            trace.collective("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                             "allreduce", host, at, end - at, step, 1)
            trace.host("cuda_runtime", "cudaStreamSynchronize", host + LAUNCH_US, end)
            trace.host("user_annotation", f"ProfilerStep#{step + 1}", ready, end)
        ready = end + 20
    for r, trace in enumerate(traces):
        trace.write(f"{folder}/rank{r}.json.gz")


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    data_parallel("exposed", -1, 4500.0)
    data_parallel("late", 2, 300.0)
    pipeline("pipeline")
