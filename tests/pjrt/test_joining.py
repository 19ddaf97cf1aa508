"""Devices that come after the start, and devices that are told to go: nobody restarts the server, and no request fails."""
import contextlib
import http.server
import threading

import devices
import numpy
import pytest
import serving
from conftest import FAULT, PLUGIN
from serving import wait_until

RETRY = ("--set", "device_retry_s=1")
NEVER = ("--set", "batching.fallback=never")


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu")
    with serving.Server(folder / "cpu.log", dict(bert=devices.bert(folder))) as s:
        yield s


def start(tmp_path, *flags, plugin=FAULT, name="server"):
    return serving.Server(tmp_path / f"{name}.log", dict(bert=devices.bert(tmp_path)), "--device", f"pjrt:{plugin}", *flags)


def check(server, cpu, count=16):
    for i in range(count):
        x = devices.inputs(1 + i % devices.LENGTH_MAX, seed=i)
        theirs = cpu.infer("bert", x)
        for name, array in server.infer("bert", x).items():
            numpy.testing.assert_allclose(array, theirs[name], atol=1e-4)


def ready(server):
    return server.get("/v2/health/ready").json()


def states(server):
    return {d["name"]: d["state"] for d in ready(server).get("devices", [])}


def executions(server, device="pjrt:"):
    """Of a device, or of all that are not the CPU."""
    found = devices.metrics(server)
    return sum(v for k, v in found.items() if k.startswith("penstock_device_executions_total") and device in k)


def has_programs(server):
    """The model's programs are there: a device computes what only it may."""
    return "programs for" in server.log()


def test_a_chip_that_another_process_holds_joins_when_it_is_free(tmp_path, cpu):
    with devices.faults(plugin=PLUGIN, create_fails=3, create_count=tmp_path / "count"):
        with start(tmp_path, "--device-start-timeout", "0", *RETRY, *NEVER) as s:
            check(s, cpu)  # by the CPU
            body = ready(s)
            assert "already in use" in body["warning"] and "devices" not in body
            assert not [k for k in devices.metrics(s) if "pjrt:" in k and "device=" in k], "absent devices have no metrics"
            wait_until(lambda: has_programs(s), "the devices join")
            before, on_cpu = executions(s), devices.total(devices.metrics(s), "fallbacks_total", reason="no_device")
            assert on_cpu == 16
            check(s, cpu, 40)
            found = devices.metrics(s)
            assert executions(s) - before >= 40 and min(executions(s, f"pjrt:{i}") for i in range(4)) > 0
            assert devices.total(found, "device_missing") == 0 and "warning" not in ready(s)
            assert states(s) == {f"pjrt:{i}": "healthy" for i in range(4)}
            assert devices.total(found, "device_start_failures_total") == 3
            assert devices.total(found, "compiles_total", phase="serving") == 0
            assert devices.total(found, "compiles_total", phase="joined") == 4  # for each bucket one, for all devices
            assert devices.total(found, "fallbacks_total") == on_cpu
            assert [k for k in found if k.startswith("penstock_device_healthy") and 'kind="cpu"' in k and "pjrt:0" in k]


def test_a_plugin_that_is_installed_after_the_start_joins_with_programs_from_the_cache(tmp_path, cpu, compiled):
    with start(tmp_path, "--cache", compiled, plugin=PLUGIN, name="first"):
        pass  # fills the cache
    late = tmp_path / "late_pjrt.so"
    with start(tmp_path, "--cache", compiled, *RETRY, *NEVER, plugin=late) as s:
        check(s, cpu)
        assert "cannot be read" in ready(s)["warning"]
        late.symlink_to(PLUGIN)
        wait_until(lambda: has_programs(s), "it joins")
        check(s, cpu)
        found = devices.metrics(s)
        assert executions(s) > 0
        assert devices.total(found, "device_compiles_total", device="pjrt:0") == 0
        assert devices.total(found, "device_cache_hits_total", device="pjrt:0") == 4
        # A model that is loaded now finds the devices like any other.
        assert s.log().count("still without a device") <= 1, "the same reason is said once"


def test_nothing_is_tried_again_where_that_is_not_wanted(tmp_path, cpu):
    late = tmp_path / "late_pjrt.so"
    with start(tmp_path, "--set", "device_retry_s=0", plugin=late) as s:
        late.symlink_to(PLUGIN)
        check(s, cpu, 4)
        assert devices.total(devices.metrics(s), "device_missing") == 1
        assert states(s) == {}


@contextlib.contextmanager
def metadata_server(answer):
    """What Google's metadata server says to those who ask as it wants."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = answer[0].encode() if self.headers["Metadata-Flavor"] == "Google" and self.path == "/event" else b"?"
            self.send_response(answer[1])
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/event"
        found.shutdown()


def notices(*sources):
    return ("--set", "device_notice=" + " ".join(map(str, sources)), "--set", "device_notice_poll_ms=20")


def test_a_device_that_is_named_leaves_its_work_to_the_others(tmp_path, cpu, compiled):
    notice = tmp_path / "notice"
    with start(tmp_path, "--cache", compiled, *NEVER, *notices(notice), plugin=PLUGIN) as s:
        check(s, cpu)
        notice.write_text("pjrt:1 pjrt:2\n")
        wait_until(lambda: states(s) == {"pjrt:0": "healthy", "pjrt:1": "drained", "pjrt:2": "drained", "pjrt:3": "healthy"}, "drained")
        found = devices.metrics(s)
        assert [devices.total(found, "device_draining", device=f"pjrt:{i}") for i in range(4)] == [0, 1, 1, 0]
        before = [executions(s, f"pjrt:{i}") for i in range(4)]
        check(s, cpu, 40)
        after = [executions(s, f"pjrt:{i}") for i in range(4)]
        assert after[1:3] == before[1:3] and after[0] > before[0] and after[3] > before[3]
        assert "announces its end" in s.log() and devices.total(devices.metrics(s), "fallbacks_total") == 0
        notice.unlink()
        wait_until(lambda: set(states(s).values()) == {"healthy"}, "the notice is gone")
        wait_until(lambda: check(s, cpu, 8) or executions(s, "pjrt:1") > after[1], "it takes work again")


def test_when_all_devices_go_the_cpu_stands_in(tmp_path, cpu, compiled):
    answer = ["NONE", 200]
    with metadata_server(answer) as url, start(tmp_path, "--cache", compiled, *notices(url), plugin=PLUGIN) as s:
        check(s, cpu)
        assert set(states(s).values()) == {"healthy"}
        answer[0] = "TERMINATE_ON_HOST_MAINTENANCE"
        wait_until(lambda: set(states(s).values()) == {"drained"}, "drained")
        before = executions(s)
        check(s, cpu, 20)
        assert executions(s) == before
        assert s.get("/v2/health/ready").status == 200
        answer[:] = ["", 500]  # not readable: they stay as they are
        wait_until(lambda: "code 500" in s.log(), "said")
        assert set(states(s).values()) == {"drained"}
        answer[:] = ["Not Found", 404]  # as Amazon's says that there is none
        wait_until(lambda: set(states(s).values()) == {"healthy"}, "the notice is gone")


def test_without_fallback_devices_that_must_go_serve_to_the_end(tmp_path, cpu, compiled):
    notice = tmp_path / "notice"
    notice.write_text("TRUE")
    with start(tmp_path, "--cache", compiled, *NEVER, *notices(notice), plugin=PLUGIN) as s:
        wait_until(lambda: set(states(s).values()) <= {"drained", "draining"}, "drained")
        before = executions(s)
        check(s, cpu)
        assert executions(s) > before
