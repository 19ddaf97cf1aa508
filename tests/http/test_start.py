"""A start costs in proportion: what a model can be ready without is made when traffic wants it, off the request path."""
import json
import os
import shutil
import socket
import subprocess
import threading
import time

import numpy
import pytest
import serving
from onnx import TensorProto, helper, numpy_helper

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


def image_model(folder):
    """A convolution of images of any size, and a product behind it."""
    random = numpy.random.default_rng(5)
    weights = [numpy_helper.from_array(random.normal(size=dims).astype(numpy.float32), name) for name, dims in (("w", (8, 3, 3, 3)), ("p", (8, 5)))]
    nodes = [helper.make_node("Conv", ["in", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("ReduceMean", ["c", "axes"], ["m"], keepdims=0),
             helper.make_node("MatMul", ["m", "p"], ["out"])]  # fmt: skip
    value = lambda n, dims: helper.make_tensor_value_info(n, TensorProto.FLOAT, dims)
    axes = numpy_helper.from_array(numpy.array([2, 3]), "axes")
    return serving.save_model(folder, "image", nodes, [value("in", ["n", 3, "h", "w"])], [value("out", ["n", 5])], [*weights, axes])


IMAGE = numpy.random.default_rng(6).normal(size=(1, 3, 20, 30)).astype(numpy.float32)


def start_with_cache(folder, models, has_kept=None):
    """The answers of both models, and the states of the deferred buckets when none is still to be made."""
    with serving.Server(folder / "server.log", models, "--cache", str(folder / "cache"), "--threads", "2") as s:
        answers = [numpy.asarray(s.infer("layers", {"in": rows(3, 5)})["out"]), numpy.asarray(s.infer("image", {"in": IMAGE})["out"])]
        states = lambda: [b["state"] for b in s.get("/v2/models/layers/stats").json()["model_stats"][0].get("deferred_buckets", [])]
        serving.wait_until(lambda: "wanted" not in states(), "buckets that are made after ready")
        if has_kept:
            serving.wait_until(has_kept, "what is kept in the cache folder")
        return answers, states()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with two models, what a first start has kept of them, and its answers."""
    folder = tmp_path_factory.mktemp("kept")
    models = {"layers": serving.slow_model(folder, "layers", width=WIDTH, layers=8), "image": image_model(folder)}
    time.sleep(3)  # the hash of files that have just changed is not kept
    files = lambda kind="weights": sorted((folder / "cache").glob(f"*.{kind}"))
    answers, states = start_with_cache(folder, models, lambda: len(files()) == len(files("graph")) == 2)
    return folder, models, files(), answers, states


def said(folder, words):
    return (folder / "server.log").read_text().count(words)


def test_a_second_start_does_no_long_work_again(kept):
    """Counted in stages, not in time: it reads no model, imports, proves and packs nothing, and so writes nothing."""
    folder, models, _, answers, _ = kept
    assert said(folder, "its graph is from the cache") == 0
    content = lambda: {path.name: path.stat().st_ino for path in (folder / "cache").iterdir()}
    before = content()
    assert {name.partition(".")[2] for name in before} == {"weights", "graph", "files", "batching"}
    again, _ = start_with_cache(folder, models)
    assert said(folder, "its graph is from the cache") == 2 and said(folder, "(from the cache)") >= 1 and said(folder, "experiments") <= said(folder, "(from the cache)")
    assert content() == before
    assert all(numpy.array_equal(a, b) for a, b in zip(answers, again))


def test_a_second_start_makes_larger_buckets_right_after_ready(kept):
    folder, models, _, answers, first_states = kept
    again, states = start_with_cache(folder, models)
    assert first_states == [] and states == ["made"] * 4
    assert all(numpy.array_equal(a, b) for a, b in zip(answers, again))


DAMAGES = {
    "empty": lambda data: b"",
    "cut in its head": lambda data: data[:40],
    "cut in its records": lambda data: data[:200],
    "cut in its weights": lambda data: data[: len(data) - 100],
    "another head": lambda data: b"x" * 64 + data[64:],
    "a changed number": lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
    "changed weights": lambda data: data[: len(data) // 2] + bytes(b ^ 0x80 for b in data[len(data) // 2 :]),
    "longer": lambda data: data + b"more",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_packed_weights_are_packed_again(kept, damage):
    folder, models, files, answers, _ = kept
    before = {path: path.read_bytes() for path in files}
    for path, data in before.items():
        path.write_bytes(DAMAGES[damage](data))
    is_new = lambda path, data: path.stat().st_size == len(data) and path.read_bytes() != DAMAGES[damage](data)
    again, _ = start_with_cache(folder, models, lambda: all(is_new(path, data) for path, data in before.items()))
    assert all(numpy.array_equal(a, b) for a, b in zip(answers, again))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_graph_is_imported_again(kept, damage):
    folder, models, _, answers, _ = kept
    before = {path: path.read_bytes() for path in (folder / "cache").glob("*.graph")}
    for path, data in before.items():
        path.write_bytes(DAMAGES[damage](data))
    again, _ = start_with_cache(folder, models, lambda: all(path.read_bytes() == data for path, data in before.items()))
    assert said(folder, "imported again") == len(before) == 2 and said(folder, "its graph is from the cache") == 0
    assert all(numpy.array_equal(a, b) for a, b in zip(answers, again))


def test_a_graph_of_another_model_is_not_used(kept):
    folder, models, _, answers, _ = kept
    before = {path: path.read_bytes() for path in (folder / "cache").glob("*.graph")}
    for path, data in zip(before, reversed(before.values())):
        path.write_bytes(data)
    again, _ = start_with_cache(folder, models, lambda: all(path.read_bytes() == data for path, data in before.items()))
    assert all(numpy.array_equal(a, b) for a, b in zip(answers, again))


def test_other_sizes_in_model_json_are_another_graph(kept, tmp_path):
    folder, models, _, answers, _ = kept
    manifest = models["image"] / "model.json"
    try:
        for i, (words, height) in enumerate((("proved", 20), ("its graph is from the cache", 20), ("proved", 12))):
            manifest.write_text(json.dumps({"dims": {"h": height, "w": 30}}))
            with serving.Server(tmp_path / "log", {"image": models["image"]}, "--cache", str(folder / "cache")) as s:
                assert s.get("/v2/models/image").json()["inputs"][0]["shape"][1:] == [3, height, 30]
                found = numpy.asarray(s.infer("image", {"in": IMAGE[:, :, :height]})["out"])
                serving.wait_until(lambda: len(list((folder / "cache").glob("*.graph"))) == 3 + i // 2, "its graph in the cache folder")
            assert words in (tmp_path / "log").read_text()
            if height == 20:
                numpy.testing.assert_allclose(found.ravel(), answers[1].ravel(), rtol=1e-5)
    finally:
        manifest.unlink()


def test_the_cache_folder_has_a_limit(kept, tmp_path):
    folder, models, _, _, _ = kept
    cache = tmp_path / "cache"
    shutil.copytree(folder / "cache", cache)
    graphs, old = sorted(cache.glob("*.graph")), cache / "0000000000000001.graph"
    old.write_bytes(b"x" * 1000)
    os.utime(old, (1, 1))
    size = lambda: sum(path.stat().st_size for path in cache.iterdir())
    limit = size() - 500
    with serving.Server(tmp_path / "log", models, "--cache", str(cache), "--set", f"cache_bytes_max={limit}") as s:
        serving.wait_until(lambda: not old.exists(), "the removal of what was not used longest")
        assert size() <= limit and sorted(cache.glob("*.graph")) == graphs
        serving.wait_until(lambda: "more than cache_bytes_max: removed the 1 files" in s.log(), "a line in the log")


def test_packed_weights_of_another_model_are_not_used(kept):
    folder, models, files, answers, _ = kept
    before = [path.read_bytes() for path in files]
    for path, data in zip(files, reversed(before)):
        path.write_bytes(data)
    again, _ = start_with_cache(folder, models, lambda: [path.stat().st_size for path in files] == [len(data) for data in before])
    assert all(numpy.array_equal(a, b) for a, b in zip(answers, again))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_model_is_unavailable_before_it_is_known_never_unknown(tmp_path):
    """A proxy tries another replica after 503; a 404 goes to the client."""
    models = tmp_path / "models"
    for i in range(400):  # reading so many takes a while
        (models / f"junk-{i}").mkdir(parents=True)
    shutil.copytree(serving.identity_model(tmp_path, TensorProto.FLOAT, "echo"), models / "echo")
    port, seen, is_over = free_port(), [], threading.Event()
    body = json.dumps({"inputs": [serving.json_input("in", numpy.zeros((1, 4), numpy.float32))]})

    def ask():
        while not is_over.is_set():
            for method, path, sent in (("POST", "/v2/models/echo/infer", body), ("GET", "/v1/models/echo", None)):
                try:
                    seen.append(server.request(method, path, sent).status)
                except OSError:
                    time.sleep(0.001)  # it does not listen yet

    server = serving.Server(tmp_path / "server.log", {}, "--listen", f"127.0.0.1:{port}", "--repository", models, listen=False)
    server.port = port
    client = threading.Thread(target=ask, daemon=True)
    client.start()
    with server:
        is_over.set()
        client.join(serving.WAIT_S)
    assert seen and set(seen) <= {503, 200}, sorted(set(seen))
