"""`penstock profile`: what a plugin's profiler recorded, as TensorBoard reads it; and who may not have it."""
import contextlib
import http.client
import json
import select
import subprocess
import threading

import devices
import pytest
import serving
from conftest import FAULT, PLUGIN
from serving import wait_until


@contextlib.contextmanager
def server(tmp_path, compiled, *flags, plugin=FAULT, repository_control=True, **orders):
    model = dict(bert=devices.bert(tmp_path, batch=(1,), sequence=(8,)))
    device = ["--device", f"pjrt:{plugin}"] if plugin else []
    if repository_control:
        flags = [*flags, "--set", "server.repository_control=true"]
    with devices.faults(plugin=PLUGIN, devices=1, **orders), serving.Server(tmp_path / "server.log", model, *device, "--cache", compiled, *flags) as s:
        yield s


def profile(s, *flags):
    command = [str(serving.BINARY), "profile", f"http://127.0.0.1:{s.port}", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def ask(s, **body):
    return s.post("/v2/profile", json.dumps(body).encode(), {"Content-Type": "application/json"})


def fields(data):
    """Of a protobuf message: (number, integer or bytes)."""

    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value, at

    at = 0
    while at < len(data):
        key, at = varint(at)
        value, at = varint(at)
        assert key & 7 in (0, 2)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def of(data, number):
    return [value for n, value in fields(data) if n == number]


@pytest.mark.parametrize("kind", [1, "libtpu"])
def test_it_writes_what_tensorboard_opens(tmp_path, compiled, kind):
    """By the header of the extension, and as libtpu does it."""
    with server(tmp_path, compiled, profile=kind) as s:
        over = threading.Event()

        def load():
            while not over.is_set():
                s.infer_binary("bert", devices.inputs(5))

        thread = threading.Thread(target=load)
        thread.start()
        done = profile(s, "--seconds", "1", "--out", str(tmp_path / "log"))
        over.set()
        thread.join()
        assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "log/plugins/profile").glob("*/*.xplane.pb")
    assert file.name == "127.0.0.1.xplane.pb" and str(file) in done.stdout and "tensorboard --logdir" in done.stdout
    (plane,) = of(file.read_bytes(), 1)
    assert of(plane, 2) == [b"/device:TPU:0"]
    events = of(of(plane, 3)[0], 4)
    assert len(events) > 0 and all(of(e, 2)[0] < 60e12 for e in events), "executions of that time"


def begin(s, seconds):
    """A connection whose profile is being recorded."""
    first = None
    for _ in range(60):
        if first is None:
            first = http.client.HTTPConnection("127.0.0.1", s.port, timeout=600)
            first.request("POST", "/v2/profile", json.dumps(dict(seconds=seconds)).encode())
        if ask(s, seconds=1).status == 409:
            return first
        if select.select([first.sock], [], [], 0.1)[0]:  # refused, as ours was first
            first.close()
            first = None
    raise AssertionError("never: a profile that is being recorded")


def test_one_at_a_time_and_one_that_nobody_waits_for_ends(tmp_path, compiled):
    with server(tmp_path, compiled, profile=1) as s:
        first = begin(s, 5)
        assert "a profile is being recorded" in ask(s, seconds=1).json()["error"]
        first.close()  # the host ends it by itself
        answers = []
        wait_until(lambda: answers.append(ask(s, seconds=1)) or answers[-1].status == 200, "the next one")
        assert of(answers[-1].body, 1) and answers[-1].headers["content-type"] == "application/octet-stream"
        s.infer_binary("bert", devices.inputs(5))


def test_refusals(tmp_path, compiled):
    with server(tmp_path, compiled) as s:  # the CPU plugin has no profiler, and so has this one
        assert (ask(s).status, ask(s).json()["error"]) == (501, "the plugin has no profiler")
        assert ask(s, device="cpu").status == 501 and ask(s, device="pjrt:7").status == 404
        assert ask(s, seconds=0).status == ask(s, seconds=61).status == ask(s, seconds="x").status == 400
        done = profile(s, "--out", str(tmp_path / "log"))
        assert done.returncode == 1 and "the plugin has no profiler" in done.stderr and not (tmp_path / "log").exists()
    with server(tmp_path, compiled, plugin=None) as s:
        assert ask(s).status == 404 and "no accelerator" in ask(s).json()["error"]
    with server(tmp_path, compiled, profile="fail") as s:
        assert ask(s).status == 503 and "starting the profiler: ordered to fail" in ask(s).json()["error"]


def test_it_is_the_administrators(tmp_path, compiled):
    with server(tmp_path, compiled, repository_control=False, profile=1) as s:
        assert ask(s, seconds=1).status == 403
        done = profile(s)
        assert done.returncode == 1 and "403" in done.stderr
    with server(tmp_path, compiled, "--listen-admin", f"unix:{tmp_path}/admin", repository_control=False, profile=1):
        command = [str(serving.BINARY), "profile", f"unix:{tmp_path}/admin", "--seconds", "1", "--out", str(tmp_path / "log")]
        assert subprocess.run(command, timeout=600).returncode == 0
        assert list((tmp_path / "log/plugins/profile").glob("*/localhost.xplane.pb"))


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://127.0.0.1:1/path", "http://127.0.0.1:1"])
def test_addresses_that_are_none(url):
    done = subprocess.run([str(serving.BINARY), "profile", url], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("penstock profile: ")
