"""A repository that survives people: junk beside models, files that change while the server runs, and what ready means."""
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

import serving

IMAGE = {"image": numpy.ones((1, 64), numpy.float32)}


def scale_model(folder, factor, width=4096):
    """[batch, width] in, each number times `factor` out; the weights make the file some megabytes."""
    weight = numpy_helper.from_array(numpy.full((1, width), factor, numpy.float32), "weight")
    # So that half of the file is not the whole: what follows is never used.
    ballast = numpy_helper.from_array(numpy.full((width, 256), factor, numpy.float32), "ballast")
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", width])
    nodes = [helper.make_node("Mul", ["in", "weight"], ["out"])]
    return serving.save_model(folder, "scale", nodes, [value("in")], [value("out")], [weight, ballast]) / "1" / "model.onnx"


def put_junk(folder, count=64):
    """So many things that are no model; returns their names."""
    rng = random.Random(17)
    names = ["fifo", "loop", "unreadable", "lost+found", "notes.txt", ".git", "a b"]
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    (folder / "unreadable").mkdir()
    (folder / "unreadable").chmod(0)
    (folder / "lost+found").mkdir()
    (folder / "notes.txt").write_text("see the wiki")
    (folder / ".git").mkdir()
    (folder / "a b").mkdir()
    while len(names) < count:
        name = f"junk{len(names):03d}x"
        names.append(name)
        at = folder / name
        at.mkdir()
        kind = rng.randrange(9)
        version = at / "1"
        if kind == 0:
            continue
        if kind == 1:
            (at / "model.onnx").write_bytes(rng.randbytes(2000))
            continue
        version.mkdir()
        if kind == 2:
            (version / "model.onnx").write_bytes(rng.randbytes(500))
        elif kind == 3:
            os.mkfifo(version / "model.onnx")
        elif kind == 4:
            (version / "config.json").write_text("{")
            (version / "model.safetensors").write_bytes(rng.randbytes(100))
        elif kind == 5:
            (version / "saved_model.pb").write_bytes(b"pb")
        elif kind == 6:
            (version / "model.pt").write_bytes(b"PK")
        elif kind == 7:
            os.mkfifo(at / "model.json")
            shutil.copy(serving.DIGITS / "1/model.onnx", version / "model.onnx")
        else:
            (version / "model.onnx").symlink_to("model.onnx")
    return names


def index_of(server):
    return {e["name"]: e for e in server.post("/v2/repository/index", {}).json()}


def test_junk_in_the_repository(tmp_path):
    """64 of it, and the models beside it are served."""
    models = tmp_path / "models"
    models.mkdir()
    junk = put_junk(models)
    for name in ("aaa", "mmm", "zzz"):
        shutil.copytree(serving.DIGITS, models / name)
    with serving.Server(tmp_path / "log", {}, "--repository", str(models)) as s:
        for name in ("aaa", "mmm", "zzz"):
            assert s.infer(name, IMAGE)["logits"].shape == (1, 10)
        index = index_of(s)
        said = [json.loads(line)["message"] for line in s.log().splitlines() if line.startswith("{")]
        for name in junk:
            assert index[name]["state"] == "UNAVAILABLE" and index[name]["reason"], index[name]
            lines = [m for m in said if f'"{name}"' in m]
            assert len(lines) == 1, (name, lines)
        ready = s.get("/v2/health/ready").json()
        assert ready["ready"] and ready["unavailable_count"] == len(junk)
        assert {e["name"] for e in ready["unavailable"]} == set(junk)
        metrics = s.get("/metrics").body.decode()
        counts = {state: int(metrics.split(f'penstock_model_versions{{state="{state}"}} ')[1].split()[0]) for state in ("ready", "failed", "ignored")}
        assert counts["ready"] == 3 and counts["failed"] + counts["ignored"] == len(junk), counts
        assert "tf2onnx" in str(index) and "torch.onnx.export" in str(index)
        # Looked at again, they are not named again.
        s.process.send_signal(signal.SIGHUP)
        time.sleep(1.5)
        assert s.log().count('\\"lost+found\\"') == 1


def run_serve(*arguments):
    return subprocess.run([serving.BINARY, "serve", "--listen", "127.0.0.1:0", *map(str, arguments)], capture_output=True, text=True, timeout=serving.START_S, cwd=serving.ROOT)


