"""The benchmark's Qwen3 in eager PyTorch: scaled_dot_product_attention, cross_entropy, clipping, AdamW, on all cores.

Reads the tokens that ctitan reads, prints one JSON line: seconds of each step, losses, versions.
"""
import argparse
import json
import os
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

DIM, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB = 512, 8, 8, 4, 64, 1536, 8192
THETA, EPS, LR = 1e6, 1e-6, 3e-4

parser = argparse.ArgumentParser()
parser.add_argument("--tokens", required=True)
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()
torch.manual_seed(0)
torch.set_num_threads(len(os.sched_getaffinity(0)))


def linear(inputs, outputs):
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=0.02)
    return layer


def rope(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(DIM, EPS), nn.RMSNorm(DIM, EPS)
        self.q_norm, self.k_norm = nn.RMSNorm(HEAD_DIM, EPS), nn.RMSNorm(HEAD_DIM, EPS)
        self.wq, self.wo = linear(DIM, HEADS * HEAD_DIM), linear(HEADS * HEAD_DIM, DIM)
        self.wk, self.wv = linear(DIM, KV_HEADS * HEAD_DIM), linear(DIM, KV_HEADS * HEAD_DIM)
        self.gate, self.up, self.down = linear(DIM, FFN), linear(DIM, FFN), linear(FFN, DIM)

    def forward(self, x, cos, sin):
        batch, seq, _ = x.shape
        h = self.attention_norm(x)
        q = self.q_norm(self.wq(h).view(batch, seq, HEADS, HEAD_DIM)).transpose(1, 2)
        k = self.k_norm(self.wk(h).view(batch, seq, KV_HEADS, HEAD_DIM)).transpose(1, 2)
        v = self.wv(h).view(batch, seq, KV_HEADS, HEAD_DIM).transpose(1, 2)
        o = F.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.wo(o.transpose(1, 2).reshape(batch, seq, HEADS * HEAD_DIM))
        h = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, DIM)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM, EPS)

    def forward(self, tokens):
        frequencies = THETA ** (-torch.arange(0, HEAD_DIM, 2, dtype=torch.float32) / HEAD_DIM)
        angles = torch.arange(tokens.shape[1], dtype=torch.float32)[:, None] * frequencies
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        return F.linear(self.norm(x), self.embedding.weight)


tokens = load_file(args.tokens)["tokens"].long()
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
times, losses = [], []
for n in range(args.steps + 1):  # the first one allocates
    batch = tokens[n % len(tokens)]
    start, cpu = time.perf_counter(), time.process_time()
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
    times.append((time.perf_counter() - start, time.process_time() - cpu))
print(json.dumps({"versions": f"torch {torch.__version__}", "losses": losses,
                  "step_s": [t for t, _ in times[1:]], "cpu_s": [c for _, c in times[1:]]}))
