#!/usr/bin/env python3
"""Holds ids, decoded text and offsets against Hugging Face tokenizers, tiktoken and SentencePiece.

    equality.py ENCODE_FILES DEPS [--quick] [case...]

Prints a line per case as cmocka's programs do, and what differs first; exit status 1 if anything does.
"""
import array
import pathlib
import subprocess
import sys
import tempfile
import time

import oracles
import texts

encode_files, deps = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
quick = "--quick" in sys.argv
wanted = [a for a in sys.argv[3:] if not a.startswith("--")]
# One of each kind goes over all texts, megabyte runs and every code point included; the others over the quick ones.
THOROUGH = ["llama3_json", "qwen_json", "deepseek_json", "mistral_v1_json", "unigram_model", "unigram_json_words"]
if quick and not wanted:
    wanted = ["llama3_json", "deepseek_json", "odd_json", "trained"]
data = deps / "tokenizers"


def cases(folder):
    """(name, path for ctitan, (encode, decode), options)"""
    def make(name):
        made = folder / name
        made.mkdir()
        return made

    english, code = texts.english(deps)[:500_000], texts.code()[:500_000]

    llama3, specials = lambda: oracles.read_ranks(data / "llama3" / "tokenizer.model"), oracles.llama3_specials()
    yield "llama3_tiktoken", lambda: (
        data / "llama3", oracles.with_tiktoken(llama3(), oracles.LLAMA3, specials))

    def llama3_json():
        path = oracles.json_from_ranks(llama3(), oracles.LLAMA3, specials, make("llama3"))
        return path, oracles.with_hf(path)
    yield "llama3_json", llama3_json

    qwen = lambda: oracles.read_ranks(data / "qwen" / "qwen.tiktoken")
    yield "qwen_tiktoken", lambda: (
        data / "qwen", oracles.with_tiktoken(qwen(), oracles.QWEN2, oracles.qwen_specials(205), nfc=True))

    def qwen_json():
        path = oracles.json_from_ranks(qwen(), oracles.QWEN2, oracles.qwen_specials(0), make("qwen"), nfc=True, pairs=True)
        return path, oracles.with_hf(path)
    yield "qwen_json", qwen_json

    yield "deepseek_json", lambda: (
        data / "deepseek", oracles.with_hf(data / "deepseek" / "tokenizer.json"))

    def gpt2():
        made = make("gpt2")
        return made, oracles.gpt2_pair(made, english + code)
    yield "gpt2_pair", gpt2

    def odd():
        path = make("odd") / "tokenizer.json"
        oracles.odd_tokenizer(path, english + code + texts.SAMPLES)
        encode, _ = oracles.with_hf(path)
        return path, (encode, None)  # it decodes added tokens as if they were made of letters for bytes
    yield "odd_json", odd

    yield "tekken", lambda: (data / "tekken", oracles.with_tekken(data / "tekken" / "tekken.json"), "--special-as-text")

    for version in ("mistral_v1", "mistral_v3"):
        model = data / version / "tokenizer.model"
        yield f"{version}_model", lambda model=model: (model, oracles.with_sentencepiece(model), "--special-as-text")
        for legacy in (True, False):
            def converted(model=model, name=f"{version}_{legacy}", legacy=legacy):
                path = make(name) / "tokenizer.json"
                oracles.sentencepiece_to_json(model, path, legacy)
                return path, oracles.with_hf(path, special=True), "--special-tokens"
            yield f"{version}_json{'' if legacy else '_metaspace'}", converted

    def unigram(folder, **options):
        return oracles.train_unigram(make(folder), english[:300_000] + code[:100_000] + texts.SAMPLES, **options)
    yield "unigram_model", lambda: (
        model := unigram("unigram"), (oracles.with_sentencepiece(model)[0], None), "--special-as-text")  # unknown: ⁇
    yield "unigram_bytes_model", lambda: (
        model := unigram("unigram_bytes", byte_fallback=True, normalization_rule_name="identity",
                         remove_extra_whitespaces=False, user_defined_symbols=["fox", "<sep>", "\n"]),
        oracles.with_sentencepiece(model), "--special-as-text")
    for legacy in (True, False):
        def t5(legacy=legacy):
            model = unigram(f"t5_{legacy}")
            path = model.parent / "tokenizer.json"
            oracles.sentencepiece_to_json(model, path, legacy)
            return path, oracles.with_hf(path, special=True), "--special-tokens"
        yield f"unigram_json_{'metaspace' if legacy else 'words'}", t5

    def trained():
        """ctitan tokenizer train learns what Hugging Face's trainer does, and Hugging Face loads what it writes."""
        made = make("trained")
        text = english[:200_000] + code[:200_000] + texts.SAMPLES
        (made / "text").write_text(text)
        subprocess.run([encode_files.parent / "ctitan", "tokenizer", "train", "--vocab-size=2048", f"--output={made}",
                        made / "text"], check=True, stdout=subprocess.DEVNULL)
        oracles.check_trained(made / "tokenizer.json", text, 2048)
        return made, oracles.with_hf(made / "tokenizer.json")
    yield "trained", trained


