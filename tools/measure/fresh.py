"""A fourth set, run after the rules had been mended with the third in view: what they are worth on the next code.

Other models (T5, ConvNeXt, Swin, EfficientNet) and other ways to be slow; labelled before the rules saw it."""
import gc
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import numpy as np
import torch
import torch.nn.functional as F
import torchvision
import transformers as hf
from torch.nn.attention import SDPBackend, sdpa_kernel

import harness
from blind import BF16, DEVICE, causal, gpt2, llama, train, vision


def t5(dtype, batch=16):
    config = hf.T5Config(d_model=768, d_ff=2048, num_layers=6, num_heads=12, d_kv=64, vocab_size=32128,
                         feed_forward_proj="gated-gelu", dropout_rate=0.0, decoder_start_token_id=0)
    model = hf.T5ForConditionalGeneration(config).to(DEVICE, dtype).train()
    ids = torch.randint(0, 32000, (batch, 512), device=DEVICE)
    return train(model, lambda: model(input_ids=ids, labels=ids).loss)


class Slow(torch.utils.data.Dataset):
    """Pictures normalised in double precision by numpy."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        x = np.random.default_rng(i).integers(0, 256, (3, 224, 224)).astype(np.float64)
        x = (x / 255.0 - x.mean()) / (x.std() + 1e-6)
        return torch.from_numpy(x.astype(np.float32)), i % 1000


def peeking(on):
    model = torchvision.models.vit_b_16()
    seen = []
    if on:
        for block in model.encoder.layers:
            block.register_forward_hook(lambda m, a, out: seen.append(out.float().std().item()))
    step = vision(model, 256)
    return step


def plain_attention(on):
    inner = causal(llama(layers=8), 4, 2048)

    def step():
        with sdpa_kernel(SDPBackend.MATH if on else [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
            inner()

    return step


def tidy_memory(on):
    model = llama(layers=8)
    if on:
        for block in model.model.layers:
            block.register_forward_hook(lambda m, a, out: torch.cuda.empty_cache())
    return causal(model, 4, 2048)


def smoothing(by_hand):
    """Label smoothing written out over the vocabulary."""
    model = gpt2(vocab=50304)
    ids = torch.randint(0, 50304, (12, 1024), device=DEVICE)

    def forward():
        logits = model(input_ids=ids).logits.view(-1, 50304)
        target = ids.view(-1)
        if not by_hand:
            return F.cross_entropy(logits.float(), target, label_smoothing=0.1)
        p = logits.float()
        p = p - p.max(-1, keepdim=True).values
        p = p - p.exp().sum(-1, keepdim=True).log()
        hot = torch.zeros_like(p).scatter_(1, target[:, None], 0.9) + 0.1 / 50304
        return -(hot * p).sum(-1).mean()

    return train(model, forward)


def cases():
    vision_of = torchvision.models
    yield "t5_fp32", "no-tensor-cores", lambda: t5(torch.float32), lambda: t5(BF16), False
    yield "convnext_numpy", "data-starved", lambda: vision(vision_of.convnext_tiny(), 128, Slow(), 6), lambda: vision(vision_of.convnext_tiny(), 128), False
    yield "swin_two", "launch-bound", lambda: vision(vision_of.swin_t(), 2), None, False
    yield "vit_peeking", "host-sync", lambda: peeking(True), lambda: peeking(False), False
    yield "neo_vocab", "misaligned-shapes", lambda: causal(gpt2(layers=12, hidden=1152, heads=12, vocab=50259), 12, 1024), lambda: causal(gpt2(layers=12, hidden=1152, heads=12, vocab=50304), 12, 1024), False
    yield "math_attention", "unfused-attention", lambda: plain_attention(True), lambda: plain_attention(False), False
    yield "tidy_memory", "allocator", lambda: tidy_memory(True), lambda: tidy_memory(False), False
    yield "collect_each", "garbage-collection", lambda: causal(llama(layers=8), 4, 2048, after=gc.collect), lambda: causal(llama(layers=8), 4, 2048), False
    yield "smoothing", "memory-bound", lambda: smoothing(True), lambda: smoothing(False), False
    yield "efficientnet", "healthy", lambda: vision(vision_of.efficientnet_v2_s(), 192), None, False
    yield "t5_half", "healthy", lambda: t5(BF16, 64), None, False
    yield "swin_many", "healthy", lambda: vision(vision_of.swin_b(), 128), None, False
    yield "llama_long", "healthy", lambda: causal(llama(layers=6), 1, 16384), None, False


if __name__ == "__main__":
    harness.run("fresh", cases(), steps=6, rounds=3)
