"""The n-th call of a kind fails, for every n that a short session reaches: start, three requests over HTTP/1.1 and HTTP/2, drain.

TORTURE_ALL=1 .venv/bin/python -m pytest tests/torture      all of them (minutes)
"""
import signal
import subprocess

import pytest

import serving
import text_models
import torture
from torture import ANSWER_S, KINDS, LIBRARY, Server, session

START_S, END_S = 30, 30
TRIALS = {"memory": 40, "write": 5, "poll": 2}  # of a kind while serving, in ./test; some wait for a time limit
START_TRIALS = 4

pytestmark = pytest.mark.skipif(not LIBRARY.exists() or not serving.PRELOADABLE.exists(), reason="build/release is not built")


def first_word(log):
    """A line that says why the server ended."""
    return [line for line in log.splitlines() if '"level":"error"' in line or "memory" in line or "fatal" in line]


SERVING_KINDS = [k for k in KINDS if k != "sync"]  # nothing is written to disks


def death(server):
    """How the server ended; None: it lives."""
    try:
        server.process.wait(0.3)
    except subprocess.TimeoutExpired:
        return None
    return f"exit {server.process.returncode}: {server.log()[-300:]}"


def trial(server, kind, n, expected, calls=1):
    """A session in which the n-th call fails and those after it, and one session more. Returns what was wrong."""
    server.calls.fail(kind, server.calls.count(kind) + n, calls)
    outcomes = session(server, expected)
    server.calls.none()
    after = session(server, expected)
    if set(after) == {"ok"} and "hangs" not in outcomes:
        return None
    return f"{kind} {n}: {outcomes}, then {after}, {death(server)}"


@pytest.mark.parametrize("kind, calls", [*((kind, 1) for kind in SERVING_KINDS), ("memory", 30)])
def test_serving(tmp_path, kind, calls):
    """A call fails, or 30: requests may be refused or connections closed; the next session is answered in full."""
    server, wrong = Server(tmp_path).__enter__(), []
    try:
        assert set(session(server)) == {"ok"}
        expected = serving.binary_outputs(server.post("/v2/models/digits/infer", *serving.binary_request(torture.IMAGE)))["logits"]
        before = server.calls.count(kind)
        session(server)
        total = server.calls.count(kind) - before
        for n in torture.some(total, TRIALS.get(kind, 10)):
            what = trial(server, kind, n, expected, calls)
            wrong += [what] if what else []
            if server.process.poll() is not None:
                server = Server(tmp_path).__enter__()
                assert set(session(server)) == {"ok"}
        assert not wrong, "\n".join(wrong)
        assert server.stop() == 0
    finally:
        server.kill()


def count_of_a_start(tmp_path):
    """How many calls of each kind there are until the server is ready."""
    with Server(tmp_path) as server:
        return {kind: server.calls.count(kind) for kind in KINDS}


def begin(tmp_path, kind, n):
    """A start of which a call fails: the server, or None and nothing wrong."""
    server = Server(tmp_path)
    server.calls.fail(kind, n)
    try:
        server.__enter__()
        return server
    except AssertionError:
        code = server.process.poll()
        assert code is not None, f"{kind} {n}: neither ready nor ended in {START_S} s"
        assert code not in (0, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL), f"{kind} {n}: ended with {code}"
        assert first_word(server.log()), f"{kind} {n}: ended with {code} and did not say why: {server.log()[-300:]}"
        return None


# Not the rest: jemalloc 5.3 crashes when it cannot map its first arena, and libh2o forgets a socket that it cannot watch (an error is logged).
START_KINDS = [k for k in KINDS if k not in ("map", "poll")]


@pytest.mark.parametrize("kind", START_KINDS)
def test_start(tmp_path, monkeypatch, kind):
    """The server says why it does not start, or it starts and serves."""
    monkeypatch.setattr(serving, "START_S", START_S)
    total = count_of_a_start(tmp_path)[kind]
    wrong = []
    for n in torture.some(total, START_TRIALS):
        try:
            server = begin(tmp_path, kind, n)
            if server is None:
                continue
            server.calls.none()
            outcomes = session(server)
            code = server.stop()
            assert set(outcomes) == {"ok"} and code == 0, f"{kind} {n}: {outcomes}, exit {code}"
        except AssertionError as error:
            wrong.append(str(error)[:600])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["memory", "read", "write", "poll", "thread"])
