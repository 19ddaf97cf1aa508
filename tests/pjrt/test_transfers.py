"""Copies hidden behind executions. The fault plugin simulates a device with queues of its own, whose clock alone is judged: what share of its
time it computed."""
import threading

import devices
import numpy
import pytest
import serving
from conftest import FAULT, PLUGIN
from serving import wait_until


def start(tmp_path, compiled, *flags):
    model = dict(bert=devices.bert(tmp_path, batch=(2,), sequence=(8,)))
    return serving.Server(tmp_path / "server.log", model, "--device", f"pjrt:{FAULT}", "--cache", compiled, "--set", "batching.fallback=on_failure", *flags)


def executions(trace):
    return [[int(x) for x in line.split()] for line in trace.read_text().splitlines()]


def pipeline(server):
    return server.get("/v2/models/bert/stats").json()["model_stats"][0]["devices"]


class Load:
    """More requests than the device takes, until the block ends; none fails."""

    def __init__(self, server, connections=20):
        self.server, self.is_over, self.failed = server, False, []
        self.threads = [threading.Thread(target=self.work) for _ in range(connections)]

    def work(self):
        connection = self.server.connect(timeout=600)
        body, headers = serving.binary_request(devices.inputs(5))
        while not self.is_over:
            answer = self.server.post("/v2/models/bert/infer", body, headers, connection)
            if answer.status != 200:
                self.failed.append(answer)
        connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()
        assert self.failed == []


def busy_fraction(runs):
    return sum(end - begin for _, begin, end in runs) / (runs[-1][2] - runs[0][1])


def test_a_copy_of_half_an_execution_costs_nothing(tmp_path, compiled):
    """Three inputs of 5 ms each way in, and an output or two of 5 ms: beside 30 ms of execution."""
    trace = tmp_path / "trace"
    with devices.faults(plugin=PLUGIN, devices=1, compute_ms=30, transfer_ms=5, trace=trace), start(tmp_path, compiled) as s:
        with Load(s):
            wait_until(lambda: len(executions(trace)) > 200, "enough executions")
        found, (told,) = devices.metrics(s), pipeline(s)
        runs = executions(trace)[-100:]
        assert busy_fraction(runs[:-10]) >= 0.95, runs
        assert told["device"] == "pjrt:0" and 2 <= told["pipeline_depth"] <= 4
        assert told["pipeline_depth"] == devices.total(found, "device_pipeline_depth", device="pjrt:0")
        # The server's own measure, from outside, of what the plugin knows.
        computed = sum(end - begin for _, begin, end in executions(trace)) / 1e6
        assert 0.8 * computed <= told["computing_s"] <= 1.3 * computed
        assert told["transfer_s"] > 0


def test_the_pipeline_becomes_as_deep_as_copies_need(tmp_path, compiled):
    """Copies take longer than executions: two batches in flight leave the device idle, the measurement finds it, and three or four do better."""
    trace = tmp_path / "trace"
    with devices.faults(plugin=PLUGIN, devices=1, compute_ms=15, transfer_ms=5, trace=trace), start(tmp_path, compiled) as s:
        assert pipeline(s)[0]["pipeline_depth"] == 2
        with Load(s):
            wait_until(lambda: pipeline(s)[0]["pipeline_depth"] > 2, "deeper")
            shallow = executions(trace)
            wait_until(lambda: len(executions(trace)) > len(shallow) + 150, "enough executions")
        assert busy_fraction(executions(trace)[-100:-10]) > busy_fraction(shallow[-60:])
        assert "batches in flight; it idled" in s.log()


def test_slots_are_pinned_and_unpinned_at_the_end(tmp_path, compiled):
    dma = tmp_path / "dma"
    with devices.faults(plugin=PLUGIN, devices=2, dma=dma), start(tmp_path, compiled) as s:
        with Load(s, connections=8):
            wait_until(lambda: dma.read_text().count("upload pinned") > 60, "uploads")
        pinned = sum(d["pinned_bytes"] for d in pipeline(s))
        assert pinned > 0 and pinned == devices.total(devices.metrics(s), "device_pinned_bytes")
    lines = dma.read_text().splitlines()
    maps = [int(line.split()[1]) for line in lines if line.startswith("map")]
    unmaps = [int(line.split()[1]) for line in lines if line.startswith("unmap")]
    assert sorted(maps) == sorted(unmaps) and sum(maps) == pinned
    assert max(maps) <= 1 << 20  # what batches need, not the whole slot
    first = next(i for i, line in enumerate(lines) if line.startswith("map"))
    assert "upload copied" not in lines[first:]  # weights came before


@pytest.mark.parametrize("orders", [{}, dict(dma_fails=1)], ids=["not offered", "fails"])
def test_without_pinned_memory_it_serves(tmp_path, compiled, orders):
    with devices.faults(plugin=PLUGIN, **orders), start(tmp_path, compiled) as s:
        for i in range(20):
            s.infer_binary("bert", devices.inputs(5, seed=i))
        assert all(d["pinned_bytes"] == 0 for d in pipeline(s))
        assert s.log().count("slots are not pinned") == len(orders), s.log()
        assert devices.total(devices.metrics(s), "device_failures_total") == 0


def test_answers_are_those_of_the_plugin_without_simulation(tmp_path, compiled):
    """Copies that end late are waited for: nothing is read or reused before."""
    with devices.faults(plugin=PLUGIN), start(tmp_path, compiled) as s:
        wanted = [s.infer_binary("bert", devices.inputs(1 + i % 8, seed=i)) for i in range(12)]
    with devices.faults(plugin=PLUGIN, compute_ms=7, transfer_ms=3), start(tmp_path, compiled) as s:
        found = [s.infer_binary("bert", devices.inputs(1 + i % 8, seed=i)) for i in range(12)]
    for a, b in zip(wanted, found):
        for name in a:
            numpy.testing.assert_array_equal(a[name], b[name])
