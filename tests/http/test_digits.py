"""The bundled model, measured through HTTP."""
import json

import numpy

import serving


def test_accuracy_on_the_test_images(server):
    images = [json.loads(line) for line in (serving.ROOT / "tests/data/digits_test.jsonl").read_text().splitlines()]
    assert len(images) == 360
    pixels = numpy.array([i["pixels"] for i in images], numpy.float32) / 16
    labels = numpy.array([i["label"] for i in images])
    by_row = serving.at_once([lambda p=p: server.infer("digits", {"image": p[None]})["logits"][0] for p in pixels])
    all_at_once = server.infer_binary("digits", {"image": pixels})["logits"]
    rows = [{"image": p.tolist()} for p in pixels]
    tensorflow = numpy.array(server.post("/v1/models/digits:predict", {"instances": rows}).json()["predictions"])
    for logits in (numpy.array(by_row), all_at_once, tensorflow):
        assert (logits.argmax(1) == labels).mean() >= 0.96
    assert numpy.abs(numpy.array(by_row) - all_at_once).max() < 1e-4
