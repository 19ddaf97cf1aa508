"""Loads and unloads that clients ask for: they end with their client and at their time limit, and only so many wait."""
import json
import os
import re
import shutil
import socket
import subprocess
import time

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

import frames
import serving

LAYERS, CHANNELS, SIDE = 300, 64, 256
END_S = serving.WAIT_S  # no test waits that long unless it fails


def endless_model(folder, name="endless"):
    """A small file with four million million operations a row: within the ceilings, and minutes of probing."""
    weight = numpy.zeros((CHANNELS, CHANNELS, 5, 5), numpy.float32)
    names = ["in", *(f"h{i}" for i in range(1, LAYERS)), "out"]
    nodes = [helper.make_node("Conv", [names[i], "weight"], [names[i + 1]], pads=[2, 2, 2, 2]) for i in range(LAYERS)]
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", CHANNELS, SIDE, SIDE])
    path = serving.save_model(folder, name, nodes, [value("in")], [value("out")], [numpy_helper.from_array(weight, "weight")])
    (path / "model.json").write_text(json.dumps({"batch_max": 2}))
    return path


def costly_model(folder, name="costly"):
    """Thirty kilobytes whose one row is terabytes: a convolution with pads of a million."""
    channels = 60
    weight = numpy.ones((channels, channels, 1, 2), numpy.float32)
    node = helper.make_node("Conv", ["in", "weight"], ["out"], name="wide", pads=[10**6] * 4)
    value = lambda n, *d: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", channels, *d])
    return serving.save_model(folder, name, [node], [value("in", 8, 8)], [value("out", None, None)], [numpy_helper.from_array(weight, "weight")])


class Repository:
    """A server with digits loaded; the endless model comes into its folder later, so that only clients load it."""

    def __init__(self, folder, *flags):
        self.models = folder / "models"
        self.models.mkdir()
        shutil.copytree(serving.DIGITS, self.models / "swapped")
        flags = ["--repository", str(self.models), *serving.CONTROL, *flags]
        self.server = serving.Server(folder / "server.log", {"digits": serving.DIGITS, "other": serving.DIGITS}, *flags)

    def __enter__(self):
        self.server.__enter__()
        self.endless = endless_model(self.models)
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def change(self, verb, name, **more):
        return self.server.post(f"/v2/repository/models/{name}/{verb}", b"", **more)

    def metric(self, name):
        lines = self.server.get("/metrics").body.decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"penstock_{name} "))

    def await_metric(self, name, value):
        serving.wait_until(lambda: self.metric(name) == value, f"{name} is {value}")

    def order(self, verb, name):
        """Sends the order and leaves it at that: a connection whose answer is not read yet."""
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=END_S)
        s.sendall(f"POST /v2/repository/models/{name}/{verb} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".encode())
        return s

    def begin_endless(self):
        """Orders that load, and waits until it is under way."""
        endless = self.order("load", "endless")
        self.await_metric("loads_under_way", 1)
        return endless


def status_of(connection):
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = connection.recv(65536)
        assert part, answer
        answer += part
    return int(answer.split()[1])


@pytest.fixture
def repository(tmp_path):
    with Repository(tmp_path, "--set", "limits.waiting_loads_max=2") as r:
        yield r


def test_a_load_ends_when_its_client_leaves(repository):
    endless = repository.begin_endless()
    waiting = repository.order("load", "digits")
    repository.await_metric("loads_waiting", 1)
    endless.close()
    assert status_of(waiting) == 200
    repository.await_metric('loads_total{result="cancelled"}', 1)
    # The model is there as one that failed, and can be asked for again.
    entry = next(e for e in repository.server.post("/v2/repository/index", {}).json() if e["name"] == "endless")
    assert entry["state"] == "UNAVAILABLE" and "cancelled" in entry["reason"], entry


def test_a_load_ends_when_its_stream_is_reset(repository):
    client = frames.Client(repository.server.port)
    first = client.ask("/v2/repository/models/endless/load", b"")
    repository.await_metric("loads_under_way", 1)
    client.ask("/v2/repository/models/digits/load", b"")
    repository.await_metric("loads_waiting", 1)
    client.reset(first)
    done = []
    while not done:
        done = client.receive()
    assert [status for _, status, _ in done] == [200]
    repository.await_metric('loads_total{result="cancelled"}', 1)


