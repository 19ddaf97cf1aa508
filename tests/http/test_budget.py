"""Bytes held for clients: heads, bodies and responses that wait, of a connection, an address and the process."""
import gzip
import re
import socket
import threading
import time

import numpy
import pytest
from hyperframe.frame import DataFrame, HeadersFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame

import serving
from serving import wait_until
from test_limits import closures, frames_of, open_http1, open_http2, request_head, settings

MB = 1 << 20
HELD = {"limits.held_bytes_max": 48 * MB, "limits.body_bytes_max": 12 * MB, "limits.connection_held_percent": 1, "limits.address_held_percent": 100, "server.loops": 1,
        "timeouts.body_rate_ms": 600000, "timeouts.request_ms": 600000}  # nobody ends for being slow  # fmt: skip


def held(server):
    text = server.get("/metrics").body.decode()
    value = lambda name: float(re.search(rf"^penstock_{name} (\S+)$", text, re.M)[1])
    refused = {k: int(v) for k, v in re.findall(r'penstock_held_refusals_total\{limit="(\w+)"\} (\d+)', text)}
    return value("held_bytes"), refused


def post_head(length, path=b"/v2/models/digits/infer"):
    return b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (path, length)


def upload(server, length):
    """What is answered; nothing where the server ended the connection before all was sent."""
    got = b""
    with open_http1(server, post_head(length)) as connection:
        try:
            connection.sendall(b"[" * length)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            while part := connection.recv(65536):
                got += part
        except ConnectionResetError:
            pass
    return got


def is_served(server):
    pixels = [0.0] * 64
    answer = server.post("/v1/models/digits:predict", {"instances": [pixels]})
    return answer.status == 200


