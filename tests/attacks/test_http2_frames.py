"""HTTP/2: frames that cost their sender nothing, and legal ones that once ended the process."""
import struct
import threading
import time

import pytest

import wire
from wire import frame, head, head_frames, http2


def ended_with(reader):
    """The code of the GOAWAY that ended the connection; None: it ended without, or by a reset that overtook it. Fails when it does not end."""
    codes = [struct.unpack(">I", got[3][4:8])[0] for got in reader.until(wire.GOAWAY) if got[0] == wire.GOAWAY]
    return codes[-1] if codes else None


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_window_updates_for_streams_that_wait_for_the_socket(attack, certificate, tls):
    """A body as long as its stream's window is finished while the client reads slowly; then comes the WINDOW_UPDATE."""
    with attack(tls=certificate) as server:
        body = len(server.get("/v2/health/live").body)
        with wire.connect(server.tls_port if tls else server.port, tls, is_slow=True, timeout=5) as client:
            client.sendall(wire.PREFACE + wire.settings(window=body) + wire.window(0, wire.WINDOW_MAX - 65535))
            for first in range(1, 4000, 100):
                streams = range(first, first + 100, 2)
                sent = wire.send_while_taken(client, b"".join(frame(wire.HEADERS, 5, s, head()) for s in streams), 1)
                time.sleep(0.005)  # so that the responses begin, and wait for the socket
                if not sent or not wire.send_while_taken(client, b"".join(wire.window(s, 1) for s in streams), 1):
                    break


def floods():
    ping, empty = frame(wire.PING, 0, 0, b"12345678"), frame(wire.DATA, 0, 1)
    post = frame(wire.HEADERS, wire.END_HEADERS, 1, head("POST", "/v2/models/digits/infer"))
    return {
        "unknown": (b"", frame(0x42, 0, 0)),
        "ping": (b"", ping),
        "settings": (b"", wire.settings(window=65535)),
        "settings of many values": (b"", frame(wire.SETTINGS, 0, 0, struct.pack(">HI", 4, 65535) * 2000)),
        "empty data": (post, empty),
        "one byte of data": (post, frame(wire.DATA, 0, 1, b" ")),
        "padding": (post, frame(wire.DATA, 8, 1, b"\xff" + bytes(255))),
        "window updates": (post, wire.window(1, 1)),
        "priority": (b"", frame(wire.PRIORITY, 0, 3, struct.pack(">IB", 1, 15))),
        "priority update": (b"", frame(wire.PRIORITY_UPDATE, 0, 0, struct.pack(">I", 1) + b"u=1")),
        "continuation": (frame(wire.HEADERS, 0, 1, head("POST")), frame(wire.CONTINUATION, 0, 1)),
        "long continuation": (frame(wire.HEADERS, 0, 1, head("POST")), frame(wire.CONTINUATION, 0, 1, wire.field("x", "y" * 100) * 100)),
        "table size": (b"", None),
    }


@pytest.mark.parametrize("kind", list(floods()))
def test_frames_without_work_end_the_connection(attack, kind):
    """Nothing is read from a socket that is written to as fast as it takes: the server keeps no queue of answers either."""
    first, repeated = floods()[kind]
    with attack() as server, http2(server.port) as client:
        if repeated is None:  # each head changes the size of the table, and names a route that does not exist
            bursts = [b"".join(frame(wire.HEADERS, 5, s, b"\x20\x3f\xe1\x1f" + head()) + wire.reset(s) for s in range(k, k + 200, 2)) for k in range(1, 40000, 200)]
        else:
            bursts = [first, *[repeated * max(1, 100000 // len(repeated))] * 100]
        sent = sum(wire.send_while_taken(client, burst, 1) for burst in bursts)
        assert sent < len(bursts) or ended_with(wire.Reader(client)) != wire.NO_ERROR, "the flood was taken to its end"


RESETS = {
    "by the client": lambda s: frame(wire.HEADERS, 4, s, head("POST")) + wire.reset(s),
    "after the answer was asked for": lambda s: frame(wire.HEADERS, 5, s, head()) + wire.reset(s),
    "by a window of 0": lambda s: frame(wire.HEADERS, 4, s, head("POST")) + wire.window(s, 0),
    "by a window that is too large": lambda s: frame(wire.HEADERS, 4, s, head("POST")) + wire.window(s, wire.WINDOW_MAX),
    "by a priority of the wrong length": lambda s: frame(wire.HEADERS, 4, s, head("POST")) + frame(wire.PRIORITY, 0, s, b"1234"),
    "by a body longer than it said": lambda s: frame(wire.HEADERS, 4, s, head("POST", content_length="1")) + frame(wire.DATA, 1, s, b"12"),
    "by a field in capitals": lambda s: frame(wire.HEADERS, 5, s, head() + wire.field("X", "y")),
}


@pytest.mark.parametrize("kind", list(RESETS))
def test_streams_that_are_reset_end_the_connection(attack, kind):
    """By either side: the client resets, or makes the server do it (CVE-2023-44487, CVE-2025-8671)."""
    with attack() as server, http2(server.port) as client:
        reader = wire.Reader(client)
        sent = wire.send_while_taken(client, b"", 1)
        for first in range(1, 40000, 200):
            sent = wire.send_while_taken(client, b"".join(RESETS[kind](s) for s in range(first, first + 200, 2)), 1)
            if not sent:
                break
        assert not sent or ended_with(reader) != wire.NO_ERROR, "20,000 resets were taken"


def test_a_small_head_does_not_become_a_large_one(attack):
    """One long field in the table, named by one byte each time; the streams stay open."""
    with attack() as server:
        clients = []
        for value in ("a" * 3900, "=" * 3900):
            client = http2(server.port)
            clients.append(client)
            threading.Thread(target=wire.drain_quietly, args=(client,), daemon=True).start()
            block = head("POST", "/v2/models/digits/infer") + wire.field("cache-digest", value, is_indexed=True) + wire.LATEST * 17000
            for stream in range(1, 40, 2):
                wire.send_while_taken(client, head_frames(stream, block), 1)
        for client in clients:
            client.close()


def test_heads_that_are_held(attack):
    """A hundred streams whose heads are large, and whose bodies never come; a PING a moment keeps the connection."""
    with attack() as server, http2(server.port) as client:
        threading.Thread(target=wire.drain_quietly, args=(client,), daemon=True).start()
        block = head("POST", "/v2/models/digits/infer") + b"\x90" * 200000
        for stream in range(1, 200, 2):
            if not wire.send_while_taken(client, head_frames(stream, block) + frame(wire.PING, 0, 0, b"12345678"), 1):
                break


def test_upgrades_with_wrong_settings(attack):
    with attack() as server:
        for settings in (b"", b"AA", b"!!!!", b"AAMAAABkAAQAAP__" * 200, b"AAQ_____", b"AAUAAAAB"):
            text = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: " + settings + b"\r\n\r\n"
            with wire.connect(server.port) as client:
                client.sendall(text)
                assert client.recv(4096).startswith(b"HTTP/1.1 ")
