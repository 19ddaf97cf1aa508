"""Calls as the protocol has them: messages, codes, deadlines, and where gRPC ends and HTTP begins."""
import base64
import contextlib
import gzip
import http.client
import struct

import grpc
import numpy
import pytest
from tritonclient.grpc import service_pb2

import calls


def test_typed_contents(server):
    stub = calls.stub(server.port)
    for model, datatype, field, values in (
        ("identity_fp32", "FP32", "fp32_contents", [1.5, -2]),
        ("identity_fp64", "FP64", "fp64_contents", [1.5, -2]),
        ("identity_int32", "INT32", "int_contents", [-1, 2**31 - 1]),
        ("identity_int64", "INT64", "int64_contents", [-1, 2**62]),
        ("identity_uint8", "UINT8", "uint_contents", [0, 255]),
        ("identity_bool", "BOOL", "bool_contents", [True, False]),
    ):  # fmt: skip
        request = calls.typed_request(model, datatype, field, values, [1, 2])
        raw = stub.ModelInfer(request)
        assert len(raw.raw_output_contents) == 1 and not raw.outputs[0].HasField("contents")
        request.parameters["binary_data_output"].bool_param = False
        typed = stub.ModelInfer(request)
        assert not typed.raw_output_contents and list(getattr(typed.outputs[0].contents, field)) == values
        assert list(typed.outputs[0].shape) == [1, 2] and typed.outputs[0].datatype == datatype


@pytest.mark.parametrize("name, field, set_to, unset", [("sequence_id", "int64_param", 5, 0), ("sequence_id", "string_param", "a", ""), ("sequence_start", "bool_param", True, False), ("sequence_end", "bool_param", True, False)])
def test_sequences_are_refused_by_name(server, name, field, set_to, unset):
    request = calls.typed_request("identity_fp32", "FP32", "fp32_contents", [1, 2], [1, 2])
    setattr(request.parameters[name], field, unset)
    assert calls.stub(server.port).ModelInfer(request).outputs
    setattr(request.parameters[name], field, set_to)
    code, message = calls.status_of(lambda: calls.stub(server.port).ModelInfer(request))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and f'"{name}"' in message


def test_wrong_contents(server):
    stub = calls.stub(server.port)
    for field, values, message in (("fp32_contents", [1], "elements of shape"), ("int_contents", [1, 2], "int_contents"), ("fp32_contents", [], "contents")):
        code, found = calls.status_of(lambda: stub.ModelInfer(calls.typed_request("identity_fp32", "FP32", field, values, [1, 2])))
        assert code == grpc.StatusCode.INVALID_ARGUMENT and message in found


def test_deadlines(server):
    """Under load, so that it passes in the queue or is refused at once."""
    stub = calls.stub(server.port)
    values = numpy.zeros((16, 1024), numpy.float32)
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="in", datatype="FP32", shape=values.shape)
    request = service_pb2.ModelInferRequest(model_name="slow", inputs=[tensor], raw_input_contents=[values.tobytes()])
    busy = [stub.ModelInfer.future(request) for _ in range(20)]
    body = calls.frame(request.SerializeToString())
    answer = calls.post(server.port, calls.INFERENCE + "ModelInfer", body, calls.TYPE | {"grpc-timeout": "1m"})
    assert answer.status_code == 200 and answer.headers["grpc-status"] == "4", answer.headers
    assert all(b.result() for b in busy)


def test_a_call_that_is_cancelled_leaves_nothing(server):
    stub = calls.stub(server.port)
    values = numpy.zeros((16, 1024), numpy.float32)
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="in", datatype="FP32", shape=values.shape)
    request = service_pb2.ModelInferRequest(model_name="slow", inputs=[tensor], raw_input_contents=[values.tobytes()])
    for call in [stub.ModelInfer.future(request) for _ in range(20)]:
        call.cancel()
    assert stub.ModelInfer(request).outputs[0].name == "out"


def test_trailers_of_a_call_by_hand(server):
    live = calls.post(server.port, calls.INFERENCE + "ServerLive", calls.frame(b""))
    assert live.status_code == 200 and live.headers["content-type"] == "application/grpc" and "content-length" not in live.headers
    assert live.content == calls.frame(b"\x08\x01") and "grpc-status" not in live.headers  # it is in the trailers
    missing = calls.post(server.port, "/inference.GRPCInferenceService/None", calls.frame(b""))
    assert missing.status_code == 200 and missing.headers["grpc-status"] == "12" and missing.content == b""
    wrong = calls.post(server.port, calls.INFERENCE + "ModelMetadata", calls.frame(b"\x0a\x02\xc3\xa9"))  # a name beyond ASCII
    assert wrong.headers["grpc-status"] == "5" and wrong.headers["grpc-message"] == 'no model "%C3%A9"'


