"""Fused attention with a mask or a bias against the same without: what PyTorch's
scaled_dot_product_attention takes forward and backward, and the kernel it chose.
Writes test/data/h200_attention_bias.csv to standard output."""
import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

SHAPES = [(12, 12, 1536, 64), (8, 16, 2048, 64), (4, 16, 4096, 64), (32, 12, 512, 64),
          (8, 16, 2048, 128), (2, 32, 4096, 128), (64, 8, 256, 64), (16, 8, 1024, 96)]
KINDS = ["none", "causal", "bias_1H", "bias_BH", "bias_grad", "keys", "bool_11"]


def microseconds(call, rounds=12):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(rounds):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / rounds * 1e3


def mask_of(kind, batch, heads, tokens):
    half = dict(device="cuda", dtype=torch.bfloat16)
    if kind in ("bias_1H", "bias_grad"):
        return torch.randn(1, heads, tokens, tokens, **half).requires_grad_(kind == "bias_grad")
    if kind == "bias_BH":
        return torch.randn(batch, heads, tokens, tokens, **half)
    if kind == "keys":
        return torch.rand(batch, 1, 1, tokens, device="cuda") < 0.9
    if kind == "bool_11":
        return torch.ones(tokens, tokens, device="cuda", dtype=torch.bool).tril()[None, None]
    return None


def main():
    torch.manual_seed(0)
    print("batch,heads,tokens,head,mask,forward_us,backward_us,kernel", flush=True)
    for batch, heads, tokens, head in SHAPES:
        make = lambda: torch.randn(batch, tokens, heads, head, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
        q, k, v = (make().requires_grad_() for _ in range(3))
        grad = make()
        for kind in KINDS:
            mask = mask_of(kind, batch, heads, tokens)
            call = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=kind == "causal")
            with torch.no_grad():
                forward = microseconds(call)
            both = microseconds(lambda: call().backward(grad))
            with profile(activities=[ProfilerActivity.CUDA]) as seen:
                call().backward(grad)
                torch.cuda.synchronize()
            longest = max(seen.key_averages(), key=lambda e: e.self_device_time_total)
            print(batch, heads, tokens, head, kind, round(forward), round(both - forward), longest.key[:60],
                  sep=",", flush=True)
            del mask
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
