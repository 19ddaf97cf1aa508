"""Writes the 512 requests: sentences, clauses and paragraphs of the licence texts that Debian ships (seed 20261121; mean 37 tokens,
p50 25, p95 116, at most 256), one body a line for each dialect.      python workload.py FOLDER TOKENIZER.json
"""
import glob
import json
import os
import pathlib
import random
import re
import sys

import numpy
from tokenizers import Tokenizer

TOKENS_MAX = 256
PARAGRAPHS, CLAUSES, REQUESTS = 100, 160, 512


def pieces():
    sentences, paragraphs, clauses = [], [], []
    for path in sorted(set(os.path.realpath(p) for p in glob.glob("/usr/share/common-licenses/*"))):
        for paragraph in re.split(r"\n\s*\n", open(path, errors="replace").read()):
            paragraph = " ".join(paragraph.split())
            if len(paragraph.split()) < 4:
                continue
            paragraphs.append(paragraph)
            for sentence in re.split(r"(?<=[.;:])\s+", paragraph):
                if len(sentence.split()) >= 4:
                    sentences.append(sentence)
                clauses += [c for c in re.split(r"(?<=,)\s+", sentence) if 4 <= len(c.split()) <= 20 and c != sentence]
    unique = lambda items: list(dict.fromkeys(items))
    sentences = unique(sentences)
    return sentences, [p for p in unique(paragraphs) if p not in set(sentences)], unique(clauses)


def main():
    folder = pathlib.Path(sys.argv[1])
    tokenizer = Tokenizer.from_file(sys.argv[2])
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS_MAX)
    sentences, paragraphs, clauses = pieces()
    rng = random.Random(20261121)
    texts = rng.sample(paragraphs, PARAGRAPHS) + rng.sample(clauses, CLAUSES) + rng.sample(sentences, REQUESTS - PARAGRAPHS - CLAUSES)
    rng.shuffle(texts)
    encoded = [tokenizer.encode(text) for text in texts]
    # Servers that tokenise themselves get the text cut to the same tokens.
    texts = [t if len(e.ids) < TOKENS_MAX else t[: e.offsets[-2][1]] for t, e in zip(texts, encoded)]
    ids = [e.ids for e in encoded]
    lengths = numpy.array([len(i) for i in ids])
    print(f"{REQUESTS} requests, {lengths.sum()} tokens, mean {lengths.mean():.1f}, p50/p95/max", numpy.percentile(lengths, [50, 95, 100]).astype(int).tolist())

    def tensor(name, row):
        return dict(name=name, shape=[1, len(row)], datatype="INT64", data=row)

    dialects = {
        "ids": lambda text, row: dict(ids=row),
        "rows": lambda text, row: dict(ids=[row]),
        "triton": lambda text, row: dict(inputs=[tensor("ids", row)]),
        "penstock": lambda text, row: dict(inputs=[tensor("input_ids", row)]),
        "openai": lambda text, row: dict(model="m", input=[text]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in dialects.items():
        lines = [json.dumps(make(text, row), separators=(",", ":")) for text, row in zip(texts, ids)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "mean_tokens").write_text(f"{lengths.mean()}\n")


if __name__ == "__main__":
    main()
