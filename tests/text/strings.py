"""Seeded random strings that are hard on a tokenizer."""
import random

WORDS = "hello World don't I'M we'll it's unaffable Straße naïve ÉCOLE été İstanbul ǅ ﬁne Ⅷ ½ ²³ 12345 1,000.50 一二三 日本語テキスト 한국어 각 café cafe\u0301 "
WORDS += "привет Ёлка مرحبا שלום नमस्ते ไทย ภาษา ἀρχή ΣΊΣΥΦΟΣ ｆｕｌｌ １２３ ｶﾀｶﾅ\uff9e e\u0301\u0323 a\u0323\u0301 👍🏽 👩\u200d👩\u200d👧 🇩🇪🇫🇷 \u1100\u1161\u11a8 ㈱ ™ … — “quoted” ‚ ¿que? <b>x</b> a_b C++ f(x) $5 #tag @me"
WORDS = WORDS.split(" ")
MARKS = "\u0300\u0301\u0323\u0327\u0345\u093c\u0903\u3099\u0e31\u20dd\ufe0f\u0334\u05b0\u1dc0"
SPACES = " \t\n\r\u00a0\u0085\u2003\u2028\u3000\u200b\u200d\ufeff\u180e\x0b\x0c\x1c"
PLANES = [(0x20, 0x7F), (0x80, 0x250), (0x250, 0x600), (0x600, 0x1000), (0x1000, 0x2000), (0x2000, 0x2C00), (0x2C00, 0x4E00), (0x4E00, 0xA000), (0xA000, 0xD800),
          (0xE000, 0x10000), (0x10000, 0x12000), (0x12000, 0x1D000), (0x1D000, 0x20000), (0x20000, 0x32000), (0xE0000, 0xE0200), (0, 0x20), (0x32000, 0x110000)]  # fmt: skip


def one(rng, added):
    """Pieces of several kinds, with and without spaces between them."""
    pieces = []
    for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 13))):
        kind = rng.randrange(10)
        if kind < 4:
            pieces.append(rng.choice(WORDS))
        elif kind < 5 and added:
            token = rng.choice(added)
            pieces.append(token if rng.random() < 0.8 else token[: rng.randrange(len(token) + 1)])
        elif kind < 6:
            pieces.append(rng.choice(WORDS) + "".join(rng.choices(MARKS, k=rng.randrange(1, 5))))
        elif kind < 7:
            pieces.append("".join(rng.choices(SPACES, k=rng.randrange(1, 4))))
        else:
            low, high = rng.choice(PLANES)
            codes = (rng.randrange(low, high) for _ in range(rng.randrange(1, 6)))
            pieces.append("".join(chr(c) for c in codes if not 0xD800 <= c < 0xE000))
        if rng.random() < 0.6:
            pieces.append(rng.choice((" ", " ", " ", "  ", "\n", "")))
    return "".join(pieces)


def strings(count, seed, added=()):
    rng = random.Random(seed)
    made = [one(rng, added) for _ in range(count)]
    return [text if rng.random() < 0.9 else [text, one(rng, added)] for text in made]


def long_words():
    """Words of 100 KB."""
    rng = random.Random(7)
    return ["a" * 100_000, "".join(rng.choices("abcdefgh", k=100_000)), "é" * 50_000, "e" + "\u0301\u0323" * 25_000, "漢" * 20_000, "👍" * 20_000, "<" * 100_000, " " * 100_000, "1" * 50_000]
