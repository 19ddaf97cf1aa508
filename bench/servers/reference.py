"""Right answers: MiniLM-L6 in float32, straight from its weights, in numpy.      python reference.py IDS.jsonl MODEL_FOLDER OUT.jsonl

BERT (Devlin et al. 2018), mean pooling, unit length. Nothing of any server's engine is in it.
"""
import json
import math
import pathlib
import sys

import numpy

HEADS, EPSILON = 12, 1e-12


def read_safetensors(path):
    data = path.read_bytes()
    head = int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8 : 8 + head])
    tensors.pop("__metadata__", None)
    place = lambda t: slice(8 + head + t["data_offsets"][0], 8 + head + t["data_offsets"][1])
    return {name: numpy.frombuffer(data[place(t)], numpy.float32).reshape(t["shape"]) for name, t in tensors.items() if t["dtype"] == "F32"}


def erf(x):
    """Abramowitz and Stegun 7.1.26: within 1.5e-7."""
    t = 1 / (1 + 0.3275911 * numpy.abs(x))
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return numpy.sign(x) * (1 - tail * numpy.exp(-x * x))


def main():
    bodies, model, out = map(pathlib.Path, sys.argv[1:4])
    weights = read_safetensors(model / "model.safetensors")
    layers = json.loads((model / "config.json").read_text())["num_hidden_layers"]

    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    def normalise(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weights[name + ".weight"] + weights[name + ".bias"]

    def attend(x, name):
        tokens, width = x.shape
        q, k, v = (linear(x, f"{name}.self.{part}").reshape(tokens, HEADS, -1).transpose(1, 0, 2) for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(width / HEADS)
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        return (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(tokens, width)

    def embed(ids):
        table = "embeddings.{}_embeddings.weight".format
        x = weights[table("word")][ids] + weights[table("position")][: len(ids)] + weights[table("token_type")][0]
        x = normalise(x, "embeddings.LayerNorm")
        for i in range(layers):
            name = f"encoder.layer.{i}"
            x = normalise(x + linear(attend(x, name + ".attention"), name + ".attention.output.dense"), name + ".attention.output.LayerNorm")
            inner = linear(x, name + ".intermediate.dense")
            x = normalise(x + linear(inner * (1 + erf(inner / math.sqrt(2))) / 2, name + ".output.dense"), name + ".output.LayerNorm")
        pooled = x.mean(0)
        return pooled / numpy.linalg.norm(pooled)

    vectors = [embed(json.loads(line)["ids"]) for line in bodies.read_text().splitlines()]
    out.write_text("".join(json.dumps([round(float(x), 7) for x in vector]) + "\n" for vector in vectors))


if __name__ == "__main__":
    main()
