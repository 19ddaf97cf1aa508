import json

import pytest
from onnx import TensorProto

import serving

pytest_collection_modifyitems = serving.skip_without_binary


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A self-signed certificate and its key."""
    return serving.make_certificate(tmp_path_factory.mktemp("tls"), "penstock.test")


@pytest.fixture(scope="session")
def made_models(tmp_path_factory):
    """Name -> folder of models written here: identities of several types, and a slow one."""
    folder = tmp_path_factory.mktemp("models")
    types = dict(
        BOOL=TensorProto.BOOL, UINT8=TensorProto.UINT8, INT8=TensorProto.INT8, INT16=TensorProto.INT16, INT32=TensorProto.INT32,
        INT64=TensorProto.INT64, UINT32=TensorProto.UINT32, UINT64=TensorProto.UINT64, FP16=TensorProto.FLOAT16,
        FP32=TensorProto.FLOAT, FP64=TensorProto.DOUBLE,
    )  # fmt: skip
    made = {f"identity_{n.lower()}": serving.identity_model(folder, t, f"identity_{n.lower()}") for n, t in types.items()}
    made["slow"] = serving.slow_model(folder)
    return made


@pytest.fixture(scope="session")
def server(tmp_path_factory, certificate, made_models):
    """The server most tests share: clear text and TLS, the bundled digits and the models made here."""
    log = tmp_path_factory.mktemp("server") / "server.log"
    models = dict(made_models, digits=serving.DIGITS)
    with serving.Server(log, models, *serving.CONTROL, "--set", "limits.body_bytes_max=8388608", "--set", "limits.decompressed_bytes_max=8388608", tls=certificate) as s:
        yield s


@pytest.fixture(scope="session")
def golden():
    """Manifest entries by name, and the folder they are in."""
    folder = serving.shared_models()
    return folder, {m["name"]: m for m in json.loads((folder / "manifest.json").read_text())["models"]}


@pytest.fixture(scope="session")
def golden_server(tmp_path_factory, golden):
    folder, manifest = golden
    log = tmp_path_factory.mktemp("golden") / "server.log"
    with serving.Server(log, {name: folder / entry["file"] for name, entry in manifest.items()}) as s:
        yield s
