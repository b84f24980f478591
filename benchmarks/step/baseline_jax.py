"""The benchmark's Qwen3 as one writes it in JAX: a jitted step of value_and_grad, clipping and AdamW, state donated.

Reads the tokens that ctitan reads, prints one JSON line: seconds of each step, losses, versions.
"""
import argparse
import functools
import json
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--tokens", required=True)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--dump", help="folder for the optimized program")
args = parser.parse_args()
if args.dump:
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={args.dump} --xla_dump_hlo_as_text"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

DIM, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB = 512, 8, 8, 4, 64, 1536, 8192
THETA, EPS, LR, BETA1, BETA2, ADAM_EPS, DECAY, MAX_NORM = 1e6, 1e-6, 3e-4, 0.9, 0.95, 1e-8, 0.1, 1.0


def init(key):
    def normal(*shape):
        nonlocal key
        key, sub = jax.random.split(key)
        return 0.02 * jax.random.normal(sub, shape, jnp.float32)

    def layer():
        return {
            "attention_norm": jnp.ones(DIM),
            "wq": normal(DIM, HEADS * HEAD_DIM),
            "wk": normal(DIM, KV_HEADS * HEAD_DIM),
            "wv": normal(DIM, KV_HEADS * HEAD_DIM),
            "q_norm": jnp.ones(HEAD_DIM),
            "k_norm": jnp.ones(HEAD_DIM),
            "wo": normal(HEADS * HEAD_DIM, DIM),
            "ffn_norm": jnp.ones(DIM),
            "gate": normal(DIM, FFN),
            "up": normal(DIM, FFN),
            "down": normal(FFN, DIM),
        }

    return {"embedding": normal(VOCAB, DIM), "layers": [layer() for _ in range(LAYERS)], "norm": jnp.ones(DIM)}


def rms_norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + EPS) * weight


def rope(x, cos, sin):
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def forward(params, tokens):
    batch, seq = tokens.shape
    x = params["embedding"][tokens]
    frequencies = THETA ** (-jnp.arange(0, HEAD_DIM, 2, dtype=jnp.float32) / HEAD_DIM)
    angles = jnp.arange(seq, dtype=jnp.float32)[:, None] * frequencies
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    for w in params["layers"]:
        h = rms_norm(x, w["attention_norm"])
        q = rms_norm((h @ w["wq"]).reshape(batch, seq, HEADS, HEAD_DIM), w["q_norm"])
        k = rms_norm((h @ w["wk"]).reshape(batch, seq, KV_HEADS, HEAD_DIM), w["k_norm"])
        v = (h @ w["wv"]).reshape(batch, seq, KV_HEADS, HEAD_DIM)
        o = jax.nn.dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
        x = x + o.reshape(batch, seq, HEADS * HEAD_DIM) @ w["wo"]
        h = rms_norm(x, w["ffn_norm"])
        x = x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
    return rms_norm(x, params["norm"]) @ params["embedding"].T


def loss_of(params, tokens, labels):
    logprobs = jax.nn.log_softmax(forward(params, tokens))
    return -jnp.take_along_axis(logprobs, labels[..., None], axis=-1).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def train_step(params, m, v, tokens, labels, step):
    loss, gradients = jax.value_and_grad(loss_of)(params, tokens, labels)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
    coefficient = jnp.minimum(1.0, MAX_NORM / (norm + 1e-6))
    gradients = jax.tree.map(lambda g: g * coefficient, gradients)
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, gradients)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, gradients)

    def update(p, m, v):
        root = jnp.sqrt(v / (1 - BETA2**step)) + ADAM_EPS
        return p * (1 - LR * DECAY) - LR * (m / (1 - BETA1**step)) / root

    return jax.tree.map(update, params, m, v), m, v, loss, norm


tokens = load_file(args.tokens)["tokens"]
params = init(jax.random.key(0))
m = jax.tree.map(jnp.zeros_like, params)
v = jax.tree.map(jnp.zeros_like, params)
times, losses = [], []
for n in range(args.steps + 1):  # the first one compiles
    batch = jnp.asarray(tokens[n % len(tokens)])
    start, cpu = time.perf_counter(), time.process_time()
    params, m, v, loss, norm = train_step(params, m, v, batch[:, :-1], batch[:, 1:], jnp.float32(n + 1))
    losses.append(float(loss))
    jax.block_until_ready(params)
    times.append((time.perf_counter() - start, time.process_time() - cpu))
print(json.dumps({"versions": f"jax {jax.__version__}, jaxlib {jaxlib.__version__}", "losses": losses,
                  "step_s": [t for t, _ in times[1:]], "cpu_s": [c for _, c in times[1:]]}))
