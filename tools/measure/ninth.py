"""A ninth set: defects in forms that no earlier set has, in models of torchvision and transformers.

Labels are by measurement: two of the cases that were meant otherwise showed nothing of it (micro_items, near_limit).

Each case is followed, in the same process, by the same step without the cause. $OUT takes ninth.jsonl (a row each:
seconds without the profiler and, for the twin, with it), part_N.tar (NAME.json.gz) and twins.tar."""
import json
import os
import subprocess
import sys
import tarfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

import harness

DEVICE, BF16, LAST = "cuda", torch.bfloat16, torch.channels_last


def amp(on=True):
    return torch.autocast("cuda", dtype=BF16, enabled=on)


def on_device(build, *args, **kw):
    with torch.device(DEVICE):
        return build(*args, **kw).train()


def adamw(net, **kw):
    return torch.optim.AdamW(net.parameters(), lr=1e-5, **(kw or dict(fused=True)))


def loop(net, forward, optimizer=None, after=None):
    optimizer = optimizer or adamw(net)

    def step():
        loss = forward()
        loss.backward()
        if after:
            after(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def captured(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.step = step  # what it has captured must live
    return lambda: graph.replay()


def gpt2(layers=6, dim=768, vocab=50304, dtype=BF16):
    import transformers as hf
    config = hf.GPT2Config(n_embd=dim, n_layer=layers, n_head=dim // 64, vocab_size=vocab, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    return hf.GPT2LMHeadModel(config).to(DEVICE, dtype).train()


def pictures(count, size=224, device=DEVICE):
    return torch.randn(count, 3, size, size, device=device), torch.randint(0, 1000, (count,), device=device)


# host-sync

def anomaly(on):
    """torch.autograd.set_detect_anomaly(True) left on after a hunt for NaN: every gradient is looked at."""
    net = gpt2()
    ids = torch.randint(0, 50000, (24, 1024), device=DEVICE)

    def forward():
        torch.autograd.set_detect_anomaly(on)
        return net(input_ids=ids, labels=ids).loss

    return loop(net, forward)


def watched(on):
    """A histogram of every gradient at each step, as experiment trackers do when asked to watch a model."""
    from torchvision.models import vit_b_16
    net = on_device(vit_b_16)
    x, y = pictures(128)
    seen = {}

    def forward():
        with amp():
            return F.cross_entropy(net(x), y)

    def after(loss):
        for name, p in net.named_parameters() if on else ():
            low, high = p.grad.min().item(), p.grad.max().item()
            seen[name] = torch.histc(p.grad, 64, low, high + 1e-12).cpu().tolist()

    return loop(net, forward, after=after)


def micro_items(read):
    """Eight micro-batches of a compiled model; the loss of each is added up on the host."""
    net = Mixer(512, 8, 196, 256)
    for block in net.blocks:
        block.compile()
    x, y = pictures(32)
    optimizer = adamw(net)

    def step():
        total = 0.0
        for _ in range(8):
            with amp():
                loss = F.cross_entropy(net(x), y) / 8
            loss.backward()
            total += loss.item() if read else loss.detach()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


# data-starved

class Texts(Dataset):
    """Lines of text; the worker makes tokens of them, by greedy search for the longest piece."""

    def __init__(self, ready):
        random = np.random.default_rng(2)
        words = ["".join(chr(97 + c) for c in random.integers(0, 26, random.integers(2, 9))) for _ in range(9000)]
        self.pieces = {w: i + 300 for i, w in enumerate(words[:6000])}
        self.pieces.update({chr(97 + c): c for c in range(26)})
        self.lines = [" ".join(words[i] for i in random.integers(0, 9000, 420)) for _ in range(64)]
        self.done = [self.tokens(line) for line in self.lines] if ready else None

    def tokens(self, line):
        out = []
        for word in line.split():
            at = 0
            while at < len(word):
                end = len(word)
                while end > at + 1 and word[at:end] not in self.pieces:
                    end -= 1
                out.append(self.pieces[word[at:end]])
                at = end
        return torch.tensor((out + [0] * 1024)[:1024])

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        if self.done:
            return self.done[i % 64]
        return [self.tokens(line) for line in self.lines[i % 60:i % 60 + 4]][0]  # one of four is kept


def one_worker(ready):
    net = gpt2(8)
    batches = iter(DataLoader(Texts(ready), 48, num_workers=1, pin_memory=True, persistent_workers=True))

    def forward():
        ids = next(batches).to(DEVICE, non_blocking=True)
        return net(input_ids=ids, labels=ids).loss

    return loop(net, forward)


class Augmented(Dataset):
    """Crop, flip, colours, noise and a hole, in numpy."""

    def __init__(self, ready):
        self.bank = np.random.default_rng(0).integers(0, 256, (48, 256, 256, 3), dtype=np.uint8)
        self.random, self.ready = np.random.default_rng(1), torch.randn(48, 3, 224, 224) if ready else None

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        if self.ready is not None:
            return self.ready[i % 48], i % 1000
        y, x = self.random.integers(0, 32, 2)
        a = self.bank[i % 48][y:y + 224, x:x + 224].astype(np.float32) / 255.0
        a = (a[:, ::-1] if i % 2 else a) * self.random.uniform(0.8, 1.2, 3).astype(np.float32)
        a = a + self.random.normal(0, 0.02, a.shape).astype(np.float32)
        a[y:y + 40, x:x + 40] = 0
        a = (np.clip(a, 0, 1) - np.float32(0.45)) / np.float32(0.22)
        return torch.from_numpy(np.ascontiguousarray(a.transpose(2, 0, 1))), i % 1000


def two_workers(ready):
    from torchvision.models import efficientnet_b0
    torch.backends.cudnn.benchmark = True
    net = on_device(efficientnet_b0).to(memory_format=LAST)
    batches = iter(DataLoader(Augmented(ready), 192, num_workers=8 if ready else 4, pin_memory=True, persistent_workers=True))

    def forward():
        x, y = next(batches)
        x, y = x.to(DEVICE, non_blocking=True, memory_format=LAST), y.to(DEVICE, non_blocking=True)
        with amp():
            return F.cross_entropy(net(x), y)

    return loop(net, forward)


# pageable-copies

def clips(pinned):
    """Clips of video, .to(device) from ordinary memory; non_blocking is asked for and cannot be had."""
    from torchvision.models.video import r3d_18
    torch.backends.cudnn.benchmark = True
    net = on_device(r3d_18)
    host = [torch.randn(64, 3, 16, 112, 112) for _ in range(2)]
    host = [h.pin_memory() for h in host] if pinned else host
    y = torch.randint(0, 400, (64,), device=DEVICE)
    count = [0]

    def forward():
        count[0] += 1
        x = host[count[0] % 2].to(DEVICE, non_blocking=True)
        with amp():
            return F.cross_entropy(net(x), y)

    return loop(net, forward)


# no-tensor-cores

def convnext(mode):
    """PyTorch's defaults: convolutions may use TF32, matmuls may not, and this network is made of matmuls."""
    from torchvision.models import convnext_tiny
    torch.set_float32_matmul_precision("high" if mode == "tf32" else "highest")
    net = on_device(convnext_tiny)
    x, y = pictures(96)

    def forward():
        with amp(mode == "bf16"):
            return F.cross_entropy(net(x), y)

    return loop(net, forward)


def t5(mode):
    """T5 in fp32, since it overflowed in fp16 once."""
    import transformers as hf
    torch.set_float32_matmul_precision("high" if mode == "tf32" else "highest")
    config = hf.T5Config(d_model=768, d_ff=2048, num_layers=6, num_heads=12, vocab_size=32128, feed_forward_proj="gated-gelu", dropout_rate=0.0, decoder_start_token_id=0)
    net = hf.T5ForConditionalGeneration(config).to(DEVICE).train()
    ids, labels = torch.randint(0, 32000, (24, 512), device=DEVICE), torch.randint(0, 32000, (24, 128), device=DEVICE)

    def forward():
        with amp(mode == "bf16"):
            return net(input_ids=ids, labels=labels, use_cache=False).loss

    return loop(net, forward)


# unfused-attention

class FrameBlock(nn.Module):
    """Attention within each frame. Queries of five dimensions keep SDPA from its fused kernels."""

    def __init__(self, dim, heads, flat):
        super().__init__()
        self.heads, self.flat = heads, flat
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, f, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, f, n, 3, self.heads, c // self.heads).permute(3, 0, 1, 4, 2, 5)
        if self.flat:
            q, k, v = (t.flatten(0, 1) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v).reshape(b, f, self.heads, n, -1)
        x = x + self.out(y.transpose(2, 3).reshape(b, f, n, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def frames(flat):
    net = on_device(lambda: nn.Sequential(*[FrameBlock(768, 12, flat) for _ in range(6)], nn.LayerNorm(768), nn.Linear(768, 400))).to(BF16)
    x, y = torch.randn(6, 8, 576, 768, device=DEVICE, dtype=BF16), torch.randint(0, 400, (6,), device=DEVICE)
    return loop(net, lambda: F.cross_entropy(net(x).mean((1, 2)), y))


# misaligned-shapes

class MixerBlock(nn.Module):
    def __init__(self, dim, tokens, hidden):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(tokens, hidden), nn.GELU(), nn.Linear(hidden, tokens))
        self.channels = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    """MLP-Mixer of pictures of 224 in patches of 16; more than 196 tokens: the others are learned."""

    def __init__(self, dim, depth, tokens, hidden):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 16, 16, device=DEVICE)
        self.more = nn.Parameter(torch.zeros(1, tokens - 196, dim, device=DEVICE))
        self.blocks = on_device(lambda: nn.ModuleList(MixerBlock(dim, tokens, hidden) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim, device=DEVICE), nn.Linear(dim, 1000, device=DEVICE)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.more.expand(len(x), -1, -1), x), 1) if self.more.shape[1] else x
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.mean(1)))


