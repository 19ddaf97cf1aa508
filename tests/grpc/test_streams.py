"""Calls that are streams of messages: inferences, health, reflection."""
import contextlib
import queue
import threading
import time

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2

import calls
import serving
from tensorflow_messages import CLASSES


def request_of(model, values, name):
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="in", datatype="FP32", shape=values.shape)
    return service_pb2.ModelInferRequest(model_name=model, id=name, inputs=[tensor], raw_input_contents=[values.tobytes()])


def test_tritonclient_streams(server):
    found = queue.Queue()
    values = numpy.random.default_rng(3).normal(size=(2, 5)).astype(numpy.float32)
    tensor = triton.InferInput("in", values.shape, "FP32")
    tensor.set_data_from_numpy(values)
    with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
        client.start_stream(lambda result, error: found.put((result, error)))
        for i in range(200):
            client.async_stream_infer("identity_fp32", [tensor], request_id=str(i))
        answers = [found.get(timeout=serving.WAIT_S) for _ in range(200)]
        assert all(e is None and (r.as_numpy("out") == values).all() for r, e in answers)
        assert sorted(int(r.get_response().id) for r, _ in answers) == list(range(200))
        client.async_stream_infer("none", [tensor], request_id="x")
        result, error = found.get(timeout=serving.WAIT_S)
        assert "none" in str(error)
        client.async_stream_infer("identity_fp32", [tensor], request_id="y")  # the stream goes on
        assert found.get(timeout=serving.WAIT_S)[0].get_response().id == "y"
        client.stop_stream()


def test_what_is_done_first_is_sent_first(server):
    slow, fast = numpy.zeros((64, 1024), numpy.float32), numpy.zeros((1, 4), numpy.float32)
    requests = [request_of("slow", slow, "slow")] + [request_of("identity_fp32", fast, "fast")]
    answers = list(calls.stub(server.port).ModelStreamInfer(iter(requests)))
    assert [a.infer_response.id for a in answers] == ["fast", "slow"] and not any(a.error_message for a in answers)


def test_errors_are_messages_with_their_id(server):
    values = numpy.zeros((1, 4), numpy.float32)
    answers = list(calls.stub(server.port).ModelStreamInfer(iter([request_of("none", values, "a"), request_of("identity_fp32", values, "b")])))
    by_id = {a.infer_response.id: a for a in answers}
    assert 'no model "none"' in by_id["a"].error_message and not by_id["b"].error_message


@pytest.mark.parametrize("rows", [100, 400])  # together fewer than the queue takes
def test_large_messages_wait_for_their_windows(server, rows):
    values = numpy.random.default_rng(rows).normal(size=(rows, 500)).astype(numpy.float32)
    answers = list(calls.stub(server.port).ModelStreamInfer(request_of("identity_fp32", values, str(i)) for i in range(4)))
    assert len(answers) == 4 and not [a.error_message for a in answers if a.error_message]
    assert all(a.infer_response.raw_output_contents[0] == values.tobytes() for a in answers)


def test_messages_that_are_none(server):
    path = calls.INFERENCE + "ModelStreamInfer"
    for body, status in ((b"", "0"), (b"\0\0\0", "3"), (b"\2\0\0\0\0", "3"), (b"\0\xff\xff\xff\xff", "8"), (calls.frame(b"")[:-1], "3")):
        assert calls.end_of(server.port, path, body)["grpc-status"] == status, body
    answer = calls.post(server.port, path, calls.frame(b"\xff"))
    assert b"protobuf" in answer.content  # an error of the message, not of the call


def test_a_stream_that_is_cancelled_leaves_nothing(server):
    stub, values = calls.stub(server.port), numpy.zeros((16, 1024), numpy.float32)
    hold = threading.Event()

    def requests():
        for i in range(30):
            yield request_of("slow", values, str(i))
        hold.wait(serving.WAIT_S)

    for _ in range(3):
        stream = stub.ModelStreamInfer(requests())
        next(stream)
        stream.cancel()
    hold.set()
    assert stub.ModelInfer(request_of("slow", values, "last")).id == "last"


