"""A server of which single calls fail, and a short session with it."""
import mmap
import os
import socket
import struct

import numpy

import frames
import serving

KINDS = ("memory", "map", "read", "write", "open", "sync", "thread", "accept", "poll")  # enum kind of fail_calls.c
RECORD = struct.Struct("<4Q")  # struct calls: count, fail_at, fail_calls, failed
LIBRARY = serving.ROOT / "build/release/lib/libfail_calls.so"
IMAGE = {"image": numpy.random.default_rng(1).integers(0, 16, (3, 64)).astype(numpy.float32)}
ANSWER_S = 20  # longer than that without an answer or an end is a hang


class Calls:
    """The file that libfail_calls.so shares with us."""

    def __init__(self, path):
        path.write_bytes(bytes(RECORD.size * len(KINDS)))
        self.path = path
        with open(path, "r+b") as f:
            self.memory = mmap.mmap(f.fileno(), 0)

    def read(self, kind):
        return RECORD.unpack_from(self.memory, KINDS.index(kind) * RECORD.size)

    def count(self, kind):
        return self.read(kind)[0]

    def failed(self, kind):
        return self.read(kind)[3]

    def fail(self, kind, count, calls=1):
        """The call that makes the count `count` fails, and `calls` - 1 after it."""
        at = KINDS.index(kind) * RECORD.size
        self.memory[at + 16 : at + 24] = struct.pack("<Q", calls)
        self.memory[at + 8 : at + 16] = struct.pack("<Q", count)

    def none(self):
        for kind in KINDS:
            self.fail(kind, 0)


class Server(serving.Server):
    def __init__(self, folder, *flags, models=None):
        self.calls = Calls(folder / "calls")
        environment = dict(LD_PRELOAD=str(LIBRARY), FAIL_CALLS_FILE=str(self.calls.path), PENSTOCK_IO="pread")
        limits = [f"timeouts.{name}_ms=1000" for name in ("head", "request", "body_rate", "response", "idle")]
        limits += ["drain.limit_ms=500", "server.loops=1", "cpu.threads=1"]
        flags = (*(word for limit in limits for word in ("--set", limit)), *flags)
        with socket.socket() as s:  # the port is not learnt from the log: the write of that line may fail
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        flags = ("--listen", f"127.0.0.1:{port}", *flags)
        super().__init__(folder / "server.log", models or {"digits": serving.DIGITS}, *flags, listen=False, environment=environment, binary=serving.PRELOADABLE)
        self.port = port

    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()


def answered(status, named, body, expected):
    """ok, or the code of a refusal. A wrong answer is neither."""
    if status != 200:
        assert status in (408, 429, 500, 503, 504), f"{status} {body[:200]!r}"
        return status
    found = serving.binary_outputs(serving.Answer(200, named, body))["logits"]
    assert expected is None or numpy.array_equal(found, expected), "a wrong answer"
    return "ok"


def http1(server, expected):
    body, headers = serving.binary_request(IMAGE)
    connection = server.connect(timeout=ANSWER_S)
    for _ in range(3):
        answer = server.post("/v2/models/digits/infer", body, headers, connection)
        yield answered(answer.status, answer.headers, answer.body, expected)
    yield answered(*json_request(server, connection), expected)
    connection.close()


def json_request(server, connection):
    """A request in JSON, whose outputs come in binary."""
    body = dict(inputs=[serving.json_input("image", IMAGE["image"])], parameters=dict(binary_data_output=True))
    answer = server.post("/v2/models/digits/infer", body, {"Accept-Encoding": "gzip;q=0"}, connection)
    return answer.status, answer.headers, answer.body


def http2(server, expected):
    body, headers = serving.binary_request(IMAGE)
    client = frames.Client(server.port, timeout=ANSWER_S)
    try:
        for _ in range(3):
            client.ask("/v2/models/digits/infer", body, [(k.lower(), v) for k, v in headers.items()])
        left = 3
        while left > 0:
            done = client.receive()
            if done is None:
                raise ConnectionError("closed")
            for _, status, answer in done:
                left -= 1
                # The client does not keep headers: the length of the JSON is known from the body.
                at = str(answer.index(b"}]}") + 3) if status == 200 and b"}]}" in answer else "0"
                named = {"Inference-Header-Content-Length": at, "Content-Type": "application/octet-stream"}
                yield answered(status, named, answer, expected) if status else "reset"
    finally:
        client.close()


def texts(server, expected):
    """What the server says of itself."""
    connection = server.connect(timeout=ANSWER_S)
    for path in ("/metrics", "/v2", "/v2/models/digits", "/v2/models/digits/stats", "/v2/nothing"):
        answer = server.request("GET", path, headers={"Accept-Encoding": "gzip", "endpoint-load-metrics-format": "TEXT"}, connection=connection)
        wanted = 404 if path == "/v2/nothing" else 200
        assert answer.status in (wanted, 408, 503), f"{path}: {answer.status} {answer.body[:200]!r}"
        assert answer.body, f"{path}: empty"
        yield "ok" if answer.status == wanted else answer.status
    connection.close()


def session(server, expected=None):
    """What became of each request: ok, a code, reset, or closed. A hang or a wrong answer raises."""
    outcomes = []
    for protocol in (http1, http2, texts):
        try:
            outcomes.extend(protocol(server, expected))
        except TimeoutError:
            outcomes.append("hangs")
        except (OSError, serving.http.client.HTTPException) as error:
            outcomes.append(f"closed ({type(error).__name__})")
    return outcomes


def some(total, trials):
    """Which calls of `total` fail: about `trials` of them, all with TORTURE_ALL=1."""
    step = 1 if os.environ.get("TORTURE_ALL") else max(1, total // trials)
    return range(1, total + 1, step)
