"""The attacks of the other files by other ways in: over TLS, by routes that take text, in other codings, by several connections, with models
that fail."""
import gzip
import json
import threading
import zlib

import pytest

import serving
import text_models
import wire
from test_holding import GET, QUICK, POST, keep_alive
from test_loop import MIB, ONE_LOOP, RUNS_MAX, Probe
from wire import frame, head

MIX = {"Content-Type": "application/json"}


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    made = text_models.make(tmp_path_factory.mktemp("texts"))
    return {"digits": serving.DIGITS, "embed": made["embed"], "rank": made["rank"]}


def filled(begin, unit, end, size):
    return begin + unit * ((size - len(begin) - len(end)) // len(unit)) + end


TEXT_BODIES = {
    "ids": ("/v1/embeddings", lambda: filled(b'{"model":"embed","input":[1', b",1", b"]}", 60 * MIB)),
    "lists of ids": ("/v1/embeddings", lambda: filled(b'{"model":"embed","input":[[1]', b",[1]", b"]}", 30 * MIB)),
    "texts": ("/v1/embeddings", lambda: filled(b'{"model":"embed","input":["a"', b',"a"', b"]}", 30 * MIB)),
    "a text": ("/models/embed/embed", lambda: filled(b'{"inputs":"', b"a ", b'"}', 15 * MIB)),
    "combining marks": ("/models/embed/embed", lambda: filled(b'{"inputs":"a', "\u0301".encode(), b'"}', 15 * MIB)),
    "escapes": ("/models/embed/embed", lambda: filled(b'{"inputs":"', b"\\u0041", b'"}', 60 * MIB)),
    "documents": ("/v1/rerank", lambda: filled(b'{"model":"rank","query":"a","documents":["a"', b',"a"', b"]}", 30 * MIB)),
    "a query": ("/models/rank/rerank", lambda: filled(b'{"texts":["a","b"],"query":"', b"a ", b'"}', 12 * MIB)),
    "ids to decode": ("/models/embed/decode", lambda: filled(b'{"ids":[[1', b",1", b"]]}", 60 * MIB)),
    "nested": ("/models/embed/embed", lambda: b'{"inputs":' + b"[" * (30 * MIB)),
    "a number": ("/models/embed/embed", lambda: b'{"inputs":' + b"1" * (30 * MIB) + b"}"),
    "pairs": ("/models/rank/predict", lambda: filled(b'{"inputs":[["a","b"]', b',["a","b"]', b"]}", 30 * MIB)),
}


@pytest.mark.parametrize("kind", list(TEXT_BODIES))
def test_bodies_of_text(attack, texts, kind):
    """Each is refused, or answered; others are answered meanwhile, and memory goes back."""
    path, make = TEXT_BODIES[kind]
    packed = gzip.compress(make(), 1)
    with attack(*ONE_LOOP, models=texts, memory_mib=450) as server:
        answer = server.post(path, packed, dict(MIX, **{"Content-Encoding": "gzip"}))
        assert answer.status in (200, 400, 413, 422), answer


def test_tokens_that_are_much_longer_than_their_text(attack, texts):
    """A letter becomes a line of JSON: that counts in the budget while it is written, and nobody waits for it."""
    body = filled(b'{"inputs":"', b"a ", b'"}', 8 * MIB)
    with attack(*ONE_LOOP, "--set", "limits.held_bytes_max=100000000", models=texts, memory_mib=450) as server:
        answer = server.post("/models/embed/tokenize", body, MIX)
        assert answer.status == 503 and "no room" in answer.json()["error"], answer
        assert server.post("/models/embed/tokenize", b'{"inputs":"a b"}', MIX).status == 200


CODINGS = {
    "deflate": (zlib.compress, "deflate", (400, 413)),
    "x-gzip": (gzip.compress, "x-gzip", (400, 413, 415)),
    "upper case": (gzip.compress, "GZIP", (400, 413)),
    "br": (gzip.compress, "br", (415,)),
    "zstd": (gzip.compress, "zstd", (415,)),
    "two": (gzip.compress, "gzip, gzip", (400,)),
    "twice": (lambda body: gzip.compress(gzip.compress(body)), "gzip", (400, 413)),
    "members": (lambda body: gzip.compress(body[: len(body) // 2]) * 2, "gzip", (400, 413)),
    "cut": (lambda body: gzip.compress(body)[:-9], "gzip", (400, 413)),
    "not packed": (lambda body: body[: 4 * MIB], "gzip", (400,)),
}


@pytest.mark.parametrize("kind", list(CODINGS))
def test_codings(attack, kind):
    pack, coding, expected = CODINGS[kind]
    packed = pack(b" " * (40 * MIB))
    with attack(*ONE_LOOP, memory_mib=300) as server:
        for path in ("/v2/models/digits/infer", "/v1/models/digits:predict"):
            answer = server.post(path, packed, {"Content-Encoding": coding})
            assert answer.status in expected, answer


def test_several_connections_unpack_at_once(attack):
    packed = gzip.compress(b" " * (60 * MIB), 1)
    with attack("--set", "limits.held_bytes_max=200000000", memory_mib=350) as server:
        jobs = [lambda: server.post("/v2/models/digits/infer", packed, {"Content-Encoding": "gzip"}).status] * 12
        assert set(serving.at_once(jobs, 12)) <= {400, 503}


@pytest.mark.parametrize("protocol", ["http1", "http2"])
def test_slow_readers_over_tls(attack, certificate, protocol):
    """They fill the places of connections, and make room. The polite client asks in clear text."""
    with attack(*QUICK, "--set", "limits.connections_max=30", tls=certificate, polite_keeps=False, memory_mib=300) as server:
        clients = []
        for _ in range(45):
            try:
                client = wire.connect(server.tls_port, True, is_slow=True, timeout=1, protocols=("h2",) if protocol == "http2" else ("http/1.1",))
            except OSError:
                continue
            clients.append(client)
            streams = b"".join(frame(wire.HEADERS, 5, s, head(path="/metrics")) for s in range(1, 180, 2))
            wire.send_while_taken(client, GET * 400 if protocol == "http1" else wire.PREFACE + wire.settings(window=wire.WINDOW_MAX) + streams, 1)
        answered = server.polite.answered
        wire.wait_until(lambda: server.polite.answered > answered + 5 or server.polite.failures, "newcomers are served")
        for client in clients:
            client.close()


def test_pipelined_requests_over_tls(attack, certificate):
    """Another client is answered while they are."""
    text = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 600 + b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with attack(*ONE_LOOP, tls=certificate) as server, Probe(server) as probe:
        before = probe.answers
        for runs in range(1, 1 + RUNS_MAX):
            with wire.connect(server.tls_port, True, timeout=600, protocols=("http/1.1",)) as client:
                threading.Thread(target=wire.send_while_taken, args=(client, text, 1), daemon=True).start()
                wire.drain_quietly(client)
            if probe.answers - before >= 3 * runs:
                return
        raise AssertionError(f"{probe.answers - before} answers in {runs} runs")


def test_bodies_over_tls_that_are_not_completed(attack, certificate):
    """Over HTTP/1 and HTTP/2, of several connections at once, one of which shows life."""
    with attack(*QUICK, tls=certificate, memory_mib=200) as server:
        clients = [wire.connect(server.tls_port, True, protocols=("http/1.1",)) for _ in range(4)]
        for client in clients:
            client.sendall(POST % (20 * MIB) + b"[" * (4 * MIB))
        streams = wire.http2(server.tls_port, True)
        streams.sendall(b"".join(frame(wire.HEADERS, 4, s, head("POST", "/v2/models/digits/infer")) for s in range(1, 64, 2)))
        reader, answered = wire.Reader(streams), set()
        threading.Thread(target=keep_alive, args=(streams, lambda: len(answered) == 32), daemon=True).start()
        while len(answered) < 32 and (got := reader.next()) is not None:
            if got[0] in (wire.HEADERS, wire.RESET):
                answered.add(got[2])
        assert len(answered) == 32
        for client in [*clients, streams]:
            wire.drain_quietly(client) if client is not streams else None
            client.close()


def test_loads_that_fail(tmp_path, attack):
    """Of clients that wait and of clients that go, over both versions: the model that is served stays."""
    for name in ("broken", "empty"):
        folder = tmp_path / "models" / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(b"no model" if name == "broken" else b"")
    digits = tmp_path / "models" / "digits" / "1"
    digits.mkdir(parents=True)
    (digits / "model.onnx").write_bytes(next(serving.DIGITS.rglob("model.onnx")).read_bytes())
    with attack("--repository", str(tmp_path / "models"), "--set", "server.repository_control=true", models={"kept": serving.DIGITS}, memory_mib=100) as server:
        def storm(i):
            for _ in range(40):
                answer = server.post(f"/v2/repository/models/{('broken', 'empty', 'none')[i % 3]}/load", b"{}")
                assert answer.status in (404, 429, 500, 503), answer
            with wire.http2(server.port) as client:
                paths = ("/v2/repository/models/broken/load", "/v2/repository/models/broken/unload")
                client.sendall(b"".join(frame(wire.HEADERS, 5, s, head("POST", paths[s // 2 % 2])) for s in range(1, 181, 2)))
                client.recv(1)
            return True

        assert all(serving.at_once([lambda i=i: storm(i) for i in range(6)], 6))
        assert server.get("/v2/models/kept/ready").status == 200
        assert len(json.dumps(server.post("/v2/repository/index", b"{}").json())) < 4000
