"""Models whose shapes or ways depend on the values of a request: the response carries the shapes."""
import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

import serving


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save_positives(folder):
    """The elements over zero and where they are; in the second branch of an If, their negatives."""
    negate = helper.make_graph([helper.make_node("Neg", ["found"], ["negated"])], "negate", [], [value("negated", ["n"])])
    keep = helper.make_graph([helper.make_node("Identity", ["found"], ["kept"])], "keep", [], [value("kept", ["n"])])
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["over"]),
        helper.make_node("NonZero", ["over"], ["where"]),
        helper.make_node("Transpose", ["where"], ["places"]),
        helper.make_node("GatherND", ["x", "places"], ["found"]),
        helper.make_node("If", ["negate"], ["numbers"], then_branch=negate, else_branch=keep),
    ]
    return serving.save_model(
        folder, "positives", nodes,
        [value("x", ["rows", "columns"]), value("negate", [], TensorProto.BOOL)],
        [value("places", ["n", 2], TensorProto.INT64), value("numbers", ["n"])], [numpy_helper.from_array(numpy.float32(0), "zero")])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with serving.Server(folder / "log", {"positives": save_positives(folder)}) as server:
        yield server


def ask(server, x, negate):
    return server.post(
        "/v2/models/positives/infer",
        {"inputs": [{"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()},
                    {"name": "negate", "shape": [], "datatype": "BOOL", "data": [negate]}]})


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (40, 2)])
def test_the_response_carries_the_shape(server, shape, negate):
    x = numpy.random.default_rng(shape[0]).normal(size=shape).astype(numpy.float32)
    answer = ask(server, x, negate)
    assert answer.status == 200, answer
    outputs = {o["name"]: o for o in answer.json()["outputs"]}
    expected = x[x > 0]
    assert outputs["numbers"]["shape"] == [len(expected)]
    assert outputs["places"]["shape"] == [len(expected), 2]
    assert numpy.allclose(outputs["numbers"]["data"], -expected if negate else expected)
    assert outputs["places"]["data"] == numpy.argwhere(x > 0).ravel().tolist()


def test_nothing_found_is_an_empty_tensor(server):
    answer = ask(server, -numpy.ones((2, 3), numpy.float32), False)
    assert answer.status == 200, answer
    assert [(o["shape"], o["data"]) for o in answer.json()["outputs"]] == [([0, 2], []), ([0], [])]


def test_requests_of_many_shapes_at_once(server):
    def call(n):
        x = numpy.full((n % 7 + 1, n % 5 + 1), n % 2 * 2 - 1, numpy.float32)
        answer = ask(server, x, False)
        return answer.status, answer.json()["outputs"][1]["shape"], [x.size if n % 2 else 0]

    for status, shape, expected in serving.at_once([lambda n=n: call(n) for n in range(60)]):
        assert status == 200 and shape == expected


def test_a_scalar_may_come_as_one_element(server):
    x = numpy.ones((2, 2), numpy.float32)
    inputs = [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": x.ravel().tolist()},
              {"name": "negate", "shape": [1], "datatype": "BOOL", "data": [True]}]
    answer = server.post("/v2/models/positives/infer", {"inputs": inputs})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][1]["data"] == [-1] * 4
    inputs[1]["shape"] = [2]
    inputs[1]["data"] = [True, True]
    assert server.post("/v2/models/positives/infer", {"inputs": inputs}).status == 400


def test_metadata_names_the_dims_that_vary(server):
    metadata = server.get("/v2/models/positives").json()
    assert [o["shape"] for o in metadata["outputs"]] == [[-1, 2], [-1]]
