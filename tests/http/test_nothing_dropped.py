"""What a client asks for is honoured, refused by its name, or documented as ignored."""
import base64
import json
import os
import shutil
import subprocess

import numpy
import pytest

import serving

IMAGE = {"image": numpy.ones((1, 64), numpy.float32)}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dropped")
    for version in "12":
        shutil.copytree(serving.DIGITS / "1", folder / "models" / "m" / version)
    with serving.Server(folder / "log", {}, "--repository", str(folder / "models"), *serving.CONTROL) as s:
        yield s


def load(server, verb="load", **parameters):
    return server.post(f"/v2/repository/models/m/{verb}", {"parameters": parameters})


def config_of(server):
    return server.get("/v2/models/m/config").json()


def versions(server):
    return sorted(int(e["version"]) for e in server.post("/v2/repository/index", {"ready": True}).json())


def test_a_load_with_settings(server):
    before = config_of(server)["max_batch_size"]
    assert load(server, config=json.dumps({"batch_max": 3})).status == 200
    assert config_of(server)["max_batch_size"] == 3
    # Triton's names, where they mean the same; both versions are still there.
    settings = {"name": "m", "backend": "onnxruntime", "max_batch_size": 5, "dynamic_batching": {"max_queue_delay_microseconds": 70}, "version_policy": {"specific": {"versions": [1]}}}
    assert load(server, config=json.dumps(settings)).status == 200
    assert config_of(server)["max_batch_size"] == 5 and config_of(server)["dynamic_batching"]["max_queue_delay_microseconds"] == 70
    assert versions(server) == [1] and config_of(server)["version_policy"] == settings["version_policy"]
    # What cannot be honoured is refused, and what served stays.
    for wrong, word in (({"batch_mx": 3}, "batch_mx"), ({"instance_group": [{"count": 2}]}, "instance_group"), ({"batch_max": -1}, "batch_max")):
        answer = load(server, config=json.dumps(wrong))
        assert answer.status == 400 and word in answer.json()["error"], answer
    assert load(server, config="{").status == 400 and load(server, config=7).status == 400
    assert config_of(server)["max_batch_size"] == 5
    # Without any, those on disk count again.
    assert load(server).status == 200
    assert config_of(server)["max_batch_size"] == before and versions(server) == [1, 2]
    assert config_of(server)["version_policy"] == {"all": {}}


def test_settings_that_fail_leave_those_that_were(tmp_path):
    shutil.copytree(serving.DIGITS, tmp_path / "m")
    with serving.Server(tmp_path / "log", {"m": tmp_path / "m"}, "--set", "repository.poll_s=1", *serving.CONTROL) as s:
        assert load(s, config='{"batch_max": 3}').status == 200
        assert load(s, config='{"batch_max": 2, "dims": {"nobody": 3}}').status == 400
        loads = s.log().count("is ready: ")
        os.utime(tmp_path / "m" / "1" / "model.onnx")
        serving.wait_until(lambda: s.log().count("is ready: ") > loads, "it is loaded again")
        serving.wait_until(lambda: config_of(s)["max_batch_size"] == 3, "with the settings that were")


def test_what_else_comes_with_a_load_is_refused_by_its_name(server):
    answer = load(server, **{"config": "{}", "file:1/model.onnx": base64.b64encode(b"x").decode()})
    assert answer.status == 400 and "file:1/model.onnx" in answer.json()["error"], answer
    answer = load(server, unknown=1)
    assert answer.status == 400 and "unknown" in answer.json()["error"]
    answer = server.post("/v2/repository/models/m/load", {"settings": {}})
    assert answer.status == 400 and "settings" in answer.json()["error"]
    assert server.post("/v2/repository/models/m/load", b"{").status == 400
    assert load(server, "unload", unload_dependents=False).status == 200  # as tritonclient sends it
    assert load(server, "unload", config="{}").status == 400
    assert load(server).status == 200


def test_statistics_without_a_version_are_of_all(server):
    stats = lambda path: [m["version"] for m in server.get(path).json()["model_stats"]]
    assert sorted(stats("/v2/models/m/stats")) == ["1", "2"]
    assert stats("/v2/models/m/versions/1/stats") == ["1"]
    assert server.get("/v2/models/none/stats").status == 404


