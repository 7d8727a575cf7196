"""Training steps of a Llama in JAX on one GPU, kernel time by kind -> $OUT/h200_jax.csv.

A few layers as MaxText writes them, in a loop that XLA sees (`scanned`), or one after the other, as code of one's own often does; weights
in 32 bits and arithmetic in 16, RMS norms and rotation in 32, cuDNN's flash attention, a loss in 32, Adam. Policies: nothing recomputed, everything, all but what is named (`qkv`: the
query, key and value projections; `minimal_flash`: those, attention, its projection and the MLP's matmuls), all but matmuls (`dots`). XLA's
own flags, JAX 0.11.2.

Run: python3 tools/measure/jax_layers.py   (ONLY="none 0,full 0" for some of the cases)
"""
import glob
import itertools
import os
import statistics
import tempfile
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

COLUMNS = ("hidden", "ffn", "heads", "kv_heads", "layers", "vocab", "seq", "batch", "recompute", "scanned", "step_ms", "matmul_ms",
           "attention_ms", "other_ms", "kernels", "arguments_gb", "temporary_gb")
SHAPES = (  # hidden, ffn, heads, kv heads, layers, sequence, batch
    (4096, 14336, 32, 8, 4, 4096, 2), (4096, 14336, 32, 8, 4, 8192, 2), (4096, 14336, 32, 8, 4, 2048, 1), (2048, 8192, 32, 8, 8, 2048, 8),
    (8192, 28672, 64, 8, 2, 4096, 1), (4096, 14336, 32, 8, 8, 4096, 2))
VOCAB = 32000
POLICIES = {
    "none": None,
    "full": jax.checkpoint_policies.nothing_saveable,
    "qkv": jax.checkpoint_policies.save_only_these_names("qkv"),
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "minimal_flash": jax.checkpoint_policies.save_only_these_names("qkv", "context", "out", "wide", "down"),
}
MATMUL = ("gemm", "nvjet", "cutlass", "cublas", "xmma", "wgmma", "dot")
ATTENTION = ("cudnn", "flash", "fmha", "sdpa", "attention")


def norm(x, scale):
    w = x.astype(jnp.float32)
    return (w * jax.lax.rsqrt(jnp.mean(w * w, -1, keepdims=True) + 1e-5)).astype(jnp.bfloat16) * scale.astype(jnp.bfloat16)


def rotate(x, seq):
    half = x.shape[-1] // 2
    angle = jnp.arange(seq)[:, None] / 10000 ** (jnp.arange(half) / half)
    c, s = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    a, b = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1).astype(x.dtype)


def layer(x, w, heads, kv):
    b, s, h = x.shape
    cast = {k: v.astype(jnp.bfloat16) for k, v in w.items()}
    y = norm(x, w["n1"])
    dim = h // heads
    q, k, v = (checkpoint_name(y @ cast[n], "qkv").reshape(b, s, -1, dim) for n in ("q", "k", "v"))
    a = jax.nn.dot_product_attention(rotate(q, s), rotate(k, s), v, is_causal=True, implementation="cudnn")
    a = checkpoint_name(a.reshape(b, s, h), "context")
    x = x + checkpoint_name(a @ cast["o"], "out")
    y = norm(x, w["n2"])
    gate, up = (checkpoint_name(y @ cast[n], "wide") for n in ("gate", "up"))
    return x + checkpoint_name((jax.nn.silu(gate) * up) @ cast["down"], "down")


def weights(hidden, ffn, heads, kv, layers):
    keys = iter(jax.random.split(jax.random.PRNGKey(0), 16))
    narrow = hidden // heads * kv
    make = lambda *s: jax.random.normal(next(keys), s, jnp.float32) * 0.02
    stack = dict(n1=jnp.ones((layers, hidden)), n2=jnp.ones((layers, hidden)), q=make(layers, hidden, hidden),
                 k=make(layers, hidden, narrow), v=make(layers, hidden, narrow), o=make(layers, hidden, hidden),
                 gate=make(layers, hidden, ffn), up=make(layers, hidden, ffn), down=make(layers, ffn, hidden))
    return dict(layers=stack, embed=make(VOCAB, hidden), head=make(hidden, VOCAB), last=jnp.ones((hidden,)))


