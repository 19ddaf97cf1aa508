"""A start costs in proportion: what a model can be ready without is made when traffic wants it, off the request path."""
import json
import subprocess

import numpy
import pytest
import serving

WIDTH = 256


@pytest.fixture(scope="module")
def frugal(tmp_path_factory):
    """A server that may run next to nothing before it is ready, with a model of many rows."""
    folder = tmp_path_factory.mktemp("start")
    models = {"layers": serving.slow_model(folder, "layers", width=WIDTH, layers=8), "digits": serving.DIGITS}
    with serving.Server(folder / "server.log", models, "--set", "limits.start_operations_max=1000", "--threads", "2") as s:
        yield s


def count(server, name, **labels):
    found = [line for line in server.get("/metrics").body.decode().splitlines() if line.startswith(f"penstock_{name}{{")]
    return sum(float(line.split()[-1]) for line in found if all(f'{k}="{v}"' in line for k, v in labels.items()))


def rows(seed, n):
    return numpy.random.default_rng(seed).normal(size=(n, WIDTH)).astype(numpy.float32)


def test_the_smallest_bucket_is_ready_and_traffic_brings_the_others(frugal):
    assert count(frugal, "compiles_total", model="layers") == 1 and count(frugal, "buckets", model="layers", state="pending") == 4
    expected = rows(1, 200) * 0.5**8  # each layer halves
    while not count(frugal, "compiles_total", model="layers", phase="deferred"):  # a request of many rows goes in parts, as they fit
        found = frugal.infer("layers", {"in": rows(1, 200)})["out"]
        numpy.testing.assert_allclose(numpy.asarray(found).reshape(expected.shape), expected, rtol=1e-4, atol=1e-6)
    for path in ("warm_up", "deferred"):
        assert count(frugal, "compiles_total", model="layers", phase=path) >= 1
    assert count(frugal, "compiles_total", model="layers", phase="serving") == 0
    stats = frugal.get("/v2/models/layers/stats").json()["model_stats"][0]
    states = {b["batch"]: b["state"] for b in stats["deferred_buckets"]}
    assert set(states) == {2, 4, 8, 16} and "made" in states.values()


def test_a_larger_bucket_is_used_once_it_is_made(frugal):
    def has_used():
        frugal.infer("layers", {"in": rows(2, 200)})
        return any(b["batch_size"] > 1 for b in frugal.get("/v2/models/layers/stats").json()["model_stats"][0]["batch_stats"])

    serving.wait_until(has_used, "a batch of several rows")


def test_what_nobody_wants_is_not_made(frugal):
    for i in range(20):
        frugal.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    assert count(frugal, "compiles_total", model="digits", phase="deferred") == 0


def test_inspect_says_what_is_deferred(tmp_path):
    model = serving.slow_model(tmp_path, "large", width=2048, layers=40)
    done = subprocess.run([str(serving.BINARY), "inspect", str(model)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "deferred  " in done.stdout and "when traffic wants them" in done.stdout
    done = subprocess.run([str(serving.BINARY), "inspect", str(model), "--json"], capture_output=True, text=True, timeout=120)
    buckets = {b["batch"]: b["is_deferred"] for b in json.loads(done.stdout)["buckets"]}
    assert buckets[1] is False and buckets[16] is True
