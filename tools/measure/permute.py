"""Tokens to their experts and back, without the exchange, as frameworks write it in plain PyTorch.

megatron: rows picked by a sorted mask, chunks reordered before and after the experts, summed by
scatter_add. titan: rows gathered in expert order and weighted in 32 bits, padded to blocks by an
index, put back, summed by scatter_add; the same compiled. local: as megatron where all experts
are at hand, without the chunks. loop: expert by expert, weighted and added. Device time of the
forward and the backward pass, in copies: one copy reads and writes every routed row once at the
bandwidth of a large copy.
-> $OUT/h200_permute.csv
"""
import torch
import torch._functorch.config

from clock import Table, timed

COLUMNS = ("way", "tokens", "experts", "topk", "hidden", "forward_ms", "backward_ms", "copy_ms",
           "forward_copies", "backward_copies")
CASES = ((4096, 128, 8, 2048), (16384, 128, 8, 2048), (32768, 64, 8, 1024), (16384, 32, 4, 2880),
         (8192, 8, 2, 4096), (4096, 256, 8, 7168))
BLOCK = 16


def routing(tokens, experts, topk):
    scores = torch.rand(tokens, experts, device="cuda")
    picked = scores.topk(topk, dim=1).indices
    chosen = torch.zeros(tokens, experts, dtype=torch.bool, device="cuda").scatter_(1, picked, True)
    return picked, chosen


def chunks(rows, sizes, order):
    parts = torch.split(rows, sizes)
    return torch.cat([parts[i] for i in order])


def local(x, picked, chosen):
    tokens, experts = chosen.shape
    by_expert = chosen.t().contiguous()
    index = torch.arange(tokens, device="cuda").expand(experts, -1).masked_select(by_expert)
    def run():
        rows = x.index_select(0, index)
        out = torch.zeros_like(x)
        return out.scatter_add(0, index.unsqueeze(1).expand(-1, x.shape[1]), rows)
    return run


def loop(x, picked, chosen):
    experts = [chosen[:, i].nonzero().squeeze(1) for i in range(chosen.shape[1])]
    weight = torch.rand(x.shape[0], 1, device="cuda").to(x.dtype)
    def run():
        out = torch.zeros_like(x)
        for index in experts:
            out.index_add_(0, index, x[index] * weight[index])
        return out
    return run


def megatron(x, picked, chosen):
    tokens, experts = chosen.shape
    by_expert = chosen.t().contiguous()
    index = torch.arange(tokens, device="cuda").expand(experts, -1).masked_select(by_expert)
    sizes = by_expert.sum(1).tolist()
    order = [i for j in range(4) for i in range(j, experts, 4)]
    back = sorted(range(experts), key=lambda i: order[i])
    def run():
        rows = chunks(x.index_select(0, index), sizes, order)
        rows = chunks(rows, [sizes[i] for i in order], back)
        out = torch.zeros_like(x)
        return out.scatter_add(0, index.unsqueeze(1).expand(-1, x.shape[1]), rows)
    return run


def titan(x, picked, chosen):
    tokens, topk = picked.shape
    order = torch.argsort(picked.reshape(-1), stable=True)
    token = (order // topk).reshape(-1, 1).expand(-1, x.shape[1])
    weight = torch.rand(tokens * topk, 1, device="cuda")
    counts = chosen.sum(0)
    padded = (counts + BLOCK - 1) // BLOCK * BLOCK
    starts = torch.cumsum(padded, 0) - padded
    expert = picked.reshape(-1)[order]
    rank = torch.arange(tokens * topk, device="cuda") - (torch.cumsum(counts, 0) - counts)[expert]
    slot = starts[expert] + rank
    total = int(padded.sum())
    source = torch.full((total,), tokens * topk, device="cuda").scatter_(
        0, slot, torch.arange(tokens * topk, device="cuda"))
    def run():
        rows = torch.gather(x, 0, token)
        rows = (rows.float() * weight).to(x.dtype)
        blocks = torch.vstack((rows, rows.new_zeros(rows.shape[-1])))[source]
        rows = blocks.new_empty(tokens * topk + 1, x.shape[1])
        rows[source] = blocks
        out = torch.zeros_like(x)
        return out.scatter_add(0, token, rows[:-1])
    return run


def compiled(x, picked, chosen):
    return torch.compile(titan(x, picked, chosen))


def main():
    torch._functorch.config.donated_buffer = False  # each backward runs several times
    table = Table("h200_permute.csv", COLUMNS)
    for tokens, experts, topk, hidden in CASES:
        picked, chosen = routing(tokens, experts, topk)
        x = torch.randn(tokens, hidden, device="cuda").bfloat16().requires_grad_()
        a = torch.randn(tokens * topk, hidden, device="cuda").bfloat16()
        b = torch.empty_like(a)
        copy = timed(lambda: b.copy_(a))
        for way in (megatron, local, loop, titan, compiled):
            run = way(x, picked, chosen)
            out = run()
            grad = torch.randn_like(out)
            forward = timed(lambda: run(), wait_us=4000)
            backward = timed(lambda: torch.autograd.grad(out, x, grad, retain_graph=True),
                             wait_us=4000)
            row = (way.__name__, tokens, experts, topk, hidden, f"{forward:.4f}", f"{backward:.4f}",
                   f"{copy:.4f}", f"{forward / copy:.2f}", f"{backward / copy:.2f}")
            table.add(*row)
            print(*row, flush=True)


if __name__ == "__main__":
    main()
