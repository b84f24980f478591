#!/usr/bin/env python3
"""Encoding speed, ctitan against Hugging Face tokenizers, side by side on one core.

    python3 benchmarks/tokenizer/run.py [--megabytes 50] [--rounds 3] [--core 0] [--tokenizers NAME...]

Texts are English (the King James Bible of set-up, and Debian's dict-gcide, a dictionary, which is downloaded) and code
(Python and C headers of this machine), cut in documents of 100 kB. Both encode the same documents on the same core, in
turn; of the rounds the fastest counts. Hugging Face runs its fastest way, encode_batch_fast (without offsets), with
RAYON_NUM_THREADS=1. The numbers of ids must be equal. Needs tools/setup --tests and tools/build.
"""
import argparse
import gzip
import os
import pathlib
import platform
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEPS = pathlib.Path(os.environ.get("CT_DEPS_DIR", ROOT / ".deps"))
WORK = ROOT / "build" / "bench-tokenizer"
DOCUMENT_BYTES = 100_000


def english():
    made = WORK / "gcide.txt"
    if not made.exists():
        subprocess.run(["apt-get", "download", "-q", "dict-gcide"], cwd=WORK, check=True)
        package = next(WORK.glob("dict-gcide*.deb"))
        subprocess.run(["dpkg", "-x", package, WORK / "gcide"], check=True)
        made.write_bytes(gzip.decompress((WORK / "gcide/usr/share/dictd/gcide.dict.dz").read_bytes()))
    return (DEPS / "text" / "kjv.txt").read_bytes() + made.read_bytes()


def code():
    out, size = [], 0
    for folder in (sys.prefix + "/lib", "/usr/lib/python3", "/usr/lib/python3.11", "/usr/include", "/usr/lib/gcc"):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in (".py", ".h", ".hpp", ".c") and path.is_file() and path.stat().st_size < 400_000:
                out.append(path.read_bytes())
                size += len(out[-1])
        if size > 200_000_000:
            break
    return b"".join(out)


def write_text(name, data, size):
    data = data.decode("utf-8", errors="replace").encode()
    data = (data * (size // len(data) + 1))[:size]  # again from the start where there is less
    path = WORK / f"{name}.txt"
    path.write_bytes(data.decode("utf-8", errors="ignore").encode())
    return path


def documents(data):
    at = 0
    while at < len(data):
        end = min(at + DOCUMENT_BYTES, len(data))
        if end < len(data):
            newline = data.find(b"\n", end)
            end = newline + 1 if newline >= 0 else len(data)
        yield data[at:end].decode()
        at = end


def hugging_face(tokenizer, path):
    """In a process of its own; prints seconds and ids."""
    import tokenizers

    model = tokenizers.Tokenizer.from_file(tokenizer)
    docs = list(documents(pathlib.Path(path).read_bytes()))
    seconds, count = 0.0, 0
    for start in range(0, len(docs), 20):
        begin = time.perf_counter()
        encoded = model.encode_batch_fast(docs[start : start + 20], add_special_tokens=False)
        seconds += time.perf_counter() - begin
        count += sum(len(e) for e in encoded)
    print(f"{seconds:.4f} {count}")


def tokenizer_files():
    """Name and tokenizer.json of each; Llama 3's and Qwen's are made from their rank files."""
    sys.path[:0] = [str(ROOT / "tests" / "tokenizer")]
    import oracles

    for name, pattern, specials, file, nfc in (
        ("llama3", oracles.LLAMA3, oracles.llama3_specials(), "llama3/tokenizer.model", False),
        ("qwen", oracles.QWEN2, oracles.qwen_specials(0), "qwen/qwen.tiktoken", True)):
        folder = WORK / name
        if not (folder / "tokenizer.json").exists():
            folder.mkdir(exist_ok=True)
            oracles.json_from_ranks(oracles.read_ranks(DEPS / "tokenizers" / file), pattern, specials, folder, nfc)
        yield name, folder / "tokenizer.json"
    yield "deepseek", DEPS / "tokenizers" / "deepseek" / "tokenizer.json"
    folder = WORK / "mistral"
    if not folder.exists():
        folder.mkdir()
        oracles.sentencepiece_to_json(DEPS / "tokenizers" / "mistral_v1" / "tokenizer.model", folder / "tokenizer.json", True)
    yield "mistral_v1", folder / "tokenizer.json"
    folder = WORK / "trained2048"
    if not folder.exists():
        subprocess.run([ROOT / "build" / "ctitan", "tokenizer", "train", "--vocab-size=2048", f"--output={folder}",
                        DEPS / "text" / "kjv.txt"], check=True, stdout=subprocess.DEVNULL)
    yield "trained2048", folder / "tokenizer.json"


def run(command, core, environment):
    result = subprocess.run(["taskset", "-c", str(core), *map(str, command)], env=environment, check=True,
                            capture_output=True, text=True)
    seconds, count = result.stdout.split()[:2]
    return float(seconds), int(count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--tokenizers", nargs="*")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    packages = ":".join(map(str, (DEPS / "python").glob("*")))
    environment = dict(os.environ, PYTHONPATH=packages, RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    if options.child:
        return hugging_face(*options.child)
    if os.environ.get("PYTHONPATH") != packages:  # the wheels of set-up are for this process as well
        os.execvpe(sys.executable, [sys.executable, *sys.argv], environment)
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ninja", "-C", ROOT / "build", "tokenizer_bench", "ctitan"], check=True, stdout=subprocess.DEVNULL)
    size = options.megabytes * 1_000_000
    files = [write_text("english", english(), size), write_text("code", code(), size)]
    print(f"{platform.processor() or platform.machine()}, core {options.core}, {options.megabytes} MB, "
          f"best of {options.rounds}; MB/s and the ratio")
    print(f"{'tokenizer':12} {'text':8} {'ids':>10} {'ctitan':>8} {'HF':>8} {'ratio':>7}")
    worst = 1e9
    for name, tokenizer in tokenizer_files():
        if options.tokenizers and name not in options.tokenizers:
            continue
        for file in files:
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(run([ROOT / "build" / "tokenizer_bench", tokenizer, file, DOCUMENT_BYTES], options.core, environment))
                theirs.append(run([sys.executable, __file__, "--child", tokenizer, file], options.core, environment))
            assert ours[0][1] == theirs[0][1], f"{ours[0][1]} ids, Hugging Face has {theirs[0][1]}"
            best, their_best = min(ours)[0], min(theirs)[0]
            worst = min(worst, their_best / best)
            megabytes = file.stat().st_size / 1e6
            print(f"{name:12} {file.stem:8} {ours[0][1]:10} {megabytes / best:8.1f} {megabytes / their_best:8.2f} "
                  f"{their_best / best:7.1f}", flush=True)
    print(f"smallest ratio {worst:.1f}; 3 is wanted")


main()
