"""KServe v2 (Open Inference Protocol) with binary tensors, mostly one line a case."""
import json

import numpy
import pytest

import serving


def infer_url(model="identity_fp32"):
    return f"/v2/models/{model}/infer"


def body(data=(1, 2), shape=(1, 2), datatype="FP32", name="in", **more):
    return dict(inputs=[dict(name=name, shape=list(shape), datatype=datatype, data=list(data))], **more)


GETS = {
    "/v2": 200,
    "/v2/health/live": 200,
    "/v2/health/ready": 200,
    "/v2/models/digits": 200,
    "/v2/models/digits/versions/1": 200,
    "/v2/models/digits/ready": 200,
    "/v2/models/digits/versions/1/ready": 200,
    "/v2/models/digits/config": 200,
    "/v2/models/digits/stats": 200,
    "/v2/models/digits/versions/9": 404,
    "/v2/models/digits/versions/x": (400, 404),
    "/v2/models/none": 404,
    "/v2/models/none/ready": 404,
    "/v2/models/none/config": 404,
    "/v2/nothing": 404,
    "/nothing": 404,
    "/v2/models/digits/infer": 405,
    "/v2/repository/index": 405,
    "/metrics": 200,
    "/": 200,
}


@pytest.mark.parametrize("path", GETS)
def test_get(server, path):
    answer = server.get(path)
    expected = GETS[path]
    assert answer.status in (expected if isinstance(expected, tuple) else (expected,)), answer
    if answer.status >= 400:
        assert answer.json()["error"]
    if answer.status == 405:
        assert "POST" in answer.headers["Allow"]
    head = server.request("HEAD", path)
    if answer.status != 405:
        assert head.status == answer.status and head.body == b""


def test_metadata(server):
    about = server.get("/v2").json()
    assert about["name"] == "penstock" and about["version"] and "binary_tensor_data" in about["extensions"]
    model = server.get("/v2/models/digits").json()
    assert model["name"] == "digits" and model["versions"] == ["1"] and model["platform"]
    assert model["inputs"] == [{"name": "image", "datatype": "FP32", "shape": [-1, 64]}]
    assert model["outputs"] == [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}]


def test_repository_index(server):
    rows = server.post("/v2/repository/index", {}).json()
    assert {"digits", "slow"} <= {r["name"] for r in rows}
    assert all(r["state"] == "READY" for r in rows)


BAD = {
    "not json": b"{",
    "empty": b"",
    "an array": b"[]",
    "no inputs": b"{}",
    "inputs no array": dict(inputs={}),
    "inputs empty": dict(inputs=[]),
    "unknown input": body(name="nope"),
    "input twice": dict(inputs=body()["inputs"] * 2),
    "no shape": dict(inputs=[dict(name="in", datatype="FP32", data=[1, 2])]),
    "no datatype": dict(inputs=[dict(name="in", shape=[1, 2], data=[1, 2])]),
    "no data": dict(inputs=[dict(name="in", shape=[1, 2], datatype="FP32")]),
    "wrong datatype": body(datatype="INT32"),
    "unknown datatype": body(datatype="FP33"),
    "too few": body(data=[1]),
    "too many": body(data=[1, 2, 3]),
    "negative dimension": body(shape=[-1, 2]),
    "fractional dimension": body(shape=[1.5, 2]),
    "rank": body(shape=[2]),
    "huge shape": body(shape=[2**40, 2**40]),
    "overflowing shape": body(shape=[2**63, 2]),
    "string in numbers": body(data=["1", 2]),
    "null in numbers": body(data=[None, 2]),
    "ragged nested": body(data=[[1], [2, 3]], shape=[2, 2]),
    "unknown output": body(outputs=[dict(name="nope")]),
    "leading zero": b'{"inputs":[{"name":"in","shape":[1,2],"datatype":"FP32","data":[01,2]}]}',
    "hexadecimal": b'{"inputs":[{"name":"in","shape":[1,2],"datatype":"FP32","data":[0x1,2]}]}',
    "trailing comma": b'{"inputs":[{"name":"in","shape":[1,2],"datatype":"FP32","data":[1,2,]}]}',
    "trailing text": b'{"inputs":[{"name":"in","shape":[1,2],"datatype":"FP32","data":[1,2]}]} x',
    "deep": b'{"id":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "not utf-8": b'{"inputs":[{"name":"\xff","shape":[1,2],"datatype":"FP32","data":[1,2]}]}',
}