def mixer(tokens):
    """A class token makes 197 of 196, and the mixing of tokens multiplies by matrices of 197."""
    net = Mixer(768, 12, tokens, 384).to(BF16)
    x, y = pictures(160)
    x = x.to(BF16)
    return loop(net, lambda: F.cross_entropy(net(x), y))


# launch-bound

def many_tensors(fused):
    from torchvision.models import efficientnet_b3
    torch.backends.cudnn.benchmark = True
    net = on_device(efficientnet_b3).to(memory_format=LAST)
    x, y = pictures(96, 300)
    x = x.to(memory_format=LAST)

    def forward():
        with amp():
            return F.cross_entropy(net(x), y)

    return loop(net, forward, adamw(net, fused=True) if fused else adamw(net, foreach=False, fused=False))


def mobile(capture):
    from torchvision.models import mobilenet_v3_small
    net = on_device(mobilenet_v3_small).to(memory_format=LAST)
    x, y = pictures(64)
    x = x.to(memory_format=LAST)

    def forward():
        with amp():
            return F.cross_entropy(net(x), y)

    step = loop(net, forward, torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=True))
    return captured(step) if capture else step


# allocator

def near_limit(tight):
    """Lengths change and the card is nearly full: what is cached must be given back before more can be had."""
    net = gpt2(6)
    lengths = (384, 1024, 640, 896, 512, 768)
    count = [0]

    def forward():
        count[0] += 1
        ids = torch.randint(0, 50000, (24, lengths[count[0] % 6]), device=DEVICE)
        return net(input_ids=ids, labels=ids).loss

    step = loop(net, forward)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(6):
        step()
    total, peak = torch.cuda.get_device_properties(0).total_memory, torch.cuda.max_memory_allocated()
    for room in (1.05, 1.1, 1.2, 1.4) if tight else ():
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(peak * room / total)
        try:
            for _ in range(12):
                step()
            print("room", room, torch.cuda.memory_stats()["num_alloc_retries"], flush=True)
            break
        except torch.OutOfMemoryError:
            pass
    return step


