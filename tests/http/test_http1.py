"""HTTP/1 to the letter (RFC 9112), over clear text and TLS: targets, Host, trailers, Expect, limits of bodies, half-closed clients."""
import contextlib
import json
import socket
import ssl

import numpy
import pytest

import serving
from test_edge import BODY, CLOSE, LENGTH, PATH, head, queued

LIVE = b"/v2/health/live"
CHUNKED = b"Transfer-Encoding: chunked"
CHUNK = b"%x\r\n" % len(BODY) + BODY + b"\r\n"


class Wire:
    """A bare connection. TLS is done by hand, so that the client can close its side and go on reading."""

    def __init__(self, server, tls):
        self.socket = socket.create_connection(("127.0.0.1", server.tls_port if tls else server.port), timeout=180)
        self.tls = None
        if tls:
            self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self.tls = ssl._create_unverified_context().wrap_bio(self.incoming, self.outgoing)
            while not self.step(self.tls.do_handshake):
                pass

    def step(self, call, *arguments):
        """The call's result, or False once more bytes of the peer are there."""
        try:
            result = call(*arguments)
            self.flush()
            return result or True
        except ssl.SSLWantReadError:
            self.flush()
            part = self.socket.recv(65536)
            self.incoming.write(part) if part else self.incoming.write_eof()
            return False

    def flush(self):
        if self.outgoing.pending:
            self.socket.sendall(self.outgoing.read())

    def send(self, data):
        if self.tls:
            self.step(self.tls.write, data)
        else:
            self.socket.sendall(data)

    def rest(self):
        got = b""
        try:
            while self.tls is None and (part := self.socket.recv(65536)):
                got += part
            while self.tls is not None:
                part = self.step(self.tls.read, 65536)
                if part is True:
                    break
                got += part or b""
        except (ConnectionResetError, ssl.SSLError):
            pass
        self.socket.close()
        return got


@pytest.fixture(params=[False, True], ids=["clear", "tls"])
def wire(server, request):
    return lambda: Wire(server, request.param)


def ask(wire, data):
    """All that comes back."""
    w = wire()
    w.send(data)
    return w.rest()


def get(*lines, path=LIVE, host=b"Host: a", version=b"HTTP/1.1"):
    return head(*lines, CLOSE, method=b"GET", path=path, host=host, version=version)