@pytest.mark.parametrize("name", BAD)
def test_bad_request(server, name):
    answer = server.post(infer_url(), BAD[name])
    assert answer.status == 400, answer
    assert answer.json()["error"], answer
    assert answer.headers["Content-Type"].startswith("application/json")


RANGES = {
    "INT8": ([-128, 127], [128, -129, 1.5, 1e30]),
    "UINT8": ([0, 255], [256, -1, 0.1]),
    "INT16": ([-32768, 32767], [32768]),
    "INT32": ([-(2**31), 2**31 - 1], [2**31]),
    "INT64": ([-(2**63), 2**63 - 1], [2**63, -(2**63) - 1]),
    "UINT32": ([0, 2**32 - 1], [2**32, -1]),
    "UINT64": ([0, 2**64 - 1], [2**64, -1]),
    "BOOL": ([True, False], [0, 1, "true"]),
}


@pytest.mark.parametrize("datatype", RANGES)
def test_integers_do_not_wrap(server, datatype):
    url = infer_url(f"identity_{datatype.lower()}")
    good, bad = RANGES[datatype]
    answer = server.post(url, body(data=good, datatype=datatype))
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == good
    for value in bad:
        assert server.post(url, body(data=[value, good[0]], datatype=datatype)).status == 400, value


@pytest.mark.parametrize("datatype", serving.DATATYPES)
def test_every_datatype_in_binary(server, datatype):
    model = f"identity_{datatype.lower()}"
    if server.get(f"/v2/models/{model}").status != 200:
        pytest.skip("no model of this type")
    values = numpy.random.default_rng(3).integers(0, 2, (3, 7)).astype(serving.DATATYPES[datatype])
    got = server.infer_binary(model, {"in": values})["out"]
    assert got.dtype == values.dtype and (got == values).all()


def test_floats_round_to_nearest_even_and_print_shortest(server):
    halves = [1.00048828125, 1.00146484375, 65504, -0.0]
    data = server.post(infer_url("identity_fp16"), body(data=halves, shape=[1, 4], datatype="FP16")).json()["outputs"][0]["data"]
    assert (numpy.array(data, numpy.float16) == [1.0, 1.001953125, 65504, 0.0]).all()
    text = server.post(infer_url(), body(data=[0.1, 16777217], datatype="FP32")).body
    assert b"[0.1," in text.replace(b" ", b"") and b"16777216" in text
    subnormal = server.post(infer_url(), body(data=[1e-45, 3.4028235e38])).json()["outputs"][0]["data"]
    assert subnormal == [1e-45, 3.4028235e38]


def test_nan_and_infinity_are_bare_words(server):
    text = b'{"inputs":[{"name":"in","shape":[1,3],"datatype":"FP32","data":[NaN,Infinity,-Infinity]}]}'
    answer = server.post(infer_url(), text)
    assert answer.status == 200, answer
    values = answer.json()["outputs"][0]["data"]
    assert values[0] != values[0] and values[1:] == [float("inf"), float("-inf")]


def test_nested_data_id_and_unknown_parameters(server):
    request = dict(body(data=[[1, 2], [3, 4]], shape=[2, 2], id="a\"\u00e9\n"), parameters=dict(unknown={"x": [1]}, priority=1, timeout=5000000))
    answer = server.post(infer_url(), request)
    assert answer.status == 200, answer
    assert answer.json()["id"] == 'a"\u00e9\n' and answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]
    assert answer.json()["model_name"] == "identity_fp32" and answer.json()["model_version"] == "1"
    assert "id" not in server.post(infer_url(), body()).json()


def test_versioned_infer_and_outputs(server):
    assert server.post("/v2/models/identity_fp32/versions/1/infer", body(outputs=[dict(name="out")])).status == 200
    assert server.post("/v2/models/identity_fp32/versions/2/infer", body()).status == 404


@pytest.mark.parametrize("default, own, is_binary", [(True, None, True), (True, False, False), (False, True, True), (None, True, True), (None, None, False)])
def test_binary_output_choice(server, default, own, is_binary):
    output = dict(name="out") if own is None else dict(name="out", parameters=dict(binary_data=own))
    request = body(outputs=[output])
    if default is not None:
        request["parameters"] = dict(binary_data_output=default)
    answer = server.post(infer_url(), request)
    assert answer.status == 200
    assert ("Inference-Header-Content-Length" in answer.headers) == is_binary
    assert (answer.headers["Content-Type"] == "application/octet-stream") == is_binary
    if is_binary:
        assert (serving.binary_outputs(answer)["out"] == [[1, 2]]).all()


