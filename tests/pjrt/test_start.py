"""Devices that cannot be opened at once: tried again for a time, then the CPU serves, and everybody is told."""
import subprocess

import devices
import numpy
import pytest
import serving
from conftest import FAULT, PLUGIN


def start(tmp_path, *flags, name="server"):
    return serving.Server(tmp_path / f"{name}.log", dict(bert=devices.bert(tmp_path)), "--device", f"pjrt:{FAULT}", *flags)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    with serving.Server(folder / "cpu.log", dict(bert=devices.bert(folder))) as s:
        return s.infer("bert", devices.inputs(9))


def check(server, expected):
    found = server.infer("bert", devices.inputs(9))
    assert found.keys() == expected.keys()
    for name in found:
        numpy.testing.assert_allclose(found[name], expected[name], atol=1e-4)


# ALREADY_EXISTS, ABORTED, UNKNOWN and UNAVAILABLE are how plugins say that another process holds the device.
@pytest.mark.parametrize("code", [6, 14])
def test_a_device_that_is_in_use_for_a_while(tmp_path, expected, compiled, code):
    bodies, states = [], set()
    with devices.faults(plugin=PLUGIN, create_fails=2, create_code=code, create_count=tmp_path / "count"):
        s = start(tmp_path, "--set", "batching.fallback=never", "--cache", compiled)

        def is_ready():
            answer = s.get("/v2/health/ready")
            bodies.append(answer.json())
            if bodies[-1]["state"] == "starting":
                # What needs models says the same; the rest is served.
                other = s.get("/v2/models/bert")
                states.update({s.get("/v2/health/live").status, s.get("/metrics").status, other.status})
            return answer.status == 200

        s.is_ready = is_ready
        with s:
            check(s, expected)
            found = devices.metrics(s)
            assert devices.total(found, "device_start_failures_total") == 2
            assert devices.total(found, "device_missing") == 0
            assert devices.total(found, "device_healthy", device="pjrt:0") == 1
            assert devices.total(found, "fallbacks_total") == 0
            assert "warning" not in bodies[-1]
    waiting = [b["progress"] for b in bodies if "already in use" in b.get("progress", "")]
    assert waiting and all(FAULT.name in w and str(FAULT) not in w and f"(PJRT code {code})" in w and "of 60 s, next try in" in w for w in waiting), bodies
    assert {200, 503} <= states <= {200, 503}


def test_a_device_that_is_in_use_for_too_long(tmp_path, expected):
    with devices.faults(plugin=PLUGIN, create_fails=1000):
        with start(tmp_path, "--device-start-timeout", "8") as s:  # time for three tries on a slow machine
            check(s, expected)
            found, ready = devices.metrics(s), s.get("/v2/health/ready").json()
            log = s.log()
        command = [str(serving.BINARY), "serve", "--model", f"bert={devices.bert(tmp_path)}", "--listen", "127.0.0.1:0"]
        command += ["--device", f"pjrt:{FAULT}", "--require-device", "--set", "device_start_timeout_s=1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert devices.total(found, "device_start_failures_total") >= 3
    assert devices.total(found, "device_missing") == 1
    assert ready["ready"] is True
    for text in (log, ready["warning"], done.stdout + done.stderr):
        assert FAULT.name in text and "already in use" in text and "given up after" in text, text
    assert "serving without a device" in log and str(FAULT) in log and str(FAULT) not in ready["warning"]
    assert done.returncode == 1


def test_it_can_be_stopped_while_it_waits_for_a_device(tmp_path):
    with devices.faults(plugin=PLUGIN, create_fails=1000):
        s = start(tmp_path, "--device-start-timeout", "3600")
        s.is_ready = lambda: "already in use" in s.get("/v2/health/ready").json().get("progress", "")
        with s:  # leaving it: SIGTERM ends it with code 0 in time
            assert s.get("/v2/health/ready").status == 503


def test_tried_once(tmp_path, expected):
    with devices.faults(plugin=PLUGIN, create_fails=1, create_count=tmp_path / "count"):
        with start(tmp_path, "--device-start-timeout", "0") as s:
            check(s, expected)
            assert devices.total(devices.metrics(s), "device_start_failures_total") == 1
            assert "given up" not in s.log() and "serving without a device" in s.log()


def test_no_tpu_is_not_tried_again(tmp_path, expected):
    with devices.faults(plugin=PLUGIN, create_fails=1000, create_code=5), start(tmp_path) as s:
        check(s, expected)
        assert devices.total(devices.metrics(s), "device_start_failures_total") == 1
        assert "the plugin found no device it can use" in s.log()
