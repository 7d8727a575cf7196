"""A fifth set: slow habits of people who train language models of 160M to 1.3B parameters, each with its twin.

Every cause that one GPU can show, written another way than in the sets before it; recorded as people record (with
and without stacks, shapes and memory). Labelled, and judged once with the rules as they were, before any was changed.
The last entry of a case is what the profiler is told to record."""
import gc
import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import harness

DEVICE, BF16 = "cuda", torch.bfloat16
M160 = dict(hidden=768, layers=12, heads=12, ffn=2048, vocab=32000)
M410 = dict(hidden=1024, layers=24, heads=16, ffn=2816, vocab=32000)
M1300 = dict(hidden=2048, layers=24, heads=16, ffn=5504, vocab=32000)
STACK, SHAPES = dict(with_stack=True), dict(record_shapes=True)
ALL = dict(with_stack=True, record_shapes=True, profile_memory=True)


def rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Norm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight)


class Block(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = Norm(hidden), Norm(hidden)
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def mlp(self, y):
        return self.down(F.silu(self.gate(y)) * self.up(y))

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = self.attend(rope(q, cos, sin), rope(k, cos, sin), v)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
        return x + self.mlp(self.norm2(x))


class Net(nn.Module):
    def __init__(self, hidden, layers, heads, ffn, vocab, block=Block):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(block(hidden, heads, ffn) for _ in range(layers))
        self.norm, self.head = Norm(hidden), nn.Linear(hidden, vocab, bias=False)
        self.half = hidden // heads // 2
        self.around = None  # wraps each block

    def features(self, ids):
        at = torch.arange(ids.shape[1], device=ids.device, dtype=torch.float32)
        rate = 10000.0 ** (-torch.arange(0, self.half, device=ids.device, dtype=torch.float32) / self.half)
        angle = torch.outer(at, rate)
        x = self.embedding(ids)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for block in self.blocks:
            x = self.around(block, x, cos, sin) if self.around else block(x, cos, sin)
        return self.norm(x)

    def loss_of(self, x, target):
        logits = self.head(x)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), target.reshape(-1))

    def forward(self, ids, target):
        return self.loss_of(self.features(ids), target)


def net(shape, dtype=BF16, kind=Net, **kw):
    return kind(**shape, **kw).to(DEVICE, dtype)


def adamw(model, **kw):
    kw.setdefault("fused", True)
    return torch.optim.AdamW(model.parameters(), lr=1e-5, **kw)


def tokens(shape, batch, seq):
    return torch.randint(0, shape["vocab"], (batch, seq), device=DEVICE)


