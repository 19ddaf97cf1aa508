"""The forms in which encoders are written for TPUs, run on the CPU plugin, whose devices call themselves TPUs here."""
import contextlib
import json

import devices
import numpy
import pytest
import serving
import test_arithmetic
from conftest import FAULT, PLUGIN

LENGTH = 16


def model(tmp_path, packing, bucket=(4, LENGTH), change=lambda tensors: None):
    """Eight heads of 32: two blocks of four heads fill 128 columns each."""
    folder = tmp_path / "m"
    test_arithmetic.hugging_face(folder, hidden=256, heads=8, positions=bucket[1], change=change)
    (folder / "model.json").write_text(json.dumps(dict(packing=packing, buckets=dict(batch=[bucket[0]], sequence=[bucket[1]]))))
    return folder


@contextlib.contextmanager
def on_tpu(tmp_path, folder, precision, kind, **orders):
    with devices.faults(plugin=PLUGIN, kind=kind, devices=1, **orders):
        flags = ("--device", f"pjrt:{FAULT}", "--precision", precision, "--set", "batching.fallback=never")
        with serving.Server(tmp_path / "tpu.log", dict(m=folder), *flags) as server:
            yield server


def requests():
    random = numpy.random.default_rng(5)
    for length in (1, 7, LENGTH):
        ids = random.integers(1, test_arithmetic.VOCABULARY, (1, length), dtype=numpy.int64)
        types = (numpy.arange(length)[None] > length // 2).astype(numpy.int64)
        yield dict(input_ids=ids, attention_mask=numpy.ones_like(ids), token_type_ids=types)


def check(tmp_path, folder, kind, precision, tolerance, scores=""):
    with serving.Server(tmp_path / "cpu.log", dict(m=folder)) as server:
        wanted = [server.infer("m", r) for r in requests()]
    with on_tpu(tmp_path, folder, precision, kind) as server:
        (stats,) = server.get("/v2/models/m/stats").json()["model_stats"]
        assert {p["arithmetic"] for p in stats["device_programs"]} == {precision}
        assert all(scores in p["reason"] for p in stats["device_programs"]), stats["device_programs"]
        for request, want in zip(requests(), wanted):
            found = server.infer("m", request)
            for name in want:
                # Layer normalisation makes hidden states about 1 in size.
                numpy.testing.assert_allclose(found[name], want[name], atol=tolerance * max(1, numpy.abs(want[name]).max()))
        # A form without a gather of the token types still rejects types that the model does not have.
        wrong = dict(next(requests()), token_type_ids=numpy.full((1, 1), 2, numpy.int64))
        body = json.dumps(dict(inputs=[serving.json_input(name, array) for name, array in wrong.items()])).encode()
        assert server.post("/v2/models/m/infer", body).status == 400


# Devices of the second kind have a form of their own.
@pytest.mark.parametrize("packing, kind", [("never", "TPU v5 lite"), ("always", "TPU v5 lite"), ("never", "TPU v6 lite")])
@pytest.mark.parametrize("precision, tolerance", [("bf16", 0.02), ("int8", 0.06)])
def test_results_are_those_of_the_model(tmp_path, packing, kind, precision, tolerance):
    check(tmp_path, model(tmp_path, packing), kind, precision, tolerance)


# From 1,024 tokens on the first kinds clip scores, sum by products, and keep some values apart; the last has rows as a dimension.
@pytest.mark.parametrize("packing, kind", [("never", "TPU v5 lite"), ("always", "TPU v5 lite"), ("never", "TPU v6 lite"), ("always", "TPU v5")])
def test_forms_of_many_tokens_have_the_results_of_the_model(tmp_path, packing, kind):
    scores = "" if kind == "TPU v5" else "attention scores clipped: the largest of 8 generated sequences is "
    check(tmp_path, model(tmp_path, packing, (16, 64)), kind, "bf16", 0.02, scores)


def large_scores(tensors, key=32):
    """One column of each head, 32 in all queries and `key` in all keys, adds 181 (or -181) to every score: no softmax changes by it. Clipped,
    all scores would be alike, and attention the mean of all values. The rest of queries, keys and values is made larger, so that this shows."""
    for name, tensor in tensors.items():
        if ".self.query." in name or ".self.key." in name:
            tensor *= 10
            tensor[::32] = 0 if name.endswith("weight") else key if ".key." in name else 32
        if ".self.value.weight" in name:
            tensor *= 3


@pytest.mark.parametrize("packing, kind, key", [("never", "TPU v5 lite", 32), ("always", "TPU v5 lite", 32), ("never", "TPU v6 lite", -32)])
def test_scores_that_are_too_large_are_not_clipped(tmp_path, packing, kind, key):
    folder = model(tmp_path, packing, (16, 64), lambda tensors: large_scores(tensors, key))
    check(tmp_path, folder, kind, "bf16", 0.03, "the default (attention scores with the maximum: the largest of 8 generated sequences is 1")


def test_compile_tells_why_scores_are_clipped_or_not(tmp_path):
    for name, change, wanted in (("few", None, None), ("small", None, "clipped"), ("large", large_scores, "maximum")):
        folder = tmp_path / name
        folder.mkdir()
        made = model(folder, "never", (4, LENGTH) if name == "few" else (16, 64), change or (lambda tensors: None))
        (line,) = devices.lines_of(devices.compile_for(folder, made, "--json", "--precision", "bf16", cycles=":500"))
        told = line["attention_scores"]
        assert wanted == (told and told["form"])
        if told:
            assert told["reason"].endswith(", at most 48" if wanted == "clipped" else ", above 48")
            assert float(told["reason"].split(" is ")[1].split(",")[0]) > (0 if wanted == "clipped" else 150)
        # What was measured is in the cache, and the same program is found again.
        (again,) = devices.lines_of(devices.compile_for(folder, made, "--json", "--precision", "bf16", compile_fails=1))
        assert again == dict(line, state="in the cache")


# One bucket: the estimates are those of the program that was compiled last.
@pytest.mark.parametrize("arithmetic", ["int8", "mixed"])
def test_results_with_static_scales_are_those_of_the_model(tmp_path, arithmetic):
    folder = model(tmp_path, "never")
    cycles = test_arithmetic.STATIC[arithmetic].format(256)
    with serving.Server(tmp_path / "cpu.log", dict(m=folder)) as server:
        wanted = [server.infer("m", r) for r in requests()]
    with on_tpu(tmp_path, folder, "int8", "TPU v5 lite", cycles=cycles) as server:
        (stats,) = server.get("/v2/models/m/stats").json()["model_stats"]
        for program in stats["device_programs"]:
            assert (program["arithmetic"], program["scales"]) == (arithmetic, "static")
            assert " 500 (cosine to FP32: mean 0.99" in program["reason"]
        for request, want in zip(requests(), wanted):
            found = server.infer("m", request)
            for name in want:
                cosine = (found[name] * want[name]).sum() / numpy.sqrt((found[name] ** 2).sum() * (want[name] ** 2).sum())
                # Some ids are none that the calibration has seen: their numbers may be cut.
                assert cosine > 0.97, (name, cosine)
