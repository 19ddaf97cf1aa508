"""What people do to an exported model before they serve it: half precision, quantisation, ONNX Runtime's own graph optimisations,
external data; and graphs written by hand in the way of tf2onnx."""
import pathlib
import re
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

from architectures import REGISTRY, SIZES
from export import write_cases


def float16(source, target, keep_io=True):
    from onnxconverter_common import float16 as converter
    onnx.save(converter.convert_float_to_float16(onnx.load(source), keep_io_types=keep_io), target)


def dynamic_int8(source, target, **more):
    quantization.quantize_dynamic(source, target, **more)


class Reader(quantization.CalibrationDataReader):
    def __init__(self, architecture):
        a = architecture
        self.feeds = iter([a.inputs(2, 8, numpy.random.default_rng(i)) for i in range(4)])

    def get_next(self):
        return next(self.feeds, None)


def static_int8(source, target, architecture, layout, **more):
    with tempfile.TemporaryDirectory() as folder:
        prepared = pathlib.Path(folder) / "prepared.onnx"
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantization.quantize_static(str(prepared), str(target), Reader(architecture), quant_format=layout, **more)


def runtime_optimised(source, target, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def transformer_optimised(source, target, kind="bert", half=False, **switches):
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions
    options = FusionOptions(kind)
    for key, value in switches.items():
        setattr(options, key, value)
    made = optimizer.optimize_model(str(source), model_type=kind, num_heads=4, hidden_size=32, optimization_options=options, opt_level=0)
    if half:
        made.convert_float_to_float16(keep_io_types=True)
    made.save_model_to_file(str(target))


def external_data(source, target):
    onnx.save_model(onnx.load(source), str(target), save_as_external_data=True, all_tensors_to_one_file=True, location="model.onnx.data", size_threshold=64)


def keras_like(target):
    """NHWC in, Transpose in front of each Conv, Reshape by a Shape/Slice/Concat chain, as tf2onnx leaves it."""
    r = numpy.random.default_rng(5)
    w = lambda name, *dims: numpy_helper.from_array((r.standard_normal(dims) * 0.3).astype("f4"), name)
    i = lambda name, *values: numpy_helper.from_array(numpy.array(values, "i8"), name)
    nodes = [
        helper.make_node("Transpose", ["image"], ["t1"], perm=[0, 3, 1, 2]),
        helper.make_node("Pad", ["t1", "pads"], ["p1"], mode="constant"),
        helper.make_node("Conv", ["p1", "w1", "b1"], ["c1"], strides=[2, 2], kernel_shape=[3, 3]),
        helper.make_node("Clip", ["c1", "zero", "six"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[3, 3], group=8),
        helper.make_node("BatchNormalization", ["c2", "s", "b", "m", "v"], ["n2"], epsilon=0.001),
        helper.make_node("Transpose", ["n2"], ["t2"], perm=[0, 2, 3, 1]),
        helper.make_node("Shape", ["t2"], ["shape"]),
        helper.make_node("Slice", ["shape", "i0", "i1"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["to"], axis=0),
        helper.make_node("Cast", ["to"], ["to64"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["t2", "to64"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w3"], ["m3"]),
        helper.make_node("Add", ["m3", "b3"], ["a3"]),
        helper.make_node("Softmax", ["a3"], ["Identity:0"], axis=1),
    ]
    weights = [w("w1", 8, 3, 3, 3), w("b1", 8), w("w2", 8, 1, 3, 3), w("s", 8), w("b", 8), w("m", 8), numpy_helper.from_array(numpy.full(8, 0.7, "f4"), "v"),
               w("w3", 72, 5), w("b3", 5), i("pads", 0, 0, 0, 0, 0, 0, 1, 1), i("i0", 0), i("i1", 1), i("rest", 72),
               numpy_helper.from_array(numpy.float32(0), "zero"), numpy_helper.from_array(numpy.float32(6), "six")]
    graph = helper.make_graph(nodes, "tf", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["unk__1", 12, 12, 3])],
                              [helper.make_tensor_value_info("Identity:0", TensorProto.FLOAT, ["unk__2", 5])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), target)


ONCE = quantization.QuantFormat


def recipes():
    """(name, source, architecture, call(source, target))."""
    levels = onnxruntime.GraphOptimizationLevel
    for source in ("mlp.legacy-17", "resnet18-narrow.legacy-17", "bert.legacy-17", "mobilenet-v3.legacy-14", "unet-bilinear.legacy-13"):
        yield f"{source}.float16", source, lambda s, t: float16(s, t)
    yield "mlp.legacy-17.float16-io", "mlp.legacy-17", lambda s, t: float16(s, t, False)
    yield "bert.dynamo.float16", "bert.dynamo", lambda s, t: float16(s, t)
    for source in ("mlp.legacy-17", "bert.legacy-17", "bert.legacy-11", "bert.dynamo", "bert-sequence-classification.legacy-17", "roberta.legacy-17",
                   "distilbert.legacy-17", "lenet.legacy-17", "gpt2.legacy-17"):
        yield f"{source}.dynamic-int8", source, lambda s, t: dynamic_int8(s, t)
    yield "bert.legacy-17.dynamic-int8-per-channel", "bert.legacy-17", lambda s, t: dynamic_int8(
        s, t, per_channel=True, reduce_range=True, weight_type=quantization.QuantType.QInt8)
    yield "bert.legacy-17.dynamic-uint8", "bert.legacy-17", lambda s, t: dynamic_int8(s, t, weight_type=quantization.QuantType.QUInt8)
    for source in ("resnet18-narrow.legacy-17", "mobilenet-v3.legacy-14"):  # ConvInteger
        yield f"{source}.dynamic-int8", source, lambda s, t: dynamic_int8(s, t)
        yield f"{source}.dynamic-uint8", source, lambda s, t: dynamic_int8(s, t, weight_type=quantization.QuantType.QUInt8)
    # Calibration sees the lowest float of the mask: infinite scales.
    a = REGISTRY["bert-sdpa"]
    yield "bert-sdpa.legacy-17.qoperator", "bert-sdpa.legacy-17", lambda s, t, a=a: static_int8(s, t, a, ONCE.QOperator)
    for source in ("mlp.legacy-17", "lenet.legacy-17", "resnet18-narrow.legacy-17", "mobilenet-v3.legacy-14", "bert.legacy-17", "unet-transpose.legacy-18",
                   "densenet-small.legacy-11", "shufflenet-v2.legacy-17", "convnext-small.legacy-17"):
        a = REGISTRY[source.split(".")[0]]
        yield f"{source}.qdq", source, lambda s, t, a=a: static_int8(s, t, a, ONCE.QDQ, per_channel=True)
        yield f"{source}.qoperator", source, lambda s, t, a=a: static_int8(s, t, a, ONCE.QOperator)
    yield "resnet18-narrow.legacy-17.qdq-uint8", "resnet18-narrow.legacy-17", lambda s, t: static_int8(
        s, t, REGISTRY["resnet18-narrow"], ONCE.QDQ, activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QUInt8)
    yield "resnet18-narrow.legacy-17.qdq-int8", "resnet18-narrow.legacy-17", lambda s, t: static_int8(
        s, t, REGISTRY["resnet18-narrow"], ONCE.QDQ, activation_type=quantization.QuantType.QInt8, weight_type=quantization.QuantType.QInt8)
    for source in ("mlp.legacy-17", "lenet.legacy-17", "resnet18-narrow.legacy-17", "bert.legacy-17", "bert.dynamo", "roberta.legacy-14",
                   "distilbert.legacy-14", "vit.legacy-17", "mobilenet-v3.legacy-14", "clip-text.legacy-17", "bert-sdpa.legacy-17",
                   "convnext-small.legacy-17", "unet-bilinear.legacy-13"):
        yield f"{source}.ort-basic", source, lambda s, t: runtime_optimised(s, t, levels.ORT_ENABLE_BASIC)
        yield f"{source}.ort-extended", source, lambda s, t: runtime_optimised(s, t, levels.ORT_ENABLE_EXTENDED)
    for source in ("bert.legacy-17", "bert.legacy-14", "bert-sdpa.legacy-17", "bert.dynamo", "distilbert.legacy-14", "roberta.legacy-14",
                   "bert-sequence-classification.legacy-17", "bert-mean-pooling.legacy-14", "mpnet.legacy-17", "electra.legacy-17"):
        yield f"{source}.ort-transformer", source, lambda s, t: transformer_optimised(s, t)
    yield "bert.legacy-17.ort-transformer-float16", "bert.legacy-17", lambda s, t: transformer_optimised(s, t, half=True)
    yield "bert.legacy-17.ort-transformer-mask-end", "bert.legacy-17", lambda s, t: transformer_optimised(s, t, attention_mask_format=1)
    yield "vit.legacy-17.ort-transformer", "vit.legacy-17", lambda s, t: transformer_optimised(s, t, "vit")
    yield "clip-text.legacy-17.ort-transformer", "clip-text.legacy-17", lambda s, t: transformer_optimised(s, t, "clip")
    yield "gpt2.legacy-17.ort-transformer", "gpt2.legacy-17", lambda s, t: transformer_optimised(s, t, "gpt2")
    yield "bert.legacy-17.ort-extended-int8", "bert.legacy-17.dynamic-int8", lambda s, t: runtime_optimised(s, t, levels.ORT_ENABLE_EXTENDED)
    yield "resnet18-narrow.legacy-17.ort-extended-qdq", "resnet18-narrow.legacy-17.qdq", lambda s, t: runtime_optimised(s, t, levels.ORT_ENABLE_EXTENDED)
    yield "resnet18-narrow.legacy-17.external-data", "resnet18-narrow.legacy-17", external_data
    yield "bert.dynamo.external-data", "bert.dynamo", external_data


def make(folder, pattern, attempt):
    for name, source, call in recipes():
        origin = folder / source / "model.onnx"
        if not re.search(pattern, name) or not (origin.parent / "meta.json").exists():
            continue
        a = REGISTRY[source.split(".")[0]]
        attempt(folder, name, lambda path: call(str(origin), str(path)), lambda place: write_cases(place, a.sizes, a.inputs))
    if re.search(pattern, "keras-like.tf2onnx"):
        attempt(folder, "keras-like.tf2onnx", keras_like, lambda place: write_cases(
            place, SIZES, lambda b, s, r: {"image": r.standard_normal((b, 12, 12, 3)).astype("f4")}))
