"""What one connection may do in one turn of its event loop: 32 requests, 2 ms; then the others go first."""
import re
import socket
import ssl

import numpy
import pytest
from hyperframe.frame import HeadersFrame

import frames
import serving
from onnx import TensorProto


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


def test_a_large_response_over_tls(tmp_path, certificate):
    """It is encrypted in parts, by turns, and not held twice while its client does not read."""
    value = lambda name: serving.helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1 << 20])
    echo = serving.save_model(tmp_path, "echo", [serving.helper.make_node("Identity", ["in"], ["out"])], [value("in")], [value("out")])
    array = numpy.arange(8 << 20, dtype=numpy.float32).reshape(8, 1 << 20)
    body, named = serving.binary_request({"in": array})
    with serving.Server(tmp_path / "log", {"echo": echo}, "--set", "server.loops=1", tls=certificate) as s:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        raw.settimeout(serving.WAIT_S)
        raw.connect(("127.0.0.1", s.tls_port))
        with ssl._create_unverified_context().wrap_socket(raw) as client:
            head = "".join(f"{k}: {v}\r\n" for k, v in named.items())
            client.sendall(f"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body)
            text = b""
            while b"\r\n\r\n" not in text:
                text += client.recv(1)
            named = dict(line.split(": ", 1) for line in text.decode().split("\r\n")[1:-2])
            named = {k.lower(): v for k, v in named.items()}
            held = float(re.search(r"^penstock_held_bytes (\S+)$", s.get("/metrics").body.decode(), re.M)[1])
            assert held < 4 * array.nbytes, held  # body, inputs, outputs; with room to grow
            got, length = bytearray(), int(named["content-length"])
            while len(got) < length:
                got += client.recv(1 << 20)
            at = int(named["inference-header-content-length"])
            assert numpy.array_equal(numpy.frombuffer(bytes(got[at:]), numpy.float32).reshape(array.shape), array)
            client.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n")
            assert client.recv(20).startswith(b"HTTP/1.1 200")


class ByHand:
    """A handshake whose messages are taken one by one."""

    def __init__(self, context, port):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        self.raw = socket.create_connection(("127.0.0.1", port), timeout=serving.WAIT_S)
        self.is_done = False

    def message(self):
        """The next one to be sent; nothing once the handshake is done."""
        while not self.is_done and not self.outgoing.pending:
            try:
                self.tls.do_handshake()
                self.is_done = True
            except ssl.SSLWantReadError:
                if not self.outgoing.pending:
                    self.incoming.write(self.raw.recv(65536))
        return self.outgoing.read()


def test_handshakes(tmp_path, certificate):
    """The second message of many clients, all there at once: a few are worked on in a turn. TLS 1.2, where it costs a key exchange."""
    context, count = ssl._create_unverified_context(), 24
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    clients = []
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", "server.loops=1", tls=certificate) as s:
        for _ in range(count):
            client = ByHand(context, s.tls_port)
            client.raw.sendall(client.message())
            clients.append((client, client.message()))
        before = yields(s)
        with s.stopped():
            for client, message in clients:
                client.raw.sendall(message)
        for client, _ in clients:
            client.message()
            assert client.is_done
            client.raw.close()
        assert yields(s) - before >= count - 8
