#!/usr/bin/env python3
"""Tokens per second of a training step, ctitan against JAX, side by side on this machine.

    python3 benchmarks/step/run.py [--rounds 5] [--steps 3] [--also-newest]

The model is bench30m (Qwen3, 30 M parameters, batch 4, sequence 512, float32, clipping, AdamW). ctitan and JAX run in
turn, so that what else the machine does falls on both; per round the median step counts, and of the rounds the median.
JAX is the release with the default plugin's own XLA, from a virtual environment made on the first run (Python 3.12 or
newer); --also-newest adds the newest release.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "build", "bench-step")
TOKENS_PER_STEP = 4 * 512
SAME_XLA = "jax==0.11.2"

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--also-newest", action="store_true")
parser.add_argument("--ctitan", default=os.path.join(ROOT, "build", "ctitan"))
args = parser.parse_args()


def environment(name, *packages):
    """The Python of a virtual environment with the packages; made when it is not there."""
    python = os.path.join(WORK, name, "bin", "python")
    if os.path.exists(os.path.join(WORK, name, "done")):
        return python
    for candidate in (sys.executable, "python3.13", "python3.12", "python3"):
        path = shutil.which(candidate)
        version = path and subprocess.run([path, "-c", "import sys; print(sys.version_info >= (3, 12))"],
                                          capture_output=True, text=True, check=False).stdout.strip()
        if version == "True":
            break
    else:
        sys.exit("benchmark: needs Python 3.12 or newer for the baseline, found none")
    subprocess.run([path, "-m", "venv", os.path.join(WORK, name)], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "safetensors", "numpy", *packages], check=True)
    open(os.path.join(WORK, name, "done"), "w").close()
    return python


def run_ctitan(tokens):
    out = os.path.join(WORK, "run")
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([args.ctitan, "train", os.path.join(HERE, "bench30m.toml"), f"--dump_folder={out}",
                    f"--training.dataset_path={tokens}", f"--training.steps={args.steps + 1}"],
                   check=True, capture_output=True)
    with open(os.path.join(out, "metrics.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    return [row["step_s"] for row in rows[1:]], [row["host_s"] for row in rows[1:]]


def run_jax(python, tokens):
    output = subprocess.run([python, os.path.join(HERE, "baseline_jax.py"), f"--tokens={tokens}",
                             f"--steps={args.steps}"], check=True, capture_output=True, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    return result["step_s"], result["versions"]


def main():
    os.makedirs(WORK, exist_ok=True)
    baselines = {"JAX, same XLA": environment("same", SAME_XLA)}
    if args.also_newest:
        baselines["JAX, newest"] = environment("newest", "jax")
    tokens = os.path.join(WORK, "tokens.safetensors")
    subprocess.run([baselines["JAX, same XLA"], "-c",
                    "import numpy, safetensors.numpy, sys; safetensors.numpy.save_file({'tokens': numpy.random."
                    "default_rng(0).integers(0, 8192, (20, 4, 513)).astype(numpy.int32)}, sys.argv[1])", tokens],
                   check=True)
    run_ctitan(tokens)  # compiles into the cache
    times, host, versions = {"ctitan": []}, [], {}
    for number in range(args.rounds):
        steps, host_steps = run_ctitan(tokens)
        times["ctitan"].append(statistics.median(steps))
        host += host_steps
        for name, python in baselines.items():
            steps, versions[name] = run_jax(python, tokens)
            times.setdefault(name, []).append(statistics.median(steps))
        print(f"round {number + 1}: " + ", ".join(f"{name} {TOKENS_PER_STEP / row[-1]:.0f} tokens/s"
                                                  for name, row in times.items()), flush=True)
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    print(f"\n{cpu}, {os.cpu_count()} cores, commit {commit}, {args.rounds} rounds of {args.steps} steps")
    ours = statistics.median(times["ctitan"])
    print(f"ctitan           {TOKENS_PER_STEP / ours:7.0f} tokens/s, host time outside XLA "
          f"{1000 * statistics.median(host):.2f} ms per step")
    for name in baselines:
        theirs = statistics.median(times[name])
        ratio = statistics.median(b / a for a, b in zip(times["ctitan"], times[name]))
        print(f"{name:16} {TOKENS_PER_STEP / theirs:7.0f} tokens/s; ctitan is {ratio:.2f} times as fast "
              f"({versions[name]})")


main()