# memory-bound

def planes(last):
    """Convolutions in bf16 on tensors of planes: the library turns each to its own layout and back."""
    from torchvision.models import resnet101
    torch.backends.cudnn.benchmark = True
    net, (x, y) = on_device(resnet101), pictures(128)
    if last:
        net, x = net.to(memory_format=LAST), x.to(memory_format=LAST)

    def forward():
        with amp():
            return F.cross_entropy(net(x), y)

    return loop(net, forward, torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True))


def distilled(student, teacher, target):
    a, b = F.log_softmax(student.float() / 2, -1), F.softmax(teacher.float() / 2, -1)
    return 0.5 * F.cross_entropy(student.float(), target) + 2 * F.kl_div(a, b, reduction="batchmean")


def teacher(compiled):
    """A student follows a teacher's logits in fp32, pass by pass."""
    net = gpt2(4)
    for block in net.transformer.h:
        block.compile()
    ids = torch.randint(0, 50000, (12, 1024), device=DEVICE)
    wanted = torch.randn(12 * 1024, 50304, device=DEVICE, dtype=BF16)
    loss = torch.compile(distilled) if compiled else distilled
    return loop(net, lambda: loss(net(input_ids=ids).logits.flatten(0, 1), wanted, ids.flatten()))


# healthy

