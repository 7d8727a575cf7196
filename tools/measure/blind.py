"""Sick and healthy steps built from public libraries (transformers, torchvision) the way people write them.

Unlike traces.py and heldout.py, on which the rules of `assay diagnose` were worked out, this set was labelled and
judged before any rule saw it. Where `sick` and its twin differ by less than 3 %, the right answer is `healthy`."""
import gc
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
import transformers as hf

import harness

DEVICE = "cuda"
BF16 = torch.bfloat16


def train(model, forward, fused=True, between=None, before=None, after=None):
    """The loop that everybody writes."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=fused)

    def step():
        if before:
            before()
        loss = forward()
        loss.backward()
        if between:
            between(model)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if after:
            after()

    return step


def llama(layers=8, hidden=2048, heads=16, kv=8, ffn=5632, vocab=32000, attention="sdpa", dtype=BF16):
    config = hf.LlamaConfig(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
                            num_key_value_heads=kv, intermediate_size=ffn, vocab_size=vocab, use_cache=False)
    config._attn_implementation = attention
    return hf.LlamaForCausalLM(config).to(DEVICE, dtype).train()


def gpt2(layers=16, hidden=1024, heads=16, vocab=50257, dtype=BF16, dropout=0.0, activation="gelu_pytorch_tanh"):
    config = hf.GPT2Config(n_embd=hidden, n_layer=layers, n_head=heads, vocab_size=vocab, resid_pdrop=dropout,
                           embd_pdrop=dropout, attn_pdrop=dropout, activation_function=activation, use_cache=False)
    config._attn_implementation = "sdpa"
    return hf.GPT2LMHeadModel(config).to(DEVICE, dtype).train()


def causal(model, batch, seq, compiled=False, **kw):
    vocab = model.config.vocab_size
    ids = torch.randint(0, vocab, (batch, seq), device=DEVICE)
    run = torch.compile(model) if compiled else model
    return train(model, lambda: run(input_ids=ids, labels=ids).loss, **kw)


def bert(dtype):
    config = hf.BertConfig(num_hidden_layers=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, vocab_size=30528)
    config._attn_implementation = "sdpa"
    model = hf.BertForMaskedLM(config).to(DEVICE, dtype).train()
    ids = torch.randint(0, 30000, (32, 512), device=DEVICE)
    return train(model, lambda: model(input_ids=ids, labels=ids).loss)


class Head32(nn.Module):
    """A head kept in single precision "for stability"."""

    def __init__(self, dtype):
        super().__init__()
        self.body = llama(layers=6).model
        self.head = nn.Linear(2048, 32000, bias=False).to(DEVICE, dtype)
        self.dtype = dtype

    def forward(self, ids):
        x = self.body(input_ids=ids).last_hidden_state
        logits = self.head(x.to(self.dtype)).float()
        return F.cross_entropy(logits.view(-1, 32000), ids.view(-1))


def head(dtype):
    model = Head32(dtype)
    ids = torch.randint(0, 32000, (4, 2048), device=DEVICE)
    return train(model, lambda: model(ids))


def accumulate(log):
    model = llama(layers=4)
    ids = torch.randint(0, 32000, (1, 2048), device=DEVICE)
    losses = []

    def forward():
        for _ in range(7):
            loss = model(input_ids=ids, labels=ids).loss / 8
            loss.backward()
            losses.append(loss.item() if log else loss.detach())
        return model(input_ids=ids, labels=ids).loss / 8

    return train(model, forward, after=losses.clear)


def norms(log, batch=8):
    def look(model):
        each = [p.grad.norm() for p in model.parameters()]
        if log:
            each = [n.item() for n in each]

    return causal(gpt2(vocab=50304), batch, 1024, between=look)


def anomaly(on):
    inner = causal(llama(layers=8), 2, 2048)

    def step():
        with torch.autograd.set_detect_anomaly(on):
            inner()

    return step


def hooks(on, model=None, batch=8, seq=1024):
    model = model or llama(layers=12, hidden=1024, kv=16, ffn=2816)

    def check(module, args, out):
        if isinstance(out, torch.Tensor) and torch.isnan(out).any():
            raise RuntimeError("nan")

    if on:
        for m in model.modules():
            m.register_forward_hook(check)
    return causal(model, batch, seq)


class Moe(nn.Module):
    """Experts in a loop, each gathering its own tokens; `routes` remembers which, so nothing is asked of the host."""

    def __init__(self, remember):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList(
            nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(8)) for _ in range(8))
        self.route = nn.ModuleList(nn.Linear(1024, 8) for _ in range(8))
        self.remember, self.routes = remember, {}

    def forward(self, x):
        for i, experts in enumerate(self.layers):
            top = self.route[i](x).argmax(-1)
            out = torch.zeros_like(x)
            for e, expert in enumerate(experts):
                if not self.remember or (i, e) not in self.routes:
                    self.routes[i, e] = (top == e).nonzero().squeeze(-1)
                at = self.routes[i, e]
                out = out.index_add(0, at, expert(x[at]))
            x = x + out
        return x.float().pow(2).mean()


def moe(remember):
    model = Moe(remember).to(DEVICE, BF16)
    x = torch.randn(16384, 1024, device=DEVICE, dtype=BF16)
    return train(model, lambda: model(x))


class Pictures(torch.utils.data.Dataset):
    """Decoded pictures, augmented as for ImageNet."""

    def __init__(self, pause=0.0):
        self.pause = pause
        self.change = torchvision.transforms.Compose([
            torchvision.transforms.RandomResizedCrop(224), torchvision.transforms.ColorJitter(0.4, 0.4, 0.4),
            torchvision.transforms.ConvertImageDtype(torch.float32)])

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        if self.pause:
            time.sleep(self.pause)
            return torch.zeros(3, 224, 224), i % 1000
        return self.change(torch.randint(0, 256, (3, 400, 400), dtype=torch.uint8)), i % 1000


def vision(model, batch, data=None, workers=0, compiled=False):
    model = model.to(DEVICE, memory_format=torch.channels_last).train()
    run = torch.compile(model) if compiled else model
    if data is None:
        x = torch.randn(batch, 3, 224, 224, device=DEVICE).to(memory_format=torch.channels_last)
        y = torch.randint(0, 1000, (batch,), device=DEVICE)
        feed = iter(lambda: (x, y), None)
    else:
        feed = iter(torch.utils.data.DataLoader(data, batch, num_workers=workers, pin_memory=True))

    def forward():
        x, y = next(feed)
        x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
        with torch.autocast("cuda", dtype=BF16):
            return F.cross_entropy(run(x), y)

    return train(model, forward)


def pageable_pictures(pinned):
    model = torchvision.models.resnet50().to(DEVICE, memory_format=torch.channels_last).train()
    host = [torch.randn(256, 3, 224, 224) for _ in range(2)]
    host = [h.pin_memory() for h in host] if pinned else host
    y = torch.randint(0, 1000, (256,), device=DEVICE)
    stream, count = torch.cuda.Stream(), [0]
    ahead = [host[0].to(DEVICE)]

    def forward():
        count[0] += 1
        if not pinned:
            x = host[count[0] % 2].to(DEVICE)
        else:
            torch.cuda.current_stream().wait_stream(stream)
            x = ahead[0]
            with torch.cuda.stream(stream):
                ahead[0] = host[count[0] % 2].to(DEVICE, non_blocking=True)
        with torch.autocast("cuda", dtype=BF16):
            return F.cross_entropy(model(x.contiguous(memory_format=torch.channels_last)), y)

    return train(model, forward)


def activations(pinned):
    model = llama(layers=4)
    ids = torch.randint(0, 32000, (1, 2048), device=DEVICE)

    def forward():
        with torch.autograd.graph.save_on_cpu(pin_memory=pinned):
            return model(input_ids=ids, labels=ids).loss

    return train(model, forward)


def crowded(fraction):
    """Texts of every length in a memory that is almost too small."""
    torch.cuda.set_per_process_memory_fraction(fraction)
    model = llama(layers=8)
    lengths = [1100, 2040, 1500, 1900, 1300, 1750, 900, 2000]
    texts = [torch.randint(0, 32000, (4, n), device=DEVICE) for n in lengths]
    count = [0]

    def forward():
        count[0] += 1
        ids = texts[count[0] % len(texts)]
        return model(input_ids=ids, labels=ids).loss

    return train(model, forward)


def objects(live):
    """A tokenizer's caches: millions of live containers, and new ones in each step, as Python's collector sees them."""
    keep = [{"id": i, "span": [i]} for i in range(live)]
    model = llama(layers=8, hidden=1024, kv=16, ffn=2816)
    ids = torch.randint(0, 32000, (8, 2048), device=DEVICE)

    def before():
        batch = [{"text": [j], "mask": [j]} for j in range(30000)]
        keep[0] = batch

    return train(model, lambda: model(input_ids=ids, labels=ids).loss, before=before)


def no_cycles():
    step = objects(2000000)
    gc.freeze()
    return step


def lora(compiled=False):
    model = llama(layers=12)
    for p in model.parameters():
        p.requires_grad_(False)
    for block in model.model.layers:
        for name in ("q_proj", "v_proj"):
            base = getattr(block.self_attn, name)
            a = nn.Linear(base.in_features, 16, bias=False).to(DEVICE, BF16)
            b = nn.Linear(16, base.out_features, bias=False).to(DEVICE, BF16)
            pair = nn.Sequential(a, b)
            block.self_attn.add_module(name + "_lora", pair)
            base.register_forward_hook(lambda m, args, out, pair=pair: out + pair(args[0]))
    return causal(model, 8, 2048, compiled)


def checkpointed():
    model = llama(layers=8)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return causal(model, 8, 2048)


def decode():
    model = gpt2(layers=12, hidden=768, heads=12, vocab=50304).eval()
    model.config.use_cache = True
    ids = torch.randint(0, 50000, (1, 64), device=DEVICE)

    def step():
        with torch.no_grad():
            cache, x = None, ids
            for _ in range(16):
                out = model(input_ids=x, past_key_values=cache, use_cache=True)
                cache, x = out.past_key_values, out.logits[:, -1:].argmax(-1)

    return step


def cells(graph):
    """A recurrent net, one cell a time step."""
    cell = nn.LSTMCell(512, 512).to(DEVICE)
    out = nn.Linear(512, 512).to(DEVICE)
    x = torch.randn(128, 64, 512, device=DEVICE)
    optimizer = torch.optim.SGD(list(cell.parameters()) + list(out.parameters()), 0.01)
    torch.backends.cuda.matmul.allow_tf32 = True

    def step():
        h = torch.zeros(64, 512, device=DEVICE)
        c = torch.zeros(64, 512, device=DEVICE)
        for t in range(128):
            h, c = cell(x[t], (h, c))
        out(h).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    if not graph:
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        step()
    return g.replay


def small_vit(compiled):
    """Many small pictures, hand-written activation and dropout: passes over memory."""
    model = torchvision.models.vit_b_16(dropout=0.1).to(DEVICE).train()
    for m in model.modules():
        if isinstance(m, torchvision.models.vision_transformer.MLPBlock):
            m[1] = hf.activations.NewGELUActivation()
    run = torch.compile(model) if compiled else model
    x, y = torch.randn(128, 3, 224, 224, device=DEVICE), torch.randint(0, 1000, (128,), device=DEVICE)

    def forward():
        with torch.autocast("cuda", dtype=BF16):
            return F.cross_entropy(run(x), y)

    return train(model, forward)


def cases():
    yield "gpt2_vocab", "misaligned-shapes", lambda: causal(gpt2(), 8, 1024), lambda: causal(gpt2(vocab=50304), 8, 1024), False
    yield "odd_heads", "misaligned-shapes", lambda: causal(gpt2(hidden=1020, heads=12, vocab=50304), 16, 1024), lambda: causal(gpt2(vocab=50304), 16, 1024), True
    yield "odd_tokens", "healthy", lambda: causal(llama(), 3, 2731), lambda: causal(llama(), 4, 2048), False
    yield "hf_eager", "unfused-attention", lambda: causal(llama(attention="eager"), 4, 2048), lambda: causal(llama(), 4, 2048), False
    yield "bert_fp32", "no-tensor-cores", lambda: bert(torch.float32), lambda: bert(BF16), False
    yield "head_fp32", "no-tensor-cores", lambda: head(torch.float32), lambda: head(BF16), True
    yield "accumulate_item", "host-sync", lambda: accumulate(True), lambda: accumulate(False), False
    yield "grad_norms", "host-sync", lambda: norms(True), lambda: norms(False), False
    yield "anomaly", "host-sync", lambda: anomaly(True), lambda: anomaly(False), False
    yield "nan_hooks", "host-sync", lambda: hooks(True), lambda: hooks(False), False
    yield "moe_loop", "host-sync", lambda: moe(False), lambda: moe(True), False
    yield "vit_augment", "data-starved", lambda: vision(torchvision.models.vit_b_16(), 128, Pictures(), 4), lambda: vision(torchvision.models.vit_b_16(), 128), False
    yield "slow_disk", "data-starved", lambda: vision(torchvision.models.resnet50(), 64, Pictures(0.002), 2), lambda: vision(torchvision.models.resnet50(), 64), False
    yield "pageable_pictures", "pageable-copies", lambda: pageable_pictures(False), lambda: pageable_pictures(True), False
    yield "saved_on_cpu", "pageable-copies", lambda: activations(False), lambda: activations(True), False
    yield "crowded", "allocator", lambda: crowded(0.155), lambda: crowded(1.0), False
    yield "objects", "garbage-collection", lambda: objects(2000000), no_cycles, False
    yield "gpt2_dropout", "memory-bound", lambda: causal(gpt2(vocab=50304, dropout=0.1, activation="gelu_new"), 16, 1024), lambda: causal(gpt2(vocab=50304, dropout=0.1, activation="gelu_new"), 16, 1024, compiled=True), False
    yield "vit_gelu", "memory-bound", lambda: small_vit(False), lambda: small_vit(True), False
    yield "decode", "launch-bound", decode, None, False
    yield "cells", "launch-bound", lambda: cells(False), lambda: cells(True), False
    yield "hf_llama", "healthy", lambda: causal(llama(layers=10), 8, 2048), None, False
    yield "hf_checkpointed", "healthy", checkpointed, None, True
    yield "hf_lora", "healthy", lora, None, False
    yield "vit_large", "healthy", lambda: vision(torchvision.models.vit_l_16(), 128), None, False
    # A second look at what the first left open: many synchronisations beside much work, and what a
    # compiler gives to eager models that have nothing wrong.
    yield "norms_busy", "host-sync", lambda: norms(True, 32), lambda: norms(False, 32), False
    yield "hooks_busy", "host-sync", lambda: hooks(True, llama(layers=8), 8, 2048), lambda: hooks(False, llama(layers=8), 8, 2048), False
    yield "bert_half", "healthy", lambda: bert(BF16), None, False
    yield "compiled_llama", "healthy", lambda: causal(llama(layers=10), 8, 2048, True), None, False
    yield "compiled_lora", "healthy", lambda: lora(True), None, False
    yield "compiled_vit", "healthy", lambda: vision(torchvision.models.vit_l_16(), 128, compiled=True), None, False
    yield "compiled_gpt2", "healthy", lambda: causal(gpt2(vocab=50304, dropout=0.1, activation="gelu_new"), 16, 1024, True), None, False
    yield "wide_vocab", "healthy", lambda: causal(llama(layers=10, vocab=128256), 4, 2048), None, False


if __name__ == "__main__":
    harness.run("blind", cases(), steps=6, rounds=3, collecting=("objects",))