def binary(values, size=None, extra=b"", length=None):
    text, headers = serving.binary_request({"in": values})
    if size is not None:
        at = int(headers["Inference-Header-Content-Length"])
        envelope = text[:at].replace(b'"binary_data_size": %d' % values.nbytes, b'"binary_data_size": %s' % str(size).encode())
        text, headers["Inference-Header-Content-Length"] = envelope + text[at:], str(len(envelope))
    if length is not None:
        headers["Inference-Header-Content-Length"] = length
    return text + extra, headers


ONE = numpy.ones((1, 2), numpy.float32)
BAD_BINARY = {
    "short": lambda: (binary(ONE)[0][:-1], binary(ONE)[1]),
    "leftover": lambda: binary(ONE, extra=b"x"),
    "size too large": lambda: binary(ONE, size=9),
    "size not of the shape": lambda: binary(ONE, size=4, extra=b""),
    "size negative": lambda: binary(ONE, size=-8),
    "size huge": lambda: binary(ONE, size=2**63),
    "length negative": lambda: binary(ONE, length="-1"),
    "length no number": lambda: binary(ONE, length="12a"),
    "length empty": lambda: binary(ONE, length=""),
    "length beyond the body": lambda: binary(ONE, length="99999"),
    "length overflows": lambda: binary(ONE, length="99999999999999999999999"),
    "length cuts the json": lambda: binary(ONE, length="10"),
}


@pytest.mark.parametrize("name", BAD_BINARY)
def test_bad_binary(server, name):
    text, headers = BAD_BINARY[name]()
    answer = server.post(infer_url(), text, headers)
    assert answer.status == 400 and answer.json()["error"], answer


def test_raw_mode(server):
    """Inference-Header-Content-Length 0: the body is the one input, batch 1, and the answer is binary."""
    pixels = numpy.zeros(64, numpy.float32)
    answer = server.post("/v2/models/digits/infer", pixels.tobytes(), {"Inference-Header-Content-Length": "0"})
    assert answer.status == 200, answer
    assert serving.binary_outputs(answer)["logits"].shape == (1, 10)
    assert server.post("/v2/models/digits/infer", pixels.tobytes()[:-2], {"Inference-Header-Content-Length": "0"}).status == 400


def test_empty_batch_is_answered_or_refused_but_not_an_accident(server):
    text, headers = serving.binary_request({"in": numpy.zeros((0, 2), numpy.float32)})
    assert server.post(infer_url(), text, headers).status in (200, 400)


def test_body_over_the_ceiling(server):
    got = server.raw(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (9 << 20) + b"x" * (9 << 20))
    assert got.startswith(b"HTTP/1.1 413") and b'"error"' in got


def test_deadline(server):
    """A deadline that passes in the queue or on the device is answered 504, soon."""
    rows = numpy.zeros((256, 1024), numpy.float32)
    text, headers = serving.binary_request({"in": rows})
    at = int(headers["Inference-Header-Content-Length"])
    envelope = json.loads(text[:at])
    envelope["parameters"]["timeout"] = 2000
    new = json.dumps(envelope).encode()
    headers["Inference-Header-Content-Length"] = str(len(new))
    answer = server.post(infer_url("slow"), new + text[at:], headers)
    assert answer.status == 504 and answer.json()["error"], answer


def test_server_timing_and_traceparent(server):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    answer = server.post(infer_url(), body(), {"traceparent": trace})
    assert "execute;dur=" in answer.headers["Server-Timing"] and "queue;dur=" in answer.headers["Server-Timing"]
    assert answer.headers.get("traceparent", trace).split("-")[1] == trace.split("-")[1]


def test_load_report_when_asked(server):
    answer = server.post(infer_url(), body(), {"endpoint-load-metrics-format": "TEXT"})
    report = answer.headers["endpoint-load-metrics"]
    assert report.startswith("TEXT ") and "=" not in report and "nan" not in report.lower()


def test_unload_and_load(server):
    assert server.post("/v2/repository/models/identity_uint8/unload", {}).status == 200
    assert server.post(infer_url("identity_uint8"), body(data=[1, 2], datatype="UINT8")).status in (404, 503)
    answer = server.post("/v2/repository/models/identity_uint8/load", {})
    assert answer.status == 200, answer
    assert server.post(infer_url("identity_uint8"), body(data=[1, 2], datatype="UINT8")).status == 200
    assert server.post("/v2/repository/models/none/load", {}).status in (400, 404)
