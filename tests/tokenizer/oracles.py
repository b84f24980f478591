"""Tokenizers as other libraries know them: each case is a path for ctitan and a function from text to ids.

Cases are made from the real files that tools/setup --tests fetches, and from models trained here with those libraries
where no published file can be fetched (GPT-2's pair of files, T5's Unigram).
"""
import base64
import json

import sentencepiece
import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"


def letters():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {b: chr(b) for b in keep}, 256
    for b in range(256):
        if b not in table:
            table[b] = chr(extra)
            extra += 1
    return table


def read_ranks(path):
    return {base64.b64decode(a): int(b) for a, b in (line.split() for line in path.read_bytes().splitlines() if line)}


def with_tiktoken(ranks, pattern, specials, nfc=False):
    encoding = tiktoken.Encoding("case", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)

    def encode(text):
        if nfc:  # Hugging Face's, not Python's, which knows other versions of Unicode
            text = normalizers.NFC().normalize_str(text)
        return encoding.encode(text, allowed_special="all")

    return encode, lambda ids: encoding.decode_bytes([i for i in ids if i not in specials.values()])


def with_tekken(path):
    data = json.loads(path.read_text())
    first = data["config"]["default_num_special_tokens"]
    vocab = data["vocab"][: data["config"]["default_vocab_size"] - first]
    ranks = {base64.b64decode(v["token_bytes"]): v["rank"] for v in vocab}
    encoding = tiktoken.Encoding("tekken", pat_str=data["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    return (lambda text: [i + first for i in encoding.encode_ordinary(text)]), (
        lambda ids: encoding.decode_bytes([i - first for i in ids]))


def train_unigram(folder, text, **options):
    (folder / "text").write_text(text)
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "model"), vocab_size=4000, model_type="unigram",
        minloglevel=2, num_threads=1, max_sentence_length=100_000, **options)
    return folder / "model.model"


def with_hf(path, special=False):
    tokenizer = Tokenizer.from_file(str(path))

    def encode(text):
        return tokenizer.encode(text, add_special_tokens=special).ids

    return encode, lambda ids: tokenizer.decode(ids, skip_special_tokens=True)


def with_sentencepiece(path):
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return (lambda text: model.encode(text)), (lambda ids: model.decode(ids))


def json_from_ranks(ranks, pattern, specials, folder, nfc=False, pairs=False):
    """What the published tokenizer.json of a model with tiktoken ranks is made like."""
    table = letters()
    spell = lambda token: "".join(table[b] for b in token)
    merges = []
    for token, rank in ranks.items():
        splits = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [(rank, ranks[a], ranks[b], spell(a), spell(b)) for a, b in splits]
    merges.sort()
    tokenizer = Tokenizer(
        models.BPE({spell(t): r for t, r in ranks.items()}, [m[3:] for m in merges], ignore_merges=True)
    )
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in specials])
    first = next(iter(specials))
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{first} $A", special_tokens=[(first, specials[first])]),
        ]
    )
    assert all(tokenizer.token_to_id(s) == i for s, i in specials.items())
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    if not pairs:  # the older way to write merges
        data = json.loads(path.read_text())
        data["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
        path.write_text(json.dumps(data, ensure_ascii=False))
    return path


def llama3_specials():
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>"]
    names += ["<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>"]
    names += ["<|eot_id|>", "<|python_tag|>", "<|image|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(2, 246)]
    return {name: 128000 + i for i, name in enumerate(names)}


def qwen_specials(extras):
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(extras)]
    return {name: 151643 + i for i, name in enumerate(names)}


def sentencepiece_to_json(model_path, path, legacy):
    """As transformers converts Llama 2 and Mistral (BPE) and T5 (Unigram)."""
    from google_free_protobuf import read_sentencepiece

    model = read_sentencepiece(model_path.read_bytes())
    pieces = model["pieces"]
    if model["type"] == 2:  # BPE
        vocab = {p: i for i, (p, _, _) in enumerate(pieces)}
        merges = []
        for piece, score, _ in pieces:
            local = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
            local.sort(key=lambda m: (vocab[m[0]], vocab[m[1]]))
            merges += [(m[0], m[1], score) for m in local]
        merges.sort(key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)
        tokenizer = Tokenizer(
            models.BPE(vocab, [m[:2] for m in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
        )
        if legacy:
            tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        else:
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
        )
        tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>")])
    else:
        tokenizer = Tokenizer(models.Unigram([(p, s) for p, s, _ in pieces], model["unk_id"], byte_fallback=False))
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Precompiled(model["charsmap"]), normalizers.Replace(Regex(" {2,}"), " ")]
            if legacy
            else [normalizers.Precompiled(model["charsmap"])]
        )
        tokenizer.pre_tokenizer = (
            pre_tokenizers.Metaspace("▁", prepend_scheme="always")
            if legacy
            else pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁")])
        )
        tokenizer.decoder = decoders.Metaspace("▁")
        tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
        eos = tokenizer.token_to_id("</s>")
        tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", eos)])
        tokenizer.add_special_tokens([AddedToken(f"<extra_id_{i}>", lstrip=i % 2 == 0) for i in range(10)])
    tokenizer.save(str(path))


def odd_tokenizer(path, text):
    """A byte-level BPE with the settings that published files rarely combine."""
    from tokenizers import trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Replace(Regex("x+"), "y")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation("merged_with_previous"),
            pre_tokenizers.Split(Regex(r"[aeiou]{2,}|\s?\p{Lu}"), "merged_with_next"),
            pre_tokenizers.Split("th", "contiguous"),
            pre_tokenizers.Split(Regex(r"\p{L}+"), "isolated", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(text.splitlines(), trainers.BpeTrainer(
        vocab_size=1000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_tokens(
        [AddedToken("Hello", single_word=True), AddedToken("fox", lstrip=True, rstrip=True), AddedToken("é", normalized=True),
         AddedToken("LAZY"), AddedToken("<A>", normalized=False, lstrip=True), AddedToken("  ", normalized=False)]
    )
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.post_processor = processors.RobertaProcessing(("a", 5), ("b", 6))
    tokenizer.save(str(path))


def gpt2_pair(folder, text):
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer(add_prefix_space=False)
    tokenizer.train_from_iterator(text.splitlines(), vocab_size=3000, special_tokens=["<|endoftext|>"], show_progress=False)
    tokenizer.save_model(str(folder))
    again = ByteLevelBPETokenizer.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"), add_prefix_space=False)
    again.add_special_tokens(["<|endoftext|>"])
    return (lambda t: again.encode(t).ids), (lambda ids: again.decode(ids, skip_special_tokens=True))


def check_trained(path, text, vocab_size):
    from tokenizers import trainers

    ours = json.loads(path.read_text())
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(ours["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=["<|begin_of_text|>", "<|end_of_text|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    theirs = json.loads(tokenizer.to_str())
    assert theirs["model"]["vocab"] == ours["model"]["vocab"], "another vocabulary"
    assert [list(m) for m in theirs["model"]["merges"]] == ours["model"]["merges"], "other merges"
    assert len(ours["model"]["vocab"]) == vocab_size
