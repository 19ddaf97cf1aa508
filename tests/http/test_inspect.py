"""What `penstock inspect` prints of typical models: what was inferred, what was proved, and what to do about the rest."""
import json
import subprocess

import numpy
import onnx
import onnx.parser
import pytest
import serving

# Name, types, body, the text without its first two lines (platform, source) and its last (times).
MODELS = {
    "batched": ("float[N, 8] x) => (float[N, 8] y", "y = Relu(x)", """
inputs
  x                        FP32   [batch,8]
outputs
  y                        FP32   [batch,8]
axes      left open by the file
  batch                    x[0]: rows (an open first dim; "N" in the file)
batching  rows are independent (proved from the graph); at most 16 rows a batch
why       no operator combines rows (experiments give the same bits)
cpu       runs as a plan, in fp32
buckets   1, 2, 4, 8, 16 rows
operators 1 Relu (1 node)
"""),
    "mixed": ("float[N, 8] x) => (float[N, 8] y", "y = Softmax<axis=0>(x)", """
inputs
  x                        FP32   [batch,8]
outputs
  y                        FP32   [batch,8]
axes      left open by the file
  batch                    x[0]: rows (an open first dim; "N" in the file)
batching  each request runs alone (proved from the graph)
why       rows influence each other: node "y" (Softmax) goes along the rows
cpu       runs as a plan, in fp32
buckets   none: requests run one at a time
operators 1 Softmax (1 node)
"""),
    "image": ("float[N, 3, height, width] x) => (float[N, 3, h2, w2] y", "y = MaxPool<kernel_shape=[3, 3], strides=[2, 2]>(x)", """
inputs
  x                        FP32   [N,3,height,width]
outputs
  y                        FP32   [any,3,any,any]
axes      left open by the file
  N                        x[0]: rows (an open first dim)
  height                   x[2]: 3 or more; 2 does not fit: node "y" (MaxPool): a window of 3
                           does not fit axis 2 of f32[1,3,2,64]
  width                    x[3]: 3 or more; 2 does not fit: node "y" (MaxPool): a window of 3
                           does not fit axis 3 of f32[1,3,64,2]
batching  each request runs alone, at its own shape
why       its inputs have sizes beyond rows and tokens; to let requests of one size share
          batches, fix the size in model.json: "dims": {"height": SIZE, "width": SIZE}
cpu       runs as a plan per shape, in fp32; the last 32 shapes are kept
buckets   none: the model is planned for each shape that requests have
operators 1 MaxPool (1 node)
"""),
    "unnamed": ("float[N, 3, ?, ?] x) => (float[N, 3, h2, w2] y", "y = MaxPool<kernel_shape=[3, 3]>(x)", """
inputs
  x                        FP32   [N,3,any,any]
outputs
  y                        FP32   [any,3,any,any]
axes      left open by the file
  N                        x[0]: rows (an open first dim)
  x[2]                     3 or more; 2 does not fit: node "y" (MaxPool): a window of 3 does not
                           fit axis 2 of f32[1,3,2,64]
  x[3]                     3 or more; 2 does not fit: node "y" (MaxPool): a window of 3 does not
                           fit axis 3 of f32[1,3,64,2]
batching  each request runs alone, at its own shape
why       its inputs have sizes beyond rows and tokens; to let requests of one size share
          batches, fix the size in model.json: "dims": {"x[2]": SIZE, "x[3]": SIZE}
cpu       runs as a plan per shape, in fp32; the last 32 shapes are kept
buckets   none: the model is planned for each shape that requests have
operators 1 MaxPool (1 node)
"""),
    "fixed": ("float[1, 8] a_name_that_is_longer_than_its_column) => (float[1, 8] y", "y = Relu(a_name_that_is_longer_than_its_column)", """
inputs
  a_name_that_is_longer_than_its_column
                           FP32   [1,8]
outputs
  y                        FP32   [1,8]
batching  each request runs alone
why       "a_name_that_is_longer_than_its_column" has no batch axis of its own: the file fixes
          its first dim to 1; exported with a free one, requests may share batches
cpu       runs as a plan, in fp32
buckets   none: requests run one at a time
operators 1 Relu (1 node)
"""),
    "dynamic": ("float[N, 8] x) => (int64[2, n] y", "y = NonZero(x)", """
inputs
  x                        FP32   [N,8]
outputs
  y                        INT64  [2,any]
axes      left open by the file
  N                        x[0]: rows (an open first dim)
batching  each request runs alone, at its own shape
why       shapes depend on values (node "y" (NonZero): the output shape depends on the value of
          input 0, which is unknown)
cpu       runs node by node where shapes depend on values, else as plans, in fp32
buckets   none: requests run at shapes of their own
operators 1 NonZero (1 node)
"""),
    "tokens": ("int64[N, S] x) => (float[N, S] y", "m = ReduceMax(x, axis) d = Sub(x, m) y = Cast<to=1>(d)", """
inputs
  x                        INT64  [batch,sequence]
outputs
  y                        FP32   [batch,sequence]
axes      left open by the file
  batch                    x[0]: rows (an open first dim; "N" in the file)
  sequence                 x[1]: tokens (an open second dim; "S" in the file)
text      not taken: there is no tokenizer.json (or vocab.txt, or a SentencePiece model, or
          vocab.json with merges.txt) in FOLDER
batching  rows are independent (proved from the graph), rows run at their own length (not proved
          otherwise); at most 16 rows a batch; rows of any length
why       no operator combines rows (experiments give the same bits); without a mask it is not
          proved that padding changes nothing (node "m" (ReduceMax) reduces over the tokens), so
          rows run at their own length; in experiments it changes nothing: if you know that it
          does not, set "can_pad": true in model.json
cpu       runs as a plan, in fp32
buckets   none: rows run at their own length
operators 1 Cast, 1 ReduceMax, 1 Sub (3 nodes)
"""),
    "samples": ("float[N, S] x) => (float[N, S] y", "y = Relu(x)", """
inputs
  x                        FP32   [batch,sequence]
outputs
  y                        FP32   [batch,sequence]
axes      left open by the file
  batch                    x[0]: rows (an open first dim; "N" in the file)
  sequence                 x[1]: tokens (an open second dim; "S" in the file)
batching  rows are independent (proved from the graph), rows can be padded (proved from the
          graph); at most 16 rows a batch; rows of at most 512 tokens
why       no operator combines rows (experiments give the same bits); padding changes nothing:
          tokens are independent (experiments give the same bits)
cpu       runs as a plan, in fp32
buckets   1, 2, 4, 8, 16 rows of 16, 32, 64, 128 tokens; 1, 2, 4, 8 rows of 256 tokens; 1, 2, 4
          rows of 512 tokens
packing   a row holds one sequence: the CPU, which takes over when a device fails, pads this
          model
operators 1 Relu (1 node)
"""),
    "sound-in-halves": ("float16[N, 1, 32] x) => (float16[N, 2, 30] y", """w = Constant<value = float[2, 1, 3] {1, 2, 3, 4, 5, 6}>()
h = Cast<to=10>(w) m = Conv(x, h) y = Relu(m)""", """
inputs
  x                        FP16   [batch,1,32]
outputs
  y                        FP16   [batch,2,30]
axes      left open by the file
  batch                    x[0]: rows (an open first dim; "N" in the file)
batching  rows are independent (proved from the graph); at most 16 rows a batch
why       no operator combines rows (experiments give the same bits)
cpu       runs as a plan, in fp32
buckets   1, 2, 4, 8, 16 rows
fusion    1 of 1 matmuls and convolutions run fused with the operators after them
operators 1 Conv, 1 Relu (2 nodes)
"""),
    "quantised": ("float[N, 8] x) => (float[N, 4] y", """s = Constant<value = float {0.1}>()
z = Constant<value = uint8 {128}>()
zero = Constant<value = int8 {0}>()
shape = Constant<value = int64[2] {8, 4}>()
weights = ConstantOfShape<value = int8[1] {3}>(shape)
w = DequantizeLinear(weights, s, zero)
q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) m = MatMul(d, w)
r = QuantizeLinear(m, s, z) y = DequantizeLinear(r, s, z)""", """
inputs
  x                        FP32   [batch,8]
outputs
  y                        FP32   [batch,4]
axes      left open by the file
  batch                    x[0]: rows (an open first dim; "N" in the file)
batching  rows are independent (proved from the graph); at most 16 rows a batch
why       no operator combines rows (experiments give the same bits)
cpu       runs as a plan, in fp32 and int8
buckets   1, 2, 4, 8, 16 rows
fusion    1 of 1 matmuls and convolutions run fused with the operators after them, 1 of these in
          int8
operators 3 DequantizeLinear, 1 MatMul, 2 QuantizeLinear (6 nodes)
"""),
    "if": ("float[N, 4] x) => (float[N, 4] y", """zero = Constant<value = float {0}>() m = ReduceMax<keepdims=0>(x)
c = Greater(m, zero)
y = If (c) <then_branch = t () => (float[N, 4] a) { a = Relu(x) }, else_branch = e () => (float[N, 4] b) { b = Neg(x) }>""", """
inputs
  x                        FP32   [N,4]
outputs
  y                        FP32   [any,4]
axes      left open by the file
  N                        x[0]: rows (an open first dim)
batching  each request runs alone, at its own shape
why       shapes depend on values (node "y" (If): its condition "c" depends on the values of a
          request)
cpu       runs node by node where shapes depend on values, else as plans, in fp32
buckets   none: requests run at shapes of their own
operators 1 Greater, 1 Neg, 1 ReduceMax, 1 Relu, 1 If (5 nodes)
"""),
}  # fmt: skip


