"""TensorFlow Serving's REST predict."""
import numpy
import pytest

URL = "/v1/models/digits:predict"
IMAGE = [0.0] * 64


def test_rows(server):
    named = server.post(URL, {"instances": [{"image": IMAGE}, {"image": IMAGE}]}).json()["predictions"]
    bare = server.post(URL, {"instances": [IMAGE, IMAGE]}).json()["predictions"]
    assert named == bare and len(named) == 2 and len(named[0]) == 10


def test_columns(server):
    named = server.post(URL, {"inputs": {"image": [IMAGE]}}).json()["outputs"]
    bare = server.post(URL, {"inputs": [IMAGE]}).json()["outputs"]
    assert named == bare and len(named) == 1 and len(named[0]) == 10


def test_other_forms_of_the_url(server):
    for path in ("/v1/models/digits%3Apredict", "/v1/models/digits/versions/1:predict"):
        assert server.post(path, {"instances": [IMAGE]}).status == 200, path


def test_status_and_metadata(server):
    status = server.get("/v1/models/digits").json()["model_version_status"][0]
    assert status["version"] == "1" and status["state"] == "AVAILABLE"
    signature = server.get("/v1/models/digits/metadata").json()["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["image"]["dtype"] == "DT_FLOAT"
    assert [d["size"] for d in signature["inputs"]["image"]["tensor_shape"]["dim"]] == ["-1", "64"]


BAD = {
    "both": ({"instances": [IMAGE], "inputs": [IMAGE]}, 400),
    "none": ({}, 400),
    "empty": ({"instances": []}, 400),
    "no array": ({"instances": 5}, 400),
    "mixed": ({"instances": [IMAGE, {"image": IMAGE}]}, 400),
    "wrong key": ({"instances": [{"pixels": IMAGE}]}, 400),
    "extra key": ({"instances": [{"image": IMAGE, "more": 1}]}, 400),
    "short row": ({"instances": [IMAGE[:-1]]}, 400),
    "text": ({"instances": ["x"]}, 400),
    "unknown column": ({"inputs": {"pixels": [IMAGE]}}, 400),
    "not json": (b"{", 400),
}


@pytest.mark.parametrize("name", BAD)
def test_bad(server, name):
    request, status = BAD[name]
    answer = server.post(URL, request)
    assert answer.status == status and answer.json()["error"], answer


def test_unknown_model_and_verb(server):
    assert server.post("/v1/models/none:predict", {"instances": [1]}).status == 404
    assert server.post("/v1/models/digits:fly", {"instances": [1]}).status in (400, 404)
    assert server.get("/v1/models/none").status == 404


def test_rows_of_different_lengths(golden_server):
    name = "bert_tiny_cls_legacy"
    random = numpy.random.default_rng(5)
    rows = [random.integers(1, 90, n).tolist() for n in (3, 17, 3, 1, 40)]
    make = lambda ids: dict(input_ids=ids, attention_mask=[1] * len(ids), token_type_ids=[0] * len(ids))
    together = golden_server.post(f"/v1/models/{name}:predict", {"instances": [make(r) for r in rows]})
    assert together.status == 200, together
    for ids, answer in zip(rows, together.json()["predictions"]):
        alone = golden_server.post(f"/v1/models/{name}:predict", {"instances": [make(ids)]}).json()["predictions"][0]
        assert numpy.abs(numpy.array(alone) - answer).max() < 1e-4