def whole_graph():
    net = Mixer(1024, 12, 196, 512).to(BF16)
    x, y = pictures(160)
    x, run = x.to(BF16), torch.compile(net)
    return captured(loop(net, lambda: F.cross_entropy(run(x), y), adamw(net, capturable=True, fused=True)))


def wide():
    net = on_device(lambda: nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(12288, 12288, bias=False), nn.ReLU())])).to(BF16)
    x = torch.randn(16384, 12288, device=DEVICE, dtype=BF16)
    return loop(net, lambda: net(x).float().pow(2).mean(), torch.optim.SGD(net.parameters(), lr=1e-6, fused=True))


def hub_llama():
    import transformers as hf
    config = hf.LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=8, vocab_size=32000, use_cache=False)
    net = hf.LlamaForCausalLM(config).to(DEVICE).train()
    for layer in net.model.layers:
        layer.compile()
    ids = torch.randint(0, 32000, (8, 2048), device=DEVICE)
    log = []

    def forward():
        with amp():
            return net(input_ids=ids, labels=ids).loss

    return loop(net, forward, after=lambda loss: (nn.utils.clip_grad_norm_(net.parameters(), 1.0), log.append(loss.item())))


def segments():
    from torchvision.models.segmentation import fcn_resnet50
    torch.backends.cudnn.benchmark = True
    net = on_device(lambda: fcn_resnet50(num_classes=24)).to(memory_format=LAST)
    run = torch.compile(net)
    x, y = torch.randn(24, 3, 512, 512, device=DEVICE).to(memory_format=LAST), torch.randint(0, 24, (24, 512, 512), device=DEVICE)

    def forward():
        with amp():
            return F.cross_entropy(run(x)["out"], y)

    return loop(net, forward, torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True))