POOL = "y = MaxPool<kernel_shape=[3, 3], strides=[2, 2]>(x)"


def test_axes_as_json(tmp_path):
    axes = json.loads(inspect(tmp_path, "image", "--json").stdout)["axes"]
    rows = {"name": "N", "kind": "rows", "name_in_file": "N", "dims": ["x[0]"], "accepted": "any", "least": 1, "step": 1, "refusal": None}
    assert axes[0] == rows and [a["name"] for a in axes] == ["N", "height", "width"]
    assert axes[1]["kind"] == "size" and axes[1]["least"] == 3 and axes[1]["step"] == 1 and axes[1]["refused"] == 2
    assert axes[1]["accepted"] == "3 or more" and '"y" (MaxPool)' in axes[1]["refusal"] and axes[2]["dims"] == ["x[3]"]
    axes = json.loads(inspect(tmp_path, "tokens", "--json").stdout)["axes"]
    assert [(a["name"], a["kind"], a["name_in_file"]) for a in axes] == [("batch", "rows", "N"), ("sequence", "tokens", "S")]


def words(done):
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_axes_that_share_a_name(tmp_path):
    types = "float[N, 2, T] x, float[2, N, T] z) => (float[N, 2, T] y"
    body = "t = Transpose<perm=[1, 0, 2]>(z)\ny = Add(x, t)"
    folder = save(tmp_path, "shared", (types, body))
    assert [a["dims"] for a in json.loads(run(folder, "--json").stdout)["axes"]] == [["x[0]", "z[1]"], ["x[2]", "z[2]"]]
    text = words(run(folder))
    assert "N x[0], z[1]: rows (an open first dim, elsewhere by its name) T x[2], z[2]: any size, one size by its name" in text
    assert '"dims"' not in text  # "z" has its rows on another axis: requests would still run alone