def test_health_watch(tmp_path):
    pb = pytest.importorskip("grpc_health.v1.health_pb2")
    from grpc_health.v1 import health_pb2_grpc

    flags = ["--set", "server.repository_control=true"]
    with calls.Server(tmp_path / "log", {"digits": serving.DIGITS}, *flags, delay_ms=3000) as s:
        stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(f"127.0.0.1:{s.port}"))
        unknown = stub.Watch(pb.HealthCheckRequest(service="none"))
        assert next(unknown).status == pb.HealthCheckResponse.SERVICE_UNKNOWN
        unknown.cancel()
        model, server = stub.Watch(pb.HealthCheckRequest(service="digits")), stub.Watch(pb.HealthCheckRequest())
        assert next(model).status == next(server).status == pb.HealthCheckResponse.SERVING
        assert s.post("/v2/repository/models/digits/unload", b"").status == 200
        assert next(model).status == pb.HealthCheckResponse.NOT_SERVING
        assert s.post("/v2/repository/models/digits/load", b"").status == 200
        assert next(model).status == pb.HealthCheckResponse.SERVING
        s.terminate()
        assert next(server).status == pb.HealthCheckResponse.NOT_SERVING
        assert calls.status_of(lambda: next(server))[0] == grpc.StatusCode.UNAVAILABLE


def test_watching_calls_of_a_connection_are_bounded(server):
    pb = pytest.importorskip("grpc_health.v1.health_pb2")
    from grpc_health.v1 import health_pb2_grpc

    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watch = lambda: stub.Watch(pb.HealthCheckRequest())
        watching = [watch() for _ in range(16)]
        assert {next(w).status for w in watching} == {pb.HealthCheckResponse.SERVING}
        assert calls.status_of(lambda: next(watch()))[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert stub.Check(pb.HealthCheckRequest()).status == pb.HealthCheckResponse.SERVING
        watching.pop().cancel()
        serving.wait_until(lambda: watch_begins(watch), "a watch in the place of one that has ended")


def watch_begins(watch):
    with contextlib.suppress(grpc.RpcError):
        return next(watch()) is not None


def test_load_reports(server):
    """At the asked interval, a second at least, and whether or not anything has changed."""
    request, report = CLASSES["OrcaLoadReportRequest"], CLASSES["OrcaLoadReport"]
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        ask = channel.unary_stream("/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics", request.SerializeToString, report.FromString)
        often, seldom = ask(request()), ask(request(report_interval=CLASSES["Duration"](seconds=3600)))
        begin = time.monotonic()
        reports = [next(often) for _ in range(3)]
        assert time.monotonic() - begin > 1  # not as fast as it can
        assert all(0 <= r.application_utilization <= 1 and "queue_depth" in r.named_metrics for r in reports)
        assert "queue_depth" in next(seldom).named_metrics  # the first one at once
        threading.Timer(1.5, seldom.cancel).start()
        assert calls.status_of(lambda: next(seldom))[0] == grpc.StatusCode.CANCELLED  # and no second one before that
        often.cancel()
        two = channel.stream_stream("/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics", request.SerializeToString, report.FromString)
        assert calls.status_of(lambda: list(two(iter([request(), request()]))))[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_reflection(server):
    pool = pytest.importorskip("google.protobuf.descriptor_pool")
    database = pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database")
    found = database.ProtoReflectionDescriptorDatabase(grpc.insecure_channel(f"127.0.0.1:{server.port}"))
    services = set(found.get_services())
    assert {"inference.GRPCInferenceService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} <= services
    descriptors = pool.DescriptorPool(found)
    for name in services:
        assert descriptors.FindServiceByName(name).methods
    ours, theirs = descriptors.FindServiceByName("inference.GRPCInferenceService"), service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    assert [m.name for m in ours.methods] == [m.name for m in theirs.methods] or {m.name for m in ours.methods} == {m.name for m in theirs.methods}
    for name in ("ModelInferRequest", "ModelInferResponse", "ModelStreamInferResponse", "ModelStatisticsResponse", "ModelConfig"):
        ours = descriptors.FindMessageTypeByName(f"inference.{name}")
        theirs = service_pb2.DESCRIPTOR.message_types_by_name.get(name) or triton.model_config_pb2.DESCRIPTOR.message_types_by_name[name]
        numbers = {f.name: (f.number, f.type) for f in theirs.fields}
        assert all(numbers[f.name] == (f.number, f.type) for f in ours.fields), name
    with pytest.raises(KeyError):
        descriptors.FindMessageTypeByName("inference.Nothing")