def test_exit_on_error(tmp_path):
    models = tmp_path / "models"
    shutil.copytree(serving.DIGITS, models / "digits")
    (models / "broken" / "1").mkdir(parents=True)
    (models / "broken" / "1" / "model.onnx").write_bytes(b"not a model")
    run = run_serve("--repository", models, "--exit-on-error")
    assert run.returncode == 1 and "broken" in run.stderr, run
    shutil.rmtree(models / "broken")
    (models / "empty").mkdir()
    run = run_serve("--repository", models, "--set", "repository.exit_on_error=true")
    assert run.returncode == 1 and "empty" in run.stderr, run
    # Without it one model that is named and fails does not end those beside it.
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS, "broken": broken}) as s:
        assert index_of(s)["broken"]["state"] == "UNAVAILABLE"
        s.infer("digits", IMAGE)


@pytest.mark.parametrize("file, word", [
    ("saved_model.pb", "tf2onnx"), ("model.pt", "torch.onnx.export"), ("model.pth", "torch.onnx.export"), ("model.bin", "torch.onnx.export"),
    ("model.plan", "ONNX"), ("model.engine", "ONNX"), ("model.gguf", "optimum"), ("model.tflite", "tf2onnx"), ("model.h5", "Keras"),
])  # fmt: skip
def test_advice_for_other_formats(tmp_path, file, word):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / file).write_bytes(b"anything")
    run = run_serve("--model", f"m={tmp_path / 'm'}")
    assert run.returncode == 1 and word in run.stderr, run.stderr
    run = run_serve("--model", f"m={tmp_path / 'm' / '1' / file}")
    assert run.returncode == 1 and word in run.stderr, run.stderr


def ready_of(server):
    answer = server.get("/v2/health/ready")
    return answer.status == 200, answer.json()


def test_what_ready_means(tmp_path):
    models = tmp_path / "models"
    shutil.copytree(serving.DIGITS, models / "good")
    (models / "broken" / "1").mkdir(parents=True)
    (models / "broken" / "1" / "model.onnx").write_bytes(b"not a model")
    (models / "lost+found").mkdir()
    for readiness, expected in (("all", False), ("any", True), ("started", True), ('["good"]', True), ('["broken"]', False), ('["good","nobody"]', False)):
        s = serving.Server(tmp_path / "log", {}, "--repository", str(models), "--set", f"readiness={readiness}")
        s.is_ready = lambda: s.get("/v2/models/good/ready").status == 200 and "broken" in index_of(s) and index_of(s)["broken"]["state"] != "LOADING"
        with s:
            serving.wait_until(lambda: ready_of(s)[0] == expected, f"{readiness}: {expected}")
            is_ready, body = ready_of(s)
            assert is_ready == expected, (readiness, body)
            assert [e["name"] for e in body["unavailable"]].count("broken") == 1
            if readiness == "all":  # mended, it is ready
                shutil.rmtree(models / "broken")
                s.process.send_signal(signal.SIGHUP)
                serving.wait_until(lambda: ready_of(s)[0], "ready without the broken one")
                assert s.infer("good", IMAGE)
                (models / "broken" / "1").mkdir(parents=True)
                (models / "broken" / "1" / "model.onnx").write_bytes(b"not a model")


class Load:
    """Requests without a pause while its block runs; each answer must be one of the factors."""

    def __init__(self, server, factors):
        self.server, self.factors, self.seen, self.wrong = server, factors, [], []
        self.threads = [threading.Thread(target=self.run) for _ in range(2)]
        self.is_over = False

    def run(self):
        connection = self.server.connect()
        data = numpy.ones((1, 4096), numpy.float32)
        while not self.is_over:
            try:
                out = self.server.infer_binary("scale", {"in": data}, connection)["out"]
                factor = float(out[0, 0])
                self.seen.append(factor)
                if factor not in self.factors or not (out == factor).all():
                    self.wrong.append(f"answered {set(out.reshape(-1).tolist())}")
            except (AssertionError, OSError) as e:
                self.wrong.append(repr(e))
            time.sleep(0.002)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for t in self.threads:
            t.join()

    def await_factor(self, factor):
        serving.wait_until(lambda: self.seen and self.seen[-1] == factor or self.wrong, f"answers of {factor}")
        assert not self.wrong, self.wrong[:3]


