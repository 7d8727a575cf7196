"""Training steps of Hugging Face's models with experts on one GPU -> $OUT/h200_hub_experts.csv.

A few layers of each family as transformers builds them, bf16 weights, sdpa attention where it has it;
experts one after another (eager: what releases before 5 did) and in PyTorch's grouped kernel.
Kernel time is split by the profiler into matmul, attention and the rest; what the step takes beyond
their sum is the host's.
"""
import sys
import time

import torch
import transformers as hub

from clock import Table
from hub_layers import measure

COLUMNS = ("family", "experts_by", "hidden", "layers", "expert_ffn", "experts", "topk", "shared",
           "heads", "kv_heads", "head_dim", "vocab", "seq", "micro_batch", "recompute", "step_ms",
           "matmul_ms", "attention_ms", "other_ms", "kernels", "peak_alloc_gib")
VOCAB = 32000


def qwen3(h, n, f, e, k, s, a, kv, d, seq):
    return hub.Qwen3MoeForCausalLM, hub.Qwen3MoeConfig(
        hidden_size=h, num_hidden_layers=n, moe_intermediate_size=f, intermediate_size=f,
        num_experts=e, num_experts_per_tok=k, num_attention_heads=a, num_key_value_heads=kv,
        head_dim=d, vocab_size=VOCAB, max_position_embeddings=seq, norm_topk_prob=True,
        output_router_logits=False)


def mixtral(h, n, f, e, k, s, a, kv, d, seq):
    return hub.MixtralForCausalLM, hub.MixtralConfig(
        hidden_size=h, num_hidden_layers=n, intermediate_size=f, num_local_experts=e,
        num_experts_per_tok=k, num_attention_heads=a, num_key_value_heads=kv, head_dim=d,
        vocab_size=VOCAB, max_position_embeddings=seq)


def olmoe(h, n, f, e, k, s, a, kv, d, seq):
    return hub.OlmoeForCausalLM, hub.OlmoeConfig(
        hidden_size=h, num_hidden_layers=n, intermediate_size=f, num_experts=e,
        num_experts_per_tok=k, num_attention_heads=a, num_key_value_heads=kv, vocab_size=VOCAB,
        max_position_embeddings=seq)


def gpt_oss(h, n, f, e, k, s, a, kv, d, seq):
    return hub.GptOssForCausalLM, hub.GptOssConfig(
        hidden_size=h, num_hidden_layers=n, intermediate_size=f, num_local_experts=e,
        num_experts_per_tok=k, num_attention_heads=a, num_key_value_heads=kv, head_dim=d,
        vocab_size=VOCAB, max_position_embeddings=seq)


def deepseek(h, n, f, e, k, s, a, kv, d, seq):
    return hub.DeepseekV3ForCausalLM, hub.DeepseekV3Config(
        hidden_size=h, num_hidden_layers=n, moe_intermediate_size=f, intermediate_size=4 * f,
        n_routed_experts=e, num_experts_per_tok=k, n_shared_experts=s, first_k_dense_replace=0,
        num_attention_heads=a, num_key_value_heads=kv, q_lora_rank=None, n_group=1, topk_group=1,
        vocab_size=VOCAB, max_position_embeddings=seq)


EACH = ("grouped_mm", "eager")
#        family, by, hidden, layers, ffn, experts, topk, shared, heads, kv, dim, seq, micro, recompute
RUNS = [(f, by, *shape) for f, *shape in
        ((qwen3, 2048, 4, 768, 128, 8, 0, 32, 4, 128, 4096, 1, 0),
         (qwen3, 2048, 4, 768, 128, 8, 0, 32, 4, 128, 4096, 4, 0),
         (qwen3, 2048, 8, 768, 128, 8, 0, 32, 4, 128, 4096, 4, 1),
         (mixtral, 4096, 2, 14336, 8, 2, 0, 32, 8, 128, 4096, 1, 0),
         (mixtral, 4096, 2, 14336, 8, 2, 0, 32, 8, 128, 4096, 4, 1),
         (olmoe, 2048, 4, 1024, 64, 8, 0, 16, 16, 128, 4096, 4, 0),
         (deepseek, 2048, 4, 1408, 64, 6, 2, 16, 16, 128, 4096, 2, 0),
         (gpt_oss, 2880, 4, 2880, 32, 4, 0, 64, 8, 64, 4096, 2, 0))
        for by in EACH]


def one(run):
    family, by, h, n, f, e, k, shared, a, kv, d, seq, micro, recompute = run
    code, config = family(h, n, f, e, k, shared, a, kv, d, seq)
    config.use_cache = False
    if family is not gpt_oss:
        config._attn_implementation = "sdpa"
    config._experts_implementation = by
    torch.cuda.reset_peak_memory_stats()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = code(config)
    torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(0, 0.02)
    model.train()
    if recompute:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    ids = torch.randint(0, VOCAB, (micro, seq), device="cuda")

    def step():
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()

    ms, sums, count = measure(step)
    return (family.__name__, by, h, n, f, e, k, shared, a, kv, d, VOCAB, seq, micro, recompute,
            f"{ms:.3f}", *(f"{sums[x]:.3f}" for x in ("matmul", "attention", "other")), count,
            f"{torch.cuda.max_memory_allocated() / 2**30:.2f}")


def main():
    deadline = time.time() + float(sys.argv[1] if len(sys.argv) > 1 else 240)
    table = Table("h200_hub_experts.csv", COLUMNS)
    for run in RUNS:
        if time.time() > deadline:
            break
        try:
            table.add(*one(run))
        except Exception as problem:  # a family that this release builds otherwise
            print(run[0].__name__, run[1], repr(problem)[:300], flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
