"""Writes text/unicode/differences.inc: where the Unicode tables of the `tokenizers` package differ from those of utf8proc.

The package uses tables of several ages: Unicode 9 to normalise, others for categories, its compiler's to lowercase. utf8proc has one age. Each
property is asked of both, for every code point, and what differs is written down as ranges.

    .venv/bin/python tools/unicode_differences.py        (a minute; needs libutf8proc-dev and tokenizers)
"""
import ctypes
import pathlib

from tokenizers import Regex, normalizers, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "text/unicode/differences.inc"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
SEPARATOR = "\ue000"

lib = ctypes.CDLL("libutf8proc.so.2")
lib.utf8proc_tolower.restype = ctypes.c_int32
lib.utf8proc_decompose_char.restype = ctypes.c_ssize_t


class Property(ctypes.Structure):
    _fields_ = [("category", ctypes.c_int16), ("combining_class", ctypes.c_int16)]


lib.utf8proc_get_property.restype = ctypes.POINTER(Property)
CN, LU, LL, LT, LM, LO, MN, MC, ME, ND, NL, NO, PC, PD, PS, PE, PI, PF, PO, SM, SC, SK, SO, ZS, ZL, ZP, CC, CF, CS, CO = range(30)
STABLE, COMPAT, COMPOSE, DECOMPOSE = 2, 4, 8, 16


def category(c):
    return lib.utf8proc_get_property(c).contents.category


def decomposition(c, options):
    buffer, last = (ctypes.c_int32 * 32)(), ctypes.c_int(0)
    n = lib.utf8proc_decompose_char(c, buffer, 32, options, ctypes.byref(last))
    return list(buffer[:n])


def chunks():
    for at in range(0, len(CODE_POINTS), 4096):
        yield CODE_POINTS[at : at + 4096]


def split_out(splitter, filler="x"):
    """Code points that the splitter takes out of, or apart in, x?x?x."""
    found = set()
    for codes in chunks():
        text = filler + "".join(chr(c) + filler for c in codes)
        pieces = splitter.pre_tokenize_str(text)
        whole = [False] * len(text)
        for _, (begin, end) in pieces:
            if end - begin > 1 or begin % 2 == 0:
                whole[begin:end] = [True] * (end - begin)
        found.update(c for i, c in enumerate(codes) if not whole[2 * i + 1])
    return found - {ord(filler)}


def normalized(normalizer, codes):
    results = normalizer.normalize_str(SEPARATOR.join(map(chr, codes))).split(SEPARATOR)
    assert len(results) == len(codes)
    return dict(zip(codes, results))


def changed(normalizer):
    found = {}
    for codes in chunks():
        codes = [c for c in codes if chr(c) != SEPARATOR]
        found.update((c, text) for c, text in normalized(normalizer, codes).items() if text != chr(c))
    return found


def removed(normalizer):
    found = set()
    for codes in chunks():
        for c in codes:
            if normalizer.normalize_str("x" + chr(c) + "x") == "xx":
                found.add(c)
    return found


def reordered():
    nfd, found = normalizers.NFD(), set()
    for c in CODE_POINTS:
        k = lib.utf8proc_get_property(c).contents.combining_class
        text = chr(c) + "\u0334" if k > 1 else "\u0301" + chr(c)
        if k and nfd.normalize_str(text) != text:
            found.add(c)
    return found


def isolated(pattern):
    return split_out(pre_tokenizers.Split(Regex(pattern), "isolated"), "-")


