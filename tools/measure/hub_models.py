"""Training steps of Hugging Face's model code of several families on one GPU -> $OUT/h200_models.csv.

A few layers of each family as transformers builds it, eager; weights in bf16, or in fp32 under
autocast as its Trainer runs with bf16=True; attention through PyTorch's operator (sdpa) or written
out (eager). Kernel time is split by the profiler into matmul, attention and the rest.
"""
import sys
import time

import torch
import transformers as hub

from clock import Table
from hub_layers import measure

COLUMNS = ("family", "weights", "attention", "hidden", "layers", "ffn", "heads", "kv_heads",
           "vocab", "seq", "micro_batch", "recompute", "step_ms", "matmul_ms", "attention_ms",
           "other_ms", "kernels", "peak_alloc_gib")


def gpt2(h, n, f, a, kv, v, s):
    return hub.GPT2LMHeadModel, hub.GPT2Config(n_embd=h, n_layer=n, n_inner=f, n_head=a,
                                               vocab_size=v, n_positions=s)


def bert(h, n, f, a, kv, v, s):
    return hub.BertForMaskedLM, hub.BertConfig(
        hidden_size=h, num_hidden_layers=n, intermediate_size=f, num_attention_heads=a,
        vocab_size=v, max_position_embeddings=s)


def opt(h, n, f, a, kv, v, s):
    return hub.OPTForCausalLM, hub.OPTConfig(
        hidden_size=h, num_hidden_layers=n, ffn_dim=f, num_attention_heads=a, vocab_size=v,
        max_position_embeddings=s, word_embed_proj_dim=h)


def neox(h, n, f, a, kv, v, s):
    return hub.GPTNeoXForCausalLM, hub.GPTNeoXConfig(
        hidden_size=h, num_hidden_layers=n, intermediate_size=f, num_attention_heads=a,
        vocab_size=v, max_position_embeddings=s)


def llama(h, n, f, a, kv, v, s):
    return hub.LlamaForCausalLM, hub.LlamaConfig(
        hidden_size=h, num_hidden_layers=n, intermediate_size=f, num_attention_heads=a,
        num_key_value_heads=kv, vocab_size=v, max_position_embeddings=s)


def qwen2(h, n, f, a, kv, v, s):
    return hub.Qwen2ForCausalLM, hub.Qwen2Config(
        hidden_size=h, num_hidden_layers=n, intermediate_size=f, num_attention_heads=a,
        num_key_value_heads=kv, vocab_size=v, max_position_embeddings=s)


def t5(h, n, f, a, kv, v, s):
    return hub.T5ForConditionalGeneration, hub.T5Config(
        d_model=h, num_layers=n, num_decoder_layers=n, d_ff=f, num_heads=a, d_kv=h // a,
        vocab_size=v)


#        family, weights, attention, hidden, layers, ffn, heads, kv, vocab, seq, micro, recompute
RUNS = [(gpt2, "bf16", "sdpa", 1600, 12, 6400, 25, 25, 50257, 1024, 16, 0),
        (gpt2, "fp32", "sdpa", 1600, 12, 6400, 25, 25, 50257, 1024, 16, 0),
        (gpt2, "fp32", "eager", 1600, 12, 6400, 25, 25, 50257, 1024, 16, 0),
        (gpt2, "fp32", "sdpa", 768, 12, 3072, 12, 12, 50257, 1024, 32, 0),
        (bert, "bf16", "sdpa", 1024, 12, 4096, 16, 16, 30522, 512, 64, 0),
        (bert, "fp32", "sdpa", 1024, 12, 4096, 16, 16, 30522, 512, 64, 0),
        (bert, "fp32", "eager", 1024, 12, 4096, 16, 16, 30522, 512, 64, 0),
        (bert, "fp32", "eager", 768, 12, 3072, 12, 12, 30522, 128, 256, 0),
        (opt, "bf16", "sdpa", 4096, 6, 16384, 32, 32, 50272, 2048, 4, 0),
        (opt, "fp32", "sdpa", 4096, 6, 16384, 32, 32, 50272, 2048, 4, 0),
        (opt, "fp32", "sdpa", 4096, 6, 16384, 32, 32, 50272, 2048, 4, 1),
        (neox, "bf16", "sdpa", 4096, 6, 16384, 32, 32, 50432, 2048, 4, 0),
        (neox, "fp32", "sdpa", 4096, 6, 16384, 32, 32, 50432, 2048, 4, 0),
        (llama, "bf16", "sdpa", 4096, 6, 11008, 32, 32, 32000, 2048, 4, 0),
        (llama, "fp32", "sdpa", 4096, 6, 11008, 32, 32, 32000, 2048, 4, 0),
        (llama, "fp32", "eager", 4096, 6, 11008, 32, 32, 32000, 2048, 4, 0),
        (llama, "fp32", "sdpa", 4096, 6, 11008, 32, 32, 32000, 2048, 4, 1),
        (qwen2, "bf16", "sdpa", 3584, 6, 18944, 28, 4, 152064, 2048, 4, 0),
        (qwen2, "fp32", "sdpa", 3584, 6, 18944, 28, 4, 152064, 2048, 4, 0),
        (t5, "bf16", "sdpa", 1024, 8, 4096, 16, 16, 32128, 512, 32, 0),
        (t5, "fp32", "sdpa", 1024, 8, 4096, 16, 16, 32128, 512, 32, 0)]


def one(run):
    family, weights, attention, h, n, f, a, kv, v, s, micro, recompute = run
    code, config = family(h, n, f, a, kv, v, s)
    config.use_cache = False
    config._attn_implementation = attention
    torch.cuda.reset_peak_memory_stats()
    torch.set_default_dtype(torch.bfloat16 if weights == "bf16" else torch.float32)
    with torch.device("cuda"):
        model = code(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    if recompute:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    ids = torch.randint(0, v, (micro, s), device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=weights == "fp32"):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()

    ms, sums, count = measure(step)
    return (family.__name__, weights, attention, h, n, f, a, kv, v, s, micro, recompute,
            f"{ms:.3f}", *(f"{x:.3f}" for x in sums.values()), count,
            f"{torch.cuda.max_memory_allocated() / 2**30:.2f}")


def main():
    deadline = time.time() + float(sys.argv[1] if len(sys.argv) > 1 else 240)
    table = Table("h200_models.csv", COLUMNS)
    for run in RUNS:
        if time.time() > deadline:
            break
        try:
            table.add(*one(run))
        except Exception as error:  # a family that this version cannot run: say so, go on
            print(run[0].__name__, run[1:3], type(error).__name__, str(error)[:200])
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
