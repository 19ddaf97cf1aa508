"""What the HTTP library leaves to us: smuggling forms, verbs, compression, slow and vanished clients."""
import gzip
import json
import socket
import ssl
import zlib

import numpy
import pytest

import serving

BODY = json.dumps({"inputs": [{"name": "in", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}).encode()
PATH = b"/v2/models/identity_fp32/infer"


def head(*lines, method=b"POST", path=PATH, version=b"HTTP/1.1", host=b"Host: a"):
    lines = [method + b" " + path + b" " + version] + ([host] if host else []) + list(lines)
    return b"\r\n".join(lines) + b"\r\n\r\n"


LENGTH = b"Content-Length: %d" % len(BODY)
CLOSE = b"Connection: close"
CHUNKED = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
SMUGGLING = {
    "length and chunked": head(LENGTH, b"Transfer-Encoding: chunked") + CHUNKED,
    "chunked and length": head(b"Transfer-Encoding: chunked", LENGTH) + CHUNKED,
    "two lengths that differ": head(LENGTH, b"Content-Length: 5") + BODY,
    "two equal lengths": head(LENGTH, LENGTH) + BODY,
    "list of lengths": head(b"Content-Length: %d, %d" % (len(BODY), len(BODY))) + BODY,
    "signed length": head(b"Content-Length: +%d" % len(BODY)) + BODY,
    "negative length": head(b"Content-Length: -1") + BODY,
    "hexadecimal length": head(b"Content-Length: 0x10") + BODY,
    "overflowing length": head(b"Content-Length: 99999999999999999999999") + BODY,
    "empty length": head(b"Content-Length:") + BODY,
    "unknown coding": head(b"Transfer-Encoding: xchunked") + CHUNKED,
    "chunked twice": head(b"Transfer-Encoding: chunked, chunked") + CHUNKED,
    "two transfer encodings": head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity") + CHUNKED,
    "no host": head(LENGTH, host=None) + BODY,
    "two hosts": head(LENGTH, b"Host: b") + BODY,
    "folded header": head(LENGTH, b"X-A: b\r\n c") + BODY,
    "space before colon": head(b"Content-Length : %d" % len(BODY)) + BODY,
    "bare line feeds": head(LENGTH).replace(b"\r\n", b"\n") + BODY,
    "zero byte in a header": head(LENGTH, b"X-A: b\0c") + BODY,
    "bad chunk size": head(b"Transfer-Encoding: chunked") + b"zz\r\n" + BODY + b"\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLING)
def test_smuggling_forms_are_refused(server, name):
    """Refused with 400 (501 for a coding), and the connection ends: what follows is never read as a request."""
    follow = head(b"Connection: close", method=b"GET", path=b"/v2/health/live")
    got = server.raw(SMUGGLING[name] + follow)
    assert got == b"" or got.split(b" ")[1] in (b"400", b"501"), got[:300]
    assert got.count(b"HTTP/1.1 ") <= 1, got
    if got:
        assert json.loads(got.split(b"\r\n\r\n", 1)[1])["error"], got


UPGRADE = [b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__"]
REFUSED_HEADS = {
    "no method": (400, b" / HTTP/1.1\r\n\r\n"),
    "garbage": (400, b"\x01\x02\x03\r\n\r\n"),
    "unknown version": (400, b"GET / HTTP/3.7\r\nHost: a\r\n\r\n"),
    "no colon": (400, b"GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n"),
    "a TLS hello on the clear port": (400, bytes.fromhex("16030100a5010000a10303") + b"\0" * 160),
    "too many headers": (431, head(*[b"X-%d: y" % i for i in range(200)], method=b"GET", path=b"/v2")),
    "too large": (431, head(b"X: " + b"y" * 100000, method=b"GET", path=b"/v2")),
    "an upgrade with two hosts": (400, head(b"Host: b", *UPGRADE, method=b"GET", path=b"/v2")),
    "an upgrade with a bare line feed": (400, head(*UPGRADE, b"X: a\nY: b", method=b"GET", path=b"/v2")),
}


@pytest.mark.parametrize("name", REFUSED_HEADS)
def test_refused_heads_have_the_usual_error(server, name):
    code, data = REFUSED_HEADS[name]
    got = server.raw(data)
    assert got.startswith(b"HTTP/1.1 %d " % code), got[:300]
    top, body = got.split(b"\r\n\r\n", 1)
    assert json.loads(body)["error"] and b"application/json" in top and b"connection: close" in top.lower()


def test_a_good_request_in_the_same_form_is_answered(server):
    for data in (head(LENGTH, CLOSE) + BODY, head(b"Transfer-Encoding: chunked", CLOSE) + CHUNKED):
        got = server.raw(data)
        assert got.startswith(b"HTTP/1.1 200"), got


def test_pipelined_requests_are_answered_in_order(server):
    make = lambda i: json.dumps({"id": str(i), **json.loads(BODY)}).encode()
    data = b"".join(head(b"Content-Length: %d" % len(make(i))) + make(i) for i in range(8))
    got = server.raw(data + head(CLOSE, method=b"GET", path=b"/v2/health/live"))
    ids = [int(part.split(b'"', 1)[0]) for part in got.replace(b'"id": "', b'"id":"').split(b'"id":"')[1:]]
    assert ids == list(range(8)), got[:2000]


def test_expect_continue(server):
    got = server.raw(head(LENGTH, b"Expect: 100-continue", CLOSE) + BODY)
    assert b"HTTP/1.1 200" in got


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_request(server, encoding):
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    assert server.post(PATH.decode(), pack(BODY), {"Content-Encoding": encoding}).status == 200
    assert server.post(PATH.decode(), pack(BODY)[:-6], {"Content-Encoding": encoding}).status == 400
    assert server.post(PATH.decode(), b"not packed", {"Content-Encoding": encoding}).status == 400


def test_binary_length_counts_the_decompressed_body(server):
    text, headers = serving.binary_request({"in": numpy.ones((4, 2), numpy.float32)})
    answer = server.post(PATH.decode(), gzip.compress(text), dict(headers, **{"Content-Encoding": "gzip"}))
    assert (serving.binary_outputs(answer)["out"] == 1).all()


def test_a_small_body_that_unpacks_to_a_large_one(server):
    bomb = gzip.compress(b" " * (64 << 20))
    assert server.post(PATH.decode(), bomb, {"Content-Encoding": "gzip"}).status == 413


def test_unknown_encoding(server):
    assert server.post(PATH.decode(), BODY, {"Content-Encoding": "br"}).status == 415


def test_compressed_answers(server):
    request = {"inputs": [serving.json_input("in", numpy.zeros((10, 500), numpy.float32))]}
    plain = server.post(PATH.decode(), request).body
    for encoding, unpack in (("gzip", gzip.decompress), ("deflate", zlib.decompress)):
        answer = server.post(PATH.decode(), request, {"Accept-Encoding": encoding})
        assert answer.headers["Content-Encoding"] == encoding and unpack(answer.body) == plain
    for refused in ("gzip;q=0", "identity", ""):
        assert "Content-Encoding" not in server.post(PATH.decode(), request, {"Accept-Encoding": refused}).headers


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_wrong_verbs(server, method):
    answer = server.request(method, "/v2/health/live")
    assert answer.status == 405 and "GET" in answer.headers["Allow"] and answer.json()["error"]


def test_paths(server):
    for path in ("/v2/models/%2e%2e/config", "/v2/models/a%00b", "/v2//models/digits", "/v2/models/" + "a" * 5000, "/%zz"):
        assert server.get(path).status in (400, 404, 414), path
    assert server.get("/v2/models/digit%73").status == 200
    assert server.get("/v2/health/live?a=b").status == 200


LATE = {
    "half a head": b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nConte",
    "half a body": head(b"Content-Length: 100000") + b"{",
    "half a chunk": head(b"Transfer-Encoding: chunked") + b"100\r\n{",
}


def test_late_requests_are_told(tmp_path, certificate):
    """408 and the end of the connection, in clear text and in TLS; an idle connection ends without a word. The time an idle one has is long: a
    busy machine may send the first bytes late."""
    context = ssl._create_unverified_context()
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", "timeouts.request_ms=700", "--set", "timeouts.idle_ms=4000", tls=certificate) as s:

        def all_that_comes(data, tls=False):
            with socket.create_connection(("127.0.0.1", s.tls_port if tls else s.port), timeout=serving.WAIT_S) as raw:
                with context.wrap_socket(raw) if tls else raw as late:
                    late.sendall(data)
                    got = b""
                    while part := late.recv(4096):
                        got += part
                    return got

        def late(data, tls):
            got = all_that_comes(data, tls)
            assert got.startswith(b"HTTP/1.1 408 ") and b'{"error":' in got and b"HTTP/1.1" not in got[9:], got

        live, last = (head(*more, method=b"GET", path=b"/v2/health/live") for more in ((), (CLOSE,)))
        idle = [lambda data=data: all_that_comes(data) for data in (b"", live, live + b"GET /v2/he", last + b"GET /")]
        silent, one, then_late, closed = serving.at_once(idle + [lambda d=d, t=t: late(d, t) for d in LATE.values() for t in (False, True)])[:4]
        assert silent == b"" and one.count(b"HTTP/1.1") == closed.count(b"HTTP/1.1") == 1
        assert then_late.count(b"HTTP/1.1") == 2 and then_late.count(b"HTTP/1.1 408") == 1
        serving.wait_until(lambda: 'code="408"} 7' in s.get("/metrics").body.decode(), "seven are counted")


def queued(server):
    lines = [l for l in server.get("/metrics").body.decode().splitlines() if l.startswith("penstock_queue_rows{") and "slow" in l]
    return sum(float(l.rsplit(" ", 1)[1]) for l in lines)


def test_work_of_a_client_that_left_is_cancelled(server):
    """Heavy requests, all abandoned: the queue empties."""
    text, headers = serving.binary_request({"in": numpy.zeros((256, 1024), numpy.float32)})
    data = head(*[f"{k}: {v}".encode() for k, v in headers.items()], b"Content-Length: %d" % len(text), path=b"/v2/models/slow/infer")
    sockets = []

    def some_wait():
        """More come until some wait, however fast this machine computes."""
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(data + text)
        sockets.append(s)
        return len(sockets) >= 12 and queued(server) > 0

    serving.wait_until(some_wait, "requests wait")
    for s in sockets:
        s.close()
    serving.wait_until(lambda: queued(server) == 0, "the queue is empty")
    assert server.infer_binary("digits", {"image": numpy.zeros((1, 64), numpy.float32)})["logits"].shape == (1, 10)


def test_many_connections_that_say_nothing(server):
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(300)]
    assert server.get("/v2/health/live").status == 200
    for s in idle:
        s.close()


def test_garbage(server):
    random = numpy.random.default_rng(11)
    for _ in range(50):
        server.raw(random.bytes(300), half_close=True)
    assert server.get("/v2/health/live").status == 200
