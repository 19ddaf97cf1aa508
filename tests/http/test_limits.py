"""What a connection may take of the server's time: each limit, over HTTP/1.1 and HTTP/2, against peers that move a byte or a PING now and
then. A polite client beside them is served."""
import json
import re
import socket
import subprocess
import threading

import hpack
import numpy
import pytest
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

import serving

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LIMITS = {
    "timeouts.head_ms": 1500,
    "timeouts.request_ms": 20000,
    "timeouts.body_rate_ms": 1000,
    "timeouts.response_ms": 1500,
    "timeouts.idle_ms": 2000,
}


def settings(limits):
    return [word for key, value in limits.items() for word in ("--set", f"{key}={value}")]


def closures(server):
    found = re.findall(r'penstock_connections_closed_total\{reason="(\w+)"\} (\d+)', server.get("/metrics").body.decode())
    return {reason: int(count) for reason, count in found}


def trickle(connection, piece, every_s=0.2):
    """Sends the piece again and again until the connection ends; what came back until then."""
    over = threading.Event()

    def send():
        while not over.wait(every_s):
            try:
                connection.sendall(piece)
            except OSError:
                return

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    over.set()
    sender.join()
    return got


def open_http1(server, data, receive_bytes=None):
    connection = socket.socket()
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.settimeout(serving.WAIT_S)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(data)
    return connection


def open_http2(server, *frames, window=None, receive_bytes=None):
    first = {} if window is None else {SettingsFrame.INITIAL_WINDOW_SIZE: window}
    data = PREFACE + SettingsFrame(0, first).serialize() + b"".join(f.serialize() for f in frames)
    return open_http1(server, data, receive_bytes)


def request_head(stream, method="GET", path="/v2/health/live", end_stream=False, end_headers=True, extra=()):
    fields = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path), *extra]
    flags = (["END_STREAM"] if end_stream else []) + (["END_HEADERS"] if end_headers else [])
    return HeadersFrame(stream, hpack.Encoder().encode(fields), flags=flags)


def frames_of(data):
    found = []
    while len(data) >= 9:
        frame, length = Frame.parse_frame_header(memoryview(data[:9]))
        frame.parse_body(memoryview(data[9 : 9 + length]))
        data = data[9 + length :]
        found.append(frame)
    return found


