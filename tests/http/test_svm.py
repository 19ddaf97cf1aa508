"""Support vector machines (ai.onnx.ml): every kernel, labels, scores of pairs, probabilities; a regression and one class."""
import json
import subprocess

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

import serving

RANDOM = numpy.random.default_rng(5)
VECTORS = RANDOM.standard_normal((5, 3)).astype("f4").astype("f8")
COEFFICIENTS = RANDOM.standard_normal((2, 5)).astype("f4").astype("f8")  # of three classes with 2, 1 and 2 vectors
X = RANDOM.standard_normal((6, 3)).astype("f4")
GAMMA, OFFSET, DEGREE = .5, .25, 3.0
RHO = [.125, -.25, .5]
KERNELS = {
    "LINEAR": lambda x: x @ VECTORS.T,
    "POLY": lambda x: (GAMMA * x @ VECTORS.T + OFFSET) ** DEGREE,
    "RBF": lambda x: numpy.exp(-GAMMA * ((x[:, None] - VECTORS) ** 2).sum(2)),
    "SIGMOID": lambda x: numpy.tanh(GAMMA * x @ VECTORS.T + OFFSET),
}  # fmt: skip


def scores(kernel):
    """Of the pairs (0,1), (0,2), (1,2): the vectors of the one with the row of the other."""
    k, c = KERNELS[kernel](X.astype("f8")), COEFFICIENTS
    zero, one, two = slice(0, 2), slice(2, 3), slice(3, 5)
    pair = lambda i, row_i, j, row_j: k[:, i] @ c[row_i, i] + k[:, j] @ c[row_j, j]
    return numpy.stack([pair(zero, 0, one, 0), pair(zero, 1, two, 0), pair(one, 1, two, 1)], 1) + RHO


def votes(s):
    won = s > 0
    return numpy.argmax(numpy.stack([won[:, 0] * 1 + won[:, 1], ~won[:, 0] * 1 + won[:, 2], ~won[:, 1] * 1 + ~won[:, 2]], 1), 1)


def node(op, outputs, **attributes):
    known = {"kernel_params": [GAMMA, OFFSET, DEGREE], "support_vectors": VECTORS.ravel().tolist()}
    return helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", **known | attributes)


def classifier(kernel, **more):
    known = {"kernel_type": kernel, "coefficients": COEFFICIENTS.ravel().tolist(), "rho": RHO, "vectors_per_class": [2, 1, 2]}
    return node("SVMClassifier", ["label", "scores"], classlabels_strings=["a", "b", "c"], **known | more)


def two_classes(**more):
    return node("SVMClassifier", ["label", "scores"], kernel_type="RBF", coefficients=COEFFICIENTS[0].tolist(), rho=RHO[:1],
                vectors_per_class=[2, 3], classlabels_ints=[10, 20], **more)


def regressor(**more):
    known = {"kernel_type": "RBF", "coefficients": COEFFICIENTS[0].tolist(), "rho": [.5], "n_supports": 5}
    return node("SVMRegressor", ["scores"], **known | more)


def save(folder, name, made):
    value = helper.make_tensor_value_info
    kind = TensorProto.STRING if any(a.name == "classlabels_strings" for a in made.attribute) else TensorProto.INT64
    types = {"label": value("label", kind, ["batch"]), "scores": value("scores", TensorProto.FLOAT, ["batch", "s"])}
    graph = helper.make_graph([made], name, [value("x", TensorProto.FLOAT, ["batch", 3])], [types[o] for o in made.output])
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]), path)
    return str(path)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made = {k: classifier(k) for k in KERNELS}
    made["probabilities"] = classifier("RBF", prob_a=[-1.5, -2.0, -1.0], prob_b=[.1, 0.0, -.2])
    made["two"], made["two-logistic"] = two_classes(), two_classes(post_transform="LOGISTIC")
    made["number"], made["inside"] = regressor(), regressor(one_class=1)
    made["liblinear"] = helper.make_node("SVMClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", coefficients=VECTORS.ravel().tolist()[:9],
                                      rho=[.5], classlabels_ints=[1, 2, 3], kernel_params=[0.0, 0.0, 0.0])  # fmt: skip
    with serving.Server(folder / "log", {n.lower(): save(folder, n, m) for n, m in made.items()}) as server:
        yield server


