"""Serving on PJRT devices: answers, readiness, the compile cache, refusals."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess

import devices
import numpy
import pytest
import serving
from conftest import FAULT, NO_PLUGIN, PLUGIN


def start(tmp_path, *flags, plugin=PLUGIN, model=None, name="server"):
    model = model or devices.bert(tmp_path)
    return serving.Server(tmp_path / f"{name}.log", dict(bert=model), "--device", f"pjrt:{plugin}", *flags)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that a first server has filled."""
    folder = tmp_path_factory.mktemp("cache")
    with start(folder, "--cache", str(folder / "cache")) as s:
        found = devices.metrics(s)
        assert devices.total(found, "device_compiles_total", device="pjrt:0") == 4
        assert devices.total(found, "device_cache_misses_total", device="pjrt:0") == 4
    return folder / "cache"


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    with serving.Server(folder / "cpu.log", dict(bert=devices.bert(folder))) as s:
        yield s


def one_program(tmp_path):
    """A model of one bucket, for what costs compilations."""
    return devices.bert(tmp_path, (4,), (devices.LENGTH_MAX,))


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name in ours:
        numpy.testing.assert_allclose(ours[name], theirs[name], atol=1e-4)


def test_every_length_without_a_compilation(tmp_path, cache, reference):
    with start(tmp_path, "--cache", str(cache), "--set", "batching.fallback=never") as s:
        for length in range(1, devices.LENGTH_MAX + 1):
            x = devices.inputs(length, seed=length)
            same(s.infer("bert", x), reference.infer("bert", x))
        found = devices.metrics(s)
    serving_compiles = [k for k in found if k.startswith("penstock_compiles_total") and 'phase="serving"' in k]
    assert len(serving_compiles) == 1 and found[serving_compiles[0]] == 0
    assert devices.total(found, "fallbacks_total") == 0
    assert devices.total(found, "device_failures_total") == 0
    # Second start: nothing was compiled.
    assert devices.total(found, "device_compiles_total", device="pjrt:0") == 0
    assert devices.total(found, "device_cache_hits_total", device="pjrt:0") == 4


def test_devices_share_the_load_and_say_what_they_are(tmp_path, cache):
    with start(tmp_path, "--cache", str(cache), "--set", "batching.fallback=never") as s:
        before = devices.metrics(s)
        with serving.concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda i: s.infer("bert", devices.inputs(1 + i % 32, seed=i)), range(600)))
        after = devices.metrics(s)
        names = sorted(set(re.findall(r'device_executions_total\{device="(pjrt:\d+)"', "\n".join(after))))
        ran = [devices.total(after, "device_executions_total", device=n) - devices.total(before, "device_executions_total", device=n) for n in names]
        assert len(names) == 4
        assert min(ran) > 0.1 * sum(ran), ran
        info = [k for k in after if k.startswith("penstock_device_info") and "pjrt:0" in k]
        assert len(info) == 1 and "api 0." in info[0] and "stablehlo" in info[0]


def test_indices_out_of_range_are_refused_as_on_the_cpu(tmp_path, cache, reference):
    with start(tmp_path, "--cache", str(cache), "--set", "batching.fallback=never") as s:
        for bad in (1000000, 500, -1, -1000000):
            x = devices.inputs(5)
            x["input_ids"][0, 3] = bad
            body = dict(inputs=[serving.json_input(n, a) for n, a in x.items()])
            ours, theirs = (server.post("/v2/models/bert/infer", body) for server in (s, reference))
            assert ours.status == theirs.status == 400, (ours, theirs)
            assert ours.json() == theirs.json()
            assert f'input \"input_ids\": {bad} at row 0, position 3; ids are 0 to 499' in ours.json()["error"], ours
        # Nobody else's answer suffers, and the device is still there.
        same(s.infer("bert", devices.inputs(5)), reference.infer("bert", devices.inputs(5)))
        assert devices.total(devices.metrics(s), "device_restarts_total") == 0


