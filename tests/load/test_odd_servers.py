"""Servers that are odd, some of them legally so, and options that ask for what cannot be. Each stand-in is a script of raw bytes."""
import os
import socket
import subprocess
import threading

import pytest

from conftest import BIN

SHORT = ("--rate", "40", "--duration", "500ms", "--warm-up", "0s", "--timeout", "1s", "--quiet")


@pytest.fixture
def scripted():
    """Starts a server that hands each connection to `talk(socket)` in a thread of its own; returns its URL."""
    listeners = []

    def begin(talk):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def guarded(connection):
            try:
                talk(connection)
            except OSError:
                pass
            connection.close()

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=guarded, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/any"

    yield begin
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def answering(*pieces):
    """HTTP/1.1: the same pieces for every request (none has a body)."""

    def talk(connection):
        lines = connection.makefile("rb")
        while lines.readline():
            while lines.readline() not in (b"\r\n", b""):
                pass
            for piece in pieces:
                connection.sendall(piece)

    return talk


def test_the_answer_to_head_has_no_body(scripted, load):
    url = scripted(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"))
    code, report, _ = load(url, "--method", "HEAD", *SHORT)
    assert code == 0 and report["answered"] == report["requests"] == 20


def test_an_empty_line_is_no_status(scripted, load):
    # It was taken for an interim answer, and the real one behind it for a body that never ends: a timeout.
    url = scripted(answering(b"\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"))
    code, report, _ = load(url, *SHORT)
    assert code == 4 and report["errors_by_kind"]["protocol"] == report["requests"] == 20


def test_a_reason_that_is_no_utf8_is_still_told(scripted, load):
    url = scripted(answering(b"HTTP/1.1 503 x\r\ncontent-length: 11\r\n\r\nfull \xff\x01 now"))
    _, report, _ = load(url, *SHORT)
    assert report["first_error_of_kind"]["refused"] == "503: full ?? now"


def test_half_an_answer_is_no_answer(scripted, load):
    # HTTP/2: 200, some of the body, and RST_STREAM with NO_ERROR in place of the end.
    def talk(connection):
        frames = connection.makefile("rb")
        frames.read(24)
        connection.sendall(b"\0\0\0\4\0\0\0\0\0")
        while True:
            head = frames.read(9)
            if len(head) < 9:
                return
            frames.read(int.from_bytes(head[:3], "big"))
            if head[3] == 1:
                stream = head[5:9]
                connection.sendall(b"\0\0\1\1\4" + stream + b"\x88" + b"\0\0\3\0\0" + stream + b"abc" + b"\0\0\4\3\0" + stream + b"\0\0\0\0")

    code, report, _ = load(scripted(talk), "--http2", *SHORT)
    assert code == 4 and report["answered"] == 0
    assert report["errors_by_kind"]["stream_reset"] == report["requests"] == 20


def test_bytes_that_are_no_http2_are_a_protocol_error(scripted, load):
    def talk(connection):
        connection.recv(65536)
        connection.sendall(b"\0\0\0\4\0\0\0\0\0")
        while connection.recv(65536):
            connection.sendall(b"\xff" * 64)

    code, report, _ = load(scripted(talk), "--http2", *SHORT)
    assert code == 4 and report["errors_by_kind"]["protocol"] > 0
    assert "HTTP/2" in report["first_error_of_kind"]["protocol"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["http://127.0.0.1:99999", "--rate", "5"], "65535"),
        (["http://127.0.0.1:0", "--rate", "5"], "65535"),
        (["http://127.0.0.1:80x", "--rate", "5"], "65535"),
        (["http://127.0.0.1:80/a b", "--rate", "5"], "%20"),
        (["ftp://127.0.0.1", "--rate", "5"], "http://"),
        (["http://x", "--rate", "5", "--slo", ""], "--slo"),
        (["http://x", "--rate", "5", "--slo", "errors=200%"], "100%"),
        (["http://x", "--rate", "5", "--timeout", "0"], "--timeout"),
        (["http://x", "--rate", "5", "--method", "GE T"], "--method"),
        (["http://x", "--rate", "5", "--header", "bad name: 1"], "--header"),
        (["http://x", "--rate", "5", "--seed", "99999999999999999999999"], "--seed"),
        (["http://x", "--rate", "5", "--seed", "-1"], "--seed"),
        (["http://x", "--rate", "5", "--lengths", "10000000"], "--lengths: \"10000000\": a request has at most 1000000 tokens"),
        (["http://x", "--rate", "5", "--pool", "1000000"], "--pool: \"1000000\" is not a whole number from 1 to 100000"),
        (["http://x", "--rate", "5", "--duration", "1e9h"], "--duration: \"1e9h\" is over 366 days"),
    ],
)
def test_what_cannot_be_is_refused_at_once(load, arguments, words):
    code, _, error = load(*arguments, json_report=False)
    assert code == 2 and words in error and error.startswith("penstock-load: ")


@pytest.mark.parametrize("option", ["--json", "--csv", "--html"])
def test_a_report_that_cannot_be_written_is_told_before_the_run(scripted, load, tmp_path, option):
    url = scripted(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"))
    code, _, text = load(url, *SHORT, option, tmp_path / "none" / "report", json_report=False)
    assert code == 3 and "none/report" in text and "latency" not in text


def test_a_table_that_cannot_be_written_is_a_failure(scripted):
    url = scripted(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"))
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        assert subprocess.run([BIN / "penstock-load", url, *SHORT], stdout=full, timeout=600).returncode == 3