def test_drain(tmp_path, kind):
    """A call fails while the server drains: it still ends."""
    for n in range(1, 4):
        server = Server(tmp_path)
        server.__enter__()
        try:
            kept = server.connect()
            assert server.request("GET", "/v2/health/live", connection=kept).status == 200
            server.calls.fail(kind, server.calls.count(kind) + n)
            server.terminate()
            code = server.process.wait(END_S)
            kept.close()
            assert code >= 0, f"{kind} {n}: ended with {code}\n{server.log()[-500:]}"
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{kind} {n}: did not end\n{server.log()[-500:]}")
        finally:
            server.kill()


QUANTISED = serving.ROOT / "tests/data/torture/quantised.onnx"


@pytest.mark.parametrize("calls", [1, 1000])
def test_load(tmp_path, calls):
    """An allocation fails while a model is loaded, or many: the load succeeds or says why, and the other model is served."""
    server = Server(tmp_path, "--set", "server.repository_control=true", models={"digits": serving.DIGITS, "other": QUANTISED})
    control = lambda what: server.post(f"/v2/repository/models/other/{what}", {}, connection=server.connect(timeout=ANSWER_S))
    with server:
        assert set(session(server)) == {"ok"} and control("unload").status == 200
        before = server.calls.count("memory")
        assert control("load").status == 200 and control("unload").status == 200
        total, wrong = server.calls.count("memory") - before, []
        for n in torture.some(total, 25):
            server.calls.fail("memory", server.calls.count("memory") + n, calls)
            try:
                answer = control("load")
                code, text = answer.status, answer.body
            except (OSError, serving.http.client.HTTPException) as error:
                code, text = 0, repr(error)  # the connection had no memory
            server.calls.none()
            if code not in (0, 200) and not text:
                wrong.append(f"{n}: {code} without a reason")
            if set(session(server)) != {"ok"}:
                wrong.append(f"{n}: {code} {text!r}, then {session(server)}, {death(server)}")
            if server.process.poll() is not None:
                break
            control("unload")
        assert not wrong, "\n".join(wrong)
        assert control("load").status == 200
        assert server.stop() == 0


def first_text(tmp_path, models, n):
    """The first text that a server tokenizes, while its n-th allocation from there on fails (0: none): the answer or None, and how many there were."""
    with Server(tmp_path, models=models) as server:
        connection = server.connect(timeout=ANSWER_S)
        ask = lambda: server.post("/tokenize", {"inputs": "the cat sat. " * 150}, connection=connection)
        assert server.request("GET", "/v2", connection=connection).status == 200
        before = server.calls.count("memory")
        server.calls.fail("memory", n and before + n)
        try:
            answer = ask()
        except (OSError, serving.http.client.HTTPException):
            answer = None  # the connection had no memory
        count = server.calls.count("memory") - before
        server.calls.none()
        assert server.is_alive(), f"{n}: {death(server)}"
        connection = server.connect(timeout=ANSWER_S)
        again = ask()
        assert again.status == 200 and (answer is None or answer.status == 503 or answer.body == again.body), f"{n}: {answer}"
        assert server.stop() == 0
        return answer, count


def test_text(tmp_path):
    """An allocation of a server's first text fails: the request gets 503 by name, or the connection is closed; the next is answered."""
    models = {"embed": text_models.make(tmp_path)["embed"]}
    answer, total = first_text(tmp_path, models, 0)
    assert answer.status == 200
    answers = [first_text(tmp_path, models, n)[0] for n in torture.some(total, 12)]
    refused = [a.body for a in answers if a is not None and a.status == 503]
    assert any(b"no memory to tokenize" in body for body in refused), refused
