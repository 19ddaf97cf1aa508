"""Every method without a key, with a wrong one, and with each right, as docs/security.md has it."""
import re
import socket
import subprocess

import h2.config
import h2.connection
import h2.events
import numpy
import pytest
from tritonclient.grpc import service_pb2

import calls
import serving

METHODS = re.findall(r"^\| `([a-z][\w.]*/\w+)` \| (open|infer|read|admin|shared_memory) \|$", (serving.ROOT / "docs/security.md").read_text(), re.M)
RIGHTS = ("infer", "read", "admin", "shared_memory")
UNAUTHENTICATED, PERMISSION_DENIED = "16", "7"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    file, made = tmp_path_factory.mktemp("keys") / "keys", {}
    for name, flags in {**{r: ["--rights", r] for r in RIGHTS}, "other": ["--models", "other"]}.items():
        run = subprocess.run([serving.BINARY, "key", name, *flags], capture_output=True, text=True, check=True)
        made[name] = run.stderr.strip()
        with open(file, "a") as out:
            out.write(run.stdout)
    return file, made


@pytest.fixture(scope="module")
def server(tmp_path_factory, keys):
    with calls.Server(tmp_path_factory.mktemp("access") / "log", {"digits": serving.DIGITS}, "--keys", str(keys[0])) as s:
        yield s


def status(server, method, key=None, message=b""):
    headers = calls.TYPE | ({"authorization": f"Bearer {key}"} if key else {})
    end = calls.end_of(server.port, "/" + method, calls.frame(message), headers, is_endless=method.endswith(("Health/Watch", "StreamCoreMetrics")))
    return end["grpc-status"], end.get("grpc-message")


def test_the_page_has_every_method():
    assert {right for _, right in METHODS} == {"open", *RIGHTS}
    services = {service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]}
    assert {f"{s.full_name}/{m.name}" for s in services for m in s.methods} <= {m for m, _ in METHODS}


@pytest.mark.parametrize("method, right", METHODS)
def test_every_method(server, keys, method, right):
    _, made = keys
    without = status(server, method)
    if right == "open":
        assert without[0] not in (UNAUTHENTICATED, PERMISSION_DENIED)
        return
    assert without[0] == UNAUTHENTICATED and status(server, method, "psk_" + "0" * 64) == without
    for other in RIGHTS:
        found = status(server, method, made[other])[0]
        assert found not in (UNAUTHENTICATED, PERMISSION_DENIED) if other == right else found == PERMISSION_DENIED


def test_a_key_for_other_models(server, keys):
    _, made = keys
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="image", datatype="FP32", shape=[1, 64])
    request = service_pb2.ModelInferRequest(model_name="digits", inputs=[tensor], raw_input_contents=[numpy.zeros(64, numpy.float32).tobytes()])
    method, message = "inference.GRPCInferenceService/ModelInfer", request.SerializeToString()
    assert status(server, method, made["infer"], message)[0] == "0"
    assert status(server, method, made["other"], message)[0] == PERMISSION_DENIED


def end_of_half(port, headers):
    """Sends 128 kB of a message of 20 MB and waits: the call's status, or None where none came."""
    with socket.create_connection(("127.0.0.1", port), timeout=3) as s:
        c = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        c.initiate_connection()
        fields = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", calls.INFERENCE + "ModelInfer"), *headers.items()]
        c.send_headers(1, fields)
        left = calls.frame(bytes(20_000_000))[:128_000]
        try:
            while True:
                most = min(c.local_flow_control_window(1), c.max_outbound_frame_size)
                while left and most:
                    c.send_data(1, left[:most])
                    left, most = left[most:], min(c.local_flow_control_window(1), c.max_outbound_frame_size)
                s.sendall(c.data_to_send())
                if not (data := s.recv(65536)):
                    return None
                for event in c.receive_data(data):
                    found = dict(event.headers) if isinstance(event, (h2.events.TrailersReceived, h2.events.ResponseReceived)) else {}
                    if "grpc-status" in found:
                        return found["grpc-status"]
        except TimeoutError:
            assert not left
            return None


@pytest.mark.parametrize("length", [{}, {"content-length": "20000005"}])
def test_a_strangers_message_is_refused_at_its_head(server, keys, length):
    """UNAUTHENTICATED before the message has come, without a key and with a wrong one; who has a key may send it."""
    for key in ({}, {"authorization": "Bearer psk_" + "0" * 64}):
        assert end_of_half(server.port, calls.TYPE | length | key) == UNAUTHENTICATED, (length, key)
    assert end_of_half(server.port, calls.TYPE | length | {"authorization": f"Bearer {keys[1]['infer']}"}) is None