def loop(model, forward, optimizer=None, between=None, after=None):
    optimizer = optimizer or adamw(model)

    def step():
        loss = forward()
        loss.backward()
        if between:
            between(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if after:
            after(loss)

    return step


def plain(shape, batch, seq, dtype=BF16, compiled=False, amp=False, kind=Net, optimizer=None, between=None, after=None, **kw):
    model = net(shape, dtype, kind, **kw)
    run = torch.compile(model) if compiled else model
    ids = tokens(shape, batch, seq)

    def forward():
        with torch.autocast("cuda", dtype=BF16, enabled=amp):
            return run(ids, ids)

    return loop(model, forward, optimizer(model) if optimizer else None, between, after)


def graphed(make, shape, batch, seq, **kw):
    """The whole step captured."""
    step = make(shape, batch, seq, optimizer=lambda m: adamw(m, capturable=True), **kw)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


# Input.

class Texts(torch.utils.data.Dataset):
    """Documents of uneven length as lists of Python integers."""

    def __init__(self, seq):
        self.seq = seq

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        return [(i * 7919 + j * 104729) % 32000 for j in range(self.seq // 2 + i % (self.seq // 2))]


def collate_by_hand(seq, rounds):
    def collate(texts):
        for _ in range(rounds):
            rows = []
            for t in texts:
                row = [0] * seq
                for j, token in enumerate(t):
                    row[j] = token
                rows.append(row)
        return torch.tensor(rows)

    return collate


def fed(shape, seq, feed, **kw):
    model = net(shape, **kw)

    def forward():
        ids = next(feed)
        return model(ids, ids)

    return loop(model, forward)


def endless(loader, blocking):
    while True:
        for batch in loader:
            yield batch.to(DEVICE, non_blocking=not blocking)


def collate_feed(seq, batch, rounds, workers, pinned, ahead=2):
    loader = torch.utils.data.DataLoader(Texts(seq), batch, num_workers=workers, collate_fn=collate_by_hand(seq, rounds),
                                         pin_memory=pinned, prefetch_factor=ahead if workers else None)
    return endless(loader, not pinned)


def json_feed(batch, seq):
    """Lines of JSON, parsed in the training loop."""
    path = "/tmp/habits.jsonl"
    with open(path, "w") as out:
        for i in range(64):
            record = {"id": i, "tokens": [(i * 31 + j) % 32000 for j in range(seq)], "meta": [{"w": "x" * 20, "k": j} for j in range(12000)]}
            out.write(json.dumps(record) + "\n")
    while True:
        with open(path) as lines:
            rows = []
            for line in lines:
                rows.append(json.loads(line)["tokens"])
                if len(rows) == batch:
                    yield torch.tensor(rows).to(DEVICE)
                    rows = []


def noisy_feed(batch, seq, ready):
    """Masks words on the host with PyTorch's own operators."""
    base = torch.randint(0, 32000, (batch, seq))

    def make():
        ids = base.clone()
        for _ in range(8):
            noise = torch.rand(batch * 64, seq)
            picked = noise.sort(dim=-1).values[:batch, seq // 8].unsqueeze(-1) > noise[:batch]
            ids = torch.where(picked, torch.randint(0, 32000, (batch, seq)), ids)
        return ids

    kept = make().to(DEVICE)
    while True:
        yield kept if ready else make().to(DEVICE)


# Launching.

def one_by_one(shape, batch, seq, optimizer=None):
    """Every sample by itself, because their lengths once differed."""
    model = net(shape)
    ids = tokens(shape, batch, seq)
    return loop(model, lambda: sum(model(ids[i:i + 1], ids[i:i + 1]) for i in range(batch)) / batch,
                optimizer(model) if optimizer else None)


def amp_plain(shape, batch, seq, optimizer=None):
    return plain(shape, batch, seq, dtype=torch.float32, amp=True, optimizer=optimizer)


# Waiting for the device.

class Watched(Block):
    def forward(self, x, cos, sin):
        x = super().forward(x, cos, sin)
        self.seen = x.abs().mean().item()
        return x


class Chosen(Block):
    """Only some tokens go through the feed-forward part, picked by a boolean mask."""

    fixed = None

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = self.attend(rope(q, cos, sin), rope(k, cos, sin), v)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, h))
        flat = x.reshape(-1, h)
        if Chosen.fixed is None:
            keep = flat[:, 0] > -1e9
            picked = flat[keep]
            return x + torch.zeros_like(flat).masked_scatter(keep.unsqueeze(-1), self.mlp(self.norm2(picked))).view_as(x)
        picked = flat.index_select(0, Chosen.fixed)
        return x + torch.zeros_like(flat).index_copy(0, Chosen.fixed, self.mlp(self.norm2(picked))).view_as(x)


def chosen(fixed, batch, seq):
    Chosen.fixed = torch.arange(batch * seq, device=DEVICE) if fixed else None
    return plain(M160, batch, seq, block=Chosen)


def microbatches(read, count, batch, seq, shape=M410):
    model = net(shape)
    ids = tokens(shape, batch, seq)
    sink = open(os.devnull, "w")

    def forward():
        for i in range(count - 1):
            loss = model(ids, ids) / count
            loss.backward()
            if read:
                print(f"micro {i}: {loss}", file=sink)
        return model(ids, ids) / count

    return loop(model, forward)


def gradient_report(read):
    def report(model):
        norms = {name: p.grad.float().norm() for name, p in model.named_parameters()}
        return {name: n.cpu() for name, n in norms.items()} if read else torch.stack(list(norms.values()))

    model = net(M410)
    ids = tokens(M410, 8, 2048)
    return loop(model, lambda: model(ids, ids), between=lambda loss: report(model))


# Copies.

def embedded(pinned):
    """Inputs are features of another model, kept on the host."""
    model = net(M410)
    host = [torch.rand(8, 2048, 16384, device=DEVICE, dtype=BF16).cpu() for _ in range(2)]
    host = [h.pin_memory() for h in host] if pinned else host
    project = nn.Linear(16384, 1024, bias=False).to(DEVICE, BF16)
    ids = tokens(M410, 8, 2048)
    stream, ahead, count = torch.cuda.Stream(), [host[0].to(DEVICE)], [0]
    inner = model.embedding.forward

    def forward():
        count[0] += 1
        if pinned:
            torch.cuda.current_stream().wait_stream(stream)
            x = ahead[0]
            with torch.cuda.stream(stream):
                ahead[0] = host[count[0] % 2].to(DEVICE, non_blocking=True)
        else:
            x = host[count[0] % 2].to(DEVICE)
        extra = project(x)
        model.embedding.forward = lambda i: inner(i) + extra
        return model(ids, ids)

    return loop(model, forward)


def logits_home(pinned):
    """Logits are brought to the host for a metric that is computed later."""
    class Homing(Net):
        kept = None

        def loss_of(self, x, target):
            logits = self.head(x)
            if pinned:
                if Homing.kept is None:
                    Homing.kept = torch.empty(logits.shape, dtype=logits.dtype, pin_memory=True)
                Homing.kept.copy_(logits.detach(), non_blocking=True)
            else:
                Homing.kept = logits.detach().cpu()
            return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), target.reshape(-1))

    return plain(M410, 8, 2048, kind=Homing)


