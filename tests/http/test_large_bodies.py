"""Bodies and responses that would hold an event loop: helper threads parse and write them."""
import fcntl
import gzip
import json
import re
import shutil
import socket
import struct
import subprocess
import termios

import numpy
import pytest

import serving

VALUES = (numpy.arange(100_000) * 0.37).astype(numpy.float32).reshape(250, -1)
BODY = json.dumps({"inputs": [serving.json_input("in", VALUES)]}).encode()
SPACES = gzip.compress(b" " * (100 << 20))  # 100 kB; a tenth of a second and more to read


@pytest.fixture(scope="module")
def large(tmp_path_factory, made_models):
    log = tmp_path_factory.mktemp("large") / "server.log"
    with serving.Server(log, {"identity": made_models["identity_fp32"], "digits": serving.DIGITS}) as s:
        yield s


def metric(server, name):
    return float(re.search(rf"^penstock_{name} (\S+)$", server.get("/metrics").body.decode(), re.M)[1])


def wait_for_no_requests(server):
    serving.wait_until(lambda: metric(server, "requests_open") <= 1, "no request is open but the one that asks")


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_json_both_ways(large, coding):
    body = gzip.compress(BODY) if coding == "gzip" else BODY
    for accept in ("identity", "gzip"):
        answer = large.post("/v2/models/identity/infer", body, {"Content-Encoding": coding, "Accept-Encoding": accept})
        assert answer.status == 200 and answer.headers.get("Content-Encoding", "identity") == accept, answer
        text = gzip.decompress(answer.body) if accept == "gzip" else answer.body
        assert numpy.array_equal(serving.json_array(json.loads(text)["outputs"][0]), VALUES)


def test_rows(large):
    answer = large.post("/v1/models/identity:predict", json.dumps({"instances": VALUES.tolist()}))
    assert answer.status == 200 and numpy.array_equal(numpy.array(answer.json()["predictions"], numpy.float32), VALUES)


def test_binary(large):
    body, headers = serving.binary_request({"in": numpy.tile(VALUES, (4, 1))})
    for accept in ("identity", "gzip"):
        answer = large.post("/v2/models/identity/infer", body, dict(headers, **{"Accept-Encoding": accept}))
        assert answer.status == 200
        if accept == "gzip":
            answer.body = gzip.decompress(answer.body)
        assert numpy.array_equal(serving.binary_outputs(answer)["out"], numpy.tile(VALUES, (4, 1)))


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_http2(large, tmp_path):
    (tmp_path / "body").write_bytes(BODY)
    command = ["curl", "-s", "--http2-prior-knowledge", "--data-binary", f"@{tmp_path}/body", f"http://127.0.0.1:{large.port}/v2/models/identity/infer"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    assert numpy.array_equal(serving.json_array(answer["outputs"][0]), VALUES)


def test_what_is_wrong_is_said(large):
    for body, code, words in ((b" " * 200_000, 400, "expected an object"), (BODY + b"x" * 100_000, 400, "JSON at byte")):
        answer = large.post("/v2/models/identity/infer", body)
        assert answer.status == code and words in answer.json()["error"], answer
    answer = large.post("/v2/models/identity/infer", gzip.compress(BODY)[:-9], {"Content-Encoding": "gzip"})
    assert answer.status == 400 and "compressed body is broken" in answer.json()["error"]
    answer = large.post("/v2/models/nobody/infer", BODY)
    assert answer.status == 404


def test_a_deadline_passes_meanwhile(large):
    headers = {"Content-Encoding": "gzip", "X-Request-Timeout-Ms": "1"}
    assert large.post("/v2/models/digits/infer", SPACES, headers).status == 504
    wait_for_no_requests(large)


@pytest.mark.parametrize("reset", [False, True])
def test_clients_leave_meanwhile(large, reset):
    head = f"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {len(SPACES)}\r\n\r\n"
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", large.port)) as s:
            s.sendall(head.encode() + SPACES)
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_for_no_requests(large)
    assert numpy.array_equal(large.infer("identity", {"in": VALUES})["out"], VALUES)


def bytes_not_taken(sock):
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


def test_the_server_drains_meanwhile(tmp_path, made_models):
    with serving.Server(tmp_path / "log", {"identity": made_models["identity_fp32"]}) as s:
        c, body = s.connect(), b" " * (40 << 20) + BODY
        c.putrequest("POST", "/v2/models/identity/infer")
        c.putheader("Content-Length", len(body))
        c.endheaders(body[:-1])
        # The last byte must fit into the socket's buffers while the server is stopped.
        serving.wait_until(lambda: bytes_not_taken(c.sock) == 0, "the server's side has the body but for its last byte")
        with s.stopped():  # the drain and the parsing begin together
            c.send(body[-1:])
            s.terminate()
        response = c.getresponse()
        assert response.status == 200
        assert numpy.array_equal(serving.json_array(json.loads(response.read())["outputs"][0]), VALUES)
