#!/usr/bin/env python3
"""Tokens per second of a training step, ctitan against JAX, side by side on this machine.

    python3 benchmarks/step/run.py [--rounds 5] [--steps 3] [--also-newest] [--also-torch] [--set KEY=VALUE]

The model is bench30m (Qwen3, 30 M parameters, batch 4, sequence 512, float32, clipping, AdamW). ctitan and JAX run in
turn, so that what else the machine does falls on both; per round the median step counts, and of the rounds the median.
JAX is the release with the default plugin's own XLA, from a virtual environment made on the first run (Python 3.12 or
newer); --also-newest adds the newest release, --also-torch eager PyTorch. CPU time per step is printed beside the speed:
on a machine that does other work, too, it scatters less. --set overrides a key of ctitan's recipe.
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
parser.add_argument("--also-torch", action="store_true")
parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
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


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_ctitan(tokens):
    """Of each step but the first: seconds, CPU seconds, the host's own seconds."""
    out = os.path.join(WORK, "run")
    shutil.rmtree(out, ignore_errors=True)
    process = subprocess.Popen([args.ctitan, "train", os.path.join(HERE, "bench30m.toml"), f"--dump_folder={out}",
                                f"--training.dataset_path={tokens}", f"--training.steps={args.steps + 1}",
                                *("--" + override for override in args.set)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines, cpu = [], []
    for line in process.stdout:
        lines.append(line)
        if "step: " in line:  # the next one runs by now, so that differences are of whole steps
            cpu.append(cpu_seconds(process.pid))
    if process.wait():
        sys.exit("".join(lines))
    with open(os.path.join(out, "metrics.jsonl")) as file:
        rows = [json.loads(line) for line in file][1:]
    return ([row["step_s"] for row in rows], [b - a for a, b in zip(cpu, cpu[1:])], [row["host_s"] for row in rows])


def run_baseline(python, script, tokens):
    output = subprocess.run([python, os.path.join(HERE, script), f"--tokens={tokens}", f"--steps={args.steps}"],
                            check=True, capture_output=True, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    return result["step_s"], result["cpu_s"], result["versions"]


def main():
    os.makedirs(WORK, exist_ok=True)
    baselines = {"JAX, same XLA": (environment("same", SAME_XLA), "baseline_jax.py")}
    if args.also_newest:
        baselines["JAX, newest"] = (environment("newest", "jax"), "baseline_jax.py")
    if args.also_torch:
        baselines["PyTorch, eager"] = (environment("torch", "torch"), "baseline_torch.py")
    tokens = os.path.join(WORK, "tokens.safetensors")
    subprocess.run([baselines["JAX, same XLA"][0], "-c",
                    "import numpy, safetensors.numpy, sys; safetensors.numpy.save_file({'tokens': numpy.random."
                    "default_rng(0).integers(0, 8192, (20, 4, 513)).astype(numpy.int32)}, sys.argv[1])", tokens],
                   check=True)
    run_ctitan(tokens)  # compiles into the cache
    times, cpu, host, versions = {"ctitan": []}, {"ctitan": []}, [], {}
    for number in range(args.rounds):
        steps, cpu_steps, host_steps = run_ctitan(tokens)
        times["ctitan"].append(statistics.median(steps))
        cpu["ctitan"].append(statistics.median(cpu_steps))
        host += host_steps
        for name, (python, script) in baselines.items():
            steps, cpu_steps, versions[name] = run_baseline(python, script, tokens)
            times.setdefault(name, []).append(statistics.median(steps))
            cpu.setdefault(name, []).append(statistics.median(cpu_steps))
        print(f"round {number + 1}: " + ", ".join(f"{name} {TOKENS_PER_STEP / row[-1]:.0f} tokens/s"
                                                  for name, row in times.items()), flush=True)
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False).stdout.strip()
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")),
                     platform.machine())
    print(f"\n{model}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[1]:.1f}, commit {commit}, "
          f"{args.rounds} rounds of {args.steps} steps")
    print(f"ctitan           {TOKENS_PER_STEP / statistics.median(times['ctitan']):7.0f} tokens/s, "
          f"{statistics.median(cpu['ctitan']):.2f} s of CPU per step, host time outside XLA "
          f"{1000 * statistics.median(host):.2f} ms per step")
    for name in baselines:
        ratio = statistics.median(b / a for a, b in zip(times["ctitan"], times[name]))
        cpu_ratio = statistics.median(b / a for a, b in zip(cpu["ctitan"], cpu[name]))
        print(f"{name:16} {TOKENS_PER_STEP / statistics.median(times[name]):7.0f} tokens/s, "
              f"{statistics.median(cpu[name]):.2f} s of CPU per step; ctitan is {ratio:.2f} times as fast, by CPU time "
              f"{cpu_ratio:.2f} ({versions[name]})")


main()