def cases():
    """name, label, sick, twin, other counterparts, what the profiler records, what was done."""
    pair = lambda f, sick=True, twin=False: (lambda: f(sick), lambda: f(twin))
    shapes, stack = dict(record_shapes=True), dict(with_stack=True)
    yield "anomaly", "host-sync", *pair(anomaly), {}, {}, "set_detect_anomaly(True) left on"
    yield "watched", "host-sync", *pair(watched), {}, dict(active=2), "min, max and histogram of each gradient read each step"
    yield "micro_items", "launch-bound", *pair(micro_items), {}, dict(active=2), "8 small micro-batches, compiled; reading each loss costs next to nothing"
    yield "one_worker", "data-starved", *pair(one_worker, False, True), {}, dict(warm=6), "one loader worker makes tokens; twin: made before"
    yield "two_workers", "data-starved", *pair(two_workers, False, True), {}, dict(warm=16, active=4), "four workers augment in numpy; twin: ready pictures"
    yield "clips", "pageable-copies", *pair(clips, False, True), {}, {}, "154 MB of video from pageable memory; twin: pinned"
    tf32 = lambda f: {"tf32_s": lambda: f("tf32")}
    yield "convnext", "no-tensor-cores", *pair(convnext, "fp32", "bf16"), tf32(convnext), shapes, "fp32 with PyTorch's defaults; twin: autocast bf16"
    yield "t5", "no-tensor-cores", *pair(t5, "fp32", "bf16"), tf32(t5), {}, "T5 in fp32; twin: autocast bf16"
    yield "frames", "unfused-attention", *pair(frames, False, True), {}, {}, "SDPA on five dimensions takes the math path; twin: four"
    yield "mixer", "misaligned-shapes", *pair(mixer, 197, 200), {}, {}, "197 tokens mixed; twin: 200"
    yield "many_tensors", "launch-bound", *pair(many_tensors, False, True), {}, dict(active=2), "AdamW(foreach=False) over 340 tensors; twin: fused"
    yield "mobile", "launch-bound", *pair(mobile, False, True), {}, dict(active=4), "MobileNetV3 with 64 pictures; twin: CUDA graph"
    yield "near_limit", "memory-bound", *pair(near_limit), {}, dict(active=6), "eager GPT-2; the nearly full card costs nothing once it is warm"
    yield "planes", "memory-bound", *pair(planes, False, True), {}, {}, "NCHW convolutions in bf16; twin: channels_last"
    yield "teacher", "memory-bound", *pair(teacher, False, True), {}, {}, "distillation loss in fp32 passes; twin: the loss compiled"
    yield "ok_graph", "healthy", whole_graph, None, {}, {}, "Mixer, whole step in a CUDA graph"
    yield "ok_wide", "healthy", wide, None, {}, {}, "products of 12288 at the power cap"
    yield "ok_llama", "healthy", hub_llama, None, {}, stack, "Llama of transformers, layers compiled, autocast, loss read"
    yield "ok_segments", "healthy", segments, None, {}, {}, "FCN compiled, channels_last, autocast"


def trace(step, path, how):
    how = dict(how)
    warm, active = how.pop("warm", 1), how.pop("active", 3)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=warm, active=active, repeat=1), **how) as p:
        for _ in range(1 + warm + active):
            step()
            p.step()
        torch.cuda.synchronize()
    p.export_chrome_trace(path)
    subprocess.run(["gzip", "-6", "-f", path], check=True)


def bundle(folder, name, limit, path, arc):
    for n in range(1, limit + 1):
        tar = f"{folder}/{name}_{n}.tar"
        if (os.path.getsize(tar) if os.path.exists(tar) else 0) + os.path.getsize(path) < 15 << 20:
            with tarfile.open(tar, "a") as t:
                t.add(path, arcname=arc)
            return
    print("no room for", arc, flush=True)


def clean():
    harness.clean()
    torch.autograd.set_detect_anomaly(False)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.benchmark = False


def measure(name, sick, twin, more, how, row, folder):
    for part, build in (("step", sick), ("twin", twin)):
        if build:
            clean()
            step = build()
            row[part + "_s"] = harness.seconds(step, 12 if "warm" in how or "active" in how else 8, 3)
            path = f"/tmp/{name}_{part}.json"
            trace(step, path, how)
            row[part + "_again_s"] = harness.seconds(step, 6, 1)
            bundle(folder, "part" if part == "step" else "twins", 4 if part == "step" else 2, path + ".gz", f"{name}{'' if part == 'step' else '_twin'}.json.gz")
            del step
    for key, build in more.items():
        clean()
        row[key] = harness.seconds(build(), 8, 3)


def main():
    folder, only, until = os.environ.get("OUT", "."), os.environ.get("ONLY", "").split(), float(os.environ.get("UNTIL", "1e18"))
    for name, label, sick, twin, more, how, text in cases():
        if (only and name not in only) or time.time() > until:
            continue
        begin, row = time.time(), dict(name=name, label=label, how=text, profiler=how)
        try:
            measure(name, sick, twin, more, how, row, folder)
        except Exception as error:  # one case that fails must not lose the others
            traceback.print_exc(limit=-4)
            row["error"] = repr(error)[:300]
        with open(f"{folder}/ninth.jsonl", "a") as f:
            f.write(json.dumps(row) + "\n")
        print("##", name, label, f"{time.time() - begin:.0f}s", {k: round(v * 1e3, 2) for k, v in row.items() if k.endswith("_s")}, flush=True)


if __name__ == "__main__":
    main()