def swapped(pinned):
    """Layers' inputs wait on the host for the backward pass."""
    def pack(x):
        if x.numel() < 1 << 21 or x.dtype != BF16:
            return x
        home = torch.empty(x.shape, dtype=x.dtype, pin_memory=pinned)
        home.copy_(x, non_blocking=pinned)
        return home

    def unpack(x):
        return x.to(DEVICE, non_blocking=pinned)

    model = net(M160)
    ids = tokens(M160, 4, 1024)

    def around(block, *args):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return block(*args)

    model.around = around
    return loop(model, lambda: model(ids, ids))


# Arithmetic.

class DoubleHead(Net):
    """A constant of NumPy's has made the logits double."""

    def loss_of(self, x, target):
        logits = x.double() @ self.head.weight.double().t()
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), target.reshape(-1))


class Careful(Block):
    """The feed-forward part is kept out of autocast "for stability"."""

    def mlp(self, y):
        with torch.autocast("cuda", enabled=False):
            return super().mlp(y.float())


# Attention.

class ByHand(Block):
    """A softmax written out."""

    def attend(self, q, k, v):
        score = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        hide = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        score = score.masked_fill(hide, -1e4).float()
        e = torch.exp(score - score.amax(-1, keepdim=True))
        return (e / e.sum(-1, keepdim=True)).to(v.dtype) @ v


class Einsum(Block):
    def attend(self, q, k, v):
        score = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        s = q.shape[-2]
        score = score + torch.full((s, s), float("-inf"), device=q.device, dtype=q.dtype).triu(1)
        p = F.dropout(F.softmax(score, dim=-1), 0.1)
        return torch.einsum("bhij,bhjd->bhid", p, v)


class Dropped(Block):
    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)


def backend(which, batch, seq):
    inner = plain(M410, batch, seq)

    def step():
        with sdpa_kernel(which):
            inner()

    return step


# Passes over memory.

