"""What a client can make the server hold: bodies, answers, connections, descriptors, memory."""
import json
import socket
import threading
import time

import numpy

import serving
import wire
from wire import frame, head, http2

LIMITS = ("head", "request", "body_rate", "response", "idle")
QUICK = tuple(word for name in LIMITS for word in ("--set", f"timeouts.{name}_ms=1000"))
POST = b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
GET = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n"


def keep_alive(client, is_over):
    """A PING every now and then, which is not progress."""
    while not is_over() and wire.send_while_taken(client, frame(wire.PING, 0, 0, b"12345678"), 1):
        time.sleep(0.2)


def test_bodies_that_are_not_completed(attack):
    """32 streams of one connection; their time limit ends them although the connection is busy."""
    with attack(*QUICK, memory_mib=200) as server, http2(server.port) as client:
        reader = wire.Reader(client)
        streams = range(1, 64, 2)
        client.sendall(b"".join(frame(wire.HEADERS, 4, s, head("POST", "/v2/models/digits/infer")) for s in streams))
        for _ in range(3):
            client.sendall(b"".join(frame(wire.DATA, 0, s, b"[" * 8000) for s in streams))
        answered = set()
        thread = threading.Thread(target=keep_alive, args=(client, lambda: len(answered) == len(streams)), daemon=True)
        thread.start()
        while len(answered) < len(streams) and (got := reader.next()) is not None:
            if got[0] in (wire.HEADERS, wire.RESET):
                answered.add(got[2])
        assert len(answered) == len(streams), "bodies are held for as long as a PING comes"
        thread.join()


def test_answers_that_are_not_taken(attack, echo):
    """Windows of 0: each answer waits in the server while the connection shows life."""
    array = numpy.ones((16, 2000), numpy.float32)
    body = json.dumps(dict(inputs=[serving.json_input("in", array)])).encode()
    with attack(*QUICK, models=echo, memory_mib=40) as server:
        clients = [http2(server.port, window=0) for _ in range(2)]
        readers = [threading.Thread(target=wire.drain_quietly, args=(client,), daemon=True) for client in clients]
        over = threading.Event()
        for client, reader in zip(clients, readers):
            reader.start()
            for stream in range(1, 160, 2):
                request = frame(wire.HEADERS, 4, stream, head("POST", "/v2/models/echo/infer"))
                request += b"".join(frame(wire.DATA, int(at + 16000 >= len(body)), stream, body[at : at + 16000]) for at in range(0, len(body), 16000))
                if not wire.send_while_taken(client, request, 1):
                    break
            threading.Thread(target=keep_alive, args=(client, over.is_set), daemon=True).start()
        try:
            wire.wait_until(lambda: not any(r.is_alive() for r in readers), "connections that take nothing are closed")
        finally:
            over.set()
            for client in clients:
                client.close()


def test_heads_and_bodies_byte_by_byte(attack):
    """A byte every now and then does not move the time limit."""
    with attack(*QUICK) as server:
        clients = [wire.connect(server.port) for _ in range(3)]
        parts = [GET[:-2] + b"X: " + b"y" * 400, POST % 5000 + b"{" * 400, wire.PREFACE + wire.settings() + frame(wire.HEADERS, 4, 1, head("POST")) + b"\0" * 400]
        over = threading.Event()

        def drip(client, data):
            for i in range(len(data)):
                if over.is_set() or not wire.send_while_taken(client, data[i : i + 1], 1):
                    return
                time.sleep(0.05)

        threads = [threading.Thread(target=drip, args=pair, daemon=True) for pair in zip(clients, parts)]
        for t in threads:
            t.start()
        for client in clients:
            wire.drain_quietly(client)  # ends, or the socket's time limit fails the test
        over.set()
        for t in threads:
            t.join()
        for client in clients:
            client.close()


def slow_readers(server, count):
    """HTTP/1 clients that pipeline and never read."""
    clients = []
    for _ in range(count):
        try:
            client = wire.connect(server.port, is_slow=True, timeout=0.5)
        except OSError:
            break
        clients.append(client)
        wire.send_while_taken(client, GET * 400, 1)
    return clients


def test_slow_readers_do_not_shut_others_out(attack):
    """The polite client keeps no connection: one that is idle may make room for a new client."""
    with attack(*QUICK, "--set", "limits.connections_max=40", polite_keeps=False) as server:
        clients = slow_readers(server, 60)
        answers = []

        def newcomer_is_served():
            try:
                with wire.connect(server.port, timeout=2) as client:
                    client.sendall(GET)
                    answers.append(client.recv(100))
                    return answers[-1].startswith(b"HTTP/1.1 200")
            except OSError:
                return False

        wire.wait_until(newcomer_is_served, "a new client is served")
        for client in clients:
            client.close()


def test_idle_connections_end(attack):
    with attack(*QUICK) as server:
        before = server.descriptors()
        clients = [http2(server.port) for _ in range(150)] + [wire.connect(server.port) for _ in range(150)]
        wire.wait_until(lambda: server.descriptors() <= before + 5, "idle connections are closed")
        for client in clients:
            client.close()


def test_no_descriptors_left(attack):
    """The server takes fewer connections than it has descriptors, and says so at the start."""
    with attack(limits=("--nofile=64:64",)) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(120)]
        before = server.cpu_ticks()
        time.sleep(1)
        spent = server.cpu_ticks() - before
        for client in clients:
            client.close()
        assert '"level":"warning"' in server.log() or '"level":"error"' in server.log(), "nobody is told"
        assert spent < 50, f"{spent} ticks in a second of waiting"
        wire.wait_until(server.is_ready, "a new client is served")


def test_no_memory_left(attack):
    """Eight bodies that together do not fit the address space."""
    with attack(limits=(f"--as={900 << 20}",), memory_mib=900) as server:
        clients = [wire.connect(server.port, timeout=3) for _ in range(8)]
        for client in clients:
            client.sendall(POST % (60 << 20))
        for _ in range(58):
            for client in clients:
                wire.send_while_taken(client, b"[" * (1 << 20), 1)
            if not server.is_alive():
                break
        for client in clients:
            client.close()


def test_orders_of_clients_that_have_gone(attack):
    """Loads and unloads that nobody waits for do not keep an operator waiting: there are at most so many."""
    with attack(*serving.CONTROL) as server:
        for _ in range(8):
            with http2(server.port) as client:
                streams = range(1, 181, 2)
                client.sendall(b"".join(frame(wire.HEADERS, 5, s, head("POST", "/v2/repository/models/digits/load")) for s in streams))
                client.recv(1)
        server.request("POST", "/v2/repository/models/digits/load")
        loads = server.log().count("is ready")
        assert loads < 100, f"{loads} loads were done for 720 that nobody waits for"
