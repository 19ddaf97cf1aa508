"""In steady state a request through HTTP allocates nothing in any thread of the server, and its resident memory stays as it is.

STEADY_REQUESTS=1000000 .venv/bin/python -m pytest -s tests/steady      the long run
"""
import collections
import functools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/http"))

import serving  # noqa: E402

REQUESTS = int(os.environ.get("STEADY_REQUESTS", 20000))
RELEASE = ROOT / "build/release"
COUNTER, CLIENT = RELEASE / "lib/libcount_allocations.so", RELEASE / "bin/send_requests"
ROUNDS = 10  # of the run after warm-up; the resident memory is read after each
# On each of two connections. libh2o keeps 16 chunks of memory for a loop and takes more from malloc, so a loop has fewer requests than that.
IN_FLIGHT = 4
# Resident memory may grow by pages that the kernel counts late, and by those that a slot of the sliding window touches for the first time:
# seven slots of 10 s (server/telemetry/record.h) in the first 70 s. The long run's warm-up lasts longer than that, and its second half is looked at.
LATE_KIB, SLOT_KIB, SLOT_S, SLOTS = 128, 256, 10, 7
WARM_UP_S = 80 if REQUESTS > 100000 else 0
HPACK_ENTRIES_MAX = 2 * 4096 // 32  # of two connections; an entry counts as 32 bytes at least (RFC 7541, sections 4.1 and 4.2)
BUCKETS_MAX = 8  # of the model
MEMORY_FUNCTIONS = ("h2o_mem_", "h2o_buffer_", "h2o_vector__expand")


class Counter:
    """The server's libcount_allocations.so, over its socket."""

    def __init__(self, path):
        self.path = str(path)

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path)
            s.sendall(command.encode() + b"\n")
            return s.makefile().read().splitlines()

    def bytes_of_threads(self):
        """(thread id, name) -> bytes allocated since it began."""
        lines = (line.rsplit(" ", 1) for line in self.ask("counts"))
        return {tuple(key.split(" ", 1)): int(count) for key, count in lines if not key.endswith(" count")}

    def stacks(self):
        """(count, bytes, thread, frames) of each call stack since `trace`, the greatest count first."""
        found = []
        for line in self.ask("stacks"):
            head = re.match(r"(\d+) (\d+) (.*?)(?= \S+\+0x)", line)
            found.append((int(head[1]), int(head[2]), head[3], line[head.end() :].split()))
        return sorted(found, key=lambda s: -s[0])