class Passes(Block):
    """Layer norm, activation and dropout written out."""

    def written(self, x, weight):
        y = x.float()
        m = y.mean(-1, keepdim=True)
        y = (y - m) / torch.sqrt(((y - m) ** 2).mean(-1, keepdim=True) + 1e-5)
        return (y * weight).to(x.dtype)

    def mlp(self, y):
        g = self.gate(y)
        g = 0.5 * g * (1.0 + torch.tanh(0.7978845608 * (g + 0.044715 * torch.pow(g, 3))))
        return F.dropout(self.down(F.dropout(g * self.up(y), 0.1)), 0.1)

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        y = self.written(x, self.norm1.weight)
        q, k, v = (f(y).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = self.attend(rope(q, cos, sin), rope(k, cos, sin), v)
        x = x + F.dropout(self.o(a.transpose(1, 2).reshape(b, s, h)), 0.1)
        return x + self.mlp(self.written(x, self.norm2.weight))


class WideLoss(Net):
    """A large vocabulary, its loss in single precision with a z-loss."""

    def loss_of(self, x, target):
        logits = self.head(x).float()
        logits = logits.view(-1, logits.shape[-1])
        logits = 30.0 * torch.tanh(logits / 30.0)
        z = torch.logsumexp(logits, -1)
        return F.cross_entropy(logits, target.reshape(-1)) + 1e-4 * (z ** 2).mean()


# Memory.

def uneven_lengths(tight):
    """Texts of any length in a memory with little to spare."""
    shape = M410
    torch.cuda.set_per_process_memory_fraction(1.0)
    model = net(shape)
    lengths = [1024, 1984, 1408, 1856, 1216, 1600, 832, 2048, 1152, 1728]
    texts = [tokens(shape, 4, n) for n in lengths]
    optimizer = adamw(model)
    count = [0]

    def forward():
        count[0] += 1
        ids = texts[count[0] % len(texts)]
        return model(ids, ids)

    step = loop(model, forward, optimizer)
    if not tight:
        return step
    for n in range(3):  # what the longest alone needs
        count[0] = 6
        step()
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(peak * 1.06 / torch.cuda.get_device_properties(0).total_memory)
    return step


def evaluating(tidy):
    """Clears the cache before each evaluation pass, which comes with each step here."""
    model = net(M410)
    ids = tokens(M410, 8, 2048)

    def after(loss):
        if tidy:
            torch.cuda.empty_cache()

    return loop(model, lambda: model(ids, ids), after=after)


# The interpreter.

def cached_objects(count):
    return [{"id": i, "parts": [i, (i, str(i))]} for i in range(count)]


def collecting(each):
    keep = cached_objects(150000)

    def after(loss):
        if each:
            gc.collect()
        return len(keep)

    return plain(M410, 8, 2048, after=after)


def collecting_between(each):
    keep = cached_objects(100000)

    def between(loss):
        if each:
            gc.collect()
        return len(keep)

    return plain(M410, 8, 2048, between=between)


# Nothing wrong.

def recomputed():
    model = net(M410)
    model.around = lambda block, *args: checkpoint(block, *args, use_reentrant=False)
    ids = tokens(M410, 16, 2048)
    return loop(model, lambda: model(ids, ids))


def cases():
    big, wide = dict(M410, vocab=50257), dict(M160, vocab=131072)
    fp32 = torch.float32
    usual = lambda: plain(M410, 8, 2048)
    yield "slow_collate", "data-starved", lambda: fed(M410, 2048, collate_feed(2048, 8, 1000, 3, True)), usual, {}
    yield "one_worker", "data-starved", lambda: fed(M410, 2048, collate_feed(2048, 8, 400, 1, False, 1)), usual, STACK
    yield "json_lines", "data-starved", lambda: fed(M410, 2048, json_feed(8, 2048)), usual, {}
    yield "host_noise", "data-starved", lambda: fed(M410, 2048, noisy_feed(8, 2048, False)), lambda: fed(M410, 2048, noisy_feed(8, 2048, True)), {}
    yield "each_parameter", "launch-bound", lambda: plain(M410, 8, 1024, optimizer=lambda m: adamw(m, fused=False, foreach=False)), lambda: plain(M410, 8, 1024), {}
    yield "one_by_one", "launch-bound", lambda: one_by_one(M160, 8, 256), lambda: graphed(one_by_one, M160, 8, 256), {}
    yield "amp_small", "launch-bound", lambda: amp_plain(M160, 2, 512), lambda: graphed(amp_plain, M160, 2, 512), ALL
    yield "item_layers", "host-sync", lambda: plain(M410, 8, 2048, block=Watched), usual, {}
    yield "mask_index", "host-sync", lambda: chosen(False, 16, 2048), lambda: chosen(True, 16, 2048), {}
    yield "print_loss", "host-sync", lambda: microbatches(True, 4, 4, 2048), lambda: microbatches(False, 4, 4, 2048), {}
    yield "cpu_norms", "host-sync", lambda: gradient_report(True), lambda: gradient_report(False), SHAPES
    yield "features_in", "pageable-copies", lambda: embedded(False), lambda: embedded(True), {}
    yield "logits_home", "pageable-copies", lambda: logits_home(False), lambda: logits_home(True), {}
    yield "swapped", "pageable-copies", lambda: swapped(False), lambda: swapped(True), {}
    yield "all_fp32", "no-tensor-cores", lambda: plain(M410, 4, 2048, dtype=fp32), lambda: plain(M410, 4, 2048), {}
    yield "double_head", "no-tensor-cores", lambda: plain(M410, 8, 2048, kind=DoubleHead), usual, {}
    yield "careful_mlp", "no-tensor-cores", lambda: plain(M410, 4, 2048, fp32, amp=True, block=Careful), lambda: plain(M410, 4, 2048, fp32, amp=True), SHAPES
    yield "math_backend", "unfused-attention", lambda: backend(SDPBackend.MATH, 4, 2048), lambda: plain(M410, 4, 2048), {}
    yield "own_softmax", "unfused-attention", lambda: plain(M410, 4, 2048, block=ByHand), lambda: plain(M410, 4, 2048), {}
    yield "einsum_dropout", "unfused-attention", lambda: plain(M410, 4, 2048, block=Einsum), lambda: plain(M410, 4, 2048, block=Dropped), SHAPES
    yield "passes", "memory-bound", lambda: plain(M410, 8, 1024, block=Passes), lambda: plain(M410, 8, 1024, block=Passes, compiled=True), {}
    yield "wide_loss", "memory-bound", lambda: plain(wide, 8, 1024, kind=WideLoss), lambda: plain(wide, 8, 1024, kind=WideLoss, compiled=True), {}
    yield "vocab_50257", "misaligned-shapes", lambda: plain(big, 8, 2048), lambda: plain(dict(big, vocab=50304), 8, 2048), {}
    yield "ffn_2731", "misaligned-shapes", lambda: plain(dict(M410, ffn=2731), 8, 2048), lambda: plain(dict(M410, ffn=2752), 8, 2048), {}
    yield "head_60", "misaligned-shapes", lambda: plain(dict(M410, hidden=960), 8, 2048), lambda: plain(dict(M410, hidden=960, heads=15), 8, 2048), SHAPES
    yield "before_evaluation", "allocator", lambda: evaluating(True), lambda: evaluating(False), {}
    yield "uneven_lengths", "allocator", lambda: uneven_lengths(True), lambda: uneven_lengths(False), {}
    yield "collect_stack", "garbage-collection", lambda: collecting(True), lambda: collecting(False), STACK
    yield "collect_between", "garbage-collection", lambda: collecting_between(True), lambda: collecting_between(False), {}
    yield "good_compiled", "healthy", lambda: plain(M410, 8, 2048, compiled=True), None, {}
    yield "good_graph", "healthy", lambda: graphed(plain, M410, 4, 2048), None, {}
    yield "good_1300m", "healthy", lambda: plain(M1300, 4, 2048, after=lambda loss: loss.item()), lambda: plain(M1300, 4, 2048), {}
    yield "good_stack", "healthy", lambda: plain(M1300, 8, 2048), None, ALL
    yield "good_recompute", "healthy", recomputed, None, {}
    yield "good_loader", "healthy", lambda: fed(M410, 2048, collate_feed(2048, 8, 1, 8, True)), usual, {}


if __name__ == "__main__":
    harness.run("habits", cases(), steps=6, rounds=3)