@pytest.mark.parametrize("verb, word", [("classify", "classification"), ("regress", "regression")])
def test_other_signatures_of_tensorflow(server, verb, word):
    for path in ("/v1/models/m", "/v1/models/m/versions/2"):
        answer = server.post(f"{path}:{verb}", {"examples": []})
        assert answer.status == 400
        assert answer.json()["error"] == f"Expected {word} signature method_name to be tensorflow/serving/{verb}. Was: tensorflow/serving/predict"
    assert server.post(f"/v1/models/none:{verb}", {}).status == 404


@pytest.mark.parametrize("name, value", [("sequence_id", 7), ("sequence_id", "a"), ("sequence_start", True), ("sequence_end", True)])
def test_sequences_are_refused(server, name, value):
    request = {"inputs": [serving.json_input("image", IMAGE["image"])]}
    answer = server.post("/v2/models/m/infer", dict(request, parameters={name: value}))
    assert answer.status == 400 and name in answer.json()["error"], answer
    # 0, "" and false say that it is none.
    assert server.post("/v2/models/m/infer", dict(request, parameters={name: type(value)()})).status == 200


def test_numbers_that_become_infinite_are_errors(server):
    image = [0.0] * 64
    text = json.dumps({"instances": [image]}).replace("0.0", "1e400", 1)
    for path, body in (("/v1/models/m:predict", text), ("/v2/models/m/infer", json.dumps({"inputs": [serving.json_input("image", IMAGE["image"])]}).replace("1.0", "1e400", 1))):
        assert "1e400" in body
        assert server.post(path, body).status == 400, path


CONFIG = """# as Triton has it
name: "m"
platform: "onnxruntime_onnx"
max_batch_size: 6
input [ { name: "image" data_type: TYPE_FP32 dims: [ 64 ] } ]
dynamic_batching { preferred_batch_size: [ 2, 6 ] max_queue_delay_microseconds: 90 }
version_policy: { latest { num_versions: 1 } }
instance_group [ { count: 2 kind: KIND_CPU } ]
optimization { cuda { graphs: true } }
"""


def test_a_config_pbtxt_beside_a_model(tmp_path):
    for version in "12":
        shutil.copytree(serving.DIGITS / "1", tmp_path / "m" / version)
    (tmp_path / "m" / "config.pbtxt").write_text(CONFIG)
    with serving.Server(tmp_path / "log", {"m": tmp_path / "m"}) as s:
        config = config_of(s)
        assert config["max_batch_size"] == 6 and config["dynamic_batching"]["max_queue_delay_microseconds"] == 90
        assert versions(s) == [2]
        assert s.log().count("config.pbtxt: not used: instance_group, optimization") == 1
    (tmp_path / "m" / "config.pbtxt").write_text("max_batch_size {")
    run = subprocess.run([serving.BINARY, "serve", "--listen", "127.0.0.1:0", "--model", f"m={tmp_path / 'm'}"], capture_output=True, text=True, timeout=serving.START_S)
    assert run.returncode == 1 and "config.pbtxt:1: a message does not end" in run.stderr, run.stderr
    # A model.json counts instead of it.
    (tmp_path / "m" / "model.json").write_text('{"batch_max": 4}')
    with serving.Server(tmp_path / "log", {"m": tmp_path / "m"}) as s:
        assert config_of(s)["max_batch_size"] == 4 and versions(s) == [1, 2]


def print_config(*arguments, **environment):
    run = subprocess.run([serving.BINARY, "serve", *arguments, "--print-config"], capture_output=True, text=True, env=dict(os.environ, **environment))
    return run.returncode, json.loads(run.stdout)["server"]["listen"] if run.returncode == 0 else run.stderr


def test_what_platforms_say(tmp_path):
    """SageMaker's argument `serve`, which the image has already, and PORT."""
    assert print_config("serve") == (0, ["127.0.0.1:8080"])
    assert print_config(PORT="9090") == (0, ["*:9090"])
    assert print_config("--listen", "127.0.0.1:7070", PORT="9090") == (0, ["127.0.0.1:7070"])
    assert print_config(PORT="") == (0, ["127.0.0.1:8080"])
    code, said = print_config(PORT="http")
    assert code == 2 and "PORT" in said and "http" in said
