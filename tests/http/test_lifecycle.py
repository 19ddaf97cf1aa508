"""Start, reload, drain, end, and the errors of a start that cannot be."""
import json
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import numpy
import pytest

import frames
import serving
from serving import make_certificate


def penstock(*arguments, timeout=600):
    return subprocess.run([serving.BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, cwd=serving.ROOT)


def bad_starts(tmp_path):
    wrong_key = tmp_path / "wrong_key.json"
    wrong_key.write_text('{\n  "models": {},\n  "limits": {"json_depht_max": 5}\n}\n')
    broken = tmp_path / "broken" / "1" / "model.onnx"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"not a model")
    empty = tmp_path / "empty"
    empty.mkdir()
    digits = f"digits={serving.DIGITS}"
    return {
        "unknown flag": (["--modell", digits], ["--modell", "--model"]),
        "no models": ([], ["--repository", "--model"]),
        "wrong key": (["--config", wrong_key], ["wrong_key.json:3", "json_depht_max", "json_depth_max"]),
        "no config file": (["--config", tmp_path / "none.json"], ["none.json"]),
        "no such model folder": (["--model", f"x={tmp_path}/none"], ["none"]),
        "broken model": (["--model", f"x={tmp_path}/broken"], ["x"]),
        "empty model folder": (["--model", f"x={empty}"], ["x"]),
        "no such repository": (["--repository", tmp_path / "none"], ["none"]),
        "port taken": (["--model", digits, "--listen", "127.0.0.1:{port}"], ["{port}", "another server", "--listen HOST:PORT"]),
        "no such certificate": (
            ["--model", digits, "--listen-tls", "127.0.0.1:0", "--tls-certificate", "/none.pem", "--tls-key", "/none.key"],
            ["/none.pem", "No such file"],
        ),
        "certificate that is none": (
            ["--model", digits, "--listen-tls", "127.0.0.1:0", "--tls-certificate", "/etc/passwd", "--tls-key", "/etc/passwd"],
            ["tls.certificate_file /etc/passwd", "PEM"],
        ),
        "a name twice": (["--model", digits, "--model", digits], ["digits", "twice"]),
        "tls without certificate": (["--model", digits, "--listen-tls", "127.0.0.1:0"], ["tls.certificate_file"]),
        "unknown cpu level": (["--model", digits, "--listen", "127.0.0.1:0", "--cpu-level", "mmx"], ["mmx"]),
    }


@pytest.mark.parametrize("name", [
    "unknown flag", "no models", "wrong key", "no config file", "no such model folder", "broken model", "empty model folder",
    "no such repository", "port taken", "no such certificate", "certificate that is none", "a name twice", "tls without certificate", "unknown cpu level",
])  # fmt: skip
def test_a_start_that_cannot_be_says_why(tmp_path, server, name):
    arguments, words = bad_starts(tmp_path)[name]
    arguments = [str(a).format(port=server.port) for a in arguments]
    if "--listen" not in arguments and "--listen-tls" not in arguments:
        arguments += ["--listen", "127.0.0.1:0"]
    run = penstock("serve", *arguments)
    assert run.returncode not in (0, -6, -11), run.stderr
    for word in words:
        assert word.format(port=server.port) in run.stderr, run.stderr


def test_help_and_print_config():
    text = penstock("serve", "--help")
    assert text.returncode == 0 and "--print-config" in text.stdout
    printed = penstock("serve", "--print-config", "--set", "drain.delay_ms=7")
    assert printed.returncode == 0 and json.loads(printed.stdout)["drain"]["delay_ms"] == 7


def test_inspect():
    run = penstock("inspect", serving.DIGITS)
    assert run.returncode == 0 and "image" in run.stdout and "logits" in run.stdout, run
    assert json.loads(penstock("inspect", serving.DIGITS, "--json").stdout)
    wrong = penstock("inspect", "/none")
    assert wrong.returncode != 0 and "/none" in wrong.stderr


def test_unknown_command():
    run = penstock("surve")
    assert run.returncode != 0 and "serve" in run.stderr


