"""One client does not hold an event loop: others are answered while its work is under way. All on one loop; no time is measured, but who is
answered before whom."""
import gzip
import json
import socket
import struct
import threading

import pytest

import wire

ONE_LOOP = ("--set", "server.loops=1")
RUNS_MAX = 20  # of work beside which a probe is answered: a busy machine may leave the probe no time in the first ones


class Probe:
    """Asks for the server's health without a pause, and counts the answers."""

    def __init__(self, server):
        self.server, self.answers, self.is_over = server, 0, False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        connection = self.server.connect()
        while not self.is_over:
            assert self.server.request("GET", "/v2/health/live", connection=connection).status == 200
            self.answers += 1
        connection.close()

    def __enter__(self):
        self.thread.start()
        wire.wait_until(lambda: self.answers > 3, "the probe is answered")
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join(60)


class Pipeline:
    """Sends all requests at once and reads all responses."""

    def __init__(self, path, count):
        get = f"GET {path} HTTP/1.1\r\nHost: a\r\n"
        self.text = f"{get}\r\n".encode() * (count - 1) + f"{get}Connection: close\r\n\r\n".encode()

    def run(self, server):
        with wire.connect(server.port, timeout=600) as client:
            threading.Thread(target=wire.send_while_taken, args=(client, self.text, 1), daemon=True).start()
            wire.drain_quietly(client)


@pytest.mark.parametrize("path, count", [("/metrics", 1000), ("/v2/health/live", 20000)])
def test_pipelined_requests(attack, path, count):
    """Another client is answered while they are."""
    work = Pipeline(path, count)
    with attack(*ONE_LOOP) as server, Probe(server) as probe:
        before = probe.answers
        for runs in range(1, 1 + RUNS_MAX):
            work.run(server)
            if probe.answers - before >= 3 * runs:
                return
        raise AssertionError(f"{probe.answers - before} answers in {runs} runs")


def test_pipelined_requests_of_a_client_that_leaves(attack):
    """Others are answered while what it left behind is."""
    with attack(*ONE_LOOP) as server, Probe(server) as probe:
        for _ in range(3):
            with wire.connect(server.port) as client:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 5000)
                client.recv(1)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave by a reset
            before = probe.answers
            wire.wait_until(lambda: probe.answers > before + 1, "the probe is answered")


MIB = 1 << 20
BODIES = {
    "spaces": ("/v2/models/digits/infer", lambda: b" " * (30 * MIB)),
    "a skipped array": ("/v2/models/digits/infer", lambda: b'{"x":[1' + b",1" * (8 * MIB) + b"]}"),
    "a skipped string": ("/v2/models/digits/infer", lambda: b'{"x":"' + b"\\u0041" * (4 * MIB) + b'"}'),
    "numbers": ("/v2/models/digits/infer", lambda: b'{"inputs":[{"name":"image","datatype":"FP32","shape":[65536,64],"data":[0' + b",0" * (4 * MIB - 1) + b"]}]}"),
    "rows": ("/v1/models/digits:predict", lambda: b'{"instances":[[' + b",".join([b"0"] * 64) + b"]" + (b",[" + b",".join([b"0"] * 64) + b"]") * 60000 + b"]}"),
    "empty rows": ("/v1/models/digits:predict", lambda: b'{"instances":[[]' + b",[]" * (6 * MIB) + b"]}"),
    "outputs": ("/v2/models/digits/infer", lambda: b'{"outputs":[{"name":"zz"}' + b',{"name":"zz"}' * MIB + b"]}"),
}


@pytest.mark.parametrize("kind", list(BODIES))
def test_small_bodies_that_unpack_to_large_ones(attack, kind):
    """Each is refused, or answered; the memory for it goes back."""
    path, make = BODIES[kind]
    packed = gzip.compress(make(), 1)
    with attack(*ONE_LOOP, memory_mib=300) as server:
        for _ in range(2):
            answer = server.post(path, packed, {"Content-Encoding": "gzip"})
            assert answer.status in (200, 400, 413, 429, 503), answer


def test_others_are_answered_while_a_body_is_parsed(attack):
    """Bodies of 72 MB: a probe's round trip is a small part of one."""
    path = "/v2/models/digits/infer"
    packed = gzip.compress(b'{"x":"' + b"\\u0041" * (12 * MIB) + b'"}', 1)
    with attack(*ONE_LOOP, memory_mib=300) as server:
        with Probe(server) as probe:
            meanwhile = 0
            for runs in range(1, 1 + RUNS_MAX):
                connection = server.connect()
                connection.request("POST", path, packed, {"Content-Encoding": "gzip"})
                before = probe.answers
                connection.getresponse().read()
                meanwhile += probe.answers - before
                connection.close()
                if meanwhile >= 10 * runs:
                    return
            raise AssertionError(f"{meanwhile} answers during {runs} bodies")


def test_deep_and_long_json(attack):
    with attack() as server:
        for body in (b"[" * 1000000, b'{"a":' * 100000, b'{"inputs":' + b"[" * 64 + b"]" * 64 + b"}", b'{"' + b"\\" * 1000001, b'"' * 1000000,
                     json.dumps({str(i): 0 for i in range(100)}).encode(), b"\xff" * 1000000, b"1" * 1000000):  # fmt: skip
            for path in ("/v2/models/digits/infer", "/v1/models/digits:predict"):
                assert server.post(path, body).status == 400


def test_shapes_that_ask_for_more_than_there_is(attack):
    with attack() as server:
        for shape in ([1 << 40, 64], [1 << 62, 1 << 62], [0, 64], [-1, 64], [1 << 31, 64], [100000, 64]):
            body = dict(inputs=[dict(name="image", datatype="FP32", shape=shape, data=[])])
            assert server.post("/v2/models/digits/infer", body).status in (400, 413)
            body["inputs"][0].pop("data")
            body["inputs"][0]["parameters"] = dict(binary_data_size=1 << 40)
            text = json.dumps(body)
            assert server.post("/v2/models/digits/infer", text, {"Inference-Header-Content-Length": str(len(text))}).status in (400, 413)
