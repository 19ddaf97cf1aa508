"""Writes text/pattern/differences.inc: characters that have a property in Oniguruma, as the `tokenizers` package has it, and not yet in PCRE2.

    .venv/bin/python tools/pattern_differences.py        (needs libpcre2-dev and tokenizers)
"""
import ctypes
import pathlib

from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "text/pattern/differences.inc"
# What a word has there, beside these categories here.
WORDS = r"[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]"
PROPERTIES = r"\w L Lu Ll Lt Lm Lo N Nd Nl No M Mn Mc Me P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf Han Hiragana Katakana Hangul Latin Cyrillic Greek Arabic Thai".split()
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
UTF, UCP = 0x00080000, 0x00020000

lib = ctypes.CDLL("libpcre2-8.so.0")
for name in ("compile", "match_data_create", "get_ovector_pointer"):
    getattr(lib, f"pcre2_{name}_8").restype = ctypes.c_void_p
lib.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(ctypes.c_size_t)


def of_pcre2(pattern):
    error, at = ctypes.c_int(), ctypes.c_size_t()
    code = lib.pcre2_compile_8(pattern.encode(), ctypes.c_size_t(len(pattern)), UTF | UCP, ctypes.byref(error), ctypes.byref(at), None)
    data = lib.pcre2_match_data_create_8(2, None)
    found = set()
    for c in CODE_POINTS:
        text = chr(c).encode()
        if lib.pcre2_match_8(ctypes.c_void_p(code), text, ctypes.c_size_t(len(text)), ctypes.c_size_t(0), 0, ctypes.c_void_p(data), None) > 0:
            found.add(c)
    return found


def of_oniguruma(pattern):
    splitter, found = pre_tokenizers.Split(Regex(pattern), "removed", invert=True), set()
    for at in range(0, len(CODE_POINTS), 4096):
        codes = CODE_POINTS[at : at + 4096]
        text = "".join(map(chr, codes))
        for _, (begin, end) in splitter.pre_tokenize_str(text):
            found.update(codes[begin:end])
    return found


lines = ["/* Written by tools/pattern_differences.py: ADDED(property, ranges of characters it has besides, as a class has them). */"]
for name in PROPERTIES:
    is_word = name == r"\w"
    theirs = of_oniguruma(r"[\w]" if is_word else rf"\p{{{name}}}")
    ours = of_pcre2(WORDS if is_word else rf"\p{{{name if len(name) < 3 else 'sc:' + name}}}")
    ranges = []
    for c in sorted(theirs - ours):
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    print(name, len(theirs - ours), len(ours - theirs), len(ranges), [hex(c) for c in sorted(ours - theirs)][:8])
    words = [rf"\\x{{{a:X}}}" + (rf"-\\x{{{b:X}}}" if b > a else "") for a, b in ranges]
    body = [""]
    for word in words:
        if len(body[-1]) + len(word) > 90:
            body.append("")
        body[-1] += word
    name = name.replace("\\", "\\\\")
    lines.append(f'ADDED("{name}",\n' + "\n".join(f'      "{part}"' for part in body) + ")")
OUT.write_text("\n".join(lines) + "\n")