def test_so_many_wait_and_equal_ones_wait_together(repository):
    endless = repository.begin_endless()
    together = [repository.order("load", "digits") for _ in range(5)]
    repository.await_metric("loads_waiting", 1)
    last = repository.order("unload", "other")
    repository.await_metric("loads_waiting", 2)
    refused = repository.change("load", "other")
    assert refused.status == 429 and int(refused.headers["retry-after"]) >= 1, refused
    repository.await_metric('loads_total{result="rejected"}', 1)
    # A place is free again when everybody who waited for it has gone.
    for waiting in together[1:]:
        waiting.close()
    assert repository.change("load", "other").status == 429
    together[0].close()
    repository.await_metric("loads_waiting", 1)
    again = repository.order("load", "other")
    repository.await_metric("loads_waiting", 2)
    endless.close()
    assert [status_of(c) for c in (last, again)] == [200, 200]
    repository.await_metric('loads_total{result="ok"}', 4)  # three at the start, and that of other


def test_a_reload_that_is_cancelled_leaves_what_served(repository):
    file = next((repository.models / "swapped").rglob("model.onnx"))
    file.write_bytes((repository.endless / "1/model.onnx").read_bytes())
    order = repository.order("load", "swapped")
    repository.await_metric("loads_under_way", 1)
    order.close()
    repository.await_metric('loads_total{result="cancelled"}', 1)
    assert repository.server.get("/v2/models/swapped/ready").status == 200


def test_a_small_file_that_asks_for_terabytes_is_rejected(tmp_path):
    """In `inspect`, at the start of a server, and when a client loads it: at once, in little memory, with the node's name."""
    words = ['node "wide" (Conv)', "GiB"]
    model = costly_model(tmp_path)
    assert (model / "1/model.onnx").stat().st_size < 32000
    for command in (["inspect", model], ["serve", "--listen", "127.0.0.1:0", "--model", f"costly={model}"]):
        program = subprocess.Popen([serving.BINARY, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=serving.ROOT)
        said = program.stderr.read().replace('\\"', '"')
        _, status, used = os.wait4(program.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 1 and all(word in said for word in words), said
        assert used.ru_maxrss < 1 << 20, f"{used.ru_maxrss} KiB"
    with Repository(tmp_path) as r:
        shutil.copytree(model, r.models / "costly")
        answer = r.change("load", "costly")
        assert answer.status == 400 and all(word in answer.json()["error"] for word in words), answer
        r.await_metric('loads_total{result="failed"}', 1)


def test_a_storm_of_orders_whose_clients_left(repository):
    """What one client can leave behind: nothing. Polite requests are served all the while."""
    image = {"image": numpy.ones((1, 64), numpy.float32)}
    expected = repository.server.infer_binary("digits", image)["logits"]
    for _ in range(10):
        client = frames.Client(repository.server.port)
        for _ in range(50):
            client.ask("/v2/repository/models/endless/load", b"")
            client.ask("/v2/repository/models/endless/unload", b"")
        assert numpy.array_equal(repository.server.infer_binary("digits", image)["logits"], expected)
        client.close()
    repository.await_metric("loads_waiting", 0)
    assert repository.change("load", "other").status == 200


def test_a_load_has_a_time_limit(tmp_path):
    with Repository(tmp_path, "--set", "timeouts.load_ms=3000") as r:
        answer = r.change("load", "endless")
        assert answer.status == 504 and "endless" in answer.json()["error"] and "3 s" in answer.json()["error"], answer
        r.await_metric('loads_total{result="time_limit"}', 1)
        assert r.change("load", "digits").status == 200


def test_the_server_does_not_wait_for_loads_when_it_ends(tmp_path):
    with Repository(tmp_path, "--set", "drain.limit_ms=100") as r:
        kept = r.begin_endless()
        r.server.terminate()
        assert r.server.process.wait(END_S) == 0
        kept.close()


def test_a_signal_ends_loading_at_the_start(tmp_path):
    server = serving.Server(tmp_path / "log", {"endless": endless_model(tmp_path)})
    with open(server.log_path, "wb") as log:
        server.process = subprocess.Popen(server.arguments, stdout=log, stderr=log, cwd=serving.ROOT)
    server._wait_for(server._ports_known, "ports in the log")
    # Probing is over in a moment; the first bucket takes a minute.
    while not re.search("probing|warming", server.get("/v2/health/ready").body.decode()):
        assert server.process.poll() is None
        time.sleep(0.02)
    assert server.stop() == 0
