import pytest
from onnx import TensorProto

import serving
from target import attacked

pytest_collection_modifyitems = serving.skip_without_binary


@pytest.fixture
def attack(tmp_path):
    """attack(*flags, **more): target.attacked() with files of this test."""
    return lambda *flags, **more: attacked(tmp_path, *flags, **more)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return serving.make_certificate(tmp_path_factory.mktemp("tls"), "penstock.test")


@pytest.fixture(scope="session")
def echo(tmp_path_factory):
    """Models: digits, and one that answers what it is asked."""
    return {"digits": serving.DIGITS, "echo": serving.identity_model(tmp_path_factory.mktemp("models"), TensorProto.FLOAT, "echo")}