def test_tls_files_are_read_again(tmp_path):
    first, second = make_certificate(tmp_path, "first.test"), make_certificate(tmp_path, "second.test")

    def served(port):
        return ssl.get_server_certificate(("127.0.0.1", port))

    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, tls=first) as s:
        before = served(s.tls_port)
        for new, old in zip(second, first):
            old.write_bytes(new.read_bytes())
        s.process.send_signal(signal.SIGHUP)
        serving.wait_until(lambda: served(s.tls_port) != before, "the new certificate is served")
        assert served(s.tls_port).split() == second[0].read_text().split()
        # Broken files change nothing, and say so.
        first[0].write_text("broken")
        s.process.send_signal(signal.SIGHUP)
        serving.wait_until(lambda: "not reloaded" in s.log(), "it is said")
        assert served(s.tls_port).split() == second[0].read_text().split()


def test_a_handshake_keeps_its_certificate_while_the_files_are_read_again(tmp_path):
    """However often: connections that were accepted before it, and those whose first bytes have come."""
    first, second = make_certificate(tmp_path, "first.test"), make_certificate(tmp_path, "second.test")
    context = ssl._create_unverified_context()
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", f"timeouts.head_ms={serving.WAIT_S}000", tls=first) as s:
        before = ssl.get_server_certificate(("127.0.0.1", s.tls_port))
        silent, begun = [[socket.create_connection(("127.0.0.1", s.tls_port)) for _ in range(8)] for _ in range(2)]
        for raw in begun:
            raw.sendall(b"\x16\x03\x01")
        ssl.get_server_certificate(("127.0.0.1", s.tls_port))  # accepted after them, on every loop or not
        s.post("/v2/models/digits/infer", {})
        for new, old in zip(second, first):
            old.write_bytes(new.read_bytes())
        for i in range(20):
            s.process.send_signal(signal.SIGHUP)
            serving.wait_until(lambda: s.log().count("TLS files reloaded") > i, "the files are read again")
        serving.wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", s.tls_port)) != before, "the new certificate is served")
        for raw in silent:
            with context.wrap_socket(raw) as tls:
                assert ssl.DER_cert_to_PEM_cert(tls.getpeercert(True)) == before
        for raw in begun:
            raw.close()


def test_not_ready_while_draining_yet_serving_until_a_second_signal(tmp_path):
    s = serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, delay_ms=600000)
    s.__enter__()
    kept = s.connect()
    s.request("GET", "/v2/health/ready", connection=kept)
    s.process.terminate()
    serving.wait_until(lambda: not s.is_ready(), "not ready")
    assert s.get("/v2/health/live").status == 200
    assert s.infer_binary("digits", {"image": numpy.zeros((1, 64), numpy.float32)}, kept)["logits"].shape == (1, 10)
    while s.process.poll() is None:  # within a second of the first it is the same signal
        s.process.terminate()
        time.sleep(0.1)
    assert s.process.returncode == 1


@pytest.mark.load
def test_no_request_fails_when_drained_under_load(tmp_path):
    """Clients keep asking while SIGTERM comes; those told `Connection: close` stop. Every request sent is answered 200."""
    image = {"image": numpy.zeros((2, 64), numpy.float32)}
    answered, failures, stop_time = [0], [], [None]
    lock = threading.Lock()
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, delay_ms=1000) as s:
        body, headers = serving.binary_request(image)

        def ask():
            while True:
                try:
                    connection = s.connect(timeout=30)
                    connection.connect()
                except OSError:
                    # Refused only once the listeners are closed, which is after the delay.
                    if stop_time[0] is None or time.monotonic() - stop_time[0] < 0.9:
                        failures.append("refused")
                    return
                while True:
                    try:
                        answer = s.post("/v2/models/digits/infer", body, headers, connection)
                    except OSError as error:
                        failures.append(repr(error))
                        return
                    with lock:
                        answered[0] += 1
                    if answer.status != 200:
                        failures.append(repr(answer))
                    if answer.headers.get("Connection", "").lower() == "close":
                        connection.close()
                        break

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for t in threads:
            t.start()
        time.sleep(1.5)
        stop_time[0] = time.monotonic()
        s.terminate()
        for t in threads:
            t.join(60)
            assert not t.is_alive()
    assert answered[0] > 0 and not failures, failures[:5]


