"""Decision trees and what scikit-learn's converter writes behind them: the label and the scores of each class."""
import math

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

import serving

LEAVES = {-1.0: 1, 3.0: 3, 9.0: 4}  # x to node: x <= 0 at node 0, x <= 5 at node 2


def classifier(labels, weights, **attributes):
    """One tree: node 1 where x <= 0, else 3 where x <= 5, else 4. `weights`: (node, class, weight)."""
    return helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
        nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4], nodes_featureids=[0] * 5, nodes_values=[0.0, 0, 5, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 3, 0, 0],
        nodes_falsenodeids=[2, 0, 4, 0, 0], class_treeids=[0] * len(weights), class_nodeids=[w[0] for w in weights],
        class_ids=[w[1] for w in weights], class_weights=[float(w[2]) for w in weights],
        **{"classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s": labels}, **attributes)


def save(folder, name, node, zips=False):
    kind = TensorProto.STRING if name == "many" else TensorProto.INT64
    value = helper.make_tensor_value_info
    outputs = [value("label", kind, ["batch"]), value("scores", TensorProto.FLOAT, ["batch", "classes"])]
    nodes = [node]
    if zips:
        nodes += [helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[10, 20])]
        numbers = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        outputs[1] = helper.make_value_info("maps", helper.make_sequence_type_proto(numbers))
    graph = helper.make_graph(nodes, name, [value("x", TensorProto.FLOAT, ["batch", 1])], outputs)
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]), path)
    return str(path)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    shares, margins = [(1, 0, .2), (3, 0, .7), (4, 0, .5)], [(1, 0, -.75), (3, 0, .75), (4, 0, 0)]
    many = [(node, c, w) for node, ws in ((1, (.2, .7, .1)), (3, (.6, .3, .1)), (4, (0, .25, .75))) for c, w in enumerate(ws)]
    models = {"shares": save(folder, "shares", classifier([10, 20], shares), zips=True),
              "margins": save(folder, "margins", classifier([10, 20], margins, post_transform="LOGISTIC", base_values=[.5])),
              "many": save(folder, "many", classifier(["a", "b", "c"], many))}
    with serving.Server(folder / "log", models) as server:
        yield server


def ask(server, model, rows):
    answer = server.post(f"/v2/models/{model}/infer", {"inputs": [serving.json_input("x", numpy.array([rows], "f4").T)]})
    assert answer.status == 200, answer.body
    return {o["name"]: (o["data"], o["shape"]) for o in answer.json()["outputs"]}


def test_two_classes_and_shares_of_one(server):
    """As random forests are written: a share over one half is the second class; ZipMap's maps are its scores."""
    answer = ask(server, "shares", list(LEAVES))
    assert answer["label"] == ([10, 20, 10], [3])
    assert answer["maps"][1] == [3, 2]
    assert answer["maps"][0] == pytest.approx([.8, .2, .3, .7, .5, .5])


def test_two_classes_and_a_margin(server):
    """As boosted trees are written: the sign decides."""
    answer = ask(server, "margins", list(LEAVES))
    assert answer["label"][0] == [10, 20, 20]
    share = [1 / (1 + math.exp(-m)) for m in (-.25, 1.25, .5)]
    assert answer["scores"][0] == pytest.approx([p for s in share for p in (1 - s, s)])


def test_many_classes_have_the_label_of_the_largest_score(server):
    answer = ask(server, "many", list(LEAVES))
    assert answer["label"] == (["b", "a", "c"], [3])
    assert answer["scores"][0] == pytest.approx([.2, .7, .1, .6, .3, .1, 0, .25, .75])


def test_rows_share_batches_and_do_not_meet(server):
    together = serving.at_once([lambda x=x: ask(server, "many", [x]) for x in list(LEAVES) * 8])
    assert [a["label"][0] for a in together] == [["b"], ["a"], ["c"]] * 8


def test_scores_whose_shape_depends_on_values_are_zipped_too(tmp_path):
    """k-nearest-neighbours: the file declares maps, so nothing tells the scores' type before they are there."""
    numbers = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    nodes = [helper.make_node("Less", ["x", "five"], ["keep"]), helper.make_node("Compress", ["x", "keep"], ["kept"]),
             helper.make_node("Reshape", ["kept", "pairs"], ["scores"]),
             helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[10, 20])]
    weights = [helper.make_tensor("five", TensorProto.FLOAT, [], [5.0]), helper.make_tensor("pairs", TensorProto.INT64, [2], [-1, 2])]
    outputs = [helper.make_value_info("maps", helper.make_sequence_type_proto(numbers))]
    graph = helper.make_graph(nodes, "late", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch"])], outputs, weights)
    path = tmp_path / "late.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]), path)
    with serving.Server(tmp_path / "log", {"late": str(path)}) as server:
        found = server.infer("late", {"x": numpy.array([1, 7, 2, 3, 9, 4], "f4")})["maps"]
    assert found.tolist() == [[1, 2], [3, 4]]
