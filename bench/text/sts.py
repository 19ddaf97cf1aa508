"""Spearman correlation of MiniLM's similarities, through /v1/embeddings, with the scores of the STS benchmark.

    python3 bench/text/sts.py --url http://127.0.0.1:8080 --model minilm FILE.csv

FILE has lines of sentence, sentence, score. Needs numpy and scipy.
"""
import argparse
import base64
import csv
import json
import urllib.request

import numpy
import scipy.stats


def embed(url, model, texts, batch=256):
    vectors = []
    for at in range(0, len(texts), batch):
        body = json.dumps(dict(model=model, input=texts[at : at + batch], encoding_format="base64")).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/embeddings", body)) as response:
            data = json.load(response)["data"]
        vectors += [numpy.frombuffer(base64.b64decode(d["embedding"]), numpy.float32) for d in data]
    return numpy.array(vectors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("file")
    o = parser.parse_args()
    with open(o.file, newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    first, second = (embed(o.url, o.model, [r[i] for r in rows]) for i in (0, 1))
    cosine = (first * second).sum(1) / numpy.linalg.norm(first, axis=1) / numpy.linalg.norm(second, axis=1)
    spearman = scipy.stats.spearmanr(cosine, [float(r[2]) for r in rows]).statistic
    print(f"{o.file}: {len(rows)} pairs, Spearman {100 * spearman:.3f}")


if __name__ == "__main__":
    main()