def test_bodies_beyond_the_budget_wait_outside(tmp_path):
    """Bodies that are not complete fill the budget: further ones get 503, small requests are served, and who stalls makes room."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(HELD)) as s:
        before, _ = held(s)
        stalled = [open_http1(s, post_head(10 * MB) + b"[" * (9 * MB)) for _ in range(3)]
        wait_until(lambda: held(s)[0] > 27 * MB, "three bodies are held")
        got = upload(s, 10 * MB)
        assert got.startswith(b"HTTP/1.1 503 ") and b"Retry-After:" in got and b'{"error":' in got, got
        assert is_served(s)
        wait_until(lambda: upload(s, 10 * MB) and closures(s)["memory"] > 0, "a stalled connection ends")
        assert held(s)[1]["process"] > 0
        for connection in stalled:
            connection.close()
        wait_until(lambda: held(s)[0] < before + MB, "nothing is held any more")


def is_open(connection):
    connection.settimeout(0.2)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionResetError:
        return False


def test_who_holds_most_goes_first(tmp_path):
    """On whichever loop it is."""
    limits = dict(HELD, **{"limits.body_bytes_max": 40 * MB, "limits.connection_held_percent": 100, "server.loops": 4})
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(limits)) as s:
        large = open_http1(s, post_head(30 * MB) + b"[" * (20 * MB))
        small = [open_http1(s, post_head(30 * MB) + b"[" * (2 * MB)) for _ in range(4)]
        wait_until(lambda: held(s)[0] > 28 * MB, "all are held")
        wait_until(lambda: upload(s, 20 * MB) is not None and closures(s)["memory"] > 0, "one of them ends")
        assert not is_open(large) and all(is_open(c) for c in small)
        assert closures(s)["memory"] == 1
        for connection in small:
            connection.close()


def send_body(connection, stream, length):
    """As much of it as that, whenever the windows allow."""
    windows, got, sent = {0: 65535, stream: 65535}, b"", 0
    while sent < length:
        while sent < length and min(windows.values()) >= 16384:
            connection.sendall(DataFrame(stream, b"[" * 16384).serialize())
            windows = {k: v - 16384 for k, v in windows.items()}
            sent += 16384
        got += connection.recv(1 << 20)
        while len(got) >= 9 and len(got) >= (size := 9 + int.from_bytes(got[:3], "big")):
            for frame in frames_of(got[:size]):
                if isinstance(frame, WindowUpdateFrame) and frame.stream_id in windows:
                    windows[frame.stream_id] += frame.window_increment
                elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
                    connection.sendall(SettingsFrame(0, flags=["ACK"]).serialize())
                    windows[stream] += frame.settings[SettingsFrame.INITIAL_WINDOW_SIZE] - 65535
            got = got[size:]


def test_requests_beside_a_stalled_body_do_not_protect_it(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(HELD)) as s:
        connection = open_http2(s)
        connection.sendall(request_head(1, "POST", "/v2/models/digits/infer").serialize())
        send_body(connection, 1, 9 * MB)
        stalled = [open_http1(s, post_head(10 * MB) + b"[" * (5 * MB)) for _ in range(5)]
        over = threading.Event()

        def ask():
            stream = 3
            while not over.wait(0.05):
                try:
                    connection.sendall(request_head(stream, end_stream=True).serialize())
                except OSError:
                    return
                stream += 2

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        wait_until(lambda: upload(s, 10 * MB) and closures(s)["memory"] > 0, "a connection ends")
        over.set()
        thread.join()
        assert all(is_open(c) for c in stalled) and closures(s)["memory"] == 1
        for c in (connection, *stalled):
            c.close()


def test_a_connection_has_its_share(tmp_path):
    """Streams of one connection: 503 at its share, and another connection is served."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(HELD)) as s:
        connection = open_http2(s)
        statuses = []
        piece = b"[" * 16384
        for stream in (1, 3, 5):
            connection.sendall(request_head(stream, "POST", "/v2/models/digits/infer").serialize())
        connection.setblocking(False)
        got, windows = b"", {0: 65535, 1: 65535, 3: 65535, 5: 65535}
        while not statuses:
            for stream in (1, 3, 5):
                if windows[0] >= 16384 and windows[stream] >= 16384:
                    connection.setblocking(True)
                    connection.sendall(DataFrame(stream, piece).serialize())
                    connection.setblocking(False)
                    windows[0] -= 16384
                    windows[stream] -= 16384
            try:
                got += connection.recv(1 << 20)
            except BlockingIOError:
                time.sleep(0.001)
            while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
                length = 9 + int.from_bytes(got[:3], "big")
                for frame in frames_of(got[:length]):
                    if isinstance(frame, WindowUpdateFrame):
                        windows[frame.stream_id] += frame.window_increment
                    elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
                        connection.sendall(SettingsFrame(0, flags=["ACK"]).serialize())
                        for stream in (1, 3, 5):
                            windows[stream] += frame.settings[SettingsFrame.INITIAL_WINDOW_SIZE] - 65535
                    elif isinstance(frame, HeadersFrame):
                        statuses.append(frame.stream_id)
                got = got[length:]
        assert statuses and held(s)[1]["connection"] > 0
        assert is_served(s)
        connection.close()
        wait_until(lambda: held(s)[0] < 2 * MB, "nothing is held any more")