def main():
    nfd, nfkd = changed(normalizers.NFD()), changed(normalizers.NFKD())
    lower = changed(normalizers.Lowercase())
    letter = lambda k: LU <= k <= LO
    cats = {c: category(c) for c in CODE_POINTS}
    ours_lower = {c: lib.utf8proc_tolower(c) for c in CODE_POINTS}
    strip = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    ours = {
        "SPACE": lambda c: ZS <= cats[c] <= ZP or 9 <= c <= 13 or c == 0x85,
        "OTHER": lambda c: CC <= cats[c] <= CO,
        "PUNCTUATION": lambda c: PC <= cats[c] <= PO or (c < 128 and SM <= cats[c] <= SO),
        "NONSPACING": lambda c: cats[c] == MN,
        "MARK": lambda c: MN <= cats[c] <= ME,
        "NUMERIC": lambda c: ND <= cats[c] <= NO,
        "WORD": lambda c: letter(cats[c]) or MN <= cats[c] <= ME or cats[c] in (ND, NL, PC),
        "LETTER": lambda c: letter(cats[c]),
        "NUMBER": lambda c: ND <= cats[c] <= NO,
        "LOWERS": lambda c: ours_lower[c] != c,
        "DECOMPOSES": lambda c: decomposition(c, DECOMPOSE) != [c],
        "DECOMPOSES_COMPATIBLY": lambda c: decomposition(c, DECOMPOSE | COMPAT) != [c],
        "REORDERS": lambda c: lib.utf8proc_get_property(c).contents.combining_class != 0,
    }
    theirs = {
        "SPACE": split_out(pre_tokenizers.WhitespaceSplit()),
        "OTHER": removed(clean) | {9, 10, 13},
        "PUNCTUATION": split_out(pre_tokenizers.Punctuation("isolated")),
        "NONSPACING": removed(strip),
        "MARK": removed(normalizers.StripAccents()),
        "NUMERIC": split_out(pre_tokenizers.Digits(individual_digits=True)),
        "WORD": {c for c in CODE_POINTS if pre_tokenizers.Whitespace().pre_tokenize_str("x" + chr(c) + "x")[0][1] == (0, 3)},
        "LETTER": isolated(r"\p{L}"),
        "NUMBER": isolated(r"\p{N}"),
        "LOWERS": set(lower),
        "DECOMPOSES": set(nfd),
        "DECOMPOSES_COMPATIBLY": set(nfkd),
        "REORDERS": reordered(),
    }
    for name, theirs_has, options in (("NFD", nfd, DECOMPOSE), ("NFKD", nfkd, DECOMPOSE | COMPAT)):
        for c, text in theirs_has.items():
            mine = "".join(map(chr, decomposition(c, options)))
            if mine != text:
                print(name, hex(c), ascii(mine), ascii(text))
    names, differing = list(ours), {}
    for bit, name in enumerate(names):
        count = 0
        for c in CODE_POINTS:
            if ours[name](c) != (c in theirs[name]) and chr(c) != SEPARATOR:
                differing[c] = differing.get(c, 0) | 1 << bit
                count += 1
        print(name, count)
    ranges = []
    for c, bits in sorted(differing.items()):
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == bits:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, bits])
    lowers = []
    for c, text in sorted(lower.items()):
        if ours_lower[c] == ord(text[0]) and len(text) == 1:
            continue
        if len(text) != 1:
            print("lowercase of several", hex(c), ascii(text))
            continue
        delta = ord(text) - c
        if lowers and lowers[-1][1] == c - 1 and lowers[-1][2] == delta:
            lowers[-1][1] = c
        else:
            lowers.append([c, c, delta])
    words = [f"FLAGS(0x{a:04X}, 0x{b:04X}, 0x{bits:04X})" for a, b, bits in ranges]
    words += [f"LOWER(0x{a:04X}, 0x{b:04X}, {delta})" for a, b, delta in lowers]
    lines = ["/* Written by tools/unicode_differences.py: what differs from utf8proc, by code points.",
             " * FLAGS(first, last, bits of properties.h to invert), LOWER(first, last, distance). */"]
    line = ""
    for word in words:
        if len(line) + len(word) + 1 > 120:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    OUT.write_text("\n".join([*lines, line]) + "\n")
    print(len(ranges), len(lowers))


main()
