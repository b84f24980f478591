#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_tables.c from the tables that the Hugging Face wheel `tokenizers` carries.

Ids must equal those of that library, so its own idea of Unicode is what counts, newer or older than that of the C
libraries: this asks it for the general category of every code point, and for what its normalizers do where utf8proc
does otherwise. Needs the wheels tokenizers (0.23.3) and libutf8proc.so.2 (2.8.0, Unicode 15.0).

    python3 tools/unicode_tables.py > src/tokenizer/unicode_tables.c
"""
import ctypes
import sys

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
text = "".join(map(chr, points))


def members(pattern):
    """The code points that match, by deleting all others."""
    return set(map(ord, normalizers.Replace(Regex(f"[^{pattern}]"), "").normalize_str(text)))


def categories():
    of = [0] * 0x110000
    for index, name in enumerate(CATEGORIES):
        if name not in ("Cn", "Cs"):
            for point in members(rf"\p{{{name}}}"):
                of[point] = index
    for point in range(0xD800, 0xE000):
        of[point] = CATEGORIES.index("Cs")
    return of


proc = ctypes.CDLL("libutf8proc.so.2")
proc.utf8proc_map.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
proc.utf8proc_map.restype = ctypes.c_ssize_t
proc.utf8proc_tolower.argtypes = [ctypes.c_int32]
STABLE, COMPAT, COMPOSE, DECOMPOSE = 2, 4, 8, 16
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]


def proc_map(string, options):
    data = string.encode()
    out = ctypes.c_void_p()
    size = proc.utf8proc_map(data, len(data), ctypes.byref(out), options | STABLE)
    assert size >= 0, size
    result = ctypes.string_at(out, size).decode()
    libc.free(out)
    return result


def newer_points():
    """Code points that utf8proc decomposes or reorders and tokenizers, whose tables are older, leaves alone."""
    found = set()
    nfc, nfd, nfkd = normalizers.NFC(), normalizers.NFD(), normalizers.NFKD()
    for point in points:
        c = chr(point)
        if nfkd.normalize_str(c) != proc_map(c, COMPAT | DECOMPOSE):
            assert nfkd.normalize_str(c) == c, hex(point)
            found.add(point)
        parts = proc_map(c, DECOMPOSE)  # an older table does not put them together, either
        if len(parts) > 1 and nfc.normalize_str(parts) != proc_map(parts, COMPOSE):
            found.add(ord(parts[-1]))
        for around in (f"c\u0301{c}\u0301", f"c\u0334{c}\u0334", f"c{c}\u0327\u0334"):
            if nfd.normalize_str(around) != proc_map(around, DECOMPOSE):
                found.add(point)
    return found


def other_punctuation():
    """Where the pre-tokenizer Punctuation, whose tables are older, disagrees with \\p{P}; ASCII symbols apart."""
    left = "".join(piece for piece, _ in pre_tokenizers.Punctuation("removed").pre_tokenize_str(text))
    removed = set(points) - set(map(ord, left))
    return sorted(p for p in removed ^ members(r"\p{P}") if p >= 0x80)


def more_digits():
    """What the pre-tokenizer Digits, whose tables are newer, takes for a number beside \\p{N}."""
    pieces = pre_tokenizers.Digits(True).pre_tokenize_str("a".join(map(chr, points)))
    digits = {ord(piece) for piece, _ in pieces if len(piece) == 1} - {ord("a")}
    assert members(r"\p{N}") <= digits
    return sorted(digits - members(r"\p{N}"))


def lowercases():
    """Where str.lower of tokenizers is not utf8proc's."""
    lower = normalizers.Lowercase()
    for point in points:
        theirs = lower.normalize_str(chr(point))
        ours = chr(proc.utf8proc_tolower(point))
        if theirs != ours:
            yield point, theirs


def rows(numbers, per_row=14):
    numbers = list(numbers)
    for start in range(0, len(numbers), per_row):
        print("    " + ", ".join(numbers[start : start + per_row]) + ",")


def main():
    of = categories()
    space = members(r"\s")
    print(f"/* Made by tools/unicode_tables.py from tokenizers {tokenizers.__version__}; not to be edited. */")
    print('#include "tokenizer/unicode_tables.h"\n')
    print("/* Where a general category begins: code point * 32 + category; it lasts to the next entry. */")
    print("// clang-format off")
    runs = [p * 32 + of[p] for p in range(0x110000) if p == 0 or of[p] != of[p - 1]]
    print("const uint32_t ct__unicode_runs[] = {")
    rows(map(str, runs))
    print("};")
    print(f"const size_t ct__unicode_num_runs = {len(runs)};\n")
    print("const uint32_t ct__unicode_spaces[] = {")
    rows(f"0x{p:x}" for p in sorted(space))
    print("};")
    print(f"const size_t ct__unicode_num_spaces = {len(space)};\n")
    newer = sorted(newer_points())
    print("const uint32_t ct__unicode_unnormalized[] = {")
    rows(f"0x{p:x}" for p in newer)
    print("};")
    print(f"const size_t ct__unicode_num_unnormalized = {len(newer)};\n")
    for name, found in ("other_punctuation", other_punctuation()), ("more_digits", more_digits()):
        print(f"const uint32_t ct__unicode_{name}[] = {{")
        rows(f"0x{p:x}" for p in found)
        print("};")
        print(f"const size_t ct__unicode_num_{name} = {len(found)};\n")
    lower = list(lowercases())
    print("const ct__unicode_lowercase ct__unicode_lowercases[] = {")
    rows(("{0x%x, {%s}}" % (p, ", ".join(f"0x{ord(c):x}" for c in theirs)) for p, theirs in lower), 6)
    print("};")
    print(f"const size_t ct__unicode_num_lowercases = {len(lower)};")
    print("// clang-format on")
    print(len(runs), len(space), len(newer), len(lower), file=sys.stderr)


main()
