"""`penstock compile --tune`: every form is tried by its estimate, and what would be chosen runs on a real plugin, beside FP32."""

import devices
import pytest
import test_arithmetic
import test_forms
from conftest import NO_PLUGIN, PLUGIN

FEWEST = "the fewest estimated cycles"


def model(tmp_path, change=lambda tensors: None, packing="never"):
    tmp_path.mkdir(exist_ok=True)
    return test_forms.model(tmp_path, packing, change=change)


def outlier(tensors):
    """One unit of a feed-forward block becomes large, and nothing reads it: 8 bits with one scale for the row have nothing left for the others."""
    for layer in range(test_arithmetic.LAYERS):
        tensors[f"encoder.layer.{layer}.intermediate.dense.bias"][0] = 2000
        tensors[f"encoder.layer.{layer}.output.dense.weight"][:, 0] = 0


def tune(tmp_path, folder, *flags, **orders):
    done = devices.compile_for(tmp_path, folder, "--json", "--tune", *flags, **orders)
    return devices.lines_of(done), done.stderr


def answers(line):
    return {t["candidate"]: t["answers"] for t in line["tried"] if t["answers"]}


def test_what_is_chosen_has_run_beside_fp32(tmp_path):
    folder = model(tmp_path, packing="always")
    lines, said = tune(tmp_path, folder, "--check-plugin", str(PLUGIN), cycles=":500")
    assert [l["packed"] for l in lines] == [False, True] and "not checked" not in said
    for line in lines:
        assert line["reason"].startswith(FEWEST + " of those whose results are as near to FP32 as promised")
        assert len(line["tried"]) > 15 and list(answers(line)) == [line["candidate"]]
        found = answers(line)[line["candidate"]]
        assert found["is_kept"] and 0.9999 < found["cosine_mean"] < 1 and 0.9998 < found["cosine_lowest"] <= found["cosine_mean"]
    again, _ = tune(tmp_path, folder, "--check-plugin", str(PLUGIN), cycles=":500", compile_fails=1)
    assert [dict(l, state="kept") for l in again] == lines


def offset(tensors):
    """Units of a feed-forward block are 2000 above what they mean, and the block takes it away again: 8 bits of mantissa lose the rest."""
    for layer in range(test_arithmetic.LAYERS):
        down = tensors[f"encoder.layer.{layer}.output.dense.weight"]
        tensors[f"encoder.layer.{layer}.intermediate.dense.bias"][:] += 2000
        tensors[f"encoder.layer.{layer}.output.dense.bias"][:] -= 2000 * down.sum(axis=1)


def test_a_form_far_from_fp32_is_not_chosen_however_cheap(tmp_path):
    lines, said = tune(tmp_path, model(tmp_path, outlier), "--precision", "int8", "--check-plugin", str(PLUGIN), cycles="xi8>:300,:500")
    (line,) = lines
    tried = {t["candidate"]: t for t in line["tried"]}
    # The CPU's imitation of int8 says so, before a plugin is asked.
    assert tried["int8"]["is_rejected"] and tried["int8"]["cosine_lowest"] < 0.985 and tried["int8"]["estimated_cycles"] == 300
    assert line["candidate"] == "bf16" and line["arithmetic"] == "bf16" and line["estimated_cycles"] == 500
    assert list(answers(line)) == ["bf16"] and answers(line)["bf16"]["is_kept"]
    # A server takes what was tuned, and a person sees why.
    table = devices.compile_for(tmp_path, tmp_path / "m", "--tune", "--precision", "int8", "--check-plugin", str(PLUGIN), cycles="xi8>:300,:500", compile_fails=1)
    assert "; cosine to FP32 0.9999" in table.stdout


def test_results_of_a_plugin_that_are_far_from_fp32_are_told(tmp_path):
    flags = "--check-plugin", str(PLUGIN), "--tune-seconds", "0.000001"  # only the first one is tried
    (line,), said = tune(tmp_path, model(tmp_path, offset), *flags, cycles=":500")
    assert not answers(line)["bf16"]["is_kept"] and answers(line)["bf16"]["cosine_lowest"] < 0.985
    assert line["reason"] == "the default: no result is as near to FP32 as promised"


def test_without_a_device_it_says_that_nothing_is_checked(tmp_path):
    flags = ("--tune-seconds", "0.000001")  # only the first one is tried
    (line,), said = tune(tmp_path, model(tmp_path, offset), *flags, cycles=":500", create_fails=9)
    assert "penstock compile: results are not checked: " in said and "--check-plugin names no plugin" in said
    assert line["reason"] == FEWEST and answers(line) == {}
    # The compiler's own plugin serves, where it has a device.
    (line,), said = tune(tmp_path, tmp_path / "m", *flags, cycles=":500")
    assert "not checked" not in said and not answers(line)[line["candidate"]]["is_kept"]
    # int8 is imitated on the CPU, without a device too.
    (line,), said = tune(tmp_path, model(tmp_path / "int8", outlier), "--precision", "int8", *flags, cycles="xi8>:300,:500", create_fails=9)
    # Where the budget reaches only int8, which breaks the promise, bf16 is taken all the same.
    assert (line["candidate"], line["arithmetic"], len(line["tried"])) == ("bf16", "bf16", 2)
    assert line["reason"] == FEWEST + " of those that keep the accuracy"


def test_by_schedule_the_shortest_one_is_kept_and_served(tmp_path):
    """The plugin writes schedules as libtpu does. A form whose estimate is larger and whose schedule is shorter is chosen, when asked for."""
    folder = model(tmp_path)
    orders = dict(cycles="xi8>:500,:900", create_fails=9, schedules="xi8>:400,:200")
    flags = ("--json", "--precision", "int8")
    (line,) = devices.lines_of(devices.compile_for(tmp_path, folder, *flags, **orders))
    assert line["candidate"] == "int8" and line["scheduled_cycles"] is None and "scheduled_cycles" not in line["tried"][0]
    (line,) = devices.lines_of(devices.compile_for(tmp_path, folder, *flags, "--rank", "schedule", **orders))
    tried = {t["candidate"]: t for t in line["tried"]}
    assert (line["candidate"], line["reason"], line["estimated_cycles"], line["scheduled_cycles"]) == ("bf16", "the fewest scheduled cycles", 900, 200)
    assert (tried["int8"]["estimated_cycles"], tried["int8"]["scheduled_cycles"]) == (500, 400)
    # What was chosen so is taken by who does not ask.
    (line,) = devices.lines_of(devices.compile_for(tmp_path, folder, *flags, cycles=orders["cycles"], compile_fails=1))
    assert (line["candidate"], line["reason"], line["state"]) == ("bf16", "the fewest scheduled cycles", "in the cache")
    # A plugin that writes none: by estimate, and it is said.
    done = devices.compile_for(tmp_path / "other", folder, *flags, "--rank", "schedule", cycles=orders["cycles"])
    assert devices.lines_of(done)[0]["candidate"] == "int8" and "a schedule cannot be counted: the plugin writes no schedules" in done.stderr
    done = devices.compile_for(tmp_path, folder, "--rank", "guess")
    assert done.returncode == 2 and '--rank: "guess" is not estimate or schedule' in done.stderr


@pytest.mark.parametrize("plugin", ["/nowhere/plugin.so", str(NO_PLUGIN)])
def test_a_wrong_plugin_is_named(tmp_path, plugin):
    done = devices.compile_for(tmp_path, model(tmp_path), "--tune", "--check-plugin", plugin)
    assert done.returncode == 1 and "penstock compile: --check-plugin: " in done.stderr, done
