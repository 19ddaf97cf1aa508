import pytest
from onnx import TensorProto

import exchange
import serving

pytest_collection_modifyitems = serving.skip_without_binary


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    models = {"echo": serving.identity_model(folder, TensorProto.FLOAT, "echo")}
    with serving.Server(folder / "server.log", models, "--set", "batching.queue_rows_max=1000000", tls=serving.make_certificate(folder, "penstock.test")) as s:
        yield s


@pytest.fixture(scope="session")
def exchanges(tmp_path_factory):
    """A small one and a large one."""
    folder = tmp_path_factory.mktemp("bodies")
    return [exchange.Exchange(array, folder) for array in (exchange.SMALL, exchange.LARGE)]


@pytest.fixture(params=["clear", "tls"])
def url(server, request):
    return f"http://127.0.0.1:{server.port}" if request.param == "clear" else f"https://127.0.0.1:{server.tls_port}"
