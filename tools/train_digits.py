#!/usr/bin/env python3
"""Trains the bundled model, examples/models/digits, and writes the images it is tested on.

A 64-96-48-10 multilayer perceptron on scikit-learn's handwritten digits (8x8 pixels, 1,797 images), in plain numpy: Adam on
softmax cross-entropy with small random shifts of the training images. 1,437 images train it, 360 test it. The same seed gives the same
file on the same numpy.

    pip install numpy scikit-learn onnx
    tools/train_digits.py            # writes examples/models/digits/1/model.onnx and tests/data/digits_test.jsonl
"""
import json
import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTHS = [64, 96, 48, 10]
EPOCHS, BATCH, RATE, DECAY = 120, 64, 2e-3, 1e-4


def shifted(images, random):
    """Each image moved by at most one pixel each way, a quarter of them not at all."""
    moved = numpy.zeros_like(images)
    for i, image in enumerate(images.reshape(-1, 8, 8)):
        down, right = random.integers(-1, 2, size=2) if random.random() < 0.75 else (0, 0)
        padded = numpy.pad(image, 1)
        moved[i] = padded[1 - down : 9 - down, 1 - right : 9 - right].reshape(64)
    return moved


def forward(layers, images):
    """Activations before each layer, then the logits."""
    activations = [images]
    for i, (weight, bias) in enumerate(layers):
        images = images @ weight + bias
        if i + 1 < len(layers):
            images = numpy.maximum(images, 0)
        activations.append(images)
    return activations


def train(images, labels, random):
    layers = [
        [random.normal(0, numpy.sqrt(2 / n), (n, m)).astype(numpy.float32), numpy.zeros(m, numpy.float32)]
        for n, m in zip(WIDTHS, WIDTHS[1:])
    ]
    moments = [[(numpy.zeros_like(p), numpy.zeros_like(p)) for p in layer] for layer in layers]
    step = 0
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + numpy.cos(numpy.pi * epoch / EPOCHS))
        order = random.permutation(len(images))
        moved = shifted(images, random)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            step += 1
            activations = forward(layers, moved[rows])
            logits = activations[-1] - activations[-1].max(1, keepdims=True)
            slope = numpy.exp(logits)
            slope /= slope.sum(1, keepdims=True)
            slope[numpy.arange(len(rows)), labels[rows]] -= 1
            slope /= len(rows)
            for i in reversed(range(len(layers))):
                below = activations[i]
                gradients = [below.T @ slope + DECAY * layers[i][0], slope.sum(0)]
                slope = (slope @ layers[i][0].T) * (below > 0)
                for j, gradient in enumerate(gradients):
                    mean, square = moments[i][j]
                    mean += 0.1 * (gradient - mean)
                    square += 0.001 * (gradient**2 - square)
                    scaled = mean / (1 - 0.9**step) / (numpy.sqrt(square / (1 - 0.999**step)) + 1e-8)
                    layers[i][j] -= (rate * scaled).astype(numpy.float32)
    return layers


def as_onnx(layers):
    nodes, weights, name = [], [], "image"
    for i, (weight, bias) in enumerate(layers):
        last = i + 1 == len(layers)
        weights += [numpy_helper.from_array(weight, f"layer{i}.weight"), numpy_helper.from_array(bias, f"layer{i}.bias")]
        out = "logits" if last else f"layer{i}.out"
        nodes.append(helper.make_node("Gemm", [name, f"layer{i}.weight", f"layer{i}.bias"], [out], name=f"layer{i}"))
        name = out
        if not last:
            nodes.append(helper.make_node("Relu", [name], [f"layer{i}.relu"], name=f"layer{i}.relu"))
            name = f"layer{i}.relu"
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="penstock train_digits.py")
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def main():
    random = numpy.random.default_rng(20240229)
    digits = load_digits()
    images = (digits.data / 16).astype(numpy.float32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, digits.target, test_size=360, random_state=0, stratify=digits.target
    )
    layers = train(train_images, train_labels, random)
    right = (forward(layers, test_images)[-1].argmax(1) == test_labels).sum()
    print(f"{right} of {len(test_images)} test images right ({100 * right / len(test_images):.1f}%)")

    path = ROOT / "examples/models/digits/1/model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(as_onnx(layers), path)
    lines = [
        # Pixels are sixteenths: written as integers the file is a fifth of the size.
        json.dumps({"pixels": [int(round(16 * p)) for p in image], "label": int(label)}, separators=(",", ":"))
        for image, label in zip(test_images.tolist(), test_labels)
    ]
    (ROOT / "tests/data").mkdir(parents=True, exist_ok=True)
    (ROOT / "tests/data/digits_test.jsonl").write_text("\n".join(lines) + "\n")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