def test_files_are_replaced_under_load(tmp_path):
    """By rename, by a slow copy in place, by a broken file, by a new version, and by removing that: no request fails."""
    models, new = tmp_path / "models", tmp_path / "new"
    file = scale_model(models, 1)
    made = {f: scale_model(new / str(f), f).read_bytes() for f in (2, 3, 4)}
    with serving.Server(tmp_path / "log", {}, "--repository", str(models), "--set", "repository.poll_s=1") as s:
        with Load(s, {1, 2, 3, 4}) as load:
            load.await_factor(1)
            # By rename.
            (tmp_path / "next").write_bytes(made[2])
            os.rename(tmp_path / "next", file)
            load.await_factor(2)
            # In place, over more than two looks.
            with open(file, "r+b", buffering=0) as out:
                out.truncate(0)
                step = len(made[3]) // 8
                for at in range(0, len(made[3]), step):
                    assert out.write(made[3][at : at + step])
                    time.sleep(0.4)
                    assert set(load.seen[-1:]) <= {2.0}, load.seen[-1:]
            load.await_factor(3)
            # A broken file leaves what serves, and says so once.
            file.write_bytes(made[3][: len(made[3]) // 2])
            serving.wait_until(lambda: "reload failed" in index_of(s)["scale"]["reason"], "it is told")
            assert index_of(s)["scale"]["state"] == "READY"
            # A new version; one that fails leaves the old one.
            (models / "scale" / "2").mkdir()
            (models / "scale" / "2" / "model.onnx").write_bytes(b"not a model")
            serving.wait_until(lambda: s.get("/v2/models/scale/versions/2/ready").status == 503, "version 2 has failed")
            load.await_factor(3)
            (models / "scale" / "2" / "model.onnx").write_bytes(made[4])
            load.await_factor(4)
            shutil.rmtree(models / "scale" / "2")
            file.write_bytes(made[2])
            load.await_factor(2)
        assert not load.wrong, load.wrong[:3]
        assert s.log().count("it is loaded") <= 8


def test_models_come_and_go_while_serving(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    with serving.Server(tmp_path / "log", {"kept": serving.DIGITS}, "--repository", str(models), "--set", "repository.poll_s=1", *serving.CONTROL) as s:
        shutil.copytree(serving.DIGITS, models / "late")
        serving.wait_until(lambda: s.get("/v2/models/late/ready").status == 200, "it is served")
        assert s.infer("late", IMAGE)
        shutil.rmtree(models / "late")
        serving.wait_until(lambda: "late" not in index_of(s), "it is gone")
        assert s.get("/v2/models/late/ready").status == 404
        # What was unloaded on request stays so, whatever changes on disk.
        shutil.copytree(serving.DIGITS, models / "idle")
        serving.wait_until(lambda: s.get("/v2/models/idle/ready").status == 200, "it is served")
        assert s.post("/v2/repository/models/idle/unload", b"").status == 200
        os.utime(models / "idle" / "1" / "model.onnx")
        shutil.copytree(serving.DIGITS, models / "later")
        serving.wait_until(lambda: s.get("/v2/models/later/ready").status == 200, "the disk was looked at")
        assert s.get("/v2/models/idle/ready").status == 503


def test_sighup_looks_at_the_disk(tmp_path):
    models = tmp_path / "models"
    shutil.copytree(serving.DIGITS, models / "digits")
    with serving.Server(tmp_path / "log", {}, "--repository", str(models)) as s:
        shutil.copytree(serving.DIGITS, models / "late")
        time.sleep(1.5)
        assert s.get("/v2/models/late/ready").status == 404
        s.process.send_signal(signal.SIGHUP)
        serving.wait_until(lambda: s.get("/v2/models/late/ready").status == 200, "it is served")


def versions_ready(server, model):
    return sorted(int(e["version"]) for e in server.post("/v2/repository/index", {"ready": True}).json() if e["name"] == model)


@pytest.mark.parametrize("policy, expected", [
    ("all", [1, 2, 3]), ("latest", [3]), ("latest:2", [2, 3]), ([1, 3], [1, 3]),
    ({"latest": {"num_versions": 2}}, [2, 3]), ({"specific": {"versions": [2]}}, [2]), ({"all": {}}, [1, 2, 3]),
])  # fmt: skip
def test_version_policy(tmp_path, policy, expected):
    for version in "123":
        shutil.copytree(serving.DIGITS / "1", tmp_path / "m" / version)
    (tmp_path / "m" / "model.json").write_text(json.dumps({"version_policy": policy}))
    with serving.Server(tmp_path / "log", {"m": tmp_path / "m"}) as s:
        assert versions_ready(s, "m") == expected


def test_latest_stands_in_for_a_version_that_fails(tmp_path):
    shutil.copytree(serving.DIGITS / "1", tmp_path / "m" / "1")
    (tmp_path / "m" / "2").mkdir()
    (tmp_path / "m" / "2" / "model.onnx").write_bytes(b"not a model")
    (tmp_path / "m" / "model.json").write_text('{"version_policy": "latest"}')
    with serving.Server(tmp_path / "log", {"m": tmp_path / "m"}) as s:
        assert versions_ready(s, "m") == [1]
        assert s.infer("m", IMAGE)
