"""HTTP/2: clear text with prior knowledge and by upgrade, over TLS by ALPN, abuse, and h2spec."""
import json
import re
import shutil
import socket
import ssl
import subprocess

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import pytest

import serving

BODY = json.dumps({"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}).encode()
H2SPEC = next((p for p in (serving.ROOT / ".cache/bin/h2spec", shutil.which("h2spec")) if p and serving.pathlib.Path(p).exists()), None)


class Connection:
    def __init__(self, server, tls=False):
        self.socket = socket.create_connection(("127.0.0.1", server.tls_port if tls else server.port), timeout=serving.WAIT_S)
        if tls:
            context = ssl._create_unverified_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.set_alpn_protocols(["h2", "http/1.1"])
            self.socket = context.wrap_socket(self.socket)
            assert self.socket.selected_alpn_protocol() == "h2"
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def start(self, method, path, body=b"", extra=()):
        stream = self.h2.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path), *extra]
        self.h2.send_headers(stream, fields, end_stream=not body)
        if body:
            self.h2.send_data(stream, body, end_stream=True)
        self.flush()
        return stream

    def finish(self, streams):
        """Stream -> (status, body); stops early when the peer closes."""
        answers, done = {s: [None, b""] for s in streams}, set()
        while done != set(streams):
            data = self.socket.recv(65536)
            if not data:
                break
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    answers[event.stream_id][0] = int(dict(event.headers)[":status"])
                elif isinstance(event, h2.events.DataReceived):
                    answers[event.stream_id][1] += event.data
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                    done.add(event.stream_id)
            self.flush()
        return answers


@pytest.mark.parametrize("tls", [False, True])
def test_multiplexed(server, tls):
    c = Connection(server, tls)
    streams = [c.start("POST", "/v2/models/identity_fp32/infer", BODY) for _ in range(50)]
    for status, body in c.finish(streams).values():
        assert status == 200 and json.loads(body)["outputs"][0]["data"] == [1, 2]


def test_upgrade(server):
    got = server.raw(
        b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        until_close=False,
    )
    assert got.startswith(b"HTTP/1.1 101"), got


def test_tls_without_http2(server):
    context = ssl._create_unverified_context()
    with context.wrap_socket(socket.create_connection(("127.0.0.1", server.tls_port), timeout=serving.WAIT_S)) as s:
        s.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 200")


def test_empty_path_is_refused(server):
    c = Connection(server)
    c.h2.config.validate_outbound_headers = False
    (answer,) = c.finish([c.start("GET", "")]).values()
    assert answer[0] in (None, 400)


def test_two_content_encodings(server):
    c = Connection(server)
    one, two = [("content-encoding", "identity")], [("content-encoding", "identity")] * 2
    streams = [c.start("POST", "/v2/models/identity_fp32/infer", BODY, extra) for extra in (one, two)]
    answers = c.finish(streams)
    assert answers[streams[0]][0] == 200
    assert answers[streams[1]][0] == 400 and b"two content encodings" in answers[streams[1]][1]


def test_head_has_no_body(server):
    c = Connection(server)
    (answer,) = c.finish([c.start("HEAD", "/v2/health/live")]).values()
    assert answer == [200, b""]


def test_rapid_reset_ends_the_connection(server):
    """CVE-2023-44487: one connection sends HEADERS and RST_STREAM, 100,000 times; the handler must not run that often."""
    count = lambda: sum(
        float(line.rsplit(" ", 1)[1])
        for line in server.get("/metrics").body.decode().splitlines()
        if line.startswith("penstock_requests_total{")
    )
    before, ended, sent = count(), False, 0
    c = Connection(server)
    block = c.h2.encoder.encode([(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/v2/models/slow/infer")])
    try:
        for first in range(1, 200_000, 200):
            burst = b""
            for stream in range(first, first + 200, 2):
                burst += len(block).to_bytes(3, "big") + b"\x01\x04" + stream.to_bytes(4, "big") + block
                burst += b"\0\0\x04\x03\0" + stream.to_bytes(4, "big") + b"\0\0\0\x08"
                sent += 1
            c.socket.sendall(burst)
        while c.socket.recv(65536):
            pass
        ended = True
    except (ConnectionError, socket.timeout) as error:
        ended = isinstance(error, ConnectionError)
    assert ended, "the connection is still open"
    assert count() - before < 20_000
    assert server.get("/v2/health/live").status == 200


def test_reset_of_running_requests(server):
    c = Connection(server)
    for _ in range(20):
        stream = c.start("POST", "/v2/models/identity_fp32/infer", BODY)
        c.h2.reset_stream(stream)
    c.flush()
    (answer,) = c.finish([c.start("GET", "/v2/health/live")]).values()
    assert answer[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_h2spec(server, tls):
    if H2SPEC is None:
        pytest.skip("no h2spec program (./test builds it where Go is at hand)")
    port = server.tls_port if tls else server.port
    run = subprocess.run(
        [H2SPEC, "-h", "127.0.0.1", "-p", str(port), "-P", "/v2/health/live", "-o", "5", *(["-t", "-k"] if tls else [])],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    total, passed, skipped, failed = map(int, re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", run.stdout).groups())
    assert total >= 140 and failed == 0, run.stdout[-4000:]


def test_goaway_on_drain(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}) as s:
        c = Connection(s)
        c.finish([c.start("GET", "/v2/health/live")])
        s.terminate()
        events = []
        while not any(isinstance(e, h2.events.ConnectionTerminated) for e in events):
            data = c.socket.recv(65536)
            if not data:
                break
            events += c.h2.receive_data(data)
        assert any(isinstance(e, h2.events.ConnectionTerminated) for e in events)
        c.socket.close()