def test_a_stride_is_named_with_the_node_that_refuses(tmp_path):
    types = "float[N, 1, width] x) => (float[N, a, 8] y"
    text = words(run(save(tmp_path, "stride", (types, "to = Constant<value = int64[3] {0, -1, 8}>()\ny = Reshape(x, to)"))))
    assert 'width x[2]: multiples of 8; 65 does not fit: node "y" (Reshape)' in text


def test_rows_that_are_fixed_inside_get_no_advice_to_batch(tmp_path):
    types = "float[N, 2, width] x) => (float[N, 2, width] y"
    text = words(run(save(tmp_path, "two", (types, "b = Split<axis=0, num_outputs=1>(x)\nto = Constant<value = int64[3] {1, 2, 0}>()\ny = Reshape(b, to)"))))
    assert 'N x[0]: rows (an open first dim); 2 does not fit: node "y" (Reshape)' in text and '"dims"' not in text


def test_a_first_dim_of_1_beside_open_sizes(tmp_path):
    text = words(run(save(tmp_path, "one", ("float[1, 3, height, width] x) => (float[1, 3, h, w] y", POOL))))
    assert "their first dim is 1 in the file: exported with a free one, requests of one size may share batches" in text


def test_rows_on_another_axis(tmp_path):
    text = words(run(save(tmp_path, "turned", ("float[N, 8] x) => (float[8, N] y", "y = Transpose<perm=[1, 0]>(x)"))))
    assert '"y" has no batch axis of its own: its rows are on another axis than the first; exported with rows first' in text