def test_requests_wait_while_responses_do(tmp_path):
    """A peer whose window is shut: no further request of its connection is begun, until it takes what waits."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings({"limits.response_bytes_max": 65536})) as s:

        def begun():
            text = s.get("/metrics").body.decode()
            return sum(map(int, re.findall(r'penstock_requests_total\{model="digits"[^}]*\} (\d+)', text)))

        row = "[" + ",".join(["0.5"] * 64) + "]"
        body = gzip.compress(('{"instances":[' + ",".join([row] * 512) + "]}").encode())
        connection = open_http2(s, window=0)
        count = 40
        for stream in range(1, 2 * count, 2):
            frames = [request_head(stream, "POST", "/v1/models/digits:predict", extra=[("content-encoding", "gzip")])]
            frames.append(DataFrame(stream, body, flags=["END_STREAM"]))
            connection.sendall(b"".join(f.serialize() for f in frames))
            wait_until(lambda: stream > 1 or begun() > 0, "the first is served")
        last = -1
        while last != begun():
            last = begun()
            time.sleep(0.5)
        assert 0 < last < count, last
        connection.sendall(RstStreamFrame(2 * count - 1, 8).serialize())  # the last one, which waits
        frames = [WindowUpdateFrame(0, (1 << 31) - 70000)] + [WindowUpdateFrame(i, (1 << 31) - 70000) for i in range(1, 2 * count - 1, 2)]
        connection.sendall(b"".join(f.serialize() for f in frames))
        connection.settimeout(0.05)

        def all_are_served():
            try:
                connection.recv(1 << 20)
            except TimeoutError:
                pass
            return begun() >= count - 1

        wait_until(all_are_served, "the others are served")
        connection.close()


def test_connections_of_one_address(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings({"limits.address_connections_max": 5})) as s:
        kept = []

        def one_more():
            """The connection that asked for readiness may still be counted."""
            try:
                c = open_http1(s, b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n")
                if c.recv(100).startswith(b"HTTP/1.1 200"):
                    kept.append(c)
            except ConnectionError:
                pass
            return len(kept) == 5

        wait_until(one_more, "five are served")
        with pytest.raises((ConnectionResetError, ConnectionAbortedError)):
            assert open_http1(s, b"").recv(1) == b""
            raise ConnectionResetError
        for c in kept:
            c.close()
        wait_until(lambda: serving.at_once([s.is_ready], 1) == [True], "served again")


def test_a_decompressed_body_counts(tmp_path):
    """A few kilobytes that unpack to more than the budget: 503, and nothing stays counted."""
    limits = dict(HELD, **{"limits.decompressed_bytes_max": 200 * MB})
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(limits)) as s:
        before, _ = held(s)
        answer = s.post("/v2/models/digits/infer", gzip.compress(b"[" * (100 * MB)), {"Content-Encoding": "gzip"})
        assert answer.status == 503 and "room for the decompressed body" in answer.json()["error"]
        assert s.post("/v2/models/digits/infer", gzip.compress(b"[" * MB), {"Content-Encoding": "gzip"}).status == 400
        wait_until(lambda: held(s)[0] < before + MB, "nothing is held any more")


def test_what_jobs_hold_counts(tmp_path):
    """Tensors of requests that wait, and room for their outputs: of a few bytes of gzip, too."""
    zeros = numpy.zeros((256, 1024), numpy.float32)
    body, named = serving.binary_request({"in": zeros})
    packed, count = gzip.compress(body), 8
    named["Content-Encoding"] = "gzip"
    with serving.Server(tmp_path / "log", {"slow": serving.slow_model(tmp_path)}) as s:
        before, _ = held(s)
        connections = [s.connect(serving.WAIT_S) for _ in range(count)]
        for connection in connections:
            connection.request("POST", "/v2/models/slow/infer", packed, named)
        wait_until(lambda: held(s)[0] - before > (count - 2) * 2 * zeros.nbytes, "inputs and outputs are counted")
        for connection in connections:
            response = connection.getresponse()
            assert response.status == 200 and response.read()
            connection.close()
        wait_until(lambda: held(s)[0] < before + MB, "nothing is held any more")


def test_no_room_for_tensors(tmp_path):
    """A body that fits the budget and whose tensors do not: 503, while small requests are served."""
    limits = dict(HELD, **{"limits.held_bytes_max": 16 * MB, "limits.body_bytes_max": 13 * MB, "limits.connection_held_percent": 100})
    rows = [[1.00000001 + 0.5 * i for i in range(64)]] * 2000
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(limits)) as s:
        with open_http1(s, post_head(13 * MB) + b"[" * (12 * MB)):
            wait_until(lambda: held(s)[0] > 13 * MB, "most of it is taken")
            answer = s.post("/v1/models/digits:predict", {"instances": rows})
            assert answer.status == 503 and "no room to parse" in answer.json()["error"] and "Retry-After" in answer.headers, answer
            assert is_served(s)
        wait_until(lambda: held(s)[0] < MB, "nothing is held any more")
        assert s.post("/v1/models/digits:predict", {"instances": rows}).status == 200


def test_small_input_that_stays_counts(tmp_path):
    """Bodies of less than 64 KiB that are not completed: the budget has them after a look or two, and gives them back."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, *settings(HELD)) as s:
        before, _ = held(s)
        clients = [open_http1(s, post_head(MB) + b"[" * 60000) for _ in range(40)]
        wait_until(lambda: held(s)[0] > before + 40 * 60000, "they count")
        for client in clients[:20]:
            client.close()
        wait_until(lambda: held(s)[0] < before + 30 * 65536, "those that have gone do not")
        for client in clients[20:]:
            client.sendall(b"[" * (MB - 60000))
        wait_until(lambda: held(s)[0] < before + 65536, "what was answered does not")