@pytest.mark.parametrize("host", [b"a", b"", b"a.b-c_d~:80", b"127.0.0.1:8080", b"[::1]", b"[fe80::1.2.3.4]:1", b"a%20b", b"a:"])
def test_hosts(wire, host):
    assert ask(wire, get(host=b"Host: " + host)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("host", [b"a b", b"a/b", b"u@a", b"a:b", b"a:65536", b"a:1:2", b"[::1", b"::1", b"[a::z]", b"a%zz", b'a"', b"a\xff", b"a?b"])
def test_malformed_hosts(wire, host):
    assert ask(wire, get(host=b"Host: " + host)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("target", [b"http://a" + LIVE, b"HTTPS://b:443" + LIVE, b"http://[::1]" + LIVE + b"?x=/", b"http://a", b"http://a?x", b"http://a/"])
def test_absolute_targets(wire, target):
    """RFC 9112, section 3.2.2: accepted, and Host is ignored."""
    assert ask(wire, get(path=target)).startswith(b"HTTP/1.1 200 ")


def test_an_absolute_target_with_a_body(wire):
    got = ask(wire, head(LENGTH, CLOSE, path=b"http://other" + PATH) + BODY)
    assert got.startswith(b"HTTP/1.1 200 ") and b'"outputs"' in got


@pytest.mark.parametrize("target", [b"http://", b"http:///v2", b"http://u@a/v2", b"ftp://a/v2", b"v2/health/live", b"*", LIVE + b"#a", b"/\xff", b"a:80"])
def test_malformed_targets(wire, target):
    assert ask(wire, get(path=target)).startswith(b"HTTP/1.1 400 ")


def test_methods(wire):
    assert ask(wire, head(method=b"CONNECT", path=b"a:443") + get()).startswith(b"HTTP/1.1 501 ")
    assert ask(wire, head(method=b"G(T", path=LIVE)).startswith(b"HTTP/1.1 400 ")
    got = ask(wire, head(method=b"OPTIONS", path=b"*") + get())
    assert got.startswith(b"HTTP/1.1 204 No Content\r\n") and b"\r\nallow: GET, HEAD, OPTIONS, POST\r\n" in got
    options, live = got.split(b"\r\n\r\n", 1)
    assert b"content-length" not in options.lower() and b"transfer-encoding" not in options.lower()
    assert live.startswith(b"HTTP/1.1 200 ")


def test_empty_lines_before_a_request(wire):
    assert ask(wire, b"\r\n\r\n\r\n" + get()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("values", [(b"close, keep-alive",), (b"keep-alive, close",), (b"close", b"keep-alive"), (b"keep-alive", b"Close")])
def test_close_counts_wherever_it_stands(wire, values):
    data = head(*[b"Connection: " + v for v in values], method=b"GET", path=LIVE)
    assert ask(wire, data + get()).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("lines", [(b"gzip", b"gzip"), (b"identity", b"identity"), (b"gzip, gzip",), (b"identity", b"gzip")])
def test_two_content_encodings(wire, lines):
    got = ask(wire, head(LENGTH, CLOSE, *[b"Content-Encoding: " + l for l in lines]) + BODY)
    assert got.startswith(b"HTTP/1.1 400 ") and b"two content encodings" in got


@pytest.mark.parametrize("line", [b"nonsense", b"a b: c", b"a : b", b": b", b" a: b", b"a: b\x01", b"a\xff: b"])
def test_malformed_trailers(wire, line):
    got = ask(wire, head(CHUNKED) + CHUNK + b"0\r\n" + line + b"\r\n\r\n" + get())
    assert got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1 ") == 1


def test_trailers_are_no_headers(wire):
    """Neither of this request, whose length and coding they would change, nor of the next."""
    trailers = b"Content-Encoding: gzip\r\nContent-Length: 1\r\nInference-Header-Content-Length: 1\r\nConnection: close\r\n"
    got = ask(wire, head(CHUNKED) + CHUNK + b"0\r\n" + trailers + b"\r\n" + get())
    assert got.count(b"HTTP/1.1 200 ") == 2


def test_a_body_as_large_as_the_limit(server):
    """It is accepted (and is no JSON); a byte more is not."""
    limit = 8 << 20
    body = b"[" * limit
    exact = [head(b"Content-Length: %d" % limit, CLOSE) + body, head(CHUNKED, CLOSE) + b"%x\r\n" % limit + body + b"\r\n0\r\n\r\n"]
    larger = [head(b"Content-Length: %d" % (limit + 1), CLOSE) + body + b"[", head(CHUNKED, CLOSE) + b"%x\r\n" % limit + body + b"\r\n1\r\n["]
    assert [server.raw(request)[:13] for request in exact] == [b"HTTP/1.1 400 "] * 2
    assert [server.raw(request)[:13] for request in larger] == [b"HTTP/1.1 413 "] * 2


def test_a_handshake_in_pieces(server):
    """Its first message may come byte by byte, and in several records: not in more than 64, and no longer than 16 KiB."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl._create_unverified_context().wrap_bio(incoming, outgoing).do_handshake()
    hello = outgoing.read()
    with socket.create_connection(("127.0.0.1", server.tls_port), timeout=60) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(hello), 40):
            s.sendall(hello[at : at + 40])
        assert s.recv(3) == b"\x16\x03\x03"
    message = hello[5:]
    record = lambda part: hello[:3] + len(part).to_bytes(2, "big") + part
    for bytes_each, expected in ((50, b"\x16\x03\x03"), (len(message) // 60, b"\x16\x03\x03"), (3, b"")):
        with socket.create_connection(("127.0.0.1", server.tls_port), timeout=60) as s:
            s.sendall(b"".join(record(message[at : at + bytes_each]) for at in range(0, len(message), bytes_each)))
            with contextlib.suppress(ConnectionResetError):
                assert s.recv(3) == expected
    for wrong in (record(b""), record(b"\1\0\x40\1"), hello[:3] + b"\x40\1", record(message[:50]) + b"\x17\3\3\0\1"):
        with socket.create_connection(("127.0.0.1", server.tls_port), timeout=60) as s:
            s.sendall(wrong)
            assert s.recv(3) == b""


@pytest.mark.parametrize("size", [b"800001", b"40000000", b"fffffffffffffff"])
def test_a_chunk_over_the_limit_is_told_at_once(wire, size):
    got = ask(wire, head(CHUNKED) + size + b"\r\n")
    assert got.startswith(b"HTTP/1.1 413 Content Too Large\r\n") and json.loads(got.split(b"\r\n\r\n")[1])["error"]


def test_old_clients_get_no_interim_response(wire):
    """RFC 9110, section 10.1.1: an expectation of HTTP/1.0 is ignored, whatever it is."""
    for expectation in (b"100-continue", b"something"):
        got = ask(wire, head(LENGTH, b"Expect: " + expectation, version=b"HTTP/1.0") + BODY)
        assert got.startswith(b"HTTP/1.1 200 "), got[:100]
    assert ask(wire, head(LENGTH, CLOSE, b"Expect: 100-continue") + BODY).startswith(b"HTTP/1.1 100 ")
    assert ask(wire, head(LENGTH, CLOSE, b"Expect: something") + BODY).startswith(b"HTTP/1.1 417 ")


def heavy(rows):
    text, headers = serving.binary_request({"in": numpy.zeros((rows, 1024), numpy.float32)})
    return head(*[f"{k}: {v}".encode() for k, v in headers.items()], b"Content-Length: %d" % len(text), path=b"/v2/models/slow/infer") + text


class Crowd:
    """Connections whose requests keep every worker busy, with more that wait. More come until that is so, however fast this machine computes."""

    def __init__(self, wire, server):
        self.wire, self.server, self.wires = wire, server, []

    def come(self):
        while len(self.wires) < 4 or queued(self.server) < 256:
            self.wires.append(self.wire())
            self.wires[-1].send(heavy(128))

    def leave(self):
        for w in self.wires:
            w.socket.close()
        self.wires = []


@pytest.fixture
def crowd(wire, server):
    found = Crowd(wire, server)
    found.come()
    yield found
    found.leave()
    serving.wait_until(lambda: queued(server) == 0, "the queue is empty")


def test_a_half_closed_client_gets_its_responses(wire, crowd):
    """Although it has to wait, and although it asked twice."""
    w = wire()
    w.send(heavy(1) + get())
    w.socket.shutdown(socket.SHUT_WR)
    got = w.rest()
    assert got.startswith(b"HTTP/1.1 200 OK\r\n") and got.count(b"HTTP/1.1 ") == 2 and got.endswith(b'{"live":true}'), got[:300]


def test_work_of_a_client_that_left_is_cancelled(server, crowd):
    """It looks like a half-closed one, until it is sent the first bytes of its response."""
    cancelled = lambda: sum(float(l.rsplit(" ", 1)[1]) for l in server.get("/metrics").body.decode().splitlines() if 'code="499"' in l)
    before = cancelled()

    def some_are():
        """If all was computed before they left, again."""
        crowd.leave()
        serving.wait_until(lambda: cancelled() > before or queued(server) == 0, "the queue is empty")
        if cancelled() == before:
            crowd.come()
        return cancelled() > before

    serving.wait_until(some_are, "work is cancelled")
