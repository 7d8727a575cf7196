"""Timing shared by the measuring scripts: device events, a flushed L2, medians.

Before every timed call the L2 is overwritten and the device is put to sleep for a while, so that
the host has queued the call and both events before the device reaches them: short kernels are then
timed without the launch gap. After every call the host rests several times as long as the device
worked: without that, a large matmul leaves the device under its power cap and slows the next shapes
by up to 20 %. So the clocks are those of a short burst, not those that a training run holds.
"""
import csv
import os
import statistics
import time

import torch

_flush = None


def out_path(name):
    return os.path.join(os.environ.get("OUT", "."), name)


def timed(call, wait_us=150, budget_ms=40.0, most=9, least=3, rest=4.0):
    """Median time in milliseconds of call()."""
    global _flush
    if _flush is None:
        _flush = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    call()
    call()
    times = []
    spent = 0.0
    while len(times) < least or (spent < budget_ms and len(times) < most):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        _flush.zero_()
        torch.cuda._sleep(int(wait_us * 1900))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        ms = begin.elapsed_time(end)
        times.append(ms)
        spent += ms
        time.sleep(1e-3 * max(0.5, rest * ms))
    return statistics.median(times)


class Table:
    """A csv file under $OUT, written row by row so that a run cut short keeps what it has."""

    def __init__(self, name, columns):
        self.file = open(out_path(name), "w", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(columns)
        self.rows = 0

    def add(self, *row):
        self.writer.writerow(row)
        self.file.flush()
        self.rows += 1
