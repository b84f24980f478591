#!/usr/bin/env python3
"""Compiles Llama 3 steps for TPUs that need not be here and compares what they send: ctitan's own collectives in each form
against XLA's partitioner. Everything is predicted: bytes as compiled, milliseconds as docs/prediction.md says (mid).

    benchmarks/collectives/run.py [--full] [--only=TEXT]     --full: all layers, too (minutes and gigabytes each)
"""
import argparse
import datetime
import os
import pathlib
import re
import subprocess

here = pathlib.Path(__file__).resolve().parent
top = here.parent.parent

CASES = [  # name, topology, flavor, batch
    ("8B, 2 layers", "v6e:4x4", str(here / "llama8b_2layers"), 2),
    ("70B, 2 layers", "v5p:4x4x8", str(here / "llama70b_2layers"), 1),
]
FULL = [("8B", "v6e:4x4", "8B", 2), ("70B", "v5p:4x4x8", "70B", 1)]

FORM = "--parallelism.fsdp_{}_form={}"
OFFLOAD = "--compile.xla_flags.xla_tpu_enable_sparse_core_collective_offload_{}={}"
OFF = [OFFLOAD.format(name, "false") for name in
       ("all_gather", "2d_all_gather", "3d_all_gather", "reduce_scatter", "nd_reduce_scatter")]
NO_EINSUM = "--compile.xla_flags.xla_jf_spmd_threshold_for_windowed_einsum_mib=1000000"
BF16 = "--training.mixed_precision_reduce=bfloat16"
FORMS = [
    ("ours, the chip's default", []),
    ("ours, per axis, no SparseCores", [FORM.format("gather", "per_axis"), FORM.format("reduce", "per_axis")] + OFF),
    ("ours, per axis", [FORM.format("gather", "per_axis"), FORM.format("reduce", "per_axis")]),
    ("Shardy, no SparseCores", ["--parallelism.partitioner=shardy", NO_EINSUM] + OFF),
    ("Shardy, the same flags as ours", ["--parallelism.partitioner=shardy", NO_EINSUM]),
]


def run(case, form):
    name, topology, flavor, batch = case
    command = [str(top / "build" / "ctitan"), "plan", str(here / "recipe.toml"), "--try-seconds=0", f"--topology={topology}",
               f"--model.flavor={flavor}", f"--training.local_batch_size={batch}", BF16, *form[1]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"| {name} {topology} | {form[0]} | " + done.stderr.strip().replace("\n", " ")[:160] + " |||||||"
    text = done.stdout

    def number(pattern):
        found = re.search(pattern, text)
        return float(found.group(1)) if found else 0.0

    sent = [number(rf"\n  {kind} +(\d+) bytes") / 1e9 for kind in
            ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")]
    links = number(r"\n  all +\d+ bytes +([\d.]+) ms")
    exposed = number(r"\n  all +\d+ bytes +[\d.]+ ms of the links, ([\d.]+) exposed")
    computed = sum(number(rf"\n    {part} +[\d.]+ +([\d.]+)") for part in
                   ("matrix products", "element-wise", "layout changes", "kernels"))
    step = number(r"\n  all +[\d.]+ +([\d.]+) +[\d.]+\n")
    temporary = number(r"\n  temporaries +(\d+)") / 2**30
    seconds = number(r"Compiled in ([\d.]+) s")
    return (f"| {name} {topology} | {form[0]} | " + " | ".join(f"{x:.2f}" for x in sent) +
            f" | {links:.1f} | {exposed:.1f} | {computed:.1f} | {step:.1f} | {temporary:.2f} | {seconds:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    commit = subprocess.run(["git", "-C", str(top), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    print(f"{datetime.date.today()}, commit {commit.stdout.strip()}, {os.cpu_count()} processors\n")
    print("| model, topology | form | all-gather GB | reduce-scatter | all-reduce | all-to-all | permute | links ms | "
          "of them exposed | computation ms | step ms | temporaries GiB | compile s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for case in CASES + (FULL if options.full else []):
        for form in FORMS:
            if options.only in f"{case[0]} {case[1]} {form[0]}":
                print(run(case, form), flush=True)


if __name__ == "__main__":
    main()