def main():
    failures = ran = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = {}
        for is_quick in {True, quick}:
            files[is_quick] = []
            for text_name, text in texts.all_texts(deps, is_quick):
                path = folder / f"{text_name}{'_quick' if is_quick else ''}"
                path.write_bytes(text)
                files[is_quick].append((path, text))
        for case, make in cases(folder):
            if wanted and case not in wanted:
                continue
            print(f"[ RUN      ] {case}", flush=True)
            ran += 1
            begin = time.time()
            bad = run_case(*make(), files[quick or case not in THOROUGH])
            print(f"[ {'  FAILED' if bad else '      OK'} ] {case} ({time.time() - begin:.1f} s)", flush=True)
            failures += bool(bad)
    print(f"[==========] {ran} test(s) run.")
    print(f"[  PASSED  ] {ran - failures} test(s).")
    sys.exit(1 if failures or not ran else 0)


def run_case(path, oracle, *rest):
    *flags, files = rest
    encode, decode = oracle
    result = subprocess.run([encode_files, *flags, path, *(p for p, _ in files)], capture_output=True, text=True)
    if result.returncode:
        print(result.stderr)
        return True
    bad = False
    for file, text in files:
        shown = text.decode("utf-8", errors="replace")
        ours = array.array("i", pathlib.Path(f"{file}.ids").read_bytes())
        try:
            theirs = array.array("i", encode(shown))
        except BaseException as error:  # a panic of the library
            print(f"{file.name}: the other library fails: {str(error)[:200]}")
            continue
        if ours != theirs:
            bad = True
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            from_id = max(at - 3, 0)
            print(f"{file.name}: id {at} of {len(ours)} and {len(theirs)}: {ours[from_id : at + 5].tolist()} != "
                  f"{theirs[from_id : at + 5].tolist()}")
            if decode:
                print(f"  after {decode(list(theirs[max(at - 20, 0) : at]))!r}: {decode(list(theirs[at : at + 5]))!r}, "
                      f"ours {decode(list(ours[at : at + 5]))!r}")
            continue
        if not decode:
            continue
        decoded = pathlib.Path(f"{file}.txt").read_bytes().decode("utf-8", errors="replace")
        expected = decode(list(theirs))
        if isinstance(expected, bytes):
            expected = expected.decode("utf-8", errors="replace")
        if decoded != expected:
            bad = True
            at = next((i for i, (a, b) in enumerate(zip(decoded, expected)) if a != b), min(len(decoded), len(expected)))
            print(f"{file.name}: decoded text differs at {at}: {decoded[at - 20 : at + 20]!r} != {expected[at - 20 : at + 20]!r}")
    return bad


main()