def make_step(heads, kv, policy, scanned):
    def loss(p, ids):
        x = p["embed"].astype(jnp.bfloat16)[ids]
        one = lambda x, w: (layer(x, w, heads, kv), None)
        if policy is not None:
            one = jax.checkpoint(one, policy=policy, prevent_cse=not scanned)
        if scanned:
            x, _ = jax.lax.scan(one, x, p["layers"])
        else:
            for w in p["layers"]:
                x, _ = one(x, w)
        logits = (norm(x, p["last"]) @ p["head"].astype(jnp.bfloat16)).astype(jnp.float32)
        target = jnp.roll(ids, -1, 1)
        picked = jnp.take_along_axis(logits, target[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)

    def step(p, m, v, ids):
        value, g = jax.value_and_grad(loss)(p, ids)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        p = jax.tree.map(lambda p, m, v: p - 1e-4 * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return p, m, v, value
    return jax.jit(step, donate_argnums=(0, 1, 2))


def kinds(run):
    """Kernel milliseconds by kind, and how many kernels ran."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run()
        path = glob.glob(folder + "/**/*.xplane.pb", recursive=True)[0]
        data = jax.profiler.ProfileData.from_file(path)
        sums, count = dict(matmul=0.0, attention=0.0, other=0.0), 0
        names = {}
        for plane in data.planes:
            if "GPU" not in plane.name:
                continue
            for line in plane.lines:
                if "stream" not in line.name.lower():
                    continue
                for event in line.events:
                    low = event.name.lower()
                    kind = "attention" if any(w in low for w in ATTENTION) else "matmul" if any(w in low for w in MATMUL) else "other"
                    sums[kind] += event.duration_ns / 1e6
                    names[event.name] = names.get(event.name, 0) + event.duration_ns / 1e6
                    count += 1
        for name, ms in sorted(names.items(), key=lambda x: -x[1])[:12]:
            print(f"    {ms:8.3f} {name[:100]}", flush=True)
        return sums, count


def main():
    out = open(os.path.join(os.environ.get("OUT", "."), "h200_jax.csv"), "w")
    out.write(",".join(COLUMNS) + "\n")
    for hidden, ffn, heads, kv, layers, seq, batch in SHAPES:
        for (name, policy), scanned in itertools.product(POLICIES.items(), (1, 0)):
            if f"{name} {scanned}" not in os.environ.get("ONLY", f"{name} {scanned}").split(","):
                continue
            begun = time.time()
            try:
                p = weights(hidden, ffn, heads, kv, layers)
                if not scanned:
                    p["layers"] = [{k: w[i] for k, w in p["layers"].items()} for i in range(layers)]
                m, v = (jax.tree.map(jnp.zeros_like, p) for _ in range(2))
                ids = jax.random.randint(jax.random.PRNGKey(1), (batch, seq), 0, VOCAB)
                step = make_step(heads, kv, policy, scanned).lower(p, m, v, ids).compile()
                memory = step.memory_analysis()  # what XLA reserves: its own account, not a counter
                for _ in range(3):
                    p, m, v, value = step(p, m, v, ids)
                value.block_until_ready()
                times = []
                for _ in range(4):
                    start = time.perf_counter()
                    for _ in range(5):
                        p, m, v, value = step(p, m, v, ids)
                    value.block_until_ready()
                    times.append((time.perf_counter() - start) / 5)
                state = [p, m, v]

                def run():
                    *state[:], last = step(*state, ids)
                    last.block_until_ready()
                sums, count = kinds(run)
                row = (hidden, ffn, heads, kv, layers, VOCAB, seq, batch, name, scanned,
                       f"{1e3 * statistics.median(times):.3f}", *(f"{sums[k]:.3f}" for k in ("matmul", "attention", "other")), count,
                       f"{memory.argument_size_in_bytes / 1e9:.3f}", f"{memory.temp_size_in_bytes / 1e9:.3f}")
                out.write(",".join(map(str, row)) + "\n")
                out.flush()
                print(row, f"{time.time() - begun:.0f} s", flush=True)
                del p, m, v, state, step
            except Exception as error:  # one case that fails must not lose the others
                print(hidden, seq, name, repr(error)[:400], flush=True)
            jax.clear_caches()


if __name__ == "__main__":
    main()
