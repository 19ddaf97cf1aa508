"""Encoders that are not packed run padded on a device, with the results of PyTorch."""
import json
import shutil

import devices
import numpy
import serving
from conftest import PLUGIN

HUGGING_FACE = serving.ROOT / "tests/data/hugging_face"
NAMES = ["modernbert", "modernbert_classes", "qwen3", "qwen2_window", "mistral", "nomic_bert", "gte_new", "jina_bert",
         "deberta_v3", "deberta_v2", "albert", "chain_all_poolings", "chain_dense_norm"]
TYPES = dict(F32=numpy.float32, I64=numpy.int64)


def read_safetensors(path):
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[start + t["data_offsets"][0]:start + t["data_offsets"][1]],
                                   TYPES[t["dtype"]]).reshape(t["shape"]) for name, t in header.items()}


def test_results_are_those_of_pytorch(tmp_path, compiled):
    models = {}
    for name in NAMES:
        models[name] = tmp_path / name
        shutil.copytree(HUGGING_FACE / name, models[name])
        (models[name] / "model.json").write_text(json.dumps(dict(buckets=dict(batch=[4], sequence=[32]))))
    flags = "--device", f"pjrt:{PLUGIN}", "--cache", str(compiled), "--set", "batching.fallback=on_failure"
    with serving.Server(tmp_path / "server.log", models, *flags) as s:
        for name in NAMES:
            expected = read_safetensors(HUGGING_FACE / name / "expected.safetensors")
            inputs = {key[3:]: value for key, value in expected.items() if key.startswith("in.")}
            for output, got in s.infer_binary(name, inputs).items():
                want = expected["out." + output]
                if want.ndim == 3:  # what padding gives does not count
                    got = got * inputs["attention_mask"][..., None]
                reach = max(1.0, float(numpy.abs(want).max()))
                numpy.testing.assert_allclose(got, want, atol=2e-5 * reach, rtol=0, err_msg=name)
        found = devices.metrics(s)
    assert devices.total(found, "fallbacks_total") == 0
    assert devices.total(found, "compiles_total", phase="serving") == 0
