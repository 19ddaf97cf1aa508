"""What one connection may do in one turn of its event loop: 32 requests, 2 ms; then the others go first."""
import re
import socket

import pytest
from hyperframe.frame import HeadersFrame

import frames
import serving


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Its own: these tests make /metrics stale for a second."""
    with serving.Server(tmp_path_factory.mktemp("fairness") / "server.log", {"digits": serving.DIGITS}) as s:
        yield s


def yields(server):
    return int(re.search(r"^penstock_connection_yields_total (\S+)$", server.get("/metrics").body.decode(), re.M)[1])


@pytest.mark.parametrize("path", ["/v2/health/live", "/metrics", "/v2/models/stats"])
def test_pipelined_requests(server, path):
    count, before = 1000, yields(server)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode() * count)
        stream, ages = s.makefile("rb"), 0
        for _ in range(count):
            assert stream.readline().startswith(b"HTTP/1.1 200")
            length = None
            while (line := stream.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                ages += line.lower().startswith(b"age: ")
            assert len(stream.read(length)) == length
    assert ages > 0 or path != "/v2/models/stats"  # the costliest: a text made for an earlier one of them says so
    assert ages == 0 or path != "/v2/health/live"
    assert yields(server) - before >= 10  # 31 where all of it came in one piece


def test_streams(server):
    before = yields(server)
    client = frames.Client(server.port)
    asked, head = [], b""
    for _ in range(90):
        stream, client.next_stream = client.next_stream, client.next_stream + 2
        fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/v2/health/live")]
        head += HeadersFrame(stream, client.encoder.encode(fields), flags=["END_HEADERS", "END_STREAM"]).serialize()
        client.waiting[stream] = [None, b""]
        asked.append(stream)
    client.socket.sendall(head)
    done = {}
    while len(done) < len(asked):
        for stream, status, body in client.receive():
            done[stream] = status, body
    assert set(done) == set(asked) and set(done.values()) == {(200, b'{"live":true}')}
    client.close()
    assert yields(server) - before >= 1