@pytest.mark.parametrize("name", [None, "?"])
def test_sizes_without_a_name_go_by_their_places(tmp_path, name):
    folder = save(tmp_path, "unnamed", MODELS["unnamed"][:2])
    if name is not None:
        model = onnx.load(folder / "1" / "model.onnx")
        for d in (2, 3):
            model.graph.input[0].type.tensor_type.shape.dim[d].dim_param = name
        onnx.save(model, folder / "1" / "model.onnx")
    assert '"dims": {"x[2]": SIZE, "x[3]": SIZE}' in words(run(folder))
    (folder / "model.json").write_text('{"dims": {"x[2]": 32, "x[3]": 48}}')
    text = words(run(folder))
    assert "x FP32 [batch,3,32,48] outputs y FP32 [batch,3,30,46]" in text and "rows are independent (proved from the graph)" in text
    (folder / "model.json").write_text('{"dims": {"x[4]": 32}}')
    done = run(folder)
    assert done.returncode == 1 and 'no input has an open dim named "x[4]"' in done.stderr and '"x[2]", "x[3]"' in done.stderr


# What is wrong, and what the message says: what it is and what to do, about a file that nobody named "model".
REFUSED = {
    "text": (b"<!DOCTYPE html>\n<html>404</html>\n", "a text, not an ONNX model: it begins with '<!DOCTYPE html>'"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00\xff\xff", "not an ONNX model, or cut off: fetch or export it again"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n", "run `git lfs pull`"),
    "empty": (b"", "the file is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_no_models(tmp_path, name):
    (tmp_path / "m.onnx").write_bytes(REFUSED[name][0])
    done = run(tmp_path / "m.onnx")
    assert done.returncode == 1 and done.stderr.startswith(f"penstock inspect: {tmp_path}/m.onnx: ") and REFUSED[name][1] in done.stderr
    assert json.loads(run(tmp_path / "m.onnx", "--json").stdout)["error"].startswith(f"{tmp_path}/m.onnx: ")


def test_a_missing_model():
    assert run("/nowhere/m.onnx").stderr == "penstock inspect: /nowhere/m.onnx: No such file or directory\n"


def test_weights_that_were_left_behind(tmp_path):
    model = onnx.load(save(tmp_path, "m", ("float[N, 8] x, float[8, 8] w) => (float[N, 8] y", "y = MatMul(x, w)")) / "1" / "model.onnx")
    model.graph.initializer.append(onnx.numpy_helper.from_array(numpy.ones((8, 8), numpy.float32), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    done = run(tmp_path / "m.onnx")
    assert done.returncode == 1 and "weights.bin: No such file or directory; the model's weights are in files beside it" in done.stderr


def test_inputs_that_do_not_fit_get_no_advice_on_sizes(tmp_path):
    done = run(save(tmp_path, "m", ("float[N, 8] x, float[N, 7] z) => (float[N, 8] y", "y = Add(x, z)")))
    assert done.returncode == 1 and "do not broadcast" in done.stderr and "dims" not in done.stderr


# Frames, and a state of [layers, 1, width].
STATE = ("float[N, 8] x, float[1, 1, 8] h) => (float[N, 8] y, float[1, 1, 8] k", "y = Relu(x) k = Relu(h)")


def save(folder, name, model):
    types, body = model
    path = folder / name / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    axis = "axis = Constant<value = int64[1] {1}>() " if "axis)" in body else ""
    body = (axis + body).replace(" d = ", "\nd = ").replace(" y = ", "\ny = ").replace(" m = ", "\nm = ").replace(" k = ", "\nk = ")
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\ng ({types}) {{\n{body}\n}}'), path)
    return path.parent.parent


def inspect(folder, name, *flags, **manifest):
    save(folder, name, MODELS[name][:2])
    if manifest:
        (folder / name / "model.json").write_text(json.dumps(manifest))
    return run(folder / name, *flags)


@pytest.mark.parametrize("name", MODELS)
def test_the_text(tmp_path, name):
    done = inspect(tmp_path, name)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "platform  onnx" and lines[-1].startswith("loaded in ")
    # A folder's name may be as long as it likes, and is broken where it begins.
    text = "\n".join(lines[2:-1]).replace(str(tmp_path / name / "1"), "FOLDER")
    assert " ".join(text.split()) == " ".join(MODELS[name][2].split())
    assert name == "tokens" or text == MODELS[name][2].strip()


@pytest.mark.parametrize("name", MODELS)
def test_the_same_as_json(tmp_path, name):
    found = json.loads(inspect(tmp_path, name, "--json").stdout)
    assert found["can_batch"] is ("rows are independent (" in MODELS[name][2])
    assert [t["name"] for t in found["inputs"]] == [MODELS[name][2].split()[1]]
    assert found["findings"] and found["nodes"] == sum(found["operators"].values())


def run(path, *flags):
    return subprocess.run([str(serving.BINARY), "inspect", str(path), *flags], capture_output=True, text=True, timeout=120)


def test_an_encoder_tells_nothing_of_the_plan_that_does_not_run():
    path = serving.shared_models() / "models" / "bert_tiny_cls_legacy.onnx"
    done = subprocess.run([str(serving.BINARY), "inspect", str(path)], capture_output=True, text=True, timeout=120)
    assert "cpu       an encoder of 2 layers, 32 wide" in done.stdout and "\nfusion" not in done.stdout


def test_a_state_beside_rows_gets_no_advice_on_its_layers(tmp_path):
    done = subprocess.run([str(serving.BINARY), "inspect", str(save(tmp_path, "state", STATE))], capture_output=True, text=True, timeout=120)
    text = " ".join(done.stdout.split())
    assert '"h" has no batch axis of its own: the file fixes its first dim to 1 cpu' in text


def test_sizes_that_model_json_fixes(tmp_path):
    done = inspect(tmp_path, "image", dims={"height": 32, "width": 64})
    assert "batching  rows are independent (proved from the graph); at most 16 rows a batch" in done.stdout
    done = inspect(tmp_path, "image", dims={"hieght": 32})
    assert done.returncode == 1 and 'no input has an open dim named "hieght" (did you mean "height"?)' in done.stderr


def test_what_is_declared_is_told_from_what_is_proved(tmp_path):
    done = inspect(tmp_path, "mixed", can_batch=True)
    assert "rows are independent (declared in model.json)" in done.stdout and "but rows influence each other" in " ".join(done.stdout.split())
