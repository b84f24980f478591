#!/usr/bin/env bash
# Ids against Hugging Face tokenizers, tiktoken and SentencePiece: equality.py with the wheels that tools/setup --tests
# unpacked. Arguments are passed on. Skipped where those wheels are not there or are of another Python.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
deps=${CT_DEPS_DIR:-$top/.deps}
path=$(printf '%s:' "$deps"/python/*)
for python in /usr/bin/python3.11 /usr/bin/python3 python3; do
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$path "$python" -c 'import tokenizers, tiktoken, sentencepiece' 2>/dev/null || continue
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$path TOKENIZERS_PARALLELISM=false \
        exec "$python" "$top/tests/tokenizer/equality.py" ./encode_files "$deps" "${@:---quick}"
done
echo "[ RUN      ] equality"
echo "no Python 3.11 with the wheels that tools/setup --tests fetches"
echo "[  SKIPPED ] equality"