@pytest.mark.parametrize("kernel", KERNELS)
def test_pairs_vote(server, kernel):
    found, expected = server.infer(kernel.lower(), {"x": X}), scores(kernel)
    assert numpy.allclose(found["scores"], expected, atol=2e-6 * numpy.abs(expected).max())
    assert found["label"].tolist() == ["abc"[i] for i in votes(expected)]


def test_probabilities_of_classes(server):
    found, s = server.infer("probabilities", {"x": X}), scores("RBF")
    assert found["scores"].shape == (6, 3) and numpy.allclose(found["scores"].sum(1), 1, atol=1e-5)
    assert found["label"].tolist() == ["abc"[i] for i in votes(s)]  # of the votes, whatever is likelier
    pairs = 1 / (1 + numpy.exp(s * [-1.5, -2.0, -1.0] + [.1, 0, -.2]))
    for p, r in zip(found["scores"], pairs):  # p is near the least of sum (r_ji p_i - r_ij p_j)^2
        error = lambda p: (((1 - r[0]) * p[0] - r[0] * p[1]) ** 2 + ((1 - r[1]) * p[0] - r[1] * p[2]) ** 2 + ((1 - r[2]) * p[1] - r[2] * p[2]) ** 2)
        for i in range(3):
            step = numpy.full(3, -.01)
            step[i] = .02
            assert error(p) < error(p + step) + 1e-4


def test_two_classes(server):
    k = KERNELS["RBF"](X.astype("f8"))
    s = k @ COEFFICIENTS[0] + RHO[0]
    found, logistic = server.infer("two", {"x": X}), server.infer("two-logistic", {"x": X})
    assert numpy.allclose(found["scores"], numpy.stack([-s, s], 1), atol=1e-5)
    p = 1 / (1 + numpy.exp(-s))
    assert numpy.allclose(logistic["scores"], numpy.stack([1 - p, p], 1), atol=1e-5)
    assert found["label"].tolist() == logistic["label"].tolist() == [10 if v > 0 else 20 for v in s]


def test_a_number(server):
    s = KERNELS["RBF"](X.astype("f8")) @ COEFFICIENTS[0] + .5
    assert numpy.allclose(server.infer("number", {"x": X})["scores"][:, 0], s, atol=1e-5)
    assert server.infer("inside", {"x": X})["scores"][:, 0].tolist() == [1 if v > 0 else -1 for v in s]


def test_a_row_of_coefficients_for_each_class(server):
    s = X.astype("f8") @ VECTORS[:3].T + .5
    found = server.infer("liblinear", {"x": X})
    assert numpy.allclose(found["scores"], s, atol=1e-5) and found["label"].tolist() == (s.argmax(1) + 1).tolist()


REFUSED = {
    "kernel": (classifier("LAPLACE"), "kernel_type 'LAPLACE'; supported: LINEAR, POLY, RBF, SIGMOID"),
    "vectors": (classifier("RBF", vectors_per_class=[2, 2]), "2 numbers for 3 classes"),
    "count": (classifier("RBF", vectors_per_class=[2, 1, 3]), "15 numbers for 6 support vectors"),
    "rho": (classifier("RBF", rho=[1.0]), "1 rho"),
    "platt": (classifier("RBF", prob_a=[1.0], prob_b=[1.0, 2, 3]), "prob_a"),
    "numbers": (regressor(coefficients=[1.0]), "1 coefficients for 5 support vectors"),
    "params": (regressor(kernel_params=[1.0]), "kernel_params"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(tmp_path, name):
    made, words = REFUSED[name]
    done = subprocess.run([str(serving.BINARY), "inspect", save(tmp_path, name, made)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and f"ai.onnx.ml::{made.op_type}" in done.stderr and words in done.stderr


def test_rows_share_batches(tmp_path):
    for name, made in {"p": classifier("RBF", prob_a=[1.0, 1, 1], prob_b=[0.0, 0, 0]), "r": regressor()}.items():
        done = subprocess.run([str(serving.BINARY), "inspect", "--json", save(tmp_path, name, made)], capture_output=True, text=True, timeout=120)
        found = json.loads(done.stdout)
        assert found["can_batch"] and found["batch_basis"] == "proved"
