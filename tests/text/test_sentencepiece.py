"""SentencePiece models without tokenizer.json: beside `transformers` where a class says what stands around them, else beside `sentencepiece` itself."""
import json
import os
import shutil

import pytest

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sentencepiece = pytest.importorskip("sentencepiece")
transformers = pytest.importorskip("transformers")

import compare
import made
import strings

pytestmark = pytest.mark.skipif(not compare.BINARY.exists(), reason=f"{compare.BINARY} is not built")

UNIGRAM, BPE = dict(model_type="unigram"), dict(model_type="bpe")
PLAIN = dict(normalization_rule_name="identity", remove_extra_whitespaces=False)
MODELS = {
    "unigram": dict(UNIGRAM),
    "t5": dict(UNIGRAM, pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
    "albert": dict(UNIGRAM, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]", user_defined_symbols="(,),-"),
    "deberta": dict(UNIGRAM, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]"),
    "llama": dict(BPE, **PLAIN, byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True),
    "gemma": dict(BPE, **PLAIN, byte_fallback=True, add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, bos_piece="<bos>", eos_piece="<eos>", user_defined_symbols="<mask>,<2mass>"),
    "user-symbols": dict(UNIGRAM, user_defined_symbols="<sep>,<cls>", byte_fallback=True),
    "no-prefix": dict(UNIGRAM, **PLAIN, add_dummy_prefix=False),
    "bpe": dict(BPE),
}  # fmt: skip
CLASSES = {
    "XLMRobertaTokenizer": ("unigram", "sentencepiece.bpe.model", {}),
    "CamembertTokenizer": ("unigram", "sentencepiece.bpe.model", {}),
    "T5Tokenizer": ("t5", "spiece.model", {"extra_ids": 10}),
    "AlbertTokenizer": ("albert", "spiece.model", {}),
    "AlbertTokenizerFast": ("albert", "spiece.model", {"do_lower_case": False, "keep_accents": True}),
    "DebertaV2Tokenizer": ("deberta", "spm.model", {}),
    "DebertaV2TokenizerFast": ("deberta", "spm.model", {"do_lower_case": True, "split_by_punct": True}),
    "LlamaTokenizer": ("llama", "tokenizer.model", {"add_bos_token": True, "legacy": True}),
    "LlamaTokenizerFast": ("llama", "tokenizer.model", {"add_eos_token": True}),
    "GemmaTokenizer": ("gemma", "tokenizer.model", {"add_bos_token": True}),
}  # fmt: skip
TEXTS = made.CORPUS[:: max(1, len(made.CORPUS) // 300)] + ["", " ", "  two  spaces  ", "tab\tand\nline", "<sep>a <cls> b<sep>", "ＦＵＬＬ ½ … ﬁne", "漢字 👍🏽 \u0d1a"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentencepiece")
    (folder / "corpus.txt").write_text("\n".join(made.CORPUS))
    for name, options in MODELS.items():
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "corpus.txt"), model_prefix=str(folder / name), vocab_size=600, hard_vocab_limit=False, minloglevel=2, num_threads=1, character_coverage=0.98, **options
        )
    return folder


def place(trained, folder, model, name, config=None):
    shutil.copy(trained / f"{model}.model", folder / name)
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))


def expect_none(differences):
    if differences:
        pytest.fail("\n".join(differences), pytrace=False)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_transformers(trained, tmp_path, name):
    model, file, config = CLASSES[name]
    place(trained, tmp_path, model, file, {"tokenizer_class": name, **config})
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer
    items = TEXTS + [[a, b] for a, b in zip(TEXTS, TEXTS[7:])][:40] + strings.strings(300, 11, ["<s>", "</s>", "[MASK]", "<mask>", "<extra_id_3>", "(", "<2mass>"])
    expect_none(compare.differences(theirs, tmp_path, items))


@pytest.mark.parametrize("model", ["unigram", "t5", "user-symbols", "no-prefix", "bpe", "llama"])
def test_without_a_class_as_sentencepiece_itself(trained, tmp_path, model):
    place(trained, tmp_path, model, "tokenizer.model")
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    wrong = []
    for text, mine in zip(TEXTS, compare.ours(tmp_path, TEXTS)):
        wanted = theirs.encode(text)
        is_known = theirs.unk_id() not in wanted  # which sentencepiece decodes as " \u2047 "
        if mine["ids"] != wanted or (is_known and mine["text"] != theirs.decode(wanted)):
            wrong.append(f"{ascii(text)[:120]}\n  {mine['ids']} {ascii(mine['text'])[:120]}\n  {wanted} {ascii(theirs.decode(wanted))[:120]}")
    expect_none(wrong[:5])


def test_config_json_names_the_class(trained, tmp_path):
    place(trained, tmp_path, "unigram", "sentencepiece.bpe.model")
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    theirs = transformers.XLMRobertaTokenizer.from_pretrained(tmp_path).backend_tokenizer
    expect_none(compare.differences(theirs, tmp_path, TEXTS[:50]))


def side_files(folder, name):
    """Three ways to write the same tokens beside a vocabulary."""
    if name == "decoder":
        tokens = {"601": {"content": "<new>", "special": True, "lstrip": True}, "602": {"content": "Plain", "normalized": True, "single_word": True}}
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "XLMRobertaTokenizer", "added_tokens_decoder": tokens}))
        return
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    if name == "map":
        (folder / "special_tokens_map.json").write_text(json.dumps({"mask_token": {"content": "<new>", "lstrip": True}}))
    else:
        (folder / "added_tokens.json").write_text('{"Plain": 602, "<new>": 601}')


@pytest.mark.parametrize("name", ["decoder", "map", "numbers"])
def test_tokens_of_side_files(trained, tmp_path, name):
    place(trained, tmp_path, "unigram", "sentencepiece.bpe.model")
    side_files(tmp_path, name)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer
    expect_none(compare.differences(theirs, tmp_path, ["a <new> b<new>", "Plain text", "UnPlain <new>Plain.", "<mask> <s>"]))


def test_what_is_not_supported_is_named(trained, tmp_path):
    import subprocess

    def message():
        run = subprocess.run([compare.BINARY, "tokenize", "--model", tmp_path], input=b"", capture_output=True)
        assert run.returncode != 0
        return run.stderr.decode()

    place(trained, tmp_path, "unigram", "spiece.model", {"tokenizer_class": "XLNetTokenizer"})
    assert '"XLNetTokenizer" is not supported' in message() and "CamembertTokenizer" in message()
    place(trained, tmp_path, "unigram", "spiece.model", {"tokenizer_class": "LlamaTokenizer"})
    assert "does not fit" in message()
    (tmp_path / "spiece.model").write_bytes(b"IQ== 0\nIg== 1\n")
    assert "not a SentencePiece model" in message()
