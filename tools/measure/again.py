"""A sixth set, run after the rules had been mended with the fifth in view: what they are worth on the next code.

Eight layers of a 410M model at large batches, so that the files are small and the device sets the pace."""
import gc
import os
import queue
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import harness
from habits import BF16, DEVICE, M160, M410, SHAPES, STACK, Block, Net, adamw, cached_objects, graphed, loop, net, plain, rope, tokens

S8 = dict(M410, layers=8)


def queued(slow):
    """A thread of the training process makes the batches, in Python."""
    ready = queue.Queue(maxsize=2)
    host = [torch.randint(0, 32000, (16, 2048)) for _ in range(4)]

    def produce():
        count = 0
        while True:
            if slow:
                time.sleep(0.13)
            ready.put(host[count % 4])
            count += 1

    threading.Thread(target=produce, daemon=True).start()
    model = net(S8)

    def forward():
        ids = ready.get().to(DEVICE)
        return model(ids, ids)

    return loop(model, forward)


class Remote(torch.utils.data.Dataset):
    """Every sample waits for a far-away store."""

    def __init__(self, wait):
        self.wait = wait

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        time.sleep(self.wait)
        return torch.full((2048,), i % 32000)


def remote(wait, workers):
    model = net(S8)
    loader = iter(torch.utils.data.DataLoader(Remote(wait), 16, num_workers=workers, pin_memory=True))

    def forward():
        ids = next(loader).to(DEVICE, non_blocking=True)
        return model(ids, ids)

    return loop(model, forward)


def tiny(shape, batch, seq, optimizer=None):
    return plain(dict(hidden=256, layers=6, heads=4, ffn=1024, vocab=8192), batch, seq, optimizer=optimizer)


class Guarded(Block):
    """Looks for overflow after each half of a layer."""

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = self.attend(rope(q, cos, sin), rope(k, cos, sin), v)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
        if (x.abs() > 1e4).any():
            x = x.clamp(-1e4, 1e4)
        x = x + self.mlp(self.norm2(x))
        if (x.abs() > 1e4).any():
            x = x.clamp(-1e4, 1e4)
        return x


class Unguarded(Guarded):
    def forward(self, x, cos, sin):
        x = Block.forward(self, x, cos, sin)
        (x.abs() > 1e4).any()
        return x


class Timed(Block):
    """Times each layer with the host's clock."""

    spent = 0.0

    def forward(self, x, cos, sin):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        x = super().forward(x, cos, sin)
        torch.cuda.synchronize()
        Timed.spent += time.perf_counter() - begin
        return x


def arrays(pinned):
    """Spectrograms of NumPy's, brought over as they are."""
    model = net(S8)
    host = [np.random.default_rng(i).random((16, 2048, 4096), dtype=np.float32) for i in range(2)]
    fixed = [torch.from_numpy(h).pin_memory() for h in host] if pinned else None
    down = nn.Linear(4096, 1024, bias=False).to(DEVICE, BF16)
    ids = tokens(S8, 16, 2048)
    inner, count = model.embedding.forward, [0]
    stream, ahead = torch.cuda.Stream(), [torch.from_numpy(host[0]).to(DEVICE)]

    def forward():
        count[0] += 1
        if pinned:
            torch.cuda.current_stream().wait_stream(stream)
            x = ahead[0]
            with torch.cuda.stream(stream):
                ahead[0] = fixed[count[0] % 2].to(DEVICE, non_blocking=True)
        else:
            x = torch.from_numpy(host[count[0] % 2]).cuda()
        extra = down(x.to(BF16))
        model.embedding.forward = lambda i: inner(i) + extra
        return model(ids, ids)

    return loop(model, forward)


def moments(pinned):
    """A part of the optimizer's state lives on the host between steps."""
    home = torch.rand(150_000_000, device=DEVICE).cpu()
    home = home.pin_memory() if pinned else home

    def after(loss):
        state = home.to(DEVICE, non_blocking=pinned)
        state.mul_(0.9)
        home.copy_(state, non_blocking=pinned)

    return plain(S8, 16, 2048, after=after)


class Biased(Block):
    """Distances are added to the scores."""

    def attend(self, q, k, v):
        s = q.shape[-2]
        at = torch.arange(s, device=q.device)
        bias = (at[None, :] - at[:, None]).to(q.dtype) * 0.05
        score = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5 + bias
        score = score.masked_fill(at[None, :] > at[:, None], torch.finfo(q.dtype).min)
        return torch.matmul(torch.softmax(score, -1, dtype=torch.float32).to(q.dtype), v)


class Weighed(Block):
    """PyTorch's own module, asked for the weights that nobody looks at."""

    weights = True

    def __init__(self, hidden, heads, ffn):
        super().__init__(hidden, heads, ffn)
        self.attention = nn.MultiheadAttention(hidden, heads, bias=False, batch_first=True)

    def forward(self, x, cos, sin):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=Weighed.weights)[0]
        return x + self.mlp(self.norm2(x))


