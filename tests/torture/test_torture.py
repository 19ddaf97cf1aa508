"""The n-th call of a kind fails, for every n that a short session reaches: start, three requests over HTTP/1.1 and HTTP/2, drain.

TORTURE_EVERY=1 .venv/bin/python -m pytest tests/torture      every call of the start as well (minutes)
"""
import signal
import subprocess
import time

import pytest

import serving
import torture
from torture import KINDS, LIBRARY, Server, session

START_S, END_S = 30, 30
START_TRIALS = 6  # for each kind, in ./test
SERVING_MISSES = 2  # sessions in a row that do not reach the call: there is none more

pytestmark = pytest.mark.skipif(not LIBRARY.exists() or not serving.BINARY.exists(), reason="build/release is not built")


def first_word(log):
    """A line that says why the server ended."""
    return [line for line in log.splitlines() if '"level":"error"' in line or "no memory" in line or "fatal" in line]


def serving_kinds():
    return [k for k in KINDS if k not in ("sync",)]  # nothing is written to disks while serving


@pytest.mark.parametrize("kind", serving_kinds())
def test_serving(tmp_path, kind):
    """One call fails: the request may be refused or the connection closed; the next session is answered in full."""
    server, n, misses, deaths = Server(tmp_path), 0, 0, []
    server.__enter__()
    try:
        assert set(session(server)) == {"ok"}
        expected = serving.binary_outputs(server.post("/v2/models/digits/infer", *serving.binary_request(torture.IMAGE)))["logits"]
        while misses < SERVING_MISSES:
            n += 1
            failed = server.calls.failed(kind)
            server.calls.fail(kind, server.calls.count(kind) + n)
            outcomes = session(server, expected)
            misses = misses + 1 if server.calls.failed(kind) == failed else 0
            server.calls.none()
            after = session(server, expected) if server.is_alive() else None
            if after is None or set(after) != {"ok"}:
                deaths.append(f"{kind} {n}: {outcomes}, then {after}, exit {server.process.poll()}: {server.log()[-300:]}")
                assert server.process.poll() is not None, deaths
                server = Server(tmp_path)
                server.__enter__()
        assert not deaths, "\n".join(deaths)
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


@pytest.mark.parametrize("kind", KINDS)
def test_start(tmp_path, monkeypatch, kind):
    """The server says why it does not start, or it starts and serves."""
    monkeypatch.setattr(serving, "START_S", START_S)
    total = count_of_a_start(tmp_path)[kind]
    step = torture.environment_every() or max(1, total // START_TRIALS)
    wrong = []
    for n in range(1, total + 1, step):
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
