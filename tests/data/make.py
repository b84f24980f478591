"""Makes the files of this folder: the same texts and conversations in every format that src/data reads.

Needs pyarrow, fastparquet, pandas, tokenizers and zstandard; run here: python3 make.py. What is committed was made with
pyarrow 26, fastparquet 2026.9, tokenizers 0.23 and zstandard 0.25; the tests read the files, so they need none of them.
"""
import gzip
import io
import json
import os
import random
import tarfile

import fastparquet
import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers
import zstandard

WORDS = "in the beginning was a word, and it ran – ça va? 知道 \U0001f600 tokens\tof\nlines \"quoted\" and \\ so on".split(" ")


def texts(rng, count):
    result = []
    for _ in range(count):
        length = rng.choice([1, 2, 3, 5, 8, 13, 40])
        result.append(" ".join(rng.choice(WORDS) for _ in range(length)))
    result[7] = "a"
    return result


def conversations(rng, count):
    result = []
    for _ in range(count):
        messages = [{"role": "system", "content": "Be brief."}] if rng.random() < 0.3 else []
        for _ in range(rng.randint(1, 3)):
            messages.append({"role": "user", "content": " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))})
            messages.append({"role": "assistant", "content": " ".join(rng.choices(WORDS, k=rng.randint(1, 6)))})
        result.append(messages)
    return result


def lines(records):
    return "".join(json.dumps(record, ensure_ascii=rng.random() < 0.5) + "\n" for record in records).encode()


def add(tar, name, text):
    data = text.encode()
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


rng = random.Random(1)
docs = texts(rng, 60)
chats = conversations(rng, 25)
prompts = [{"prompt": a + "?", "completion": b} for a, b in zip(docs[:30], docs[30:])]

json.dump([{"text": text, "id": i} for i, text in enumerate(docs)], open("texts.json", "w"), indent=1)
open("texts.jsonl", "wb").write(lines({"id": i, "text": text} for i, text in enumerate(docs)))
whole = open("texts.jsonl", "rb").read()
cut = whole.index(b"\n", len(whole) // 2) + 1
open("texts.jsonl.gz", "wb").write(gzip.compress(whole[:cut], mtime=0) + gzip.compress(whole[cut:], mtime=0))
compress = zstandard.ZstdCompressor(level=19).compress
open("texts.jsonl.zst", "wb").write(compress(whole[:cut]) + compress(whole[cut:]))
open("chat.jsonl", "wb").write(lines({"messages": messages} for messages in chats))
open("prompts.jsonl", "wb").write(lines(prompts))

for suffix, form in ("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        folder = tarfile.TarInfo("shard")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for i, text in enumerate(docs):
            long = "deep/" * 12 + "x" * 90 if i % 10 == 3 else "shard"
            if form == tarfile.USTAR_FORMAT and i % 10 == 3:
                long = "deep/" * 12 + "x" * 60  # more does not go there
            add(tar, f"{long}/{i:03}.cls", str(i % 7))
            if i % 2:
                add(tar, f"{long}/{i:03}.txt", text)
            else:
                add(tar, f"{long}/{i:03}.json", json.dumps({"txt": text, "n": i}))
    open(f"texts_{suffix}.tar.gz", "wb").write(gzip.compress(buffer.getvalue(), mtime=0))

table = pa.table({
    "id": pa.array(range(len(docs)), pa.int64()),
    "text": pa.array(docs, pa.string()),
    "maybe": pa.array([None if i % 3 == 0 else text for i, text in enumerate(docs)], pa.string()),
    "meta": pa.array([{"kind": "even" if i % 2 == 0 else "odd"} for i in range(len(docs))]),
})
for name, options in {
    "snappy": dict(compression="snappy", use_dictionary=False),
    "gzip_dictionary": dict(compression="gzip", use_dictionary=True, data_page_size=64),
    "zstd_v2": dict(compression="zstd", data_page_version="2.0", use_dictionary=False, data_page_size=64),
    "lz4_v2_dictionary": dict(compression="lz4", data_page_version="2.0", use_dictionary=["text"]),
    "none_delta": dict(compression="none", use_dictionary=False, data_page_size=64,
                       column_encoding={"id": "PLAIN", "text": "DELTA_BYTE_ARRAY", "maybe": "DELTA_LENGTH_BYTE_ARRAY",
                                        "meta.kind": "DELTA_BYTE_ARRAY"}),
}.items():
    pq.write_table(table, f"texts_{name}.parquet", row_group_size=23, write_batch_size=4, store_schema=False, **options)

fastparquet.write("texts_fastparquet.parquet", table.drop(["meta"]).to_pandas(), compression="SNAPPY",
                  row_group_offsets=25)

chat_table = pa.table({
    "messages": pa.array(chats, pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
    "empty": pa.array([[] if i % 2 else None for i in range(len(chats))], pa.list_(pa.string())),
})
pq.write_table(chat_table, "chat.parquet", compression="snappy", row_group_size=9, data_page_size=64,
               write_batch_size=2, store_schema=False)
pq.write_table(chat_table, "chat_v2.parquet", compression="zstd", data_page_version="2.0", data_page_size=64,
               write_batch_size=2, store_schema=False)
pq.write_table(pa.table({"text": pa.array(docs)}), "texts_brotli.parquet", compression="brotli", store_schema=False)

# A tokenizer of 320 ids with the template that ChatML models share.
tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = tokenizers.decoders.ByteLevel()
special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
tokenizer.train_from_iterator(docs * 4, tokenizers.trainers.BpeTrainer(
    vocab_size=320, special_tokens=special, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False))
os.makedirs("tokenizer", exist_ok=True)
tokenizer.save("tokenizer/tokenizer.json")
template = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] | trim + "
            "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": "<|im_end|>",
           "chat_template": template}, open("tokenizer/tokenizer_config.json", "w"), indent=1)
