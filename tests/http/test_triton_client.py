"""tritonclient[http] unchanged."""
import numpy
import pytest

client_module = pytest.importorskip("tritonclient.http")
from tritonclient.utils import InferenceServerException  # noqa: E402


@pytest.fixture
def client(server):
    with client_module.InferenceServerClient(f"127.0.0.1:{server.port}", concurrency=4) as c:
        yield c


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
    assert not client.is_model_ready("none")
    assert client.get_server_metadata()["name"] == "penstock"
    assert client.get_model_metadata("digits", "1")["inputs"][0]["name"] == "image"
    config = client.get_model_config("digits")
    assert config["name"] == "digits" and config["max_batch_size"] >= 1
    assert config["input"][0]["data_type"] == "TYPE_FP32"


def test_statistics(client, server):
    server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    stats = client.get_inference_statistics("digits")["model_stats"][0]
    assert stats["name"] == "digits" and stats["version"] == "1"
    assert int(stats["inference_stats"]["success"]["count"]) >= 1
    assert {"queue", "compute_infer", "compute_input", "compute_output"} <= set(stats["inference_stats"])
    assert len(client.get_inference_statistics()["model_stats"]) > 1


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_infer(client, binary_in, binary_out):
    values = numpy.random.default_rng(1).normal(size=(3, 5)).astype(numpy.float32)
    tensor = client_module.InferInput("in", values.shape, "FP32")
    tensor.set_data_from_numpy(values, binary_data=binary_in)
    result = client.infer("identity_fp32", [tensor], outputs=[client_module.InferRequestedOutput("out", binary_data=binary_out)], request_id="7")
    assert (result.as_numpy("out") == values).all() and result.get_response()["id"] == "7"


@pytest.mark.parametrize("request_how, response_how", [("gzip", "gzip"), ("deflate", "deflate"), (None, "gzip"), ("gzip", None)])
def test_compressed(client, request_how, response_how):
    values = numpy.zeros((10, 500), numpy.float32)
    tensor = client_module.InferInput("in", values.shape, "FP32")
    tensor.set_data_from_numpy(values)
    result = client.infer("identity_fp32", [tensor], request_compression_algorithm=request_how, response_compression_algorithm=response_how)
    assert (result.as_numpy("out") == values).all()


def test_async(client):
    values = numpy.ones((1, 4), numpy.int64)
    tensor = client_module.InferInput("in", values.shape, "INT64")
    tensor.set_data_from_numpy(values)
    handles = [client.async_infer("identity_int64", [tensor]) for _ in range(20)]
    assert all((h.get_result().as_numpy("out") == values).all() for h in handles)


def test_errors(client):
    tensor = client_module.InferInput("in", (1, 2), "FP32")
    tensor.set_data_from_numpy(numpy.ones((1, 2), numpy.float32))
    with pytest.raises(InferenceServerException, match="none"):
        client.infer("none", [tensor])
    with pytest.raises(InferenceServerException):
        client.get_model_metadata("none")
    wrong = client_module.InferInput("nope", (1, 2), "FP32")
    wrong.set_data_from_numpy(numpy.ones((1, 2), numpy.float32))
    with pytest.raises(InferenceServerException, match="nope"):
        client.infer("identity_fp32", [wrong])


def test_repository(client):
    assert any(m["name"] == "digits" and m["state"] == "READY" for m in client.get_model_repository_index())
    client.unload_model("identity_int8")
    assert not client.is_model_ready("identity_int8")
    client.load_model("identity_int8")
    assert client.is_model_ready("identity_int8")
