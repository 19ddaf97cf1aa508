"""What programs compute in: read from the HLO that the compiler made of them, for every importer and kind of bucket."""
import json
import shutil
import subprocess

import devices
import numpy
import pytest
import serving

LAYERS, HIDDEN, INTERMEDIATE, VOCABULARY, POSITIONS = 2, 160, 192, 24, 16


def safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + values.nbytes
        header[name] = dict(dtype="F32", shape=values.shape, data_offsets=[len(data), end])
        data += values.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def hugging_face(folder, hidden=HIDDEN, heads=None, positions=POSITIONS, change=lambda tensors: None):
    """BERT with matrices of 100 KB: smaller ones are transposed when the model is loaded, these by a node of the graph. `change` the tensors."""
    folder.mkdir()
    config = json.loads((serving.ROOT / "tests/data/hugging_face/bert/config.json").read_text())
    heads = heads or config["num_attention_heads"]
    config.update(hidden_size=hidden, num_attention_heads=heads, intermediate_size=INTERMEDIATE, num_hidden_layers=LAYERS, max_position_embeddings=positions)
    (folder / "config.json").write_text(json.dumps(config))
    random = numpy.random.default_rng(1)
    tensors = {}

    def add(name, *shape):
        tensors[name + ".weight"] = random.normal(0, 0.1, shape).astype(numpy.float32)
        if "embeddings." not in name or "LayerNorm" in name:
            tensors[name + ".bias"] = numpy.zeros(shape[0], numpy.float32)

    for table, rows in (("word", VOCABULARY), ("position", positions), ("token_type", 2)):
        add(f"embeddings.{table}_embeddings", rows, hidden)
    add("embeddings.LayerNorm", hidden)
    for layer in (f"encoder.layer.{i}." for i in range(LAYERS)):
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            add(layer + part, hidden, hidden)
        add(layer + "intermediate.dense", INTERMEDIATE, hidden)
        add(layer + "output.dense", hidden, INTERMEDIATE)
        add(layer + "attention.output.LayerNorm", hidden)
        add(layer + "output.LayerNorm", hidden)
    add("pooler.dense", hidden, hidden)
    change(tensors)
    safetensors(folder / "model.safetensors", tensors)


def onnx(folder):
    folder.mkdir()
    shutil.copy(devices.BERT, folder / "model.onnx")


@pytest.mark.parametrize("make", [hugging_face, onnx])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_every_bucket_computes_in_what_it_says(tmp_path, make, precision):
    make(tmp_path / "m")
    (tmp_path / "m/model.json").write_text(json.dumps(dict(packing="always", buckets=dict(batch=[2], sequence=[16]))))
    lines = devices.lines_of(devices.compile_for(tmp_path, tmp_path / "m", "--json", "--precision", precision))
    assert [l["packed"] for l in lines] == [False, True]
    for line in lines:
        assert line["arithmetic"] == precision
        # On this device's form queries, keys and values are one; the Hugging Face model has a pooler.
        of_layer = 6 if precision == "fp32" else 4
        assert line["dense_layers"] == of_layer * LAYERS + 1 if make is hugging_face else line["dense_layers"] >= of_layer * LAYERS
        assert line["dense_layers_int8"] == line["products_s8"] == (line["dense_layers"] if precision == "int8" else 0)


# What the compiler is made to estimate, so that a program of this kind is the cheapest: int8 with static scales everywhere, and in the
# feed-forward blocks. Only they keep numbers within limits; those of attention's output are told apart by its weight.
STATIC = dict(int8="<{0}x{0}xbf16>:900,stablehlo.minimum:500,:900", mixed="<{0}x{0}xi8>:900,stablehlo.minimum:500,:900")


@pytest.mark.parametrize("make, hidden", [(hugging_face, HIDDEN), (onnx, 32)])
@pytest.mark.parametrize("arithmetic", ["int8", "mixed"])
def test_static_scales_are_in_the_program_that_says_so(tmp_path, make, hidden, arithmetic):
    make(tmp_path / "m")
    (tmp_path / "m/model.json").write_text(json.dumps(dict(packing="always", buckets=dict(batch=[4], sequence=[16]))))
    cycles = STATIC[arithmetic].format(hidden)
    lines = devices.lines_of(devices.compile_for(tmp_path, tmp_path / "m", "--json", "--precision", "int8", cycles=cycles))
    assert [l["packed"] for l in lines] == [False, True]
    for line in lines:
        assert (line["arithmetic"], line["scales"]) == (arithmetic, "static"), line
        assert line["products_s8"] == line["dense_layers_int8"] == (line["dense_layers"] if arithmetic == "int8" else 2 * LAYERS)
        (trial,) = [t for t in line["tried"] if t["candidate"] == line["candidate"]]
        assert trial["cosine_mean"] >= 0.994 and trial["cosine_lowest"] >= 0.985 and not trial["is_rejected"]
    # A second run measures and compiles nothing.
    again = devices.lines_of(devices.compile_for(tmp_path, tmp_path / "m", "--json", "--precision", "int8", compile_fails=1))
    assert again == [dict(line, state="in the cache") for line in lines]
    inspect = [serving.BINARY, "inspect", tmp_path / "m", "--cache", tmp_path / "cache"]
    programs = json.loads(subprocess.run([*inspect, "--json"], capture_output=True, text=True, check=True).stdout)["programs"]
    told = ("precision", "batch", "sequence", "packed", "arithmetic", "scales", "candidate", "reason", "attention_scores", "tried")
    assert sorted(programs, key=lambda p: p["packed"]) == [dict(device="TPU v5 lite", **{k: line[k] for k in told}) for line in lines]
    text = subprocess.run(inspect, capture_output=True, text=True, check=True).stdout
    assert text.count(f": {arithmetic}, scales static: the fewest estimated cycles: int8 900, bf16 900, int8-static") == 2


def test_inspect_tells_no_program_where_none_was_chosen(tmp_path):
    onnx(tmp_path / "m")
    inspect = [serving.BINARY, "inspect", tmp_path / "m", "--cache"]
    assert "programs  chosen, in the compile cache:\n  none\n" in subprocess.run([*inspect, tmp_path], capture_output=True, text=True, check=True).stdout
    missing = subprocess.run([*inspect, tmp_path / "missing"], capture_output=True, text=True)
    assert missing.returncode == 1 and "missing: No such file" in missing.stderr and not (tmp_path / "missing").exists()


def never_active(tensors):
    """Weights of a unit that is never active are a thousand times the others: 8 bits for both leave nothing of the others."""
    for layer in range(LAYERS):
        tensors[f"encoder.layer.{layer}.intermediate.dense.bias"][0] = -50
        tensors[f"encoder.layer.{layer}.output.dense.weight"][:, 0] = 300


def test_int8_that_is_not_accurate_is_told_and_not_chosen(tmp_path):
    hugging_face(tmp_path / "m", change=never_active)
    (tmp_path / "m/model.json").write_text(json.dumps(dict(packing="never", buckets=dict(batch=[2], sequence=[16]))))
    (line,) = devices.lines_of(devices.compile_for(tmp_path, tmp_path / "m", "--json", "--precision", "int8", cycles="xi8>:500,:900"))
    tried = {t["candidate"]: t for t in line["tried"]}
    for name in ("int8", "int8-static", "int8-static-ffn"):
        assert tried[name]["is_rejected"] and tried[name]["cosine_mean"] < 0.994, line
    assert (line["candidate"], line["arithmetic"], line["scales"]) == ("bf16", "bf16", "none")
    assert line["reason"] == "the fewest estimated cycles of those that keep the accuracy"