@pytest.mark.parametrize("body", [b"", b"\0\0\0", b"\0\0\0\0\5ab", calls.frame(b"") * 2, b"\2\0\0\0\0", calls.frame(b"\xff"), calls.frame(b"\x0a\xff\xff\xff\x7f")])
def test_broken_messages(server, body):
    for method in ("ModelInfer", "ModelMetadata"):
        assert calls.post(server.port, calls.INFERENCE + method, body).headers["grpc-status"] == "3"


def test_codings(server):
    message = service_pb2.ModelMetadataRequest(name="digits").SerializeToString()
    path = calls.INFERENCE + "ModelMetadata"
    packed = calls.frame(gzip.compress(message), 1)
    assert calls.post(server.port, path, packed, calls.TYPE | {"grpc-encoding": "gzip"}).content[:1] == b"\0"
    unknown = calls.post(server.port, path, packed, calls.TYPE | {"grpc-encoding": "snappy"})
    assert unknown.headers["grpc-status"] == "12" and "gzip" in unknown.headers["grpc-accept-encoding"]
    assert calls.post(server.port, path, packed).headers["grpc-status"] == "3"
    bomb = calls.frame(gzip.compress(bytes(20_000_000)), 1)
    assert calls.post(server.port, path, bomb, calls.TYPE | {"grpc-encoding": "gzip"}).headers["grpc-status"] == "8"
    values = calls.typed_request("identity_fp32", "FP32", "fp32_contents", [0.0] * 2000, [20, 100]).SerializeToString()
    packed = calls.frame(gzip.compress(values), 1)
    answer = calls.post(server.port, calls.INFERENCE + "ModelInfer", packed, calls.TYPE | {"grpc-encoding": "gzip", "grpc-accept-encoding": "identity,gzip"})
    assert answer.headers["grpc-encoding"] == "gzip" and answer.content[0] == 1
    assert struct.unpack(">I", answer.content[1:5])[0] == len(answer.content) - 5 < 2000
    assert len(service_pb2.ModelInferResponse.FromString(gzip.decompress(answer.content[5:])).raw_output_contents[0]) == 8000


def test_large_bodies_are_refused(server):
    request = service_pb2.ModelInferRequest(model_name="digits", raw_input_contents=[bytes(9_000_000)])
    code, message = calls.status_of(lambda: calls.stub(server.port).ModelInfer(request))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than the limit" in message


def test_who_comes_to_the_wrong_place_is_told(server):
    own = server.grpc_port()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", own)) as c:
        c.request("GET", "/v2/models/digits")
        answer = c.getresponse()
        assert answer.status == 404 and b"gRPC only; REST is served at http://" in answer.read()
    assert b"gRPC only" in calls.post(own, "/v2/models/digits/infer", b"{}", {"content-type": "application/json"}).content
    answer = server.post(calls.INFERENCE + "ServerLive", calls.frame(b""), calls.TYPE)
    assert answer.status == 505 and "HTTP/2" in answer.json()["error"]
    for kind in ("application/json", "application/grpc-web", "application/grpc+json"):
        answer = calls.post(server.port, calls.INFERENCE + "ServerLive", calls.frame(b""), {"content-type": kind})
        assert answer.status_code == 415 and "application/grpc" in answer.json()["error"]


def test_health(server):
    pb = pytest.importorskip("grpc_health.v1.health_pb2")
    from grpc_health.v1 import health_pb2_grpc

    stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(f"127.0.0.1:{server.port}"))
    for name in ("", "inference.GRPCInferenceService", "grpc.health.v1.Health", "digits"):
        assert stub.Check(pb.HealthCheckRequest(service=name)).status == pb.HealthCheckResponse.SERVING
    assert calls.status_of(lambda: stub.Check(pb.HealthCheckRequest(service="none")))[0] == grpc.StatusCode.NOT_FOUND


def test_load_reports(server):
    """ORCA in the trailers, for those who ask."""
    request = calls.typed_request("identity_fp32", "FP32", "fp32_contents", [1, 2], [1, 2])
    path, body = calls.INFERENCE + "ModelInfer", calls.frame(request.SerializeToString())
    assert calls.end_of(server.port, path, body) == {"grpc-status": "0"}
    end = calls.end_of(server.port, path, body, calls.TYPE | {"endpoint-load-metrics-format": "bin"})
    report = base64.b64decode(end["endpoint-load-metrics-bin"])  # grpcio keeps it to itself
    assert report[0] == 1 << 3 | 1 and 0 <= struct.unpack("<d", report[1:9])[0] <= 1  # cpu_utilization
    assert report[9] == 9 << 3 | 1 and b"queue_depth" in report
