"""What programs compute in: read from the HLO that the compiler made of them, for every importer and kind of bucket."""
import json
import shutil

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
