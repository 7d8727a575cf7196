"""Telemetry of one GPU in training while its power limit is lowered, and while nothing is wrong.

Writes capped.csv under $OUT: nvidia-smi's query log, 5 samples a second, with the phase and its step time in phases.csv."""
import os
import subprocess
import time

import torch

from traces import LARGE, make_step, seconds

QUERY = ("timestamp,index,uuid,name,clocks.sm,clocks.max.sm,clocks.mem,power.draw.instant,enforced.power.limit,"
         "power.default_limit,power.max_limit,temperature.gpu,temperature.memory,utilization.gpu,clocks_event_reasons.active")


def main():
    folder = os.environ.get("OUT", ".")
    step = make_step(LARGE, 8)
    log = subprocess.Popen(["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv", "-lms", "200", "-f",
                            os.path.join(folder, "capped.csv")])
    with open(os.path.join(folder, "phases.csv"), "w") as out:
        out.write("limit_w,begin_s,end_s,step_s\n")
        for limit in (700, 450, 300, 700):
            print(subprocess.run(["nvidia-smi", "-pl", str(limit)], capture_output=True, text=True).stdout, flush=True)
            begin = time.time()
            step_s = seconds(step)
            line = f"{limit},{begin:.2f},{time.time():.2f},{step_s:.6f}"
            out.write(line + "\n")
            print(line, flush=True)
            torch.cuda.synchronize()
            time.sleep(2)
    log.terminate()


if __name__ == "__main__":
    main()
