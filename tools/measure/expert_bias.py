"""What experts with biases and a clamped gate cost where nothing fuses them (GPT-OSS), and BERT as
Hugging Face writes it, with and without fused attention -> $OUT/h200_plain.csv.

`bytes` is the time at the device's memory bandwidth, per routed token and element of the expert's
width: what a stack's `expert_bias_traffic` holds. Both passes, elementwise work alone.
"""
import torch
import torch.nn.functional as F

from clock import Table, timed

BANDWIDTH = 4.8e12 * 0.9  # of an H200, and what streaming kernels reach of it
WIDTH = 2880


def gate(x, probs):
    """The clamped gate, operation by operation."""
    a, b = x.chunk(2, dim=-1)
    a, b = a.clamp(max=7.0), b.clamp(min=-7.0, max=7.0)
    return ((a * torch.sigmoid(1.702 * a) * (b + 1)) * probs).to(x.dtype)


def add_biases(y, biases, probs, sizes):
    """Each expert's bias, weighted by the router in 32 bits."""
    parts = zip(y.split(sizes), biases, probs.split(sizes))
    return torch.cat([t + b * p for t, b, p in parts]).to(y.dtype)


def experts(table):
    for tokens, count in ((65536, 2), (65536, 16), (16384, 16)):
        x = torch.randn(tokens, 2 * WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        y = torch.randn(tokens, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        p = torch.rand(tokens, 1, device="cuda", requires_grad=True)
        b = [torch.randn(WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
             for _ in range(count)]
        sizes = [tokens // count] * count
        fused = torch.compile(gate)
        for name, make, inputs in (("gate", lambda: gate(x, p), [x, p]),
                                   ("gate_compiled", lambda: fused(x, p), [x, p]),
                                   ("biases", lambda: add_biases(y, b, p, sizes), [y, p, *b])):
            out = make()
            g = torch.randn_like(out)
            back = lambda: torch.autograd.grad(out, inputs, g, retain_graph=True)
            for which, call in (("forward", make), ("backward", back)):
                ms = timed(call, wait_us=3000)
                table.add(f"{name} {which}", f"{tokens} tokens {count} experts", f"{ms:.4f}",
                          f"{ms * 1e-3 * BANDWIDTH / (tokens * WIDTH):.1f}")
        del x, y, p, b


def bert(table):
    from transformers import BertConfig, BertForMaskedLM
    for batch in (32, 64):
        for kind in ("eager", "sdpa"):
            config = BertConfig(vocab_size=32000, attn_implementation=kind)
            model = BertForMaskedLM(config).cuda().train()
            update = torch.optim.AdamW(model.parameters(), 1e-5)
            scaler = torch.amp.GradScaler()
            ids = torch.randint(0, 32000, (batch, 512), device="cuda")
            mask = torch.ones_like(ids)

            def step():
                with torch.autocast("cuda", torch.float16):
                    loss = model(ids, attention_mask=mask, labels=ids).loss
                scaler.scale(loss).backward()
                scaler.unscale_(update)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(update)
                scaler.update()
                update.zero_grad()

            ms = timed(step, wait_us=0, budget_ms=2000, rest=0.1)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
                step()
                torch.cuda.synchronize()
            parts = {"matmul": 0.0, "attention": 0.0, "other": 0.0}
            for e in seen.key_averages():
                low = e.key.lower()
                part = ("attention" if "flash" in low or "fmha" in low else
                        "matmul" if any(w in low for w in ("gemm", "nvjet", "cutlass")) else "other")
                parts[part] += e.self_device_time_total / 1e3
            table.add(f"bert {kind}", f"{batch} x 512 fp16 autocast", f"{ms:.2f}",
                      " ".join(f"{k} {v:.1f}" for k, v in parts.items()))
            del model, update


def main():
    table = Table("h200_plain.csv", ("case", "detail", "ms", "bytes"))
    for part in (experts, bert):
        try:
            part(table)
        except Exception as error:  # what this version lacks must not cost the rest
            print(part.__name__, "failed:", repr(error)[:500], flush=True)


if __name__ == "__main__":
    main()
