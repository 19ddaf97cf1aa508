"""Every golden model against its expected answers: JSON and binary, alone and with strangers."""
import json
import random
import threading

import numpy
import pytest

import serving

TIMES = 20
FOLDER = serving.shared_models()
MODELS = {m["name"]: m for m in json.loads((FOLDER / "manifest.json").read_text())["models"]}


def cases(name):
    requests = sorted((FOLDER / "kserve").glob(f"{name}.case*.request.json"))
    return [(json.loads(p.read_text()), json.loads(p.with_name(p.name.replace("request", "response")).read_text())) for p in requests]


def inputs_of(request):
    return {i["name"]: serving.json_array(i) for i in request["inputs"]}


def compare(entry, got, response, where):
    for output in response["outputs"]:
        expected = serving.json_array(output)
        actual = got[output["name"]]
        assert actual.shape == expected.shape, where
        worst = float(numpy.abs(actual.astype(numpy.float64) - expected).max())
        assert worst <= tolerance(entry, output["name"]), f"{where}: {worst}"


def tolerance(entry, output):
    """FP32 models keep the manifest's figure. For quantised and half-precision ones one rounding flip moves an answer by whole
    steps (README there), so they are held to their own distance from FP32."""
    distance = (entry.get("quant_vs_fp32_maxabs") or {}).get(output, 0)
    return max(entry["tolerance_abs"], 1.5 * distance)


@pytest.mark.parametrize("name", MODELS)
def test_alone_json(golden_server, name):
    for number, (request, response) in enumerate(cases(name)):
        answer = golden_server.post(f"/v2/models/{name}/infer", request)
        assert answer.status == 200, f"case {number}: {answer}"
        got = {o["name"]: serving.json_array(o) for o in answer.json()["outputs"]}
        compare(MODELS[name], got, response, f"case {number}")


@pytest.mark.parametrize("name", MODELS)
def test_alone_binary(golden_server, name):
    for number, (request, response) in enumerate(cases(name)):
        compare(MODELS[name], golden_server.infer_binary(name, inputs_of(request)), response, f"case {number}")


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if not m.get("quant_vs_fp32_maxabs")])
def test_with_strangers(golden_server, name):
    """Rows of every case, one request each, all lengths mixed and at once, still get their own answer."""
    single = []
    for request, response in cases(name):
        inputs, outputs = inputs_of(request), {o["name"]: serving.json_array(o) for o in response["outputs"]}
        for row in range(len(next(iter(inputs.values())))):
            mask = inputs.get("attention_mask")
            length = int(mask[row].sum()) if mask is not None else None
            cut = lambda a: a[row : row + 1, :length] if length is not None and a.ndim > 1 and a.shape[1] == mask.shape[1] else a[row : row + 1]
            single.append(({n: cut(a) for n, a in inputs.items()}, {n: cut(a) for n, a in outputs.items()}))
    work = single * 6
    random.Random(7).shuffle(work)
    here = threading.local()

    def one(inputs, expected):
        if not hasattr(here, "connection"):
            here.connection = golden_server.connect()
        got = golden_server.infer_binary(name, inputs, here.connection)
        for output, value in expected.items():
            worst = float(numpy.abs(got[output] - value).max())
            assert got[output].shape == value.shape and worst <= tolerance(MODELS[name], output), worst

    serving.at_once([lambda w=w: one(*w) for w in work])


@pytest.mark.parametrize("name", [n for n in MODELS if n in ("bert_tiny_cls_legacy", "digits_mlp", "cnn_1x28x28")])
def test_more_rows_than_the_largest_bucket(golden_server, name):
    request, response = cases(name)[-1]
    inputs = inputs_of(request)
    many = {n: numpy.concatenate([a] * TIMES) for n, a in inputs.items()}
    got = golden_server.infer_binary(name, many)
    for output in response["outputs"]:
        expected = numpy.concatenate([serving.json_array(output)] * TIMES)
        assert numpy.abs(got[output["name"]] - expected).max() <= MODELS[name]["tolerance_abs"]


def test_a_row_that_is_too_long_is_refused_with_the_limit(golden_server):
    ids = numpy.ones((1, 5000), numpy.int64)
    body = {"inputs": [serving.json_input(n, ids) for n in ("input_ids", "attention_mask", "token_type_ids")]}
    answer = golden_server.post("/v2/models/bert_tiny_cls_legacy/infer", body)
    assert answer.status == 400
    assert any(ch.isdigit() for ch in answer.json()["error"].replace("5000", ""))
