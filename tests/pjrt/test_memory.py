"""What does not fit into the memory of a device is refused before it is loaded, with the sum; or the largest buckets are left out."""
import contextlib
import json
import re

import devices
import onnx
import pytest
import serving
from conftest import FAULT, PLUGIN


@contextlib.contextmanager
def start(tmp_path, memory, compiled, *flags, fit=False):
    """A server whose devices tell so much memory; 0: nothing."""
    model = devices.bert(tmp_path)
    settings = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps(settings | dict(fit=fit)))
    with devices.faults(plugin=PLUGIN, devices=2, **(dict(memory=memory) if memory else {})):
        with serving.Server(tmp_path / "server.log", dict(bert=model), "--device", f"pjrt:{FAULT}", "--cache", compiled, *flags) as s:
            yield s


def claimed(server, device="pjrt:0"):
    return devices.total(devices.metrics(server), "device_memory_claimed_bytes", device=device)


def executions(server):
    return sum(v for k, v in devices.metrics(server).items() if k.startswith("penstock_device_executions_total") and "pjrt:" in k)


@pytest.fixture(scope="module")
def needed(tmp_path_factory, compiled):
    """What the model needs of each device, in bytes."""
    folder = tmp_path_factory.mktemp("needed")
    with start(folder, 1 << 40, compiled) as s:
        found = devices.metrics(s)
        assert devices.total(found, "device_memory_bytes", device="pjrt:0") == 1 << 40
        return int(claimed(s))


def weight_bytes():
    model = onnx.load(devices.BERT)
    return sum(onnx.numpy_helper.to_array(t).nbytes for t in model.graph.initializer)


def test_the_sum_has_weights_and_batches(needed):
    """Some of the file's constants become part of the program. Of two batches of 4x32 in flight the inputs alone are three tensors of int64."""
    assert needed > 0.8 * weight_bytes() + 2 * 3 * 4 * 32 * 8


def test_what_fits_exactly_is_served(tmp_path, compiled, needed):
    with start(tmp_path, needed, compiled, "--set", "batching.fallback=never") as s:
        s.infer("bert", devices.inputs(9))
        assert executions(s) > 0 and claimed(s) == needed


def test_too_much_is_refused_with_the_sum(tmp_path, compiled, needed):
    with start(tmp_path, needed - 1, compiled) as s:
        s.infer("bert", devices.inputs(9))
        before = executions(s)
        for length in (1, 9, 32):
            s.infer("bert", devices.inputs(length))
        assert executions(s) == before, "small buckets do not run there either"
        assert claimed(s) == claimed(s, "pjrt:1") == 0, "everything was given back"
        log = s.log()
    assert "does not run on device pjrt:0: the device has " in log
    refusal = re.search(r"the device has (\S+ \S+) and would need (\S+ \S+): weights \S+ \S+, code of \d programs \S+ \S+, 2 batches of 4x32 in flight with \S+ \S+ each", log)
    assert refusal, log


def test_the_largest_buckets_are_left_out_and_named(tmp_path, compiled, needed):
    with start(tmp_path, needed - 1, compiled, "--set", "batching.fallback=on_failure", fit=True) as s:
        for length, rows in ((1, 1), (8, 4), (32, 1), (32, 4)):
            s.infer("bert", devices.inputs(length, rows=rows))
        log, found = s.log(), devices.metrics(s)
        assert 0 < claimed(s) < needed
    assert "bucket 4x32 does not run on device pjrt:0: the device has " in log
    assert "bucket 1x8 does not" not in log and "bucket 4x8 does not" not in log
    assert devices.total(found, "fallbacks_total") == 0, "smaller buckets took the rows"


def test_the_configuration_tells_what_the_plugin_does_not(tmp_path, compiled, needed):
    with start(tmp_path, 0, compiled, "--set", f"device_memory_bytes={needed // 2}") as s:
        s.infer("bert", devices.inputs(9))
        assert devices.total(devices.metrics(s), "device_memory_bytes", device="pjrt:0") == needed // 2
        assert "and would need" in s.log() and executions(s) == 0
