"""One block of torchtitan's Llama, eager and compiled, against this project's own -> $OUT/h200_titan.csv.

Run: python3 tools/measure/titan_block.py

torchtitan rotates in fp32 complex numbers, repeats keys and values before attention, and normalises with torch's
own operator. Held for two seconds each; forward and backward apart. Widths are those of Llama 8B and 1B."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"


def rotate(q, k, freqs):
    qc = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
    kc = torch.view_as_complex(k.float().reshape(*k.shape[:-1], -1, 2))
    f = freqs.view(1, q.shape[1], 1, -1)
    return torch.view_as_real(qc * f).flatten(3).type_as(q), torch.view_as_real(kc * f).flatten(3).type_as(k)


class Block(nn.Module):
    def __init__(self, h, heads, kv, ffn):
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv, h // heads
        self.norm1, self.norm2 = nn.RMSNorm(h), nn.RMSNorm(h)
        self.wq, self.wo = nn.Linear(h, h, bias=False), nn.Linear(h, h, bias=False)
        self.wk, self.wv = nn.Linear(h, kv * self.dim, bias=False), nn.Linear(h, kv * self.dim, bias=False)
        self.w1, self.w3 = nn.Linear(h, ffn, bias=False), nn.Linear(h, ffn, bias=False)
        self.w2 = nn.Linear(ffn, h, bias=False)

    def attention(self, x, freqs):
        b, s, _ = x.shape
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        q, k, v = q.view(b, s, -1, self.dim), k.view(b, s, -1, self.dim), v.view(b, s, -1, self.dim)
        q, k = rotate(q, k, freqs)
        n = self.heads // self.kv
        repeat = lambda t: t[:, :, :, None, :].expand(b, s, self.kv, n, self.dim).reshape(b, s, self.heads, self.dim)
        k, v = repeat(k), repeat(v)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.wo(y.transpose(1, 2).contiguous().view(b, s, -1))

    def forward(self, x, freqs):
        h = x + self.attention(self.norm1(x), freqs)
        y = self.norm2(h)
        return h + self.w2(F.silu(self.w1(y)) * self.w3(y))


def device_ms(run):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(5):
            run()
        torch.cuda.synchronize()
    mm = other = attention = 0.0
    for e in p.key_averages():
        t = e.self_device_time_total / 5e3
        name = e.key.lower()
        if "nvjet" in name or "gemm" in name or "cutlass" in name and "flash" not in name and "fmha" not in name:
            mm += t
        elif "flash" in name or "fmha" in name or "attention" in name or "cudnn" in name and "sdpa" in name:
            attention += t
        else:
            other += t
    return mm, attention, other


def main():
    out = open(os.path.join(os.environ["OUT"], "h200_titan.csv"), "w")
    out.write("hidden,seq,batch,compiled,matmul_ms,attention_ms,other_ms,wall_ms\n")
    for h, heads, kv, ffn, s, b in ((4096, 32, 8, 14336, 8192, 2), (4096, 32, 8, 14336, 2048, 4), (2048, 16, 16, 5632, 2048, 8)):
        for compiled in (False, True):
            block = Block(h, heads, kv, ffn).to(DEVICE, torch.bfloat16)
            run = torch.compile(block) if compiled else block
            freqs = torch.polar(torch.ones(s, h // heads // 2), torch.randn(s, h // heads // 2)).to(DEVICE)
            x = torch.randn(b, s, h, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
            g = torch.randn_like(x)

            def step():
                run(x, freqs).backward(g)
                x.grad = None
                block.zero_grad(set_to_none=True)

            for _ in range(5):
                step()
            torch.cuda.synchronize()
            begin, n = time.time(), 0
            while time.time() - begin < 1.5:
                step()
                torch.cuda.synchronize()
                n += 1
            wall = (time.time() - begin) / n * 1e3
            mm, attention, other = device_ms(step)
            line = f"{h},{s},{b},{int(compiled)},{mm:.4f},{attention:.4f},{other:.4f},{wall:.4f}"
            print(line, flush=True)
            out.write(line + "\n")
    out.close()


if __name__ == "__main__":
    main()
