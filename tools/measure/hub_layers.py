"""Training steps of Hugging Face's Llama code on one GPU -> $OUT/h200_hub.csv.

A few layers of the 8B and 3B shapes as transformers builds them, eager, sdpa attention, bf16
weights; full training and LoRA (adapters as PEFT adds them: x cast to the adapter's type, down, up,
scaled, added). Kernel time is split by the profiler into matmul, attention and the rest, which is
what memory-bound operations cost in this code.
"""
import statistics
import sys
import time

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from clock import Table
from kinds import by_kind

COLUMNS = ("case", "hidden", "layers", "ffn", "heads", "kv_heads", "vocab", "seq", "micro_batch",
           "recompute", "lora_rank", "lora_targets", "adapter_dtype", "step_ms", "matmul_ms",
           "attention_ms", "other_ms", "kernels", "peak_alloc_gib")
ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
RUNS = (  # name, hidden, layers, ffn, heads, kv, seq, micro-batch, recompute, rank, targets, dtype
    ("full", 4096, 6, 14336, 32, 8, 4096, 2, 0, 0, (), None),
    ("full", 4096, 6, 14336, 32, 8, 2048, 8, 0, 0, (), None),
    ("full", 4096, 6, 14336, 32, 8, 8192, 2, 1, 0, (), None),
    ("full", 4096, 6, 11008, 32, 32, 4096, 1, 0, 0, (), None),
    ("full", 2048, 8, 8192, 32, 8, 2048, 8, 0, 0, (), None),
    ("lora", 4096, 6, 14336, 32, 8, 4096, 2, 0, 8, ("q_proj", "v_proj"), torch.bfloat16),
    ("lora", 4096, 6, 14336, 32, 8, 4096, 2, 0, 16, ALL, torch.bfloat16),
    ("lora", 4096, 6, 14336, 32, 8, 4096, 2, 1, 16, ALL, torch.bfloat16),
    ("lora", 4096, 6, 14336, 32, 8, 4096, 2, 0, 16, ALL, torch.float32),
    ("lora", 4096, 6, 14336, 32, 8, 8192, 2, 1, 16, ALL, torch.float32))


class Adapter(nn.Module):
    def __init__(self, base, rank, dtype):
        super().__init__()
        self.base, self.scale = base, 2.0
        self.down = nn.Linear(base.in_features, rank, bias=False, device="cuda", dtype=dtype)
        self.up = nn.Linear(rank, base.out_features, bias=False, device="cuda", dtype=dtype)
        self.drop = nn.Dropout(0.05)

    def forward(self, x):
        y = self.base(x)
        return (y + self.up(self.down(self.drop(x.to(self.down.weight.dtype)))) * self.scale).to(
            y.dtype)


def build(hidden, layers, ffn, heads, kv, vocab, seq, recompute, rank, targets, dtype):
    config = LlamaConfig(hidden_size=hidden, num_hidden_layers=layers, intermediate_size=ffn,
                         num_attention_heads=heads, num_key_value_heads=kv, vocab_size=vocab,
                         max_position_embeddings=seq, use_cache=False,
                         attn_implementation="sdpa", tie_word_embeddings=False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    if rank:
        model.requires_grad_(False)
        for layer in model.model.layers:
            for part in (layer.self_attn, layer.mlp):
                for name in targets:
                    if hasattr(part, name):
                        setattr(part, name, Adapter(getattr(part, name), rank, dtype))
        model.enable_input_require_grads()
    if recompute:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def measure(step):
    """Median milliseconds of a step, kernel milliseconds by kind, and how many kernels ran."""
    for _ in range(4):
        step()
    times = []
    for _ in range(10):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        step()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    sums, count = by_kind(step)
    return statistics.median(times), sums, count


def main():
    deadline = time.time() + float(sys.argv[1] if len(sys.argv) > 1 else 240)
    table = Table("h200_hub.csv", COLUMNS)
    vocab = 32000
    for case, hidden, layers, ffn, heads, kv, seq, micro, recompute, rank, targets, dtype in RUNS:
        if time.time() > deadline:
            break
        torch.cuda.reset_peak_memory_stats()
        model = build(hidden, layers, ffn, heads, kv, vocab, seq, recompute, rank, targets, dtype)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
        ids = torch.randint(0, vocab, (micro, seq), device="cuda")

        def step():
            optimizer.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()

        ms, sums, count = measure(step)
        table.add(case, hidden, layers, ffn, heads, kv, vocab, seq, micro, recompute, rank,
                  len(targets), str(dtype).replace("torch.", "") if dtype else "",
                  f"{ms:.3f}", *(f"{sums[k]:.3f}" for k in ("matmul", "attention", "other")), count,
                  f"{torch.cuda.max_memory_allocated() / 2**30:.2f}")
        del model, optimizer, trained
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
