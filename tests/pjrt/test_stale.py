"""Nothing stale: the plugin's own fingerprint of programs is in the cache's keys, and a program that it refuses is compiled again and counted."""
import json
import shutil

import devices
import pytest
import serving
from conftest import FAULT, PLUGIN


def counts(tmp_path, **orders):
    """Of a start with the cache of this test: compiled, taken from the cache, refused; and it answers."""
    model = dict(bert=devices.bert(tmp_path, batch=(1,), sequence=(8, 16)))
    flags = ["--device", f"pjrt:{FAULT}", "--cache", str(tmp_path / "cache"), "--set", "batching.fallback=never"]
    with devices.faults(plugin=PLUGIN, devices=1, **orders), serving.Server(tmp_path / "server.log", model, *flags) as s:
        s.infer_binary("bert", devices.inputs(5))
        found, (told,) = devices.metrics(s), s.get("/v2/models/bert/stats").json()["model_stats"][0]["devices"]
        names = dict(compiles="compiles", hits="cache_hits", refused="cache_refused", corrupt="cache_corrupt")
        values = {name: int(devices.total(found, f"device_{metric}_total", device="pjrt:0")) for name, metric in names.items()}
        assert values == {name: told[metric] for name, metric in names.items()}
        assert devices.total(found, "compiles_total", phase="serving") == 0
        return values, s.log()


@pytest.mark.parametrize("one, other", [(dict(abi="a"), dict(abi="b")), (dict(fingerprint=1), dict(fingerprint=2)), (dict(), dict(abi="a", fingerprint=1))], ids=str)
def test_programs_of_another_runtime_have_other_keys(tmp_path, one, other):
    made, found = dict(compiles=2, hits=0, refused=0, corrupt=0), dict(compiles=0, hits=2, refused=0, corrupt=0)
    assert counts(tmp_path, **one)[0] == made
    assert counts(tmp_path, **one)[0] == found
    # What was made without a fingerprint may be used, as what `penstock compile` made: the plugin decides.
    assert counts(tmp_path, **other)[0] == (made if one else found)
    assert counts(tmp_path, **one)[0] == found


@pytest.mark.parametrize("orders", [dict(abi="a", abi_refuses=1), dict(load_fails=2)], ids=str)
def test_what_the_plugin_refuses_is_compiled_again_and_counted(tmp_path, orders):
    same = dict(abi="a") if "abi" in orders else {}
    counts(tmp_path, **same)
    values, log = counts(tmp_path, **orders)
    assert 1 <= values["refused"] == values["corrupt"] == values["compiles"] <= 2
    assert "the plugin cannot load a program from the compile cache" in log and "compiling it again" in log
    assert counts(tmp_path, **same)[0] == dict(compiles=0, hits=2, refused=0, corrupt=0)


def test_programs_made_without_a_device_are_used_and_checked(tmp_path):
    """`penstock compile` knows no runtime, so its entries have no fingerprint: the plugin is asked about each."""
    model = devices.bert(tmp_path, batch=(1,), sequence=(8, 16))
    kind = dict(kind="TPU v5 lite", platform="tpu")  # as the target's chips call themselves
    devices.lines_of(devices.compile_for(tmp_path, model, "--json", "--precision", "fp32"))
    assert counts(tmp_path, abi="a", fingerprint=7, **kind)[0] == dict(compiles=0, hits=2, refused=0, corrupt=0)
    values, _ = counts(tmp_path, abi="a", abi_refuses=1, **kind)
    assert 1 <= values["refused"] == values["compiles"] <= 2
    # What was compiled instead has the runtime's own key; the others still have them.
    assert counts(tmp_path, abi="a", **kind)[0] == dict(compiles=0, hits=2, refused=0, corrupt=0)


def test_a_second_start_with_forty_programs_compiles_nothing(tmp_path):
    """Of a model that is quick to compile; bench/devices/starts.py measures how long it takes."""
    folder = tmp_path / "digits"
    shutil.copytree(serving.ROOT / "examples/models/digits", folder)
    (folder / "model.json").write_text(json.dumps(dict(buckets=dict(batch=list(range(1, 41))))))
    seen = []
    for name in ("first", "second"):
        flags = ["--device", f"pjrt:{FAULT}", "--cache", str(tmp_path / "cache"), "--set", "batching.fallback=never"]
        with devices.faults(plugin=PLUGIN, devices=1, times=tmp_path / name), serving.Server(tmp_path / "server.log", dict(digits=folder), *flags) as s:
            found = devices.metrics(s)
            seen.append([devices.total(found, f"device_{what}_total", device="pjrt:0") for what in ("compiles", "cache_hits", "cache_corrupt")])
    assert seen == [[40, 0, 0], [0, 40, 0]]
    called = [line.split()[0] for line in (tmp_path / "second").read_text().splitlines()]
    assert called.count("compile") == 0 and called.count("load") == 40
