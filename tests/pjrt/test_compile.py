"""`penstock compile`, with the fault plugin in libtpu's place: it compiles for a target without a device."""
import devices
import pytest
from conftest import PLUGIN

FIGURES = ("compile_seconds code_bytes temporary_bytes peak_bytes program_bytes estimated_cycles scheduled_cycles unestimated_instructions estimated_tokens_per_s"
           " estimated_mfu dense_layers dense_layers_int8 products products_s8 products_bf16 products_f32").split()  # fmt: skip

CHOICE = ["candidate", "reason", "attention_scores", "tried"]


def test_a_line_of_json_for_each_bucket(tmp_path):
    model = devices.bert(tmp_path, (1, 4), (8,), packing="always")
    first = devices.lines_of(devices.compile_for(tmp_path, model, "--json"))
    assert sorted((l["batch"], l["sequence"], l["packed"]) for l in first) == [(b, 8, p) for b in (1, 4) for p in (False, True)]
    for line in first:
        assert list(line) == ["target", "precision", "batch", "sequence", "packed", "arithmetic", "scales", *CHOICE, "state", *FIGURES]
        assert (line["target"], line["precision"], line["state"]) == ("tpu:v5e:1x1", "bf16", "kept")
        assert line["dense_layers"] > 0 and line["dense_layers_int8"] == 0 and line["program_bytes"] > 0
        assert (line["candidate"], line["tried"], line["reason"]) == ("bf16", [], "the default")
        # This compiler estimates no cycles: no share of the peak can be told.
        assert line["estimated_cycles"] == 0 and line["estimated_mfu"] is None
    kept = sorted((tmp_path / "cache").glob("*.program"))
    assert len(kept) == 4
    again = devices.lines_of(devices.compile_for(tmp_path, model, "--json", compile_fails=1))
    assert [dict(line, state="kept") for line in again] == first and {line["state"] for line in again} == {"in the cache"}
    assert sorted((tmp_path / "cache").glob("*.program")) == kept


def test_precision_and_buckets_can_be_chosen(tmp_path):
    model = devices.bert(tmp_path)
    (line,) = devices.lines_of(devices.compile_for(tmp_path, model, "--json", "--precision", "int8", "--batch", "2", "--sequence", "16"))
    assert (line["precision"], line["batch"], line["sequence"], line["packed"]) == ("int8", 2, 16, False)
    assert line["dense_layers_int8"] > 0


def tried(line):
    return {t["candidate"]: t["estimated_cycles"] for t in line["tried"]}


@pytest.mark.parametrize("s8, bf16, chosen", [(900, 500, "bf16"), (500, 900, "int8"), (700, 700, "int8")])
def test_int8_is_the_cheaper_of_int8_and_bf16(tmp_path, s8, bf16, chosen):
    model = devices.bert(tmp_path, (2,), (8,))
    estimates = dict(cycles=f"xi8>:{s8},:{bf16}")
    (first,) = devices.lines_of(devices.compile_for(tmp_path, model, "--json", "--precision", "int8", **estimates))
    assert (first["precision"], first["arithmetic"], first["candidate"]) == ("int8", chosen, chosen)
    assert first["estimated_cycles"] == min(s8, bf16) and tried(first) == {"int8": s8, "bf16": bf16, "int8-static": s8, "int8-static-ffn": s8}
    assert (first["products_s8"] > 0) == (first["dense_layers_int8"] > 0) == (chosen == "int8")
    # Only what was chosen is kept, beside the choice and, for int8, its accuracy; the second run compiles nothing.
    assert len(list((tmp_path / "cache").glob("*.program"))) == (3 if chosen == "int8" else 2)
    assert first["scales"] == ("dynamic" if chosen == "int8" else "none")
    (again,) = devices.lines_of(devices.compile_for(tmp_path, model, "--json", "--precision", "int8", compile_fails=1))
    assert again == dict(first, state="in the cache")
    table = devices.compile_for(tmp_path, model, "--precision", "int8", compile_fails=1)
    assert f"; rejected: {'int8' if chosen == 'bf16' else 'bf16'} {max(s8, bf16)}" in table.stdout


def test_a_table_for_people(tmp_path):
    done = devices.compile_for(tmp_path, f"bert={devices.bert(tmp_path, (1,), (8,))}")
    assert done.returncode == 0
    assert "bert in bf16 for v5e:1x1 with api 0." in done.stdout and "1 program compiled" in done.stdout
    (row,) = [line for line in done.stdout.splitlines() if " kept " in line]
    assert row.split()[:3] == ["1", "8", "kept"]


@pytest.mark.parametrize(
    "flags, code, words",
    [
        (dict(target="tpu:v9:1x1"), 2, '--target: "tpu:v9:1x1" is not tpu:GENERATION:TOPOLOGY'),
        (dict(target="v5e:1x1"), 2, '--target: "v5e:1x1"'),
        (dict(plugin="/nowhere.so"), 1, "/nowhere.so: cannot be read"),
        (dict(plugin=PLUGIN), 1, "penstock compile: "),
    ],
)
def test_wrong_usage_is_explained(tmp_path, flags, code, words):
    done = devices.compile_for(tmp_path, devices.bert(tmp_path, (1,), (8,)), **flags)
    assert done.returncode == code and words in done.stderr, done


def test_a_bucket_that_a_server_could_not_load_fails(tmp_path):
    model = devices.bert(tmp_path)
    done = devices.compile_for(tmp_path, model, "--json", "--batch", "1,1000000", "--sequence", "32")
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 2
    assert "batch 1000000, length 32: the device has 16.00 GiB and would need " in done.stderr and "batch 1, length 32:" not in done.stderr