def a_head_byte_by_byte(server):
    got = trickle(open_http1(server, b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nx:"), b"y")
    assert got.startswith(b"HTTP/1.1 408 "), got


def a_body_byte_by_byte(server):
    got = trickle(open_http1(server, b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"), b" ")
    assert got.startswith(b"HTTP/1.1 408 "), got


def a_body_in_chunks_of_a_byte(server):
    head = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    got = trickle(open_http1(server, head), b"1\r\n \r\n")
    assert got.startswith(b"HTTP/1.1 408 "), got


def nothing_at_all(server):
    with open_http1(server, b"") as connection:
        assert connection.recv(4096) == b""


def half_a_preface(server):
    with open_http1(server, PREFACE[:10]) as connection:
        assert connection.recv(4096) == b""


def an_idle_client(server):
    with open_http1(server, b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n") as connection:
        got = b""
        while part := connection.recv(4096):
            got += part
    assert got.startswith(b"HTTP/1.1 200 ") and got.count(b"HTTP/1.1") == 1, got


def responses_unread(server):
    """The socket's buffers are full of responses; the peer takes none of them."""
    connection = open_http1(server, b"", receive_bytes=2304)
    ask = b"GET /v2/models/digits HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        while True:
            connection.sendall(ask)


def responses_unread_http2(server):
    connection = open_http2(server, window=(1 << 31) - 1, receive_bytes=2304)
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        for stream in range(1, 1 << 30, 2):
            connection.sendall(request_head(stream, path="/metrics", end_stream=True).serialize())


def a_head_without_end_http2(server):
    with open_http2(server, request_head(1, end_headers=False)) as connection:
        while connection.recv(4096):
            pass


def a_body_byte_by_byte_http2(server):
    connection = open_http2(server, request_head(1, "POST", "/v2/models/digits/infer"))
    found = frames_of(trickle(connection, DataFrame(1, b" ").serialize() + PingFrame(0, b"12345678").serialize()))
    status = [dict(hpack.Decoder().decode(f.data))[":status"] for f in found if isinstance(f, HeadersFrame)]
    assert status == ["408"], found


def a_response_without_window(server):
    """The response waits for a window that stays shut, while PINGs are answered: the stream ends, then the idle connection."""
    connection = open_http2(server, request_head(1, end_stream=True), window=0)
    found = frames_of(trickle(connection, PingFrame(0, b"12345678").serialize()))
    assert [f.stream_id for f in found if isinstance(f, RstStreamFrame)] == [1], found
    assert [f for f in found if isinstance(f, GoAwayFrame)] and not [f for f in found if isinstance(f, DataFrame)], found


def an_idle_client_with_pings(server):
    found = frames_of(trickle(open_http2(server), PingFrame(0, b"12345678").serialize()))
    assert [f for f in found if isinstance(f, GoAwayFrame)], found


SLOW = [a_head_byte_by_byte, a_body_byte_by_byte, a_body_in_chunks_of_a_byte, nothing_at_all, half_a_preface, an_idle_client, responses_unread,
        responses_unread_http2, a_head_without_end_http2, a_body_byte_by_byte_http2, a_response_without_window, an_idle_client_with_pings]  # fmt: skip


def test_who_is_slow_is_ended(tmp_path):
    """All of them at once, and a polite client meanwhile."""
    over = threading.Event()
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(LIMITS)) as s:

        def be_polite():
            connection = s.connect()
            while not over.wait(0.1):
                assert s.request("GET", "/v2/models/digits", connection=connection).status == 200
            connection.close()

        polite = threading.Thread(target=be_polite)
        polite.start()
        try:
            serving.at_once([lambda each=each: each(s) for each in SLOW], len(SLOW))
        finally:
            over.set()
            polite.join()
        counted = closures(s)
        assert counted["head"] == 3 and counted["body"] == 2 and counted["response"] == 2 and counted["idle"] >= 4, counted


def test_old_connections_are_asked_to_end(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", "timeouts.age_ms=1000") as s:
        connection = s.connect()
        connection.connect()
        serving.wait_until(lambda: s.request("GET", "/v2/health/live", connection=connection).headers["connection"] == "close", "it is asked to end")
        found = frames_of(trickle(open_http2(s), PingFrame(0, b"12345678").serialize()))
        assert [f for f in found if isinstance(f, GoAwayFrame)], found
        assert closures(s)["age"] >= 2


def test_newcomers_replace_who_waits(tmp_path):
    """At connections_max the connection that has been without progress longest ends, who only connected first."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings({"limits.connections_max": 20, "server.loops": 1})) as s:
        client = s.connect()
        assert s.request("GET", "/v2/health/live", connection=client).status == 200
        idle = [open_http1(s, b"") for _ in range(100)]
        assert json.loads(s.get("/v2/health/live").body) == {"live": True}
        assert idle[0].recv(1) == b""
        idle[-2].settimeout(0.1)
        with pytest.raises(TimeoutError):
            idle[-2].recv(1)
        assert s.request("GET", "/v2/health/live", connection=client).status == 200
        assert closures(s)["room"] >= 80


def test_newcomers_wait_for_room(tmp_path):
    """Where the server works for every connection, a newcomer is not turned away: it is served when one of them is answered."""
    models = {"slow": serving.slow_model(tmp_path), "digits": serving.DIGITS}
    rows = numpy.zeros((64, 1024), numpy.float32)
    body, named = serving.binary_request({"in": rows})
    head = "".join(f"{k}: {v}\r\n" for k, v in named.items()).encode()
    ask = b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n" % (len(body), head) + body
    with serving.Server(tmp_path / "log", models, *settings({"limits.connections_max": 2, "server.loops": 1})) as s:
        busy = [open_http1(s, ask) for _ in range(2)]
        with s.stopped():  # both requests are there before the others come
            waiting = [open_http1(s, b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(3)]
        for connection in waiting:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        for connection in busy:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_room_in_another_loop(tmp_path):
    """One place, and loops of which each sees its own connections alone: who is idle makes room all the same."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings({"limits.connections_max": 1, "server.loops": 4})) as s:
        kept = []
        for _ in range(5):
            kept.append(open_http1(s, b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n"))
            assert kept[-1].recv(4096).startswith(b"HTTP/1.1 200 ")
        for connection in kept:
            connection.close()


def test_descriptors_run_out(tmp_path):
    """Few descriptors: fewer connections than limits.connections_max, the log says so, and newcomers are served in the place of who waits."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *serving.CONTROL, "--set", "server.loops=1", wrap=("prlimit", "--nofile=80:80")) as s:
        assert "ulimit -n" in s.log()
        client = s.connect()
        assert s.request("GET", "/v2/health/live", connection=client).status == 200
        idle = [open_http1(s, b"") for _ in range(120)]
        assert s.get("/v2/health/live").status == 200
        assert s.post("/v2/repository/models/digits/load", b"").status == 200  # files can be opened
        assert s.request("GET", "/v2/health/live", connection=client).status == 200
        for connection in idle:
            connection.close()


def test_without_a_descriptor_listeners_pause(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", "server.loops=1") as s:
        limit = lambda most: subprocess.run(["prlimit", "--pid", str(s.process.pid), f"--nofile={most}:"], check=True)
        client = s.connect()
        assert s.request("GET", "/v2/health/live", connection=client).status == 200
        limit(4)
        with open_http1(s, b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n") as waiting:
            serving.wait_until(lambda: "no connection accepted" in s.log(), "it is said")
            limit(1000)
            assert waiting.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert s.log().count("no connection accepted") == 1
