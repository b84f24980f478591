#!/usr/bin/env python3
"""How fast checkpoints are saved and loaded, and how much a save in the background holds up training.

    python3 benchmarks/checkpoint/run.py [--folder DIR] [--rounds 5] [--steps 25] [--only speed|hold-up]

speed: build/checkpoint_bench (which see) against dd on the disk of --folder.

hold-up: a Qwen3 of 9 M parameters (a state of 0.1 GB, float32, on the CPU, 2048 tokens per step; --large: bench30m of
benchmarks/step, 30 M and 0.36 GB) trains with a save after every fourth step, with saves in the foreground and in the
background and with none, in turn. Held up is what the trainer logs: how long the next step could not begin. The rest is
of use on an idle machine alone, where runs without saves show no difference: steps by their place after a save, the last
of the four being undisturbed, and CPU time of whole runs.
"""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build")
INTERVAL = 4
MODES = {"none": ["--checkpoint.load_only"], "disabled": [], "async": [], "async_with_pinned_mem": []}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--folder", default=os.path.join(BUILD, "bench-checkpoint"))
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--steps", type=int, default=25)
parser.add_argument("--large", action="store_true")
parser.add_argument("--only", choices=["speed", "hold-up"])
args = parser.parse_args()


CONFIG = {"model_type": "qwen3", "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 32, "intermediate_size": 1024, "vocab_size": 4096,
          "max_position_embeddings": 512, "tie_word_embeddings": True}


def train(mode, text):
    """Of each step but the first its number and seconds, CPU seconds of the run, and how long each save held it up."""
    out = os.path.join(args.folder, "run")
    shutil.rmtree(out, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [os.path.join(BUILD, "ctitan"), "train", os.path.join(ROOT, "benchmarks", "step", "bench30m.toml"),
         f"--dump_folder={out}", "--training.dataset=text", f"--training.dataset_path={text}",
         f"--training.steps={args.steps}", "--checkpoint.enable", f"--checkpoint.interval={INTERVAL}",
         "--checkpoint.keep_latest_k=2", f"--checkpoint.async_mode={'disabled' if mode == 'none' else mode}",
         *([] if args.large else [f"--model.flavor={args.folder}/model"]), *MODES[mode]], capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(result.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.path.join(out, "metrics.jsonl")) as file:
        rows = [json.loads(line) for line in file]
    shutil.rmtree(out)
    return ([(row["step"], row["step_s"]) for row in rows[1:]],
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            [float(x) for x in re.findall(r"held up training for ([0-9.]+) s", result.stderr)])


def hold_up():
    os.makedirs(args.folder, exist_ok=True)
    text = os.path.join(args.folder, "text.txt")
    with open(text, "w") as file:
        file.write("".join(chr(97 + i * i % 23) for i in range(200000)))
    os.makedirs(os.path.join(args.folder, "model"), exist_ok=True)
    with open(os.path.join(args.folder, "model", "config.json"), "w") as file:
        json.dump(CONFIG, file)
    train("none", text)  # compiles into the cache
    steps, cpu, held = ({mode: [] for mode in MODES} for _ in range(3))
    for number in range(args.rounds):
        for mode in MODES:
            seconds, cpu_seconds, held_seconds = train(mode, text)
            held[mode] += held_seconds
            steps[mode] += seconds
            cpu[mode].append(cpu_seconds)
        print(f"round {number + 1}: " + ", ".join(f"{mode} {statistics.median(s for _, s in steps[mode]):.2f} s"
                                                  for mode in MODES), flush=True)
    # the last step is saved, too, as weights alone: a third of a save
    num_saves = (args.steps - 1) // INTERVAL + 1 / 3
    cpu_step = statistics.median(cpu["none"]) / args.steps
    for mode in MODES:
        places = [[s for step, s in steps[mode] if (step - 1) % INTERVAL == i and step > INTERVAL]
                  for i in range(INTERVAL)]
        medians = [statistics.median(place) for place in places]
        extra = sum(medians[:-1]) - (INTERVAL - 1) * medians[-1]
        cpu_extra = (statistics.median(cpu[mode]) - statistics.median(cpu["none"])) / num_saves
        if held[mode]:
            typical, worst = statistics.median(held[mode]), max(held[mode])
            step_s = statistics.median(s for _, s in steps[mode])
            print(f"{mode}: a save held up training for {typical:.3f} s ({worst:.3f} at most), "
                  f"{100 * typical / step_s:.1f}% ({100 * worst / step_s:.1f}%) of a step")
        print(f"{mode}: steps after a save {', '.join(f'{m:.3f}' for m in medians)} s, together "
              f"{100 * extra / medians[-1]:+.1f}% of a step; CPU time of a save {100 * cpu_extra / cpu_step:.1f}% of a "
              "step's")


if args.only != "hold-up":
    subprocess.run(["ninja", "-C", BUILD, "checkpoint_bench"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([os.path.join(BUILD, "checkpoint_bench"), args.folder, str(args.rounds)], cwd=BUILD, check=True)
if args.only != "speed":
    hold_up()
with open("/proc/cpuinfo") as file:
    model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "?")
commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                        check=False).stdout.strip()
print(f"{model}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[1]:.1f}, commit {commit}")
