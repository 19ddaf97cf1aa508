"""Models whose inputs have sizes that the file leaves open: any request that fits is answered, at its own shape."""
import concurrent.futures
import json
import re
import subprocess

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

import serving


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save_pooled(folder):
    """An image of any size: its blocks of 4 x 4, averaged, and how many there are of them."""
    nodes = [
        helper.make_node("AveragePool", ["image"], ["blocks"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Shape", ["blocks"], ["size"]),
    ]
    return serving.save_model(folder, "pooled", nodes, [value("image", ["batch", 1, "height", "width"])],
                              [value("blocks", ["batch", 1, "h", "w"]), value("size", [4], TensorProto.INT64)])


def save_frames(folder):
    """Frames of 160 samples: their largest, one for each 160 and one more. Below 160 samples that looks constant."""
    nodes = [
        helper.make_node("Unsqueeze", ["samples", "one"], ["wide"]),
        helper.make_node("Pad", ["wide", "pads"], ["padded"]),
        helper.make_node("MaxPool", ["padded"], ["frames"], kernel_shape=[160], strides=[160]),
        helper.make_node("Squeeze", ["frames", "one"], ["largest"]),
    ]
    weights = [numpy_helper.from_array(numpy.array([1]), "one"), numpy_helper.from_array(numpy.array([0, 0, 0, 0, 0, 160]), "pads")]
    return serving.save_model(folder, "frames", nodes, [value("samples", ["batch", "n"])], [value("largest", ["batch", "t"])], weights)


def save_seconds(folder):
    """One number for each second of 16000 samples, and one more."""
    nodes = [
        helper.make_node("Pad", ["samples", "pads"], ["padded"]),
        helper.make_node("Unsqueeze", ["padded", "one"], ["wide"]),
        helper.make_node("MaxPool", ["wide"], ["seconds"], kernel_shape=[16000], strides=[16000]),
        helper.make_node("Squeeze", ["seconds", "one"], ["largest"]),
    ]
    weights = [numpy_helper.from_array(numpy.array([1]), "one"), numpy_helper.from_array(numpy.array([0, 0, 0, 16000]), "pads")]
    return serving.save_model(folder, "seconds", nodes, [value("samples", ["batch", "n"])], [value("largest", ["batch", "t"])], weights)


def save_sums(folder):
    """Running sums of a signal: as long as it is, and each depends on those before it."""
    weights = [numpy_helper.from_array(numpy.array(1), "axis")]
    return serving.save_model(folder, "sums", [helper.make_node("CumSum", ["signal", "axis"], ["sums"])],
                              [value("signal", ["batch", "n"])], [value("sums", ["batch", "n"])], weights)


def save_squeezed(folder):
    """Without axes Squeeze drops the rows' axis too where there is one row."""
    return serving.save_model(folder, "squeezed", [helper.make_node("Squeeze", ["x"], ["y"])], [value("x", ["n", 3, 1])], [value("y", ["n", 3])])


def save_best_two(folder):
    """Takes two rows or more."""
    nodes = [helper.make_node("TopK", ["x", "two"], ["y", "places"], axis=0)]
    return serving.save_model(folder, "best_two", nodes, [value("x", ["n", 3])], [value("y", [2, 3])], [numpy_helper.from_array(numpy.array([2]), "two")])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with serving.Server(folder / "log", {"pooled": save_pooled(folder), "frames": save_frames(folder), "sums": save_sums(folder), "seconds": save_seconds(folder), "squeezed": save_squeezed(folder), "best_two": save_best_two(folder)}) as server:
        yield server


def tensor(name, x):
    return {"name": name, "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}


def check_pooled(server, shape):
    x = numpy.random.default_rng(sum(shape)).normal(size=shape).astype(numpy.float32)
    answer = server.post("/v2/models/pooled/infer", {"inputs": [tensor("image", x)]})
    assert answer.status == 200, answer
    n, c, h, w = shape
    blocks, size = answer.json()["outputs"]
    assert blocks["shape"] == size["data"] == [n, c, h // 4, w // 4]
    cut = x[:, :, :h // 4 * 4, :w // 4 * 4].reshape(n, c, h // 4, 4, w // 4, 4)
    assert numpy.allclose(blocks["data"], cut.mean(axis=(3, 5)).ravel(), atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1, 4, 4), (1, 1, 37, 50), (3, 1, 8, 6), (40, 1, 4, 4)])
def test_a_request_is_answered_at_its_own_size(server, shape):
    check_pooled(server, shape)


def test_requests_of_more_sizes_than_are_kept(server):
    serving.at_once([lambda n=n: check_pooled(server, (n % 3 + 1, 1, 4 + n, 5 + n % 7)) for n in range(60)])


def test_what_the_graph_does_not_accept_is_the_clients_error(server):
    x = numpy.zeros((1, 1, 3, 50), numpy.float32)
    answer = server.post("/v2/models/pooled/infer", {"inputs": [tensor("image", x)]})
    assert answer.status == 400, answer
    assert "AveragePool" in answer.json()["error"]
    answer = server.post("/v2/models/pooled/infer", {"inputs": [tensor("image", x[:, :, 0])]})
    assert answer.status == 400, answer
    assert "[batch,1,height,width]" in answer.json()["error"]


@pytest.mark.parametrize("length", [1, 159, 160, 1000, 16000])
def test_an_output_that_grows_in_steps(server, length):
    x = numpy.random.default_rng(length).normal(size=(2, length)).astype(numpy.float32)
    answer = server.post("/v2/models/frames/infer", {"inputs": [tensor("samples", x)]})
    assert answer.status == 200, answer
    output = answer.json()["outputs"][0]
    assert output["shape"] == [2, length // 160 + 1]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_one_row_gives_another_rank(server, rows):
    x = numpy.arange(3 * rows, dtype=numpy.float32).reshape(rows, 3, 1)
    answer = server.post("/v2/models/squeezed/infer", {"inputs": [tensor("x", x)]})
    assert answer.status == 200, answer
    output = answer.json()["outputs"][0]
    assert output["shape"] == list(x.squeeze().shape) and output["data"] == x.ravel().tolist()


def test_a_model_that_takes_no_lone_row(server):
    x = numpy.array([[1, 5, 2], [3, 1, 4], [2, 6, 0]], numpy.float32)
    answer = server.post("/v2/models/best_two/infer", {"inputs": [tensor("x", x)]})
    assert answer.status == 200 and answer.json()["outputs"][0]["data"] == [3, 6, 4, 2, 5, 2], answer
    answer = server.post("/v2/models/best_two/infer", {"inputs": [tensor("x", x[:1])]})
    assert answer.status == 400 and "TopK" in answer.json()["error"], answer


@pytest.mark.parametrize("length", [5, 20000, 70000])
def test_an_output_that_grows_in_large_steps(server, length):
    answer = server.post("/v2/models/seconds/infer", {"inputs": [tensor("samples", numpy.ones((1, length), numpy.float32))]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["shape"] == [1, length // 16000 + 1]


def test_rows_are_counted(server):
    before = server.get("/v2/models/pooled/stats").json()["model_stats"][0]["inference_count"]
    check_pooled(server, (5, 1, 4, 4))
    after = server.get("/v2/models/pooled/stats").json()["model_stats"][0]["inference_count"]
    assert after - before == 5


def test_metadata_and_inspect_name_the_sizes(server, tmp_path):
    metadata = server.get("/v2/models/pooled").json()
    assert metadata["inputs"][0]["shape"] == [-1, 1, -1, -1]
    found = subprocess.run([serving.BINARY, "inspect", "--json", save_pooled(tmp_path)], capture_output=True, text=True, check=True)
    found = json.loads(found.stdout)
    assert found["inputs"][0]["dims"] == "[batch,1,height,width]"
    assert "height: 4 or more; width: 4 or more" in found["findings"]
    assert found["can_batch"] is False


def test_a_size_in_model_json_makes_it_a_model_of_rows(tmp_path):
    folder = save_pooled(tmp_path)
    (folder / "model.json").write_text('{"dims": {"height": 8, "width": 8}}')
    found = subprocess.run([serving.BINARY, "inspect", "--json", folder], capture_output=True, text=True)
    found = json.loads(found.stdout)
    assert found["inputs"][0]["dims"] == "[batch,1,8,8]"
    (folder / "model.json").write_text('{"dims": {"hight": 8}}')
    found = subprocess.run([serving.BINARY, "inspect", folder], capture_output=True, text=True)
    assert found.returncode == 1
    assert 'no input has an open dim named "hight" (did you mean "height"?)' in found.stderr


@pytest.mark.parametrize("length", [3, 512, 513, 20000])
def test_rows_that_run_at_their_own_length_have_no_limit(server, length):
    answer = server.post("/v2/models/sums/infer", {"inputs": [tensor("signal", numpy.ones((1, length), numpy.float32))]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"][-1] == length


def test_a_limit_that_was_asked_for_holds(tmp_path):
    folder = save_sums(tmp_path)
    (folder / "model.json").write_text('{"sequence_max": 512}')
    with serving.Server(tmp_path / "log", {"sums": folder}) as server:
        answer = server.post("/v2/models/sums/infer", {"inputs": [tensor("signal", numpy.ones((1, 513), numpy.float32))]})
        assert answer.status == 400 and "the model's limit is 512" in answer.json()["error"], answer


def test_outputs_have_a_limit_whatever_their_shape_follows_from(tmp_path):
    models = {"frames": save_frames(tmp_path), "sums": save_sums(tmp_path)}
    with serving.Server(tmp_path / "log", models, "--set", "limits.output_bytes_max=1024") as server:
        for name, tensor_name, fits, too_long in (("frames", "samples", 159 * 160, 300 * 160), ("sums", "signal", 256, 257)):
            x = numpy.ones((1, too_long), numpy.float32)
            answer = server.post(f"/v2/models/{name}/infer", {"inputs": [tensor(tensor_name, x)]})
            assert answer.status == 413, (name, answer)
            assert "1024" in answer.json()["error"]
            assert server.post(f"/v2/models/{name}/infer", {"inputs": [tensor(tensor_name, x[:, :fits])]}).status == 200


def test_a_size_that_costs_too_much_is_refused(tmp_path):
    with serving.Server(tmp_path / "log", {"pooled": save_pooled(tmp_path)}, "--set", "limits.activation_bytes_max=1048576") as server:
        check_pooled(server, (1, 1, 40, 40))
        x = numpy.zeros((1, 1, 600, 600), numpy.float32)
        answer = server.post("/v2/models/pooled/infer", {"inputs": [tensor("image", x)]})
        assert answer.status == 413 and "the limit is" in answer.json()["error"], answer
        check_pooled(server, (1, 1, 40, 40))


def test_where_no_size_fits_the_message_says_what_to_do(tmp_path):
    weights = [numpy_helper.from_array(numpy.zeros((77, 3), numpy.float32), "w")]
    folder = serving.save_model(tmp_path, "odd", [helper.make_node("MatMul", ["x", "w"], ["y"])],
                                [value("x", ["rows", 2, "width"])], [value("y", ["rows", 2, 3])], weights)
    found = subprocess.run([serving.BINARY, "inspect", folder], capture_output=True, text=True)
    assert found.returncode == 1
    assert "(MatMul)" in found.stderr and '"dims": {"width": SIZE}' in found.stderr
    (folder / "model.json").write_text('{"dims": {"width": 77}}')
    subprocess.run([serving.BINARY, "inspect", folder], check=True, capture_output=True)


def save_wide(folder):
    """A step that holds 64 numbers for each pixel of an image of any size, and one number at the end."""
    weights = [numpy_helper.from_array(numpy.full((64, 1, 3, 3), 0.1, numpy.float32), "w"), numpy_helper.from_array(numpy.full((64, 64, 1, 1), 0.1, numpy.float32), "w2")]
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["wide"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["wide", "w2"], ["wider"], name="wider"),
        helper.make_node("GlobalMaxPool", ["wider"], ["top"]),
        helper.make_node("Flatten", ["top"], ["out"]),
    ]
    return serving.save_model(folder, "wide", nodes, [value("image", ["batch", 1, "height", "width"])], [value("out", ["batch", 64])], weights)


def rss_bytes(server, kind="VmRSS"):
    status = open(f"/proc/{server.process.pid}/status").read()
    return int(re.search(rf"^{kind}:\s+(\d+) kB", status, re.M)[1]) * 1024


def test_activations_count_as_held(tmp_path):
    """What requests' sizes need is within the budget: too large for it is 413 with the node; the others wait for room, and give it back."""
    flags = ["--set", "limits.held_bytes_max=150000000", "--set", "limits.body_bytes_max=16000000"]
    with serving.Server(tmp_path / "log", {"wide": save_wide(tmp_path)}, *flags) as s:
        image = lambda side: serving.binary_request({"image": numpy.ones((1, 1, side, side), numpy.float32)})
        ask = lambda side: s.post("/v2/models/wide/infer", *image(side))
        assert ask(64).status == 200
        before = rss_bytes(s)
        large = ask(1200)  # 2 x 64 x 1200 x 1200 x 4 bytes: 737 MB
        assert large.status == 413 and b"node" in large.body and b"143 MiB" in large.body, large
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, [400] * 16))  # 82 MB each: two have no room at once, and run one after the other
        assert [a.status for a in answers] == [200] * 16, answers
        assert rss_bytes(s, "VmHWM") < before + 150_000_000
        held = re.search(r"^penstock_held_bytes(?:{.*})? (\S+)$", s.get("/metrics").body.decode(), re.M)
        assert float(held[1]) < 1_000_000


def test_json_that_no_connection_may_hold(tmp_path):
    """413 that names the limit, and what else to ask for; in binary the same outputs come."""
    flags = ["--set", "limits.held_bytes_max=16777216", "--set", "limits.body_bytes_max=2000000"]
    with serving.Server(tmp_path / "log", {"sums": save_sums(tmp_path)}, *flags) as s:
        signal = {"signal": numpy.ones((1, 400_000), numpy.float32)}
        body, headers = serving.binary_request(signal, [dict(name="sums", parameters=dict(binary_data=False))])
        answer = s.post("/v2/models/sums/infer", body, headers)
        assert answer.status == 413 and b"binary" in answer.body and b"MiB" in answer.body, answer
        assert s.post("/v2/models/sums/infer", *serving.binary_request(signal)).status == 200