@functools.lru_cache(None)
def named(frame):
    """`function file:line` of MODULE+OFFSET."""
    module, offset = frame.rsplit("+", 1)
    run = subprocess.run(["addr2line", "-f", "-s", "-i", "-e", module, offset], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    if run.returncode or not lines or lines[0] == "??":
        return f"{pathlib.Path(module).name}+{offset}"
    return " < ".join(f"{function} {place.split(' ')[0]}" for function, place in zip(lines[::2], lines[1::2]))


def is_the_librarys(frames):
    """Did libh2o want that memory itself? Its functions that get memory for whoever calls them do not count."""
    for frame in frames:
        name = named(frame)
        if not name.startswith(MEMORY_FUNCTIONS) and "library_calls.c" not in name:  # server/connection: malloc for libh2o
            return "libh2o" in frame
    return False


def is_allowed(protocol, count, frames):
    """What libh2o allocates: the text of the time once a second. What HTTP/2 sessions keep until HPACK's tables are full: an entry for
    each new text of the time. A worker's memory for padded batches and a bucket's histograms, which come once, with the first batch."""
    names = " ".join(named(frame) for frame in frames)
    if is_the_librarys(frames):
        return "h2o_context_update_timestamp_cache" in names
    if protocol == "h2c" and "http2_memory_allocate" in names:
        return count <= HPACK_ENTRIES_MAX
    return ("staging_lay_out" in names and count == 1) or ("record_bucket" in names and count <= BUCKETS_MAX)


def told(stacks):
    lines = []
    for count, size, thread, frames in stacks[:20]:
        lines.append(f"{count} allocations, {size} bytes, thread {thread}:")
        lines += [f"    {named(frame)}" for frame in frames[:12]]
    return "\n".join(lines)


class Client:
    """One process of send_requests, whose connections stay open."""

    def __init__(self, folder, port, protocol, path, headers, body):
        self.name = f"{protocol} {path} {len(body)} bytes"
        (folder / "headers").write_text("".join(f"{k.lower()}: {v}\n" for k, v in headers.items()))
        (folder / "body").write_bytes(body)
        self.process = subprocess.Popen([CLIENT, str(port), protocol, path, folder / "headers", folder / "body", str(IN_FLIGHT)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)  # fmt: skip
        self.sent = 0

    def send(self, count):
        self.sent += count
        self.process.stdin.write(f"{count}\n")

    def wait(self):
        line = self.process.stdout.readline().strip()
        assert line == f"{self.sent} answered", f"{self.name}: {line or 'ended'}"

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def clients_of(folder, server, protocol):
    """One that sends KServe JSON and one that sends binary tensors."""
    digit = numpy.linspace(0, 1, 64, dtype="<f4").reshape(1, 64)
    name = server.get("/v2/models/digits").json()["inputs"][0]["name"]
    text = json.dumps(dict(inputs=[serving.json_input(name, digit)])).encode()
    binary, headers = serving.binary_request({name: digit})
    clients = []
    for body, more in ((text, {"Content-Type": "application/json"}), (binary, headers)):
        place = folder / f"client-{len(clients)}"
        place.mkdir()
        clients.append(Client(place, server.port, protocol, "/v2/models/digits/infer", more, body))
    return clients


def send(clients, requests):
    for client in clients:
        client.send(requests // len(clients))
    for client in clients:
        client.wait()


def resident_kib(pid):
    """Not what files hold: code that runs for the first time is no growth."""
    return int(re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


@pytest.mark.skipif(not COUNTER.exists() or not CLIENT.exists(), reason=f"{COUNTER.name} or {CLIENT.name} is not built")
@pytest.mark.parametrize("protocol", ["http1", "h2c"])
def test_requests_through_http_allocate_nothing(protocol, tmp_path):
    counter = Counter(tmp_path / "count")
    environment = {"LD_PRELOAD": str(COUNTER), "COUNT_ALLOCATIONS_SOCKET": counter.path}
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, environment=environment, binary=serving.PRELOADABLE) as server:
        clients = clients_of(tmp_path, server, protocol)
        try:
            begun = time.monotonic()
            send(clients, 4000)
            while time.monotonic() < begun + WARM_UP_S:
                send(clients, 4000)
            warm = time.monotonic()
            counter.ask("trace")
            before, resident = counter.bytes_of_threads(), [resident_kib(server.process.pid)]
            for round in range(1, ROUNDS + 1):
                send(clients, REQUESTS // ROUNDS)
                resident.append(resident_kib(server.process.pid))
                allocated = sum(counter.bytes_of_threads().values()) - sum(before.values())
                print(f"{protocol}: {round * REQUESTS // ROUNDS} requests, {allocated} bytes allocated, {resident[-1]} KiB resident")
            grown = collections.Counter(counter.bytes_of_threads())
            grown.subtract(before)
            stacks = counter.stacks()
        finally:
            for client in clients:
                client.close()
    grown = {f"{name} ({tid})": count for (tid, name), count in grown.items() if count}
    found = [s for s in stacks if not is_allowed(protocol, s[0], s[3])]
    assert not found, f"bytes allocated in {REQUESTS} requests, by thread: {grown}\n{told(found)}"
    # All that jemalloc has counted was seen: it rounds each allocation up, to at most 16 bytes or a quarter more.
    seen = sum(16 * count + size * 1.25 for count, size, _, _ in stacks)
    assert sum(grown.values()) <= seen, f"bytes allocated by thread: {grown}, of which were seen:\n{told(stacks)}"
    if WARM_UP_S:
        grown_kib, allowed = resident[-1] - resident[ROUNDS // 2], LATE_KIB
    else:
        grown_kib, allowed = resident[-1] - resident[0], LATE_KIB + SLOT_KIB * min(SLOTS, 1 + (time.monotonic() - warm) // SLOT_S)
    assert grown_kib <= allowed, f"resident memory in KiB: {resident}"
