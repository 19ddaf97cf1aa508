"""A drain ends within its limit, whatever its clients do."""
import signal
import socket
import threading

import numpy

import frames
import serving
import wire
from wire import frame, head, http2

UPGRADE = (b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
           b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")  # fmt: skip
GET = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n"


def test_a_head_that_is_never_completed(attack):
    """A response held by a window of 0 keeps the connection; the next head lacks its end, which comes after the second GOAWAY."""
    with attack(is_drained=False) as server:
        client = http2(server.port, window=0)
        reader = wire.Reader(client)
        client.sendall(frame(wire.HEADERS, 5, 1, head()) + frame(wire.HEADERS, 0, 3, head()))
        reader.until(wire.HEADERS)
        server.polite.stop()
        server.process.send_signal(signal.SIGTERM)
        server.is_told = True
        goaways = 0
        while goaways < 2 and (got := reader.next()) is not None:
            goaways += got[0] == wire.GOAWAY
        wire.send_while_taken(client, frame(wire.CONTINUATION, 4, 3), 1)
        assert server.process.wait(serving.STOP_S) == 0
    client.close()


def test_upgrades_whose_101_waits(attack):
    """The clients pipeline more than they read, and then upgrade."""
    with attack() as server:
        clients = []
        for count in range(540, 640, 5):
            client = wire.connect(server.port, is_slow=True, timeout=2)
            clients.append(client)
            try:
                client.sendall(GET * count + UPGRADE)
            except OSError:
                pass  # the server reads no more of this one
    for client in clients:
        client.close()


def test_clients_that_wait(attack, certificate):
    waiting = {
        "half a handshake": b"\x16\x03\x01\x02\x00\x01",
        "half a head": GET[:20],
        "half a body": b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{",
        "unread": GET * 200,
        "held streams": wire.PREFACE + wire.settings(window=0) + b"".join(frame(wire.HEADERS, 5, s, head()) for s in range(1, 40, 2)),
        "half a preface": wire.PREFACE[:10],
        "nothing": b"",
    }
    with attack(tls=certificate) as server:
        clients = [wire.connect(server.tls_port, tls=True)]
        for kind, data in waiting.items():
            for _ in range(5):
                client = wire.connect(server.tls_port if "handshake" in kind else server.port, is_slow=kind == "unread", timeout=2)
                clients.append(client)
                wire.send_while_taken(client, data, 1)
    for client in clients:
        client.close()


def test_two_signals_of_one_moment_are_one(attack):
    """GNU timeout sends two."""
    with attack("--set", "drain.delay_ms=300", is_drained=False) as server:
        server.process.send_signal(signal.SIGTERM)
        wire.wait_until(lambda: "draining" in server.log(), "the first signal is seen")
        server.process.send_signal(signal.SIGTERM)
        server.is_told = True
        server.polite.stop()
        assert server.process.wait(serving.STOP_S) == 0


def test_clients_that_go_on_asking(attack):
    with attack(delay_ms=500) as server:

        def ask():
            try:
                with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
                    while True:
                        s.sendall(GET * 50)
                        s.recv(65536)
            except OSError:
                return

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
        for t in threads:
            t.start()


def test_clients_that_leave_while_their_requests_run(tmp_path):
    """Their jobs come back when the loops may have ended: the models must have been given up by then."""
    models = {"slow": serving.slow_model(tmp_path)}
    body, headers = serving.binary_request({"in": numpy.zeros((1, 1024), numpy.float32)})
    fields = [(name.lower(), value) for name, value in headers.items()]
    with serving.Server(tmp_path / "log", models, "--set", "batching.queue_rows_max=64", "--set", "drain.limit_ms=5000") as server:
        clients = [frames.Client(server.port) for _ in range(3)]
        for client in clients:
            for _ in range(40):
                client.ask("/v2/models/slow/infer", body, fields)
        for client in clients:
            client.receive()
            client.close()
        server.terminate()
        assert server.process.wait(serving.STOP_S) == 0, server.log()[-3000:]
