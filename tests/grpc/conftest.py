import pytest
from onnx import TensorProto

import calls
import serving
import text_models

pytest_collection_modifyitems = serving.skip_without_binary


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return serving.make_certificate(tmp_path_factory.mktemp("tls"), "penstock.test")


@pytest.fixture(scope="session")
def server(tmp_path_factory, certificate):
    """HTTP and gRPC on one port, in clear text and over TLS; gRPC alone on others."""
    folder = tmp_path_factory.mktemp("server")
    types = dict(BOOL=TensorProto.BOOL, UINT8=TensorProto.UINT8, INT32=TensorProto.INT32, INT64=TensorProto.INT64, FP16=TensorProto.FLOAT16,
                 FP32=TensorProto.FLOAT, FP64=TensorProto.DOUBLE)  # fmt: skip
    models = {f"identity_{n.lower()}": serving.identity_model(folder, t, f"identity_{n.lower()}") for n, t in types.items()}
    models |= {"digits": serving.DIGITS, "slow": serving.slow_model(folder), "embed": text_models.make(folder)["embed"]}
    limits = ["--set", "limits.body_bytes_max=8388608", "--set", "limits.decompressed_bytes_max=8388608", "--set", "server.repository_control=true"]
    with calls.Server(folder / "server.log", models, "--grpc", "127.0.0.1:0", "--grpc-tls", "127.0.0.1:0", *limits, tls=certificate) as s:
        yield s
