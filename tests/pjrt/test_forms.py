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


def model(tmp_path, packing, bucket=(4, LENGTH)):
    """Eight heads of 32: two blocks of four heads fill 128 columns each."""
    folder = tmp_path / "m"
    test_arithmetic.hugging_face(folder, hidden=256, heads=8, positions=bucket[1])
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


def check(tmp_path, folder, kind, precision, tolerance):
    with serving.Server(tmp_path / "cpu.log", dict(m=folder)) as server:
        wanted = [server.infer("m", r) for r in requests()]
    with on_tpu(tmp_path, folder, precision, kind) as server:
        (stats,) = server.get("/v2/models/m/stats").json()["model_stats"]
        assert {p["arithmetic"] for p in stats["device_programs"]} == {precision}
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


# From 1,024 tokens on these kinds clip scores, sum by products, and keep some values apart.
@pytest.mark.parametrize("packing, kind", [("never", "TPU v5 lite"), ("always", "TPU v5 lite"), ("never", "TPU v6 lite")])
def test_forms_of_many_tokens_have_the_results_of_the_model(tmp_path, packing, kind):
    check(tmp_path, model(tmp_path, packing, (16, 64)), kind, "bf16", 0.02)


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