def ends(tmp_path, *flags, plugin=PLUGIN):
    """Exit code and output of a server that does not start."""
    command = [str(serving.BINARY), "serve", "--model", f"bert={devices.bert(tmp_path)}", "--listen", "127.0.0.1:0", "--device", f"pjrt:{plugin}", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    return done.returncode, done.stdout + done.stderr


def test_cache_only(tmp_path, cache):
    with start(tmp_path, "--cache", str(cache), "--cache-only") as s:
        assert devices.total(devices.metrics(s), "device_compiles_total", device="pjrt:0") == 0
    code, text = ends(tmp_path, "--cache", str(tmp_path / "empty"), "--cache-only")
    assert code == 1
    assert "is not in the compile cache, and --cache-only forbids compiling" in text


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty"])
def test_a_broken_entry_is_compiled_again(tmp_path, cache, reference, damage):
    mine = tmp_path / "cache"
    mine.mkdir()
    entries = sorted(cache.glob("*.program"))
    for entry in entries:
        (mine / entry.name).write_bytes(entry.read_bytes())
    victim = mine / entries[0].name
    data = bytearray(victim.read_bytes())
    if damage == "truncated":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data[len(data) // 2] ^= 1
    elif damage == "foreign":
        data = entries[1].read_bytes()
    else:
        data = b""
    victim.write_bytes(data)
    with start(tmp_path, "--cache", str(mine), "--set", "batching.fallback=never") as s:
        found = devices.metrics(s)
        assert devices.total(found, "device_cache_corrupt_total", device="pjrt:0") == 1
        assert devices.total(found, "device_compiles_total", device="pjrt:0") == 1
        assert "not trusted" in s.log()
        same(s.infer("bert", devices.inputs(9)), reference.infer("bert", devices.inputs(9)))
    assert victim.read_bytes()[:8] == entries[0].read_bytes()[:8], "it was written again"


def test_a_cache_that_cannot_be_kept(tmp_path, reference):
    (tmp_path / "file").write_text("no folder")
    with start(tmp_path, "--cache", str(tmp_path / "file" / "cache"), model=one_program(tmp_path)) as s:
        assert "the compile cache cannot be kept" in s.log()
        assert devices.total(devices.metrics(s), "device_cache_store_failures_total", device="pjrt:0") == 1
        same(s.infer("bert", devices.inputs(9)), reference.infer("bert", devices.inputs(9)))


def test_a_full_disk_under_the_cache(tmp_path, reference):
    folder = tmp_path / "full"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("no right to mount a small tmpfs")
    try:
        with start(tmp_path, "--cache", str(folder), model=one_program(tmp_path)) as s:
            assert devices.total(devices.metrics(s), "device_cache_store_failures_total", device="pjrt:0") == 1
            assert "the compile cache did not keep a program" in s.log()
            same(s.infer("bert", devices.inputs(9)), reference.infer("bert", devices.inputs(9)))
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder):
    """The folder and what is in it cannot be written, by root neither: a bind mount of itself."""
    mount = lambda *arguments: subprocess.run(["mount", *arguments, str(folder)], capture_output=True).returncode
    if mount("--bind", str(folder)):
        pytest.skip("no right to mount a folder read-only")
    try:
        if mount("-o", "remount,bind,ro"):
            pytest.skip("no right to mount a folder read-only")
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_read_only_cache(tmp_path, cache, reference):
    """As in an image: what is there is used, what is missing is compiled at each start, and the log says so once."""
    mine = tmp_path / "cache"
    shutil.copytree(cache, mine)
    next(mine.glob("*.program")).unlink()
    before = sorted(p.name for p in mine.iterdir())
    with read_only(mine):
        with start(tmp_path, "--cache", str(mine), "--set", "batching.fallback=never") as s:
            found = devices.metrics(s)
            same(s.infer("bert", devices.inputs(9)), reference.infer("bert", devices.inputs(9)))
            log = s.log()
        assert devices.total(found, "device_cache_hits_total", device="pjrt:0") == 3
        assert devices.total(found, "device_compiles_total", device="pjrt:0") == 1
        assert devices.total(found, "device_cache_store_failures_total", device="pjrt:0") == 1
        assert log.count(f"the compile cache {mine} is read-only: new programs will not be kept") == 1
        with serving.Server(tmp_path / "cpu.log", dict(bert=devices.bert(tmp_path)), "--cache", str(mine)) as s:
            same(s.infer("bert", devices.inputs(9)), reference.infer("bert", devices.inputs(9)))
            cpu_log = s.log()
    assert "error" not in {json.loads(line)["level"] for line in (log + cpu_log).splitlines()}, cpu_log
    assert sorted(p.name for p in mine.iterdir()) == before


REFUSALS = {
    "no such file": (dict(), "/nowhere/plugin.so", "/nowhere/plugin.so: cannot be read"),
    "no library": (dict(), devices.BERT, "not a loadable library"),
    "no plugin": (dict(), NO_PLUGIN, "not a PJRT plugin: it has no symbol GetPjrtApi"),
    "old major": (dict(major=1), FAULT, "must be equal"),
    "missing execute": (dict(without="execute"), FAULT, "lacks the function loaded_executable_execute"),
    "missing compile": (dict(without="compile"), FAULT, "lacks the function client_compile"),
    "exits in initialise": (dict(initialize="exit"), FAULT, "exited with status 1: E0101 00:00:00.000000 1 fault.cc:1] ordered to exit"),
    "fails in initialise": (dict(initialize="fail"), FAULT, "the plugin does not initialise"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_plugin_that_cannot_be_used(tmp_path, reference, what):
    orders, plugin, sentence = REFUSALS[what]
    with devices.faults(plugin=PLUGIN, **orders):
        # The default time for trying again is longer than this test should take; only a process that ends is tried again.
        flags = ("--device-start-timeout", "1") if what == "exits in initialise" else ()
        with start(tmp_path, *flags, plugin=plugin) as s:
            same(s.infer("bert", devices.inputs(9)), reference.infer("bert", devices.inputs(9)))
            assert "serving without a device" in s.log()
            assert sentence in s.log()
            if not flags:
                assert devices.total(devices.metrics(s), "device_start_failures_total") == 1, "it was tried again"
        code, text = ends(tmp_path, "--require-device", *flags, plugin=plugin)
        assert code == 1 and sentence in text


@pytest.mark.parametrize("what", ["compile_fails", "out_of_memory", "load_fails"])
def test_a_device_that_takes_no_program(tmp_path, reference, what):
    with devices.faults(plugin=PLUGIN, devices=2, **{what: 1}), start(tmp_path, plugin=FAULT, model=one_program(tmp_path)) as s:
        same(s.infer("bert", devices.inputs(9)), reference.infer("bert", devices.inputs(9)))
        assert "ordered by PENSTOCK_FAULT" in s.log()
        assert devices.total(devices.metrics(s), "fallbacks_total", reason="no_device") > 0


def test_a_slow_compilation_shows_its_progress(tmp_path):
    with devices.faults(plugin=PLUGIN, compile_ms=1500):
        s = start(tmp_path, plugin=FAULT, model=one_program(tmp_path))
        seen = set()
        s.is_ready = lambda: seen.add(s.get("/v2/health/ready").body.decode()) or any('"ready":true' in text.replace(" ", "") for text in seen)
        with s:
            pass
    assert any("warming bucket" in text for text in seen), seen


def test_chatter_of_a_plugin_is_in_our_log(tmp_path):
    with devices.faults(plugin=PLUGIN, chatter=1), start(tmp_path, plugin=FAULT, model=one_program(tmp_path)) as s:
        assert "plugin: E0101 00:00:00.000000 1 chatter.cc:3] of some interest" in s.log()
        assert "of no interest" not in s.log() and "of little interest" not in s.log()
        assert all(line.startswith("{") for line in s.log().splitlines()), s.log()


def test_the_host_dies_with_the_server(tmp_path, cache):
    s = start(tmp_path, "--cache", str(cache))
    s.__enter__()
    host = devices.host_of(s)
    assert host is not None
    s.process.kill()
    s.process.wait()
    serving.wait_until(lambda: not pathlib.Path(f"/proc/{host}").exists(), "the device host ends with the server")


def test_four_devices_get_equal_work(tmp_path, cache):
    """One program loaded on each, weights uploaded to each, all busy: with more work than they can take, each runs a quarter within 3%. Where
    a busy machine delays the threads of one device, another try tells."""
    with devices.faults(plugin=PLUGIN, execute_ms=50):
        with start(tmp_path, "--cache", str(cache), "--set", "batching.fallback=never", plugin=FAULT) as s:
            body, headers = serving.binary_request(devices.inputs(9, rows=4))

            def measure(name):
                found = devices.metrics(s)
                return [devices.total(found, name, device=f"pjrt:{i}") for i in range(4)]

            def send(_):
                connection = s.connect()
                for _ in range(10):
                    assert s.post("/v2/models/bert/infer", body, headers, connection).status == 200
                connection.close()

            def farthest():
                """From a quarter of the executions, and of the time: as a share."""
                names = ("device_executions_total", "device_busy_seconds_total")
                before = [measure(name) for name in names]
                with serving.concurrent.futures.ThreadPoolExecutor(32) as pool:
                    list(pool.map(send, range(32)))
                parts = [[y - x for x, y in zip(old, measure(name))] for name, old in zip(names, before)]
                assert sum(parts[0]) == 320
                return max(abs(4 * v / sum(part) - 1) for part in parts for v in part)

            tries = []
            while len(tries) < 5 and min(tries, default=1) > 0.03:
                tries.append(farthest())
            assert min(tries) <= 0.03, tries
