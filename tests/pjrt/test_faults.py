"""Devices that fail while they serve: no request does."""
import concurrent.futures
import os
import signal
import threading
import time

import devices
import numpy
import pytest
import serving
from serving import wait_until
from conftest import FAULT, PLUGIN

# ./test runs a short one; PENSTOCK_CHAOS_REQUESTS=20000 is the run of bench/tpu/README.md.
REQUESTS = int(os.environ.get("PENSTOCK_CHAOS_REQUESTS", 1500))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One cache for all: the fault plugin's programs are the inner plugin's."""
    return tmp_path_factory.mktemp("faults") / "cache"


def start(tmp_path, cache, *flags, name="server"):
    return serving.Server(
        tmp_path / f"{name}.log", dict(bert=devices.bert(tmp_path)), "--device", f"pjrt:{FAULT}", "--cache", str(cache), *flags
    )


class Expected:
    """What the CPU answers, computed once for each input."""

    def __init__(self, tmp_path, count):
        with serving.Server(tmp_path / "expected.log", dict(bert=devices.bert(tmp_path))) as s:
            self.inputs = [devices.inputs(1 + i % devices.LENGTH_MAX, seed=i) for i in range(count)]
            self.outputs = [s.infer_binary("bert", x) for x in self.inputs]

    def check(self, i, outputs):
        for name, array in self.outputs[i].items():
            numpy.testing.assert_allclose(outputs[name], array, atol=1e-4)


class Load:
    """Requests from several connections, so many at least and until release(); every answer is looked at."""

    def __init__(self, server, expected, requests, connections=8, is_held=False):
        self.server, self.expected, self.requests, self.is_held = server, expected, requests, is_held
        self.lock, self.sent, self.failed, self.seconds = threading.Lock(), 0, [], []
        self.pool = concurrent.futures.ThreadPoolExecutor(connections)
        self.workers = [self.pool.submit(self.work) for _ in range(connections)]

    def work(self):
        connection = self.server.connect(timeout=600)
        while True:
            with self.lock:
                if self.sent >= self.requests and not self.is_held:
                    break
                i = self.sent % len(self.expected.inputs)
                self.sent += 1
            body, headers = serving.binary_request(self.expected.inputs[i])
            begun = time.monotonic()
            try:
                answer = self.server.post("/v2/models/bert/infer", body, headers, connection)
                assert answer.status == 200, answer
                self.expected.check(i, serving.binary_outputs(answer))
            except Exception as error:  # what a client would call a failed request
                self.failed.append(repr(error))
                connection.close()
                connection = self.server.connect(timeout=600)
            self.seconds.append(time.monotonic() - begun)
        connection.close()

    def wait_for(self, count):
        while self.sent < count:
            time.sleep(0.01)

    def join(self):
        self.is_held = False
        for worker in self.workers:
            worker.result()
        self.pool.shutdown()


def executions(server, device="pjrt:"):
    """Of a device, or of all PJRT devices."""
    return sum(v for k, v in devices.metrics(server).items() if k.startswith("penstock_device_executions_total") and device in k)


def is_healthy(server):
    return devices.total(devices.metrics(server), "device_healthy", device="pjrt:0") == 1


def test_chaos(tmp_path, cache):
    """The device host is killed five times and stopped once, and 5% of its executions fail. Meanwhile another plugin joins, which was not
    there at the start, and a notice drains a device of each, and goes."""
    expected = Expected(tmp_path, 64)
    late, notice = tmp_path / "late_pjrt.so", tmp_path / "notice"
    flags = ["--device", f"pjrt:{late}", "--set", "device_retry_s=1", "--set", f"device_notice={notice}", "--set", "device_notice_poll_ms=20"]
    with devices.faults(plugin=PLUGIN, execute_rate=0.05, execute_code=8), start(tmp_path, cache, *flags) as s:
        draining = lambda: devices.total(devices.metrics(s), "device_draining")
        load = Load(s, expected, REQUESTS, is_held=True)
        kills, stopped, hosts = 0, False, {None}
        for k in range(1, 7):
            load.wait_for(k * REQUESTS // 8)
            wait_until(lambda: devices.host_of(s, FAULT) not in hosts and is_healthy(s), "healthy")
            host = devices.host_of(s, FAULT)
            hosts.add(host)
            time.sleep(0.2)  # some executions, so that some fail
            if k == 2:
                late.symlink_to(PLUGIN)
            if k == 5:
                wait_until(lambda: executions(s, "pjrt:4") > 0, "the late device works")
                notice.write_text("pjrt:0 pjrt:4")
                wait_until(lambda: draining() == 2, "drained")
            if k == 6:
                notice.unlink()
                wait_until(lambda: draining() == 0, "not drained any more")
            if k == 3:
                os.kill(host, signal.SIGSTOP)
                stopped = True
            else:
                os.kill(host, signal.SIGKILL)
                kills += 1
        load.join()
        found = devices.metrics(s)
        assert (kills, stopped) == (5, True)
        assert load.failed == [], load.failed[:3]
        assert len(load.seconds) == load.sent >= REQUESTS
        counted = lambda: devices.total(devices.metrics(s), "requests_total", code="200", model="bert")
        wait_until(lambda: counted() == load.sent, "each is counted once")
        restarts = devices.total(found, "device_restarts_total", device="pjrt:0")
        assert restarts >= 5
        assert devices.total(found, "device_restarts_total", device="pjrt:4") == 0
        assert devices.total(found, "fallbacks_total", reason="device_failed") > 0
        assert devices.total(found, "device_failures_total") > 0
        assert devices.total(found, "compiles_total", phase="serving") == 0
        # It recovers: the device is back, and answers as quickly as ever.
        wait_until(lambda: is_healthy(s), "healthy")
        calm = Load(s, expected, 200)
        calm.join()
        assert calm.failed == []
        ranked = sorted(load.seconds)
        p = lambda values, q: 1e3 * sorted(values)[min(len(values) - 1, int(q * len(values)))]
        fallbacks = {k.split('reason="')[1].split('"')[0]: int(v) for k, v in found.items() if k.startswith("penstock_fallbacks_total")}
        print(f"{load.sent} requests, 0 failed, {int(restarts)} restarts, fallbacks {fallbacks}")
        print(f"during: p50 {p(ranked, .5):.1f} ms, p99 {p(ranked, .99):.1f} ms, max {1e3 * ranked[-1]:.0f} ms; after: p50 {p(calm.seconds, .5):.1f} ms, p99 {p(calm.seconds, .99):.1f} ms")


@pytest.mark.parametrize("orders", [dict(execute_rate=0.05, execute_code=13), dict(lost_after=60), dict(crash_after=60), dict(hang_after=60)], ids=str)
def test_no_request_fails(tmp_path, cache, orders):
    """INTERNAL and UNAVAILABLE need a new process each time; so do a crash and a hang."""
    expected = Expected(tmp_path, 16)
    with devices.faults(plugin=PLUGIN, **orders), start(tmp_path, cache) as s:
        load = Load(s, expected, 300, is_held=True)
        wait_until(lambda: devices.total(devices.metrics(s), "fallbacks_total", reason="device_failed") > 0, "the CPU stands in")
        load.join()
        assert load.failed == [], load.failed[:3]
        wait_until(lambda: "serving without it, next start in" in s.log(), "said")


def test_a_device_that_is_lost_once_comes_back(tmp_path, cache):
    expected = Expected(tmp_path, 16)
    with devices.faults(plugin=PLUGIN, lost_after=40, once=tmp_path / "once"), start(tmp_path, cache) as s:
        load = Load(s, expected, 100, is_held=True)
        wait_until(lambda: devices.total(devices.metrics(s), "device_restarts_total", device="pjrt:0") >= 1 and is_healthy(s), "back")
        load.join()
        before = executions(s)
        load_after = Load(s, expected, 100)
        load_after.join()
        assert load.failed == load_after.failed == []
        assert executions(s) > before


def test_fallback_never_tells_the_client(tmp_path, cache):
    with devices.faults(plugin=PLUGIN, lost_after=40), start(tmp_path, cache, "--set", "batching.fallback=never") as s:
        statuses = {s.post("/v2/models/bert/infer", *serving.binary_request(devices.inputs(4))).status for _ in range(60)}
        assert statuses == {200, 503}
        found = devices.metrics(s)
        assert devices.total(found, "fallbacks_total") == 0


def test_fallback_on_failure_uses_the_cpu_only_then(tmp_path, cache):
    expected = Expected(tmp_path, 16)
    with devices.faults(plugin=PLUGIN), start(tmp_path, cache, "--set", "batching.fallback=on_failure") as s:
        load = Load(s, expected, 300, connections=24)
        load.join()
        assert load.failed == []
        assert devices.total(devices.metrics(s), "fallbacks_total") == 0

        def cpu_stands_in():
            """If the host was back before it was asked, again."""
            if host := devices.host_of(s):
                os.kill(host, signal.SIGKILL)
            for i in range(16):
                expected.check(i, s.infer_binary("bert", expected.inputs[i]))
            return devices.total(devices.metrics(s), "fallbacks_total") > 0

        wait_until(cpu_stands_in, "the CPU stands in")


def test_fallback_when_sooner_uses_the_cpu_beside_busy_devices(tmp_path, cache):
    expected = Expected(tmp_path, 16)
    with devices.faults(plugin=PLUGIN), start(tmp_path, cache, "--set", "batching.fallback=when_sooner", "--threads", "2") as s:
        load = Load(s, expected, 1500, connections=48)
        load.join()
        assert load.failed == []
        found = devices.metrics(s)
        assert devices.total(found, "fallbacks_total", reason="device_failed") == 0
        # Whether the CPU was ever expected to be sooner is the machine's to say; if it was, it is counted.
        on_cpu = sum(v for k, v in found.items() if k.startswith("penstock_device_executions_total") and 'device="cpu"' in k)
        assert devices.total(found, "fallbacks_total", reason="sooner") <= on_cpu
