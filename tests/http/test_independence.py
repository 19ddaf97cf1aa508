"""Rows share a batch only where the graph proves that they do not influence each other: graphs that deceive experiments, and honest ones that look
suspicious (row_models.py). The reference evaluator of the onnx package says which is which."""
import json
import subprocess
import warnings

import numpy as np
import onnx
import pytest
import row_models
import serving
from onnx.reference import ReferenceEvaluator

DECEIVERS, DYNAMIC, HONEST, PADDING = map(row_models.all_of, (row_models.DECEIVERS, row_models.DYNAMIC, row_models.HONEST, row_models.PADDING))


def influence(model):
    """The most that other rows change a row's result, as a fraction of its range."""
    shape = [d.dim_value or 5 for d in model.graph.input[0].type.tensor_type.shape.dim][1:]
    evaluator, rng = ReferenceEvaluator(model), np.random.default_rng(1)
    row = rng.normal(size=(1, *shape)).astype(np.float32)
    alone, worst = evaluator.run(None, {"x": row})[0], 0
    for scale in (1000, -1000, 1e-8):
        for at in (0, 1, 3):
            rows = (rng.uniform(0.1, 1, (4, *shape)) * scale).astype(np.float32)
            rows[at] = row[0]
            together = evaluator.run(None, {"x": rows})[0][at]
            worst = max(worst, np.nan_to_num(np.abs(together - alone[0]).max(), nan=np.inf) / max(np.ptp(alone), 1e-9))
    return worst


def inspect(folder, name, model, **manifest):
    path = folder / name / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    onnx.save(model, path)
    if manifest:
        (folder / name / "model.json").write_text(json.dumps(manifest))
    done = subprocess.run([str(serving.BINARY), "inspect", str(folder / name), "--json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_graphs_are_what_they_are_called():
    assert len(DECEIVERS) >= 100 and len(HONEST) >= 80
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [n for n, m in DECEIVERS + DYNAMIC if influence(m) < 1e-4] + [n for n, m in HONEST if influence(m) > 1e-5]
    assert wrong == []


@pytest.mark.parametrize("name, model", DECEIVERS, ids=[n for n, _ in DECEIVERS])
def test_a_deceiver_is_not_batched(tmp_path, name, model):
    found = inspect(tmp_path, name, model)
    assert not found["can_batch"] and found["batch_basis"] in ("proved", "undecided"), found["findings"]
    assert "node \"" in found["findings"]  # and it is named


@pytest.mark.parametrize("name, model", DYNAMIC, ids=[n for n, _ in DYNAMIC])
def test_a_deceiver_that_runs_node_by_node_is_not_batched(tmp_path, name, model):
    found = inspect(tmp_path, name, model)
    assert not found["can_batch"] and found["batch_max"] == 1
    assert 'shapes depend on values (node "' in found["findings"]


@pytest.mark.parametrize("name, model", HONEST, ids=[n for n, _ in HONEST])
def test_an_honest_graph_is_proved_and_batched(tmp_path, name, model):
    found = inspect(tmp_path, name, model)
    assert found["can_batch"] and found["batch_basis"] == "proved", found["findings"]


@pytest.mark.parametrize("name, can_pad, basis, model", PADDING, ids=[line[0] for line in PADDING])
def test_padding_is_proved_or_there_is_a_mask(tmp_path, name, can_pad, basis, model):
    found = inspect(tmp_path, name, model)
    assert found["can_batch"] and (str(found["can_pad"]), found["pad_basis"]) == (can_pad, basis), found["findings"]
    found = inspect(tmp_path / "declared", name, model, can_pad=True)
    assert found["can_pad"] and found["pad_basis"] == "declared"


def test_the_proof_holds_for_every_bucket(tmp_path):
    line = "late | flat | n = Shape<end=1>(x) b = Greater(n, c_6) t = Mul(x, f_2) y = Where(b, t, x)"
    found = inspect(tmp_path, *row_models.make(line))
    assert not found["can_batch"] and found["batch_basis"] == "undecided" and "in small batches only" in found["findings"]


def test_a_model_of_long_rows_only(tmp_path):
    line = "long | tokens | p = Pad<mode=\"reflect\">(x, c_0_14_0_0_14_0) y = Slice(p, c_14, c_m14, c_1)"
    found = inspect(tmp_path, *row_models.make(line))
    assert found["can_batch"] and found["batch_basis"] == "proved" and not found["can_pad"], found["findings"]


def test_what_is_declared_is_batched_and_a_contradiction_told(tmp_path):
    name, model = DECEIVERS[0]
    found = inspect(tmp_path, name, model, can_batch=True)
    assert found["can_batch"] and found["batch_basis"] == "declared"
    assert 'rows influence each other: node "m" (ReduceMax)' in found["findings"]
    name, model = HONEST[0]
    found = inspect(tmp_path, name, model, can_batch=False)
    assert not found["can_batch"] and found["batch_basis"] == "declared"
