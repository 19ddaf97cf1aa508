"""All attacks at once, again and again, on one server, with polite clients beside them.

    .venv/bin/python tests/attacks/soak.py --seconds 3600                                   the long run
    ASAN_OPTIONS=quarantine_size_mb=32:allocator_may_return_null=1 PENSTOCK_BINARY=build/asan/bin/penstock .venv/bin/python tests/attacks/soak.py --seconds 600

(What was freed stays in AddressSanitizer's quarantine: 256 MiB unless it is told, which looks like growth.)

Prints a line a minute and a summary; fails when a polite request failed, when the server does not drain, when a sanitizer or a library wrote to
the log, or when memory or descriptors at the end are more than in the first quarter of a run of ten minutes or more. Latency is printed,
beside what it was without attacks.
"""
import argparse
import gzip
import pathlib
import random
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))

import serving  # noqa: E402
import wire  # noqa: E402
from target import IMAGE, MIB, Target  # noqa: E402
from wire import frame, head, http2  # noqa: E402

PERIOD_S = 0.05  # of each polite client
GROWTH_MIB, GROWTH_DESCRIPTORS, GROWTH_SHOWS_S = 64, 64, 600
POST = "POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\n"


class Polite:
    """Asks by the clock: a request that must wait for the one before it is late from the time it was planned for."""

    def __init__(self, server):
        self.server, self.latencies, self.failures, self.is_over = server, [], [], False
        self.body, self.headers = serving.binary_request({"image": IMAGE})
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        connection, planned = None, time.monotonic()
        while not self.is_over:
            planned += PERIOD_S
            time.sleep(max(0, planned - time.monotonic()))
            try:
                connection = connection or self.server.connect(timeout=30)
                answer = self.server.post("/v2/models/digits/infer", self.body, self.headers, connection)
                if answer.status != 200:
                    self.failures.append(repr(answer))
                if answer.headers.get("Connection", "").lower() == "close":
                    connection.close()
                    connection = None
            except Exception as error:  # noqa: BLE001: every kind is a failure
                self.failures.append(repr(error))
                connection = None
            self.latencies.append(time.monotonic() - planned)


def flood(server, rng):
    """Frames that cost nothing."""
    kinds = [frame(wire.PING, 0, 0, b"12345678"), wire.settings(window=65535), frame(0x42, 0, 0), wire.window(0, 1),
             frame(wire.PRIORITY_UPDATE, 0, 0, b"\0\0\0\1u=1")]  # fmt: skip
    with http2(server.port) as client:
        wire.send_while_taken(client, rng.choice(kinds) * 500, 200)


def resets(server, rng):
    with http2(server.port) as client:
        request = head("POST", "/v2/models/digits/infer")
        for first in range(1, 4000, 100):
            burst = b"".join(frame(wire.HEADERS, 4, s, request) + frame(wire.DATA, 1, s, b"{}") + wire.reset(s) for s in range(first, first + 100, 2))
            if not wire.send_while_taken(client, burst, 1):
                return


def windows(server, rng):
    """Answers that wait for a window of one byte."""
    with http2(server.port, is_slow=True, timeout=3, window=rng.choice([0, 1, 15])) as client:
        for first in range(1, 400, 100):
            wire.send_while_taken(client, b"".join(frame(wire.HEADERS, 5, s, head(path="/metrics")) for s in range(first, first + 100, 2)), 1)
            wire.send_while_taken(client, b"".join(wire.window(s, 1) for s in range(first, first + 100, 2)), 1)
        time.sleep(rng.uniform(0, 10))


def bodies(server, rng):
    """Bodies that are never completed."""
    with http2(server.port, timeout=3) as client:
        for s in range(1, 64, 2):
            if not wire.send_while_taken(client, frame(wire.HEADERS, 4, s, head("POST", "/v2/models/digits/infer")) + frame(wire.DATA, 0, s, b"[" * 16000), 1):
                break
        time.sleep(rng.uniform(0, 20))


def heads(server, rng):
    """Names into the table, and a head that never ends."""
    with http2(server.port, timeout=3) as client:
        block = head() + wire.field("cache-digest", "x" * 3000, is_indexed=True) + wire.LATEST * 2000
        for s in range(1, 40, 2):
            if not wire.send_while_taken(client, wire.head_frames(s, block, 1), 1):
                return
        wire.send_while_taken(client, frame(wire.HEADERS, 0, 101, head()) + frame(wire.CONTINUATION, 0, 101, b"") * 1000, 50)


def pipeline(server, rng):
    path = rng.choice(["/metrics", "/v2/health/live", "/v2/repository/index"])
    with wire.connect(server.port, timeout=5) as client:
        wire.send_while_taken(client, f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode() * 2000, 1)
        if rng.random() < 0.5:
            wire.drain_quietly(client)


def slow_reader(server, rng):
    with wire.connect(server.port, is_slow=True, timeout=3) as client:
        wire.send_while_taken(client, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 200, 1)
        time.sleep(rng.uniform(0, 20))


