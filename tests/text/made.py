"""Tokenizers, one for each family, trained here on a few sentences."""
import struct

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from strings import WORDS

CORPUS = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))] + [
    "The quick brown fox jumps over the lazy dog, isn't it? It wasn't what they've seen.",
    "A man is playing a guitar; a woman cuts an onion. Two dogs run across a field in 2024.",
    "Der schnelle braune Fuchs springt über den faulen Hund. Größe, Äpfel, Übung.",
    "Le renard brun saute par-dessus le chien paresseux : déjà vu, façade, œuvre.",
    "Быстрая коричневая лиса прыгает через ленивую собаку. 敏捷的棕色狐狸跳过了懒狗。素早い茶色の狐がのろまな犬を飛び越える。",
] * 20


def charsmap():
    """A precompiled_charsmap: what a few characters become, as a double array with one node for each byte."""
    rules = {"ﬁ": "fi", "™": "TM", "１": "1", "\u00a0": " ", "\t": " ", "\n": " ", "…": "...", "㈱": "(株)", "ｶ\uff9e": "ガ", "\u200b": "", "É": "É", "Ⅷ": "VIII", "e\u0301": "é"}
    rules = {key: value for key, value in rules.items() if len(key.encode()) < 6 or len(key) == 1}
    text, at = b"", {}
    for key, value in rules.items():
        at[key.encode()] = len(text)
        text += value.encode() + b"\0"
    nodes = {b""}
    for key in at:
        nodes.update(key[:i] for i in range(1, len(key) + 1))
    children = {node: sorted(k[len(node)] for k in nodes if len(k) == len(node) + 1 and k.startswith(node)) for node in nodes}
    units, base, taken, queue, bases = {0: 0}, {}, {0}, [(b"", 0)], set()
    while queue:
        node, unit = queue.pop(0)
        labels = children[node] + ([0] if node in at else [])
        if not labels:
            continue
        offset = 1
        while offset in bases or any((unit ^ offset ^ label) in taken for label in labels) or (offset >= 1 << 21):
            offset += 1
        bases.add(offset)
        base[node] = unit ^ offset
        units[unit] |= offset << 10 | (1 << 8 if node in at else 0)
        for label in labels:
            child = unit ^ offset ^ label
            taken.add(child)
            if label == 0:
                units[child] = at[node] | 1 << 31
            else:
                units[child] = label
                queue.append((node + bytes([label]), child))
    size = max(units) + 1
    array = [units.get(i, 0x80000000) for i in range((size + 255) // 256 * 256)]
    return struct.pack(f"<I{len(array)}I", 4 * len(array), *array) + text


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def add(tokenizer):
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<sep>", rstrip=True)])
    tokenizer.add_tokens([AddedToken("Penstock", single_word=True), AddedToken("ADDED", normalized=True), AddedToken("AD", normalized=False), "日本"])
    return tokenizer


def wordpiece(lowers=True, accents=None):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowers, strip_accents=accents)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    train(t, trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"]))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.decoder = decoders.WordPiece()
    return add(t)


def roberta():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    train(t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    t.decoder = decoders.ByteLevel()
    return add(t)


def llama3():
    t = Tokenizer(models.BPE(ignore_merges=True))
    expression = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    train(t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<bos>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", 0)])])
    t.decoder = decoders.ByteLevel()
    return add(t)


def clip():
    t = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<end>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    expression = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    train(t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<start>", "<end>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), end_of_word_suffix="</w>"))
    t.post_processor = processors.RobertaProcessing(("<end>", 1), ("<start>", 0), trim_offsets=False, add_prefix_space=False)
    t.decoder = decoders.BPEDecoder()
    return add(t)


def falcon():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
    ])  # fmt: skip
    train(t, trainers.BpeTrainer(vocab_size=800, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.decoder = decoders.ByteLevel()
    return add(t)


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    train(t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>"] + [f"<0x{b:02X}>" for b in range(256)], limit_alphabet=60))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return add(t)


def plain_bpe():
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)])
    train(t, trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>"], continuing_subword_prefix="##", limit_alphabet=60))
    t.decoder = decoders.BPEDecoder("##")
    return add(t)


def unigram(scheme="always"):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    train(t, trainers.UnigramTrainer(vocab_size=600, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>"))
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return add(t)


def t5():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first", split=False)])
    train(t, trainers.UnigramTrainer(vocab_size=500, special_tokens=["<unk>"], unk_token="<unk>"))
    t.decoder = decoders.Metaspace(prepend_scheme="never")
    return add(t)


def wordlevel():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("."), pre_tokenizers.Split("a", "merged_with_previous"), pre_tokenizers.Punctuation("merged_with_next"), pre_tokenizers.Whitespace()])
    train(t, trainers.WordLevelTrainer(special_tokens=["<unk>"]))
    t.decoder = decoders.CTC(pad_token="<unk>")
    return add(t)


def bloom():
    """A class in a class; bytes that the vocabulary lacks are dropped; added tokens that are spaces, and take spaces."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(" ?[^(\\s|[.,!?…。，、।۔،])]+"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    train(t, trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", "<s>"]))
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    t.add_tokens([AddedToken(" ", lstrip=True, rstrip=True), AddedToken("\n", rstrip=True), AddedToken("naïve", rstrip=True, normalized=False)])
    return add(t)


def spelled_affixes():
    """Prefix and suffix of a character that is spelled in bytes are spelled too; what a word is in regular expressions."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, continuing_subword_prefix="@@", end_of_word_suffix="</w>"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behaviour) for pattern, behaviour in ((r"[^\S\n]", "removed"), (r"\b", "isolated"), (r"\w+|[^\w\s]+", "merged_with_previous"), (r"\d", "isolated"))])
    special = ["<unk>"] + [f"<0x{b:02X}>" for b in range(256)]
    train(t, trainers.BpeTrainer(vocab_size=700, special_tokens=special, limit_alphabet=40, continuing_subword_prefix="@@", end_of_word_suffix="</w>"))
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.BPEDecoder("</w>")])
    return add(t)


def trimmed_unigram():
    """Spans of tokens that Unigram does not know are trimmed by what stands in the text."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Prepend("abc")
    t.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    train(t, trainers.UnigramTrainer(vocab_size=400, special_tokens=["<unk>", "<s>"], unk_token="<unk>"))
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True, add_prefix_space=False), processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B:1", special_tokens=[("<s>", 1)])])
    return add(t)


FAMILIES = {
    "bert": wordpiece, "bert-cased": lambda: wordpiece(False), "bert-accents": lambda: wordpiece(True, False), "roberta": roberta, "llama3": llama3, "clip": clip,
    "falcon": falcon, "llama2": llama2, "plain-bpe": plain_bpe, "xlm-r": unigram, "xlm-r-first": lambda: unigram("first"), "t5": t5, "word-level": wordlevel,
    "bloom": bloom, "spelled-affixes": spelled_affixes, "trimmed-unigram": trimmed_unigram,
}  # fmt: skip
