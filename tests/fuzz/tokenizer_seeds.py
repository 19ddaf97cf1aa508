"""Seeds of the targets `tokenizer` and `tokenize`: a small tokenizer.json of every family, with every component, and texts."""
import base64
import json
import struct


def added(*contents, **more):
    return [dict(id=i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True, **more) for i, c in enumerate(contents)]


def bert():
    pieces = [{"SpecialToken": dict(id="[CLS]", type_id=0)}, {"Sequence": dict(id="A", type_id=0)}, {"SpecialToken": dict(id="[SEP]", type_id=0)}]
    return dict(
        added_tokens=added("[UNK]", "[CLS]", "[SEP]"), normalizer=dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
        pre_tokenizer=dict(type="BertPreTokenizer"), decoder=dict(type="WordPiece", prefix="##", cleanup=True),
        post_processor=dict(
            type="TemplateProcessing", single=pieces, pair=pieces + [{"Sequence": dict(id="B", type_id=1)}],
            special_tokens={"[CLS]": dict(id="[CLS]", ids=[1], tokens=["[CLS]"]), "[SEP]": dict(id="[SEP]", ids=[2], tokens=["[SEP]"])},
        ),
        model=dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100,
                   vocab={t: i for i, t in enumerate(["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "a", "##b", ".", "\u4e00", "e"])}),
    )  # fmt: skip


def byte_level():
    vocab = {t: i for i, t in enumerate(["<s>", "</s>", "a", "b", "c", "\u0120", "\u0120a", "ab", "abc", "\u00c3", "\u00a9", "\u00c3\u00a9", "1", "'", "s", "'s"])}
    split = dict(type="Split", pattern=dict(Regex=r"(?i:'s)|\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+"), behavior="Isolated", invert=False)
    return dict(
        added_tokens=added("<s>", "</s>") + [dict(id=99, content="<mask>", single_word=True, lstrip=True, rstrip=True, normalized=True, special=False)],
        normalizer=dict(type="Sequence", normalizers=[dict(type="NFC"), dict(type="Replace", pattern=dict(Regex=r"\s+"), content=" "), dict(type="Lowercase")]),
        pre_tokenizer=dict(type="Sequence", pretokenizers=[split, dict(type="Digits", individual_digits=False), dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True)]),
        post_processor=dict(type="RobertaProcessing", sep=["</s>", 1], cls=["<s>", 0], trim_offsets=True, add_prefix_space=True), decoder=dict(type="ByteLevel"),
        model=dict(type="BPE", vocab=vocab, merges=["\u0120 a", "a b", ["ab", "c"], "\u00c3 \u00a9", "' s"], ignore_merges=True),
    )  # fmt: skip


def charsmap():
    """U+00A0 becomes a space: a double array with a node for each of its two bytes."""
    units = [0x80000000] * 1024
    units[0], units[1 ^ 0xC2] = 1 << 10, 0xC2 | 2 << 10
    node = 1 ^ 0xC2 ^ 2 ^ 0xA0
    units[node] = 0xA0 | 4 << 10 | 1 << 8
    units[node ^ 4] = 1 << 31
    return base64.b64encode(struct.pack("<I1024I", 4096, *units) + b" \0").decode()


def unigram():
    steps = [dict(type="Nmt"), dict(type="Precompiled", precompiled_charsmap=charsmap()), dict(type="Strip", strip_left=False, strip_right=True),
             dict(type="Replace", pattern=dict(Regex=" {2,}"), content="\u2581"), dict(type="NFKC")]  # fmt: skip
    return dict(
        added_tokens=added("<unk>"), normalizer=dict(type="Sequence", normalizers=steps),
        pre_tokenizer=dict(type="Sequence", pretokenizers=[dict(type="WhitespaceSplit"), dict(type="Metaspace", replacement="\u2581", prepend_scheme="first", split=True)]),
        post_processor=dict(type="Sequence", processors=[dict(type="ByteLevel", trim_offsets=True), dict(type="BertProcessing", sep=["</s>", 1], cls=["<s>", 0])]),
        decoder=dict(type="Metaspace", replacement="\u2581", prepend_scheme="always"),
        model=dict(type="Unigram", unk_id=0, byte_fallback=True, vocab=[["<unk>", 0], ["\u2581", -2.5], ["\u2581a", -3.25], ["a", -4], ["b", -4.1], ["ab", -5], ["<0xC3>", -9], ["<0xA9>", -9]]),
    )  # fmt: skip


def llama():
    decoders = [dict(type="Replace", pattern=dict(String="\u2581"), content=" "), dict(type="ByteFallback"), dict(type="Fuse"), dict(type="Strip", content=" ", start=1, stop=1)]
    vocab = {t: i for i, t in enumerate(["<unk>", "<s>", "<0xC3>", "<0xA9>", "\u2581", "a", "b", "ab", "\u2581a", "##b", "b</w>"])}
    return dict(
        added_tokens=added("<unk>", "<s>"), normalizer=dict(type="Sequence", normalizers=[dict(type="Prepend", prepend="\u2581"), dict(type="Replace", pattern=dict(String=" "), content="\u2581"), dict(type="ByteLevel")]),
        decoder=dict(type="Sequence", decoders=decoders),
        model=dict(type="BPE", unk_token="<unk>", fuse_unk=True, byte_fallback=True, continuing_subword_prefix="##", end_of_word_suffix="</w>", vocab=vocab, merges=["a ##b"]),
    )  # fmt: skip


def word_level():
    return dict(
        added_tokens=[], normalizer=dict(type="Sequence", normalizers=[dict(type="NFD"), dict(type="StripAccents"), dict(type="NFKD"), dict(type="Strip", strip_left=True, strip_right=True)]),
        pre_tokenizer=dict(type="Sequence", pretokenizers=[
            dict(type="CharDelimiterSplit", delimiter="."), dict(type="Split", pattern=dict(String="a"), behavior="MergedWithPrevious", invert=True), dict(type="Punctuation", behavior="MergedWithNext"),
            dict(type="Whitespace"), dict(type="FixedLength", length=3), dict(type="Split", pattern=dict(Regex="b*"), behavior="Contiguous", invert=False), dict(type="ByteLevel", add_prefix_space=False),
        ]),
        decoder=dict(type="Sequence", decoders=[dict(type="CTC", pad_token="<unk>", word_delimiter_token="|", cleanup=True), dict(type="BPEDecoder", suffix="</w>")]),
        model=dict(type="WordLevel", unk_token="<unk>", vocab={"<unk>": 0, "a": 1, "the": 2}),
    )  # fmt: skip


FAMILIES = dict(bert=bert, byte_level=byte_level, unigram=unigram, llama=llama, word_level=word_level)
TEXTS = ["unaffable \u00e9\u0323\u0301 \u4e00. [SEP]x", "abc  abc's 123\u00a0\u00e9<mask> ", "a b\tab\r\n\u2581\ufb01", "<s>\u2581 \u00e9 a", "the.a! b\u0e33\u1100\u1161"]


def files():
    """Also what was found: a normaliser that fails to load."""
    broken = dict(normalizer=dict(type="Precompiled", precompiled_charsmap="AAAA"))
    return {"broken_charsmap": json.dumps(broken).encode()} | {name: json.dumps(made(), separators=(",", ":")).encode() + b"\0\0" + TEXTS[i].encode() + b"\0" + TEXTS[-i].encode() for i, (name, made) in enumerate(FAMILIES.items())}


def texts():
    """A family, choices, a text or two."""
    return {f"{name}_{i}": bytes([n, i * 21]) + text.encode() + (b"\0" + TEXTS[0].encode() if i % 2 else b"") for n, name in enumerate(FAMILIES) for i, text in enumerate(TEXTS)}
