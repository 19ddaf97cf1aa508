"""tritonclient[grpc] unchanged."""
import json

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import calls
import text_models


@pytest.fixture(params=["shared port", "port of its own"])
def client(server, request):
    port = server.port if request.param == "shared port" else server.grpc_port()
    with triton.InferenceServerClient(f"127.0.0.1:{port}") as c:
        yield c


def tensor(name, array, datatype):
    made = triton.InferInput(name, array.shape, datatype)
    made.set_data_from_numpy(array)
    return made


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("digits") and client.is_model_ready("digits", "1") and not client.is_model_ready("none") and not client.is_model_ready("digits", "2")
    server = client.get_server_metadata()
    assert server.name == "penstock" and "statistics" in server.extensions
    model = client.get_model_metadata("digits", "1")
    assert (model.name, list(model.versions), model.inputs[0].name, list(model.inputs[0].shape)) == ("digits", ["1"], "image", [-1, 64])
    config = client.get_model_config("digits", as_json=True)["config"]
    assert config["input"][0] == {"name": "image", "data_type": "TYPE_FP32", "dims": ["64"]} and config["max_batch_size"] >= 1


DATATYPES = {"FP32": numpy.float32, "FP64": numpy.float64, "FP16": numpy.float16, "INT32": numpy.int32, "INT64": numpy.int64, "UINT8": numpy.uint8, "BOOL": bool}


@pytest.mark.parametrize("datatype", DATATYPES)
def test_infer_of_every_type(client, datatype):
    values = numpy.random.default_rng(1).integers(0, 2 if datatype == "BOOL" else 100, (3, 5)).astype(DATATYPES[datatype])
    result = client.infer(f"identity_{datatype.lower()}", [tensor("in", values, datatype)], request_id="7", outputs=[triton.InferRequestedOutput("out")])
    response = result.get_response()
    assert (response.id, response.model_name, response.model_version) == ("7", f"identity_{datatype.lower()}", "1")
    assert result.as_numpy("out").dtype == values.dtype and (result.as_numpy("out") == values).all()


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_compressed_calls(client, coding):
    values = numpy.zeros((64, 500), numpy.float32)
    result = client.infer("identity_fp32", [tensor("in", values, "FP32")], compression_algorithm=coding)
    assert (result.as_numpy("out") == values).all()


@pytest.mark.parametrize("rows", [1, 40, 1000])
def test_large_messages(client, rows):
    """From one that is parsed on the loop to one whose tensor is borrowed and whose response has pieces of its own."""
    values = numpy.random.default_rng(rows).normal(size=(rows, 500)).astype(numpy.float32)
    assert (client.infer("identity_fp32", [tensor("in", values, "FP32")]).as_numpy("out") == values).all()


def test_texts(client):
    texts = numpy.array([b"the cat", b"paris"], object)
    found = client.infer("embed", [tensor("text", texts, "BYTES")]).as_numpy("sentence_embedding")
    assert numpy.allclose(found, [text_models.embedding("the cat"), text_models.embedding("paris")], atol=1e-5)


def test_statistics(client):
    client.infer("digits", [tensor("image", numpy.zeros((1, 64), numpy.float32), "FP32")])
    stats = client.get_inference_statistics("digits").model_stats[0]
    assert (stats.name, stats.version) == ("digits", "1") and stats.inference_stats.success.count >= 1 and stats.batch_stats
    assert len(client.get_inference_statistics().model_stats) > 1


def test_repository(client):
    assert ("digits", "1", "READY") in {(m.name, m.version, m.state) for m in client.get_model_repository_index().models}
    client.unload_model("identity_fp64")
    assert not client.is_model_ready("identity_fp64")
    with pytest.raises(InferenceServerException, match="UNAVAILABLE"):
        client.infer("identity_fp64", [tensor("in", numpy.zeros((1, 1)), "FP64")])
    client.load_model("identity_fp64")
    assert client.is_model_ready("identity_fp64")
    # Settings are honoured, or refused by their name; files are refused.
    client.load_model("identity_fp64", config='{"max_batch_size": 3}')
    assert client.get_model_config("identity_fp64").config.max_batch_size == 3
    with pytest.raises(InferenceServerException, match="instance_group"):
        client.load_model("identity_fp64", config='{"instance_group": [{"count": 2}]}')
    with pytest.raises(InferenceServerException, match='parameter "file:1/model.onnx" is not supported'):
        client.load_model("identity_fp64", config="{}", files={"file:1/model.onnx": b"x"})
    for policy in ({"latest": {"num_versions": 2}}, {"specific": {"versions": ["1"]}}, {"all": {}}):
        client.load_model("identity_fp64", config=json.dumps({"version_policy": json.loads(json.dumps(policy).replace('"1"', "1"))}))
        assert client.get_model_config("identity_fp64", as_json=True)["config"]["version_policy"] == policy
    client.load_model("identity_fp64")
    assert client.get_model_config("identity_fp64").config.max_batch_size != 3
    with pytest.raises(InferenceServerException, match="NOT_FOUND"):
        client.load_model("none")


def test_what_is_not_there_says_so(client):
    assert not client.get_trace_settings().settings and not client.get_log_settings().settings
    with pytest.raises(InferenceServerException, match="trace_rate"):
        client.update_trace_settings(settings={"trace_rate": "1"})


def test_errors(client):
    one = [tensor("in", numpy.zeros((1, 1), numpy.float32), "FP32")]
    for code, message, call in (
        ("NOT_FOUND", 'no model "none"', lambda: client.infer("none", one)),
        ("NOT_FOUND", "version 9", lambda: client.infer("identity_fp32", one, model_version="9")),
        ("INVALID_ARGUMENT", 'version "x"', lambda: client.infer("identity_fp32", one, model_version="x")),
        ("INVALID_ARGUMENT", 'no input "in"', lambda: client.infer("digits", one)),
        ("INVALID_ARGUMENT", "datatype FP32", lambda: client.infer("identity_int64", one)),
        ("INVALID_ARGUMENT", 'no output "else"', lambda: client.infer("identity_fp32", one, outputs=[triton.InferRequestedOutput("else")])),
        ("NOT_FOUND", "none", lambda: client.get_model_metadata("none")),
        ("INVALID_ARGUMENT", "sequence_id", lambda: client.infer("identity_fp32", one, sequence_id=5)),
    ):  # fmt: skip
        with pytest.raises(InferenceServerException, match=f"{code}.*{message}"):
            call()


def test_over_tls(server, certificate):
    roots = open(certificate[0], "rb").read()
    for port in (server.tls_port, server.grpc_port("https")):
        credentials = grpc.ssl_channel_credentials(roots)
        with grpc.secure_channel(f"127.0.0.1:{port}", credentials, [("grpc.ssl_target_name_override", "penstock.test")]) as channel:
            assert calls.service_pb2_grpc.GRPCInferenceServiceStub(channel).ServerLive(calls.service_pb2.ServerLiveRequest()).live