@pytest.mark.load
@pytest.mark.parametrize("tls", [False, True])
def test_no_request_fails_when_drained_under_load_over_http2(tmp_path, certificate, tls):
    """Clients that honour GOAWAY: they open no more streams, wait for those the server has taken, and connect anew."""
    body, headers = serving.binary_request({"image": numpy.zeros((2, 64), numpy.float32)})
    headers = [(k.lower(), v) for k, v in headers.items()]
    answered, failures, stop_time = [0], [], [None]
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, delay_ms=1000, tls=certificate) as s:

        def session(client):
            count = 0
            while client.last_stream is None or client.waiting:
                while client.last_stream is None and len(client.waiting) < 8:
                    client.ask("/v2/models/digits/infer", body, headers)
                done = client.receive()
                if client.last_stream is not None:  # beyond it: not processed, to be asked again elsewhere
                    client.waiting = {k: v for k, v in client.waiting.items() if k <= client.last_stream}
                if done is None:
                    assert not client.waiting, f"closed with {len(client.waiting)} streams open"
                    break
                assert all(status == 200 for _, status, _ in done), done
                count += len(done)
            return count

        def ask():
            while True:
                try:
                    client = frames.Client(s.tls_port if tls else s.port, tls)
                except OSError:
                    if stop_time[0] is None or time.monotonic() - stop_time[0] < 0.9:
                        failures.append("refused")
                    return
                try:
                    answered[0] += session(client)
                except Exception as error:  # noqa: BLE001: every kind is a finding
                    # A connection made while the listeners close, on which nothing was taken, is none.
                    failures.append(repr(error))
                    return
                finally:
                    client.close()

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        time.sleep(1.5)
        stop_time[0] = time.monotonic()
        s.terminate()
        for t in threads:
            t.join(60)
            assert not t.is_alive()
    assert answered[0] > 0 and not failures, failures[:5]


def test_clients_are_told_names_and_no_folders(tmp_path):
    """Of models that do not load, in every response that says why; the log has the paths."""
    folder = tmp_path / "secret-folder"
    digits = folder / "digits"
    shutil.copytree(serving.DIGITS, digits)
    for name, data in {"broken": b"not a model", "empty": None}.items():
        (folder / name / "1").mkdir(parents=True)
        if data:
            (folder / name / "1" / "model.onnx").write_bytes(data)
    (folder / "manifest").mkdir()
    (folder / "manifest" / "model.json").write_text("{")
    (folder / "manifest" / "model.onnx").write_bytes((serving.DIGITS / "1" / "model.onnx").read_bytes())
    (folder / "hugging").mkdir()
    (folder / "hugging" / "config.json").write_text("{}")
    (folder / "hugging" / "model.safetensors").write_bytes(b"no")
    names = ["broken", "empty", "manifest", "hugging"]
    models = {"digits": digits}
    for n in names:
        (folder / n).rename(folder / f".{n}")  # not there yet when the server starts
    with serving.Server(tmp_path / "log", models, *serving.CONTROL, "--repository", str(folder), "--access-log", str(tmp_path / "access")) as s:
        for n in names:
            (folder / f".{n}").rename(folder / n)
        answers = [s.post(f"/v2/repository/models/{n}/load", {}) for n in names]
        assert all(a.status >= 400 and a.json()["error"] for a in answers), answers
        answers += [s.post("/v2/repository/index", {}), s.get("/metrics"), s.get("/v2/health/ready"), s.get("/v2"), s.get("/"), s.get("/v2/models/stats")]
        for n in names + ["digits"]:
            answers += [s.get(p) for p in (f"/v2/models/{n}", f"/v2/models/{n}/config", f"/v2/models/{n}/ready", f"/v2/models/{n}/stats", f"/v1/models/{n}")]
            answers += [s.post(f"/v2/models/{n}/infer", {}), s.post(f"/v1/models/{n}:predict", {})]
        told = [a for a in answers if b"secret-folder" in a.body or str(tmp_path).encode() in a.body]
        assert not told, told
        assert str(folder / "broken") in s.log() and str(folder / "empty") in s.log()