def weighed(on):
    Weighed.weights = on
    return plain(S8, 8, 2048, block=Weighed)


class Single(Block):
    """The residual stream in single precision, norms and activation written out."""

    def norm(self, x, weight):
        return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(BF16)

    def forward(self, x, cos, sin):
        x = x.float()
        b, s, h = x.shape
        y = self.norm(x, self.norm1.weight)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = self.attend(rope(q.float(), cos, sin).to(BF16), rope(k.float(), cos, sin).to(BF16), v)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h)).float()
        y = self.norm(x, self.norm2.weight)
        g = self.gate(y).float()
        g = g * torch.sigmoid(1.702 * g)
        return (x + self.down((g * self.up(y).float()).to(BF16)).float()).to(BF16)


class Focal(Net):
    """A loss written out over a large vocabulary."""

    def loss_of(self, x, target):
        p = torch.log_softmax(self.head(x).float().view(-1, self.head.out_features), -1)
        picked = p.gather(1, target.reshape(-1, 1)).squeeze(1)
        weight = (1 - picked.exp()) ** 2
        spread = -(p.exp() * p).sum(-1)
        return -(weight * picked).mean() - 0.01 * spread.mean()


def tidy(on):
    model = net(S8)
    ids = tokens(S8, 8, 2048)

    def forward():
        for _ in range(2):
            (model(ids, ids) / 3).backward()
            if on:
                torch.cuda.empty_cache()
        return model(ids, ids) / 3

    return loop(model, forward)


def collecting(on):
    keep = cached_objects(30000)

    def after(loss):
        if on:
            gc.collect()
        return len(keep)

    return plain(S8, 16, 2048, after=after)


def careful_loop():
    """Clipping, a schedule, a logged loss."""
    model = net(M410)
    ids = tokens(M410, 16, 1024)
    optimizer = adamw(model)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    log = []

    def after(loss):
        schedule.step()
        log.append(loss.item())

    return loop(model, lambda: model(ids, ids), optimizer, lambda loss: nn.utils.clip_grad_norm_(model.parameters(), 1.0), after)


def cases():
    usual = lambda: plain(S8, 16, 2048)
    odd, even = dict(S8, hidden=1000, heads=10, ffn=2667), dict(S8, hidden=1024, heads=16, ffn=2688)
    yield "queue_thread", "data-starved", lambda: queued(True), lambda: queued(False), {}
    yield "remote_store", "data-starved", lambda: remote(0.012, 1), usual, {}
    yield "tiny_model", "launch-bound", lambda: tiny(None, 4, 128), lambda: graphed(tiny, None, 4, 128), {}
    yield "overflow_check", "host-sync", lambda: plain(S8, 8, 2048, block=Guarded), lambda: plain(S8, 8, 2048, block=Unguarded), {}
    yield "layer_timers", "host-sync", lambda: plain(S8, 16, 2048, block=Timed), usual, {}
    yield "spectrograms", "pageable-copies", lambda: arrays(False), lambda: arrays(True), {}
    yield "moments_home", "pageable-copies", lambda: moments(False), lambda: moments(True), {}
    yield "fp32_shapes", "no-tensor-cores", lambda: plain(S8, 8, 2048, dtype=torch.float32), lambda: plain(S8, 8, 2048), SHAPES
    yield "distances", "unfused-attention", lambda: plain(S8, 8, 2048, block=Biased), lambda: plain(S8, 8, 2048), {}
    yield "weights_asked", "unfused-attention", lambda: weighed(True), lambda: weighed(False), {}
    yield "single_stream", "memory-bound", lambda: plain(S8, 16, 2048, block=Single), lambda: plain(S8, 16, 2048, block=Single, compiled=True), {}
    yield "focal_loss", "memory-bound", lambda: plain(dict(S8, layers=4, vocab=65536), 8, 2048, kind=Focal), lambda: plain(dict(S8, layers=4, vocab=65536), 8, 2048, kind=Focal, compiled=True), {}
    yield "vocab_32001", "misaligned-shapes", lambda: plain(dict(S8, vocab=32001), 16, 2048), lambda: plain(dict(S8, vocab=32064), 16, 2048), {}
    yield "hidden_1000", "misaligned-shapes", lambda: plain(odd, 16, 2048), lambda: plain(even, 16, 2048), {}
    yield "tidy_micro", "allocator", lambda: tidy(True), lambda: tidy(False), {}
    yield "collect_little", "garbage-collection", lambda: collecting(True), lambda: collecting(False), {}
    yield "good_eight", "healthy", usual, None, STACK
    yield "good_loop", "healthy", careful_loop, lambda: plain(M410, 16, 1024), {}
    yield "good_half_compiled", "healthy", lambda: plain(S8, 16, 2048, compiled=True), None, SHAPES
    yield "eager_160m", "memory-bound", lambda: plain(M160, 32, 1024), lambda: plain(M160, 32, 1024, compiled=True), {}


if __name__ == "__main__":
    harness.run("again", cases(), steps=6, rounds=3)
