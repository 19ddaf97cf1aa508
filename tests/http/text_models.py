"""Small models that take text: a table of vectors for words, and heads on it, with a WordPiece tokenizer beside them.

Every word of WORDS is one token, so that the tests can say which ids a text has without a tokenizer of their own.
"""
import json

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "a b c d e the cat dog sat on mat paris john lives in who where query passage".split() + [":", ".", "?"]
VOCABULARY = SPECIAL + WORDS
ID = {word: i for i, word in enumerate(VOCABULARY)}
UNK, CLS, SEP = ID["[UNK]"], ID["[CLS]"], ID["[SEP]"]
WIDTH, TOKENS_MAX = 8, 24
TABLE = numpy.random.default_rng(7).normal(size=(len(VOCABULARY), WIDTH)).astype(numpy.float32)
LABELS = ["sad", "glad", "calm"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
CLASSES = numpy.random.default_rng(8).normal(size=(WIDTH, len(LABELS))).astype(numpy.float32)
SCORE = numpy.random.default_rng(9).normal(size=(WIDTH, 1)).astype(numpy.float32)
TAG_OF_WORD = numpy.zeros((len(VOCABULARY), len(TAGS)), numpy.float32)
for word, tag in {"john": 1, "cat": 2, "paris": 3}.items():
    TAG_OF_WORD[ID[word], tag] = 5
TAG_OF_WORD[:, 0] += 2
SPAN = numpy.random.default_rng(10).normal(size=(WIDTH, 2)).astype(numpy.float32)


def ids_of(text, pair=None):
    """As the tokenizer gives them, with the types."""
    split = lambda t: [ID.get(w, UNK) for w in t.lower().replace("?", " ?").replace(".", " .").replace(":", " : ").split()]
    first = [CLS, *split(text), SEP]
    second = [] if pair is None else [*split(pair), SEP]
    return first + second, [0] * len(first) + [1] * len(second)


def embedding(text, pair=None):
    """What the model "embed" gives for a text."""
    return TABLE[ids_of(text, pair)[0]].mean(0)


def unit(vector):
    return vector / numpy.linalg.norm(vector)


def tokenizer_json():
    template = lambda *pieces: [{"SpecialToken" if p[0] == "[" else "Sequence": {"id": p, "type_id": t}} for p, t in pieces]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [dict(id=i, content=w, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) for i, w in enumerate(SPECIAL)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template(("[CLS]", 0), ("A", 0), ("[SEP]", 0)),
            "pair": template(("[CLS]", 0), ("A", 0), ("[SEP]", 0), ("B", 1), ("[SEP]", 1)),
            "special_tokens": {w: {"id": w, "ids": [ID[w]], "tokens": [w]} for w in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {w: i for i, w in enumerate(VOCABULARY)}},
    }  # fmt: skip


def save(folder, name, nodes, outputs, weights=(), files=None):
    """`nodes` follow the hidden state [batch,sequence,WIDTH] and its mean "mean" [batch,WIDTH]."""
    tokens = lambda n: helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"])
    axes = lambda n, *values: numpy_helper.from_array(numpy.array(values, numpy.int64), n)
    common = [
        helper.make_node("Gather", ["table", "input_ids"], ["hidden"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide_mask"]),
        helper.make_node("Mul", ["hidden", "wide_mask"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "tokens"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["mask", "tokens"], ["count"], keepdims=1),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in outputs.items()]
    table = [numpy_helper.from_array(TABLE, "table"), axes("last", 2), axes("tokens", 1)]
    graph = helper.make_graph(common + nodes, name, [tokens("input_ids"), tokens("attention_mask")], values, table + [numpy_helper.from_array(w, n) for n, w in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = folder / name / "1"
    path.mkdir(parents=True)
    onnx.save(model, path / "model.onnx")
    (folder / name / "model.json").write_text(json.dumps({"sequence_max": TOKENS_MAX}))
    for file, content in (files or {}).items():
        (path / file).write_text(json.dumps(content))
    return folder / name


def make(folder):
    """Name -> folder."""
    with_text = {"tokenizer.json": tokenizer_json()}
    identity = lambda a, b: helper.make_node("Identity", [a], [b])
    product = lambda a, b, out: helper.make_node("MatMul", [a, b], [out])
    prompts = {"prompts": {"query": "query : ", "passage": "passage : "}, "matryoshka_dimensions": [2, 4]}
    config = lambda head, labels=None: {"architectures": [f"BertFor{head}"], **({"id2label": {str(i): n for i, n in enumerate(labels)}} if labels else {})}
    models = {
        "embed": save(folder, "embed", [identity("mean", "sentence_embedding")], {"sentence_embedding": ["batch", WIDTH]}, files=with_text | {"config_sentence_transformers.json": prompts}),
        "hidden": save(folder, "hidden", [identity("masked", "last_hidden_state")], {"last_hidden_state": ["batch", "sequence", WIDTH]}, files=with_text),
        "rank": save(folder, "rank", [product("mean", "w", "logits")], {"logits": ["batch", 1]}, [("w", SCORE)], with_text | {"config.json": config("SequenceClassification", ["LABEL_0"])}),
        "classify": save(folder, "classify", [product("mean", "w", "logits")], {"logits": ["batch", len(LABELS)]}, [("w", CLASSES)], with_text | {"config.json": config("SequenceClassification", LABELS)}),
        "tag": save(folder, "tag", [helper.make_node("Gather", ["w", "input_ids"], ["logits"])], {"logits": ["batch", "sequence", len(TAGS)]}, [("w", TAG_OF_WORD)], with_text | {"config.json": config("TokenClassification", TAGS)}),
        "answer": save(folder, "answer", [
            helper.make_node("MatMul", ["hidden", "s"], ["both"]),
            helper.make_node("Split", ["both"], ["start", "end"], axis=2),
            helper.make_node("Squeeze", ["start", "last"], ["start_logits"]), helper.make_node("Squeeze", ["end", "last"], ["end_logits"]),
        ], {"start_logits": ["batch", "sequence"], "end_logits": ["batch", "sequence"]}, [("s", SPAN)], with_text | {"config.json": config("QuestionAnswering")}),
        "sparse": save(folder, "sparse", [product("hidden", "w", "logits")], {"logits": ["batch", "sequence", len(VOCABULARY)]},
                       [("w", TABLE.T.copy())], with_text | {"config.json": config("MaskedLM")}),
        "mute": save(folder, "mute", [identity("mean", "sentence_embedding")], {"sentence_embedding": ["batch", WIDTH]}),
    }  # fmt: skip
    return models
