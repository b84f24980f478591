"""The texts that tokenizers are compared over."""
import pathlib
import random
import sysconfig

SAMPLES = """
The quick brown fox jumps over the lazy dog. It's, we'll, I'VE, they'Re, don't, 'tis, he'ſ; don’t “quote” — so…
for (int i = 0; i < 1000000; i++) { printf("%d\\t%s\\n", i, names[i]); } // 3.14159e-10 0xDEADBEEF
    def f(self, *args, **kwargs):\n\treturn {k: v for k, v in kwargs.items() if k != '__init__'}\r\n\r\n\n   \n
Ünïcödé naïve café ﬁancé Straße ĲSSELMEER İstanbul ıĞ ΣΊΣΥΦΟΣ ǅ ǉ ﷺ ½ ⅷ ① ㊿ ² ₃
Привет, мир! Съешь же ещё этих мягких французских булок. Ѐ й й
Γειά σου Κόσμε — ἀρχὴ ἥμισυ παντός. שָׁלוֹם עוֹלָם. مرحبا بالعالم، كيف الحال؟ ١٢٣٤٥ ۱۲۳
नमस्ते दुनिया क़ ख़ १२३ বাংলা ভাষা ਪੰਜਾਬੀ ગુજરાતી தமிழ் மொழி తెలుగు ಕನ್ನಡ മലയാളം සිංහල ภาษาไทย ພາສາລາວ မြန်မာ
你好，世界！這是一個測試。日本語のテキスト、カタカナ、ｶﾞｷﾞｸﾞ、ﾊﾟ、漢字。안녕하세요 세계 각 한글 ༄༅། བོད་ཡིག ខ្មែរ
ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ ⵜⴰⵎⴰⵣⵉⵖⵜ አማርኛ Հայերեն ქართული 𐌰𐌱𐌲 𓀀𓁐 𝔘𝔫𝔦 𝟘𝟙𝟚 𠮷野家 🀄
😀😃 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ☕️ ❤️‍🔥 1️⃣ \u200b\u200d\ufeff\u00ad\u2028\u2029\u0085\u00a0\u3000\u180e\u1680x
A\u0301 e\u0301\u0323 e\u0323\u0301 o\u0308\u0304 \u212b \u2126 \u1e9b\u0323 \u0f73\u0f71 \u0344 \u1100\u1161\u11a8 \uac00\u11a8
<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|> <|endoftext|><|im_start|>system\nx<|im_end|>
<s>[INST] hi [/INST]</s> <unk> <pad> <0x41> ▁▁ ▁a a▁b <extra_id_0> <think>\n\n</think>\n <tool_call>{"a": 1}</tool_call>
12 123 1234 12345 1,234,567.89 ½¾ 10² ٣٤٥٦ 一二三 3rd 4th x1y2z3 CamelCaseHTTPServer snake_case_name kebab-case
"""


def english(deps):
    return (deps / "text" / "kjv.txt").read_text()


def code():
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    return "".join(p.read_text(errors="replace") for p in sorted(folder.glob("*.py")))


def every_code_point(first, end, form):
    return "\n".join(form.format(c=chr(p)) for p in range(first, end) if not 0xD800 <= p < 0xE000)


def jumble(seed, length):
    """Characters of all kinds, with many spaces and marks, which is where patterns differ."""
    r = random.Random(seed)
    pools = [
        " \n\r\t  \u00a0\u3000\u2003\u0085\v\f",
        "abcXYZéßñıİǅ",
        "0123456789٣४²½",
        "'\"’!?.,;:-_/\\()[]{}<>|@#$%^&*~`+=",
        "\u0301\u0323\u0308\u0345\u3099\u200d\ufe0f\u0f71\u1161\u11a8",
        "中文字漢かなカナ한글가각ᄀ",
        "😀👍🏽🇩🇪🧑\u200d🚀",
        "'s'T're'LL'Ve'd'M'ſ",
    ]
    everything = [chr(p) for p in range(0x3FFFF) if not 0xD800 <= p < 0xE000]
    out = []
    while len(out) < length:
        pool = r.choice(pools)
        if r.random() < 0.1:
            out.append(r.choice(everything))
        else:
            out.extend(r.choice(pool) for _ in range(r.randrange(1, 5)))
    return "".join(out)


def broken(seed, length):
    """Bytes that are not UTF-8: cut, doubled and made-up characters."""
    r = random.Random(seed)
    good = SAMPLES.encode()
    out = bytearray()
    while len(out) < length:
        start = r.randrange(len(good))
        out += good[start : start + r.randrange(1, 40)]
        out += bytes(r.choice([b"", b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\xaf", b"\x80"]))
    return bytes(out)


RUN_UNITS = ["a", " ", "\n", "中", "😀", "\u0301", "0", "!", "가", "ab", " a", "▁", "<", "\u00a0"]


def all_texts(deps, quick):
    """(name, bytes)"""
    yield "samples", SAMPLES.encode()
    yield "empty", b""
    yield "english", english(deps)[: 100_000 if quick else 600_000].encode()
    yield "code", code()[: 100_000 if quick else 1_000_000].encode()
    yield "jumble", jumble(1, 30_000 if quick else 300_000).encode()
    for i, text in enumerate(jumble(i, 30) for i in range(200, 220)):
        yield f"short{i}", text.encode()
    yield "broken", broken(1, 20_000 if quick else 300_000)
    end = 0x1000 if quick else 0x110000
    for i, form in enumerate(["{c}", "x {c}a1", "a{c}{c} \u0301", "1\u0301{c} \n"]):
        yield f"points{i}", every_code_point(0, end if i == 0 else min(end, 0x32000), form).encode()
    for i, unit in enumerate(RUN_UNITS):  # a megabyte of some
        length = 10_000 if quick else 1_000_000 if i < 6 else 100_000
        yield f"run{i}", (unit * (length // len(unit.encode()))).encode()