def bomb(server, rng):
    """A small body that unpacks to a large one."""
    plain = rng.choice([b" " * (100 << 20), b'{"inputs":' + b"[" * (20 << 20), b'{"instances":[' + b"[1]," * (5 << 20) + b"[1]]}"])
    packed = gzip.compress(plain, 6)
    path = rng.choice(["/v2/models/digits/infer", "/v1/models/digits:predict"])
    with wire.connect(server.port, timeout=30) as client:
        text = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nConnection: close\r\nContent-Length: {len(packed)}\r\n\r\n"
        wire.send_while_taken(client, text.encode() + packed, 1)
        if rng.random() < 0.7:
            wire.drain_quietly(client)


def drip(server, rng):
    with wire.connect(server.port, timeout=5) as client:
        for byte in (POST + f"Content-Length: 5000\r\n\r\n{{{' ' * 300}").encode():
            if not wire.send_while_taken(client, bytes([byte]), 1):
                return
            time.sleep(0.05)


def junk(server, rng):
    for _ in range(20):
        with http2(server.port, timeout=2) as client:
            wire.send_while_taken(client, rng.randbytes(rng.randrange(1, 5000)), 1)
        with wire.connect(server.port, timeout=2) as client:
            wire.send_while_taken(client, POST.encode() + rng.randbytes(rng.randrange(1, 3000)), 1)


def crowd(server, rng):
    """Connections that say nothing, and handshakes that stop."""
    clients = []
    try:
        for _ in range(200):
            clients.append(wire.connect(rng.choice([server.port, server.tls_port]), timeout=3))
        time.sleep(rng.uniform(0, 10))
    finally:
        for client in clients:
            client.close()


def upgrade(server, rng):
    with wire.connect(server.port, timeout=3) as client:
        text = "GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
        wire.send_while_taken(client, (text + rng.choice(["AAMAAABkAAQAAP__", "", "====", "AAQAAAAA"]) + "\r\n\r\n").encode() + wire.PREFACE, 1)
        wire.send_while_taken(client, frame(wire.HEADERS, 0, 3, head()) + frame(wire.CONTINUATION, 0, 3), 1)


ATTACKS = [flood, resets, windows, bodies, heads, pipeline, slow_reader, bomb, drip, junk, crowd, upgrade]


def repeat(attack, server, seed, is_over):
    rng = random.Random(seed)
    while not is_over.is_set():
        try:
            attack(server, rng)
        except OSError:
            pass  # the server has ended the connection
        is_over.wait(rng.uniform(0, 1))


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] * 1000 if values else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    tls = serving.make_certificate(folder, "penstock.test")
    server = Target(folder / "server.log", tls=tls)
    print(f"log: {server.log_path}", flush=True)
    failed = []
    with server:
        polite = [Polite(server) for _ in range(2)]
        time.sleep(min(10, options.seconds / 4))
        quiet = [latency for p in polite for latency in p.latencies]
        calm, is_over = server.memory_bytes(), threading.Event()
        threads = [threading.Thread(target=repeat, args=(attack, server, options.seed + i, is_over), daemon=True) for i, attack in enumerate(ATTACKS)]
        for thread in threads:
            thread.start()
        begun, seen = time.monotonic(), []
        while time.monotonic() < begun + options.seconds and server.is_alive():
            time.sleep(1)
            seen.append((server.memory_bytes(), server.descriptors()))
            if len(seen) % 60 == 0:
                latencies = [latency for p in polite for latency in p.latencies[len(quiet) // 2 :]]
                print(f"{len(seen):5} s: {seen[-1][0] / MIB:.0f} MiB, {seen[-1][1]} descriptors, {len(latencies)} polite requests, "
                      f"p99 {quantile(latencies, 0.99):.1f} ms, {sum(len(p.failures) for p in polite)} failed", flush=True)  # fmt: skip
        is_over.set()
        for thread in threads:
            thread.join(60)
        for p in polite:
            p.is_over = True
            p.thread.join(60)
            failed += p.failures
        if not server.is_alive():
            raise SystemExit(f"the server ended: {server.log()[-3000:]}")
        noisy = [latency for p in polite for latency in p.latencies[len(quiet) // 2 :]]
        peak = server.memory_bytes("VmHWM")
        time.sleep(2)
        settled = server.memory_bytes(), server.descriptors()
    quarter = max(1, len(seen) // 4)
    first = max(m for m, _ in seen[:quarter]), max(d for _, d in seen[:quarter])
    last = max(m for m, _ in seen[-quarter:]), max(d for _, d in seen[-quarter:])
    print(f"without attacks: {calm / MIB:.0f} MiB, p50 {quantile(quiet, 0.5):.2f} ms, p99 {quantile(quiet, 0.99):.2f} ms of {len(quiet)} requests")
    print(f"with attacks:    p50 {quantile(noisy, 0.5):.2f} ms, p99 {quantile(noisy, 0.99):.2f} ms of {len(noisy)} requests, {len(failed)} failed")
    print(f"memory: first quarter at most {first[0] / MIB:.0f} MiB, last quarter {last[0] / MIB:.0f} MiB, peak {peak / MIB:.0f} MiB, afterwards {settled[0] / MIB:.0f} MiB")
    print(f"descriptors: first quarter at most {first[1]}, last quarter {last[1]}, afterwards {settled[1]}")
    wrong = server.foreign_lines()
    assert not failed, failed[:5]
    assert not wrong, wrong[:5]
    grows = last[0] > first[0] + GROWTH_MIB * MIB or last[1] > first[1] + GROWTH_DESCRIPTORS
    assert not grows or options.seconds < GROWTH_SHOWS_S, "memory or descriptors grow"


main()
