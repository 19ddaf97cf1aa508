#!/usr/bin/env python3
"""Single operators, and what exporters make of one, on Penstock's CPU engine beside ONNX Runtime, in alternating pairs.

    operators.py [--program BUILD/bin/bench_models_run] [--only REGEX] [--family REGEX] [--threads 1] [--pairs 9] [--all] [--check]

Writes the rows above 1.3, or all with --all. Sizes are those of small models: OCR, detection, speech, voice activity, embeddings.
Needs numpy, onnx and onnxruntime.
"""
import argparse
import math
import pathlib
import re
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import run
from cases import CASES, IMAGE, RANDOM, case, floats, ints, node, number, one
from operators_types import TYPES_AND_SHAPES


def convolutions():
    def conv(name, x, out, kernel, group=1, **attributes):
        one(f"conv {name}", "Conv", x, [floats(out, x[1] // group, *kernel), floats(out)], group=group, **attributes)

    conv("1x1 56 64-256", [1, 64, 56, 56], 256, (1, 1))
    conv("1x1 14 512-512", [1, 512, 14, 14], 512, (1, 1))
    conv("1x1 7 1024-256", [1, 1024, 7, 7], 256, (1, 1))
    conv("1x1 s2 28 256-512", [1, 256, 28, 28], 512, (1, 1), strides=[2, 2])
    conv("3x3 56 64", [1, 64, 56, 56], 64, (3, 3), pads=[1] * 4)
    conv("3x3 14 256", [1, 256, 14, 14], 256, (3, 3), pads=[1] * 4)
    conv("3x3 7 512", [1, 512, 7, 7], 512, (3, 3), pads=[1] * 4)
    conv("3x3 s2 112 32-64", [1, 32, 112, 112], 64, (3, 3), pads=[1] * 4, strides=[2, 2])
    conv("7x7 s2 224 3-64", [1, 3, 224, 224], 64, (7, 7), pads=[3] * 4, strides=[2, 2])
    conv("3x3 s2 640 3-16", [1, 3, 640, 640], 16, (3, 3), pads=[1] * 4, strides=[2, 2])
    conv("3x3 96x64 1-64", [1, 1, 96, 64], 64, (3, 3), pads=[1] * 4)
    conv("5x5 28 1-6", [1, 1, 28, 28], 6, (5, 5))
    conv("3x39 172x264 1-8", [1, 1, 172, 264], 8, (3, 39), pads=[1, 19, 1, 19])
    conv("3x3 160 24-1", [1, 24, 160, 160], 1, (3, 3), pads=[1] * 4)
    conv("5x5 172x264 32-16", [1, 32, 172, 264], 16, (5, 5), pads=[2] * 4)
    conv("3x3 dilated 2 28 128", [1, 128, 28, 28], 128, (3, 3), pads=[2] * 4, dilations=[2, 2])
    conv("1x7 28 128", [1, 128, 28, 28], 128, (1, 7), pads=[0, 3, 0, 3])
    conv("7x1 28 128", [1, 128, 28, 28], 128, (7, 1), pads=[3, 0, 3, 0])
    conv("depthwise 3x3 56 128", [1, 128, 56, 56], 128, (3, 3), 128, pads=[1] * 4)
    conv("depthwise 5x5 s2 56 128", [1, 128, 56, 56], 128, (5, 5), 128, pads=[2] * 4, strides=[2, 2])
    conv("depthwise 3x3 14 512", [1, 512, 14, 14], 512, (3, 3), 512, pads=[1] * 4)
    conv("depthwise 7x7 28 96", [1, 96, 28, 28], 96, (7, 7), 96, pads=[3] * 4)
    conv("depthwise x2 3x3 28 32-64", [1, 32, 28, 28], 64, (3, 3), 32, pads=[1] * 4)
    conv("groups 2 3x3 28 128", [1, 128, 28, 28], 128, (3, 3), 2, pads=[1] * 4)
    conv("groups 8 3x3 28 256", [1, 256, 28, 28], 256, (3, 3), 8, pads=[1] * 4)
    conv("groups 32 3x3 14 512", [1, 512, 14, 14], 512, (3, 3), 32, pads=[1] * 4)
    conv("groups 3 1x1 28 240", [1, 240, 28, 28], 240, (1, 1), 3)
    conv("1d 512 k3 s2", [1, 512, 1000], 512, (3,), strides=[2])
    conv("1d raw k10 s5", [1, 1, 16000], 512, (10,), strides=[5])
    conv("1d sinc k251 s10", [1, 1, 16000], 80, (251,), strides=[10])
    conv("1d depthwise k31 256", [1, 256, 400], 256, (31,), 256, pads=[15, 15])
    conv("1d depthwise k3 64", [1, 64, 200], 64, (3,), 64, pads=[1, 1])
    conv("1d k5 64", [1, 64, 2000], 64, (5,), pads=[2, 2])
    conv("1d k3 dilated 8 64", [1, 64, 2000], 64, (3,), pads=[8, 8], dilations=[8])
    conv("1d groups 16 k128 768", [1, 768, 200], 768, (128,), 16, pads=[64, 63])
    conv("1d k1 256", [1, 256, 1000], 256, (1,))
    conv("1d k3 16-32", [1, 16, 64], 32, (3,), pads=[1, 1])
    conv("3d 3x3x3 16", [1, 16, 8, 28, 28], 32, (3, 3, 3), pads=[1] * 6)

    def back(name, x, weights, group=1, **attributes):
        one(f"transposed {name}", "ConvTranspose", x, [floats(*weights), floats(weights[1] * group)], group=group, **attributes)

    back("2x2 s2 80 64", [1, 64, 80, 80], (64, 64, 2, 2), strides=[2, 2])
    back("2x2 s2 160 24-1", [1, 24, 160, 160], (24, 1, 2, 2), strides=[2, 2])
    back("4x4 s2 28 128-64", [1, 128, 28, 28], (128, 64, 4, 4), strides=[2, 2], pads=[1] * 4)
    back("3x3 s2 28 64", [1, 64, 28, 28], (64, 64, 3, 3), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    back("1d k16 s8 128-64", [1, 128, 100], (128, 64, 16), strides=[8], pads=[4, 4])
    back("depthwise 4x4 s2 28 64", [1, 64, 28, 28], (64, 1, 4, 4), 64, strides=[2, 2], pads=[1] * 4)


def pools():
    one("maxpool 3x3 s2", "MaxPool", [1, 64, 112, 112], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    one("maxpool 2x2 s2", "MaxPool", [1, 64, 112, 112], kernel_shape=[2, 2], strides=[2, 2])
    one("maxpool 5x5 s1", "MaxPool", [1, 128, 20, 20], kernel_shape=[5, 5], pads=[2] * 4)
    one("maxpool 1d k3 s3", "MaxPool", [1, 80, 8000], kernel_shape=[3], strides=[3])
    one("avgpool 3x3 s1", "AveragePool", [1, 192, 35, 35], kernel_shape=[3, 3], pads=[1] * 4)
    one("avgpool 2x2 s2", "AveragePool", IMAGE, kernel_shape=[2, 2], strides=[2, 2])
    one("avgpool 1d k3 s2", "AveragePool", [1, 80, 4000], kernel_shape=[3], strides=[2])
    one("maxpool 3d", "MaxPool", [1, 16, 16, 28, 28], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    one("global average", "GlobalAveragePool", [1, 512, 14, 14])
    one("global max", "GlobalMaxPool", [1, 512, 14, 14])


def elementwise():
    for op in ("Relu Sigmoid Tanh Exp Log Sqrt Erf Abs Neg Floor Ceil Round Reciprocal Softplus Sin Cos HardSwish HardSigmoid Elu Celu Selu "
               "LeakyRelu Softsign Sign ThresholdedRelu Atan Mish Sinh Acos").split():
        one(op, op, IMAGE, opset=18, positive=op in ("Log", "Sqrt"))
    one("Gelu", "Gelu", [1, 197, 768], opset=20)
    one("IsNaN", "IsNaN", IMAGE)
    one("Clip", "Clip", IMAGE, [number(0), number(6)])
    for name, shape in (("scalar", ()), ("channel", (64, 1, 1)), ("row", (56,)), ("same", IMAGE)):
        for op in "Add Sub Mul Div Pow Min".split():
            one(f"{op} {name}", op, IMAGE, [np.abs(floats(*shape)) + number(.5) if shape else number(2)], positive=op == "Pow")
    one("PRelu channel", "PRelu", IMAGE, [floats(64, 1, 1)])
    one("Pow 0.5", "Pow", IMAGE, [number(.5)], positive=True)
    one("Mod", "Mod", IMAGE, [number(3)], fmod=1)
    for op in "Equal Less LessOrEqual Greater GreaterOrEqual".split():
        one(f"{op} scalar", op, IMAGE, [number(0)])
    one("Less same", "Less", IMAGE, [floats(*IMAGE)])
    for op in "Equal Less Add Mul".split():
        one(f"{op} i64", op, IMAGE, [number(3, np.int64)], dtype=np.int64)
    case("Greater, Where", IMAGE, [node("Greater", "x,z", "m"), node("Where", "m,x,z", "y")], {"z": number(0)})
    case("Greater, Where 2", IMAGE, [node("Greater", "x,z", "m"), node("Mul", "x,x", "s"), node("Where", "m,x,s", "y")], {"z": number(0)})
    case("Greater, Not, And", IMAGE, [node("Greater", "x,z", "m"), node("Not", "m", "n"), node("And", "m,n", "y")], {"z": number(0)})
    case("Greater, Cast f32", IMAGE, [node("Greater", "x,z", "m"), node("Cast", "m", "y", to=TensorProto.FLOAT)], {"z": number(0)})
    case("silu", IMAGE, [node("Sigmoid", "x", "s"), node("Mul", "x,s", "y")])
    case("gelu of Erf", [1, 197, 3072], [node("Div", "x,r", "a"), node("Erf", "a", "e"), node("Add", "e,o", "p"), node("Mul", "x,p", "q"),
                                         node("Mul", "q,h", "y")], {"r": number(2 ** .5), "o": number(1), "h": number(.5)})
    for to in "INT64 INT32 UINT8 INT8 BOOL FLOAT16 DOUBLE".split():
        one(f"Cast f32 {to}", "Cast", IMAGE, to=getattr(TensorProto, to))
    for of in "int64 int32 uint8 int8 float16 bool float64".split():
        one(f"Cast {of} f32", "Cast", IMAGE, dtype=np.dtype(of), to=TensorProto.FLOAT)
    one("Cast int64 int32", "Cast", IMAGE, dtype=np.int64, to=TensorProto.INT32)


def reductions():
    for axes in ([1], [2], [3], [2, 3], [0, 1], [1, 2, 3]):
        for op in "ReduceMean ReduceMax ReduceL2".split():
            one(f"{op} {axes}", op, [2, 64, 56, 56], axes=axes)
        one(f"ReduceSum {axes}", "ReduceSum", [2, 64, 56, 56], [ints(*axes)])
    for op in "ReduceProd ReduceMin ReduceL1 ReduceSumSquare ReduceLogSumExp".split():
        one(f"{op} [3]", op, [2, 64, 56, 56], axes=[3])
        one(f"{op} [1]", op, [2, 64, 56, 56], axes=[1])
    for axis in (1, 2, 3):
        one(f"Softmax {axis}", "Softmax", IMAGE, axis=axis)
        one(f"LogSoftmax {axis}", "LogSoftmax", IMAGE, axis=axis)
        one(f"ArgMax {axis}", "ArgMax", IMAGE, axis=axis)
    one("Softmax attention", "Softmax", [1, 12, 197, 197], axis=-1)
    one("Softmax 97", "Softmax", [1, 40, 97], axis=-1)
    one("Softmax 6625", "Softmax", [1, 40, 6625], axis=-1)
    one("ArgMax 6625", "ArgMax", [1, 40, 6625], axis=-1)
    one("ReduceSum i64", "ReduceSum", [2, 64, 56, 56], [ints(3)], dtype=np.int64)
    one("CumSum 1", "CumSum", [64, 56, 56], [number(1, np.int64)])
    one("CumSum 2", "CumSum", [64, 56, 56], [number(2, np.int64)])
    case("TopK 300 of 8400", [1, 8400], [node("TopK", "x,k", "y,i", axis=1)], {"k": ints(300)})
    case("TopK 1 of 6625", [40, 6625], [node("TopK", "x,k", "y,i", axis=1)], {"k": ints(1)})
    case("TopK 5 of 1000", [8, 1000], [node("TopK", "x,k", "y,i", axis=1)], {"k": ints(5)})
    case("TopK 3 of axis 1", [4, 64, 100], [node("TopK", "x,k", "y,i", axis=1)], {"k": ints(3)})
    case("TopK all of 1000", [8, 1000], [node("TopK", "x,k", "y,i", axis=1)], {"k": ints(1000)})


def normalisations():
    one("LayerNormalization 768", "LayerNormalization", [1, 197, 768], [floats(768), floats(768)], axis=-1)
    one("LayerNormalization 64", "LayerNormalization", [1, 400, 64], [floats(64), floats(64)], axis=-1)
    case("layer norm of parts", [1, 197, 768],
         [node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x,m", "d"), node("Pow", "d,two", "q"), node("ReduceMean", "q", "v", axes=[-1]),
          node("Add", "v,e", "w"), node("Sqrt", "w", "s"), node("Div", "d,s", "n"), node("Mul", "n,g", "o"), node("Add", "o,b", "y")],
         {"two": number(2), "e": number(1e-5), "g": floats(768), "b": floats(768)})
    case("rms norm of parts", [1, 197, 768],
         [node("Mul", "x,x", "q"), node("ReduceMean", "q", "v", axes=[-1]), node("Add", "v,e", "w"), node("Sqrt", "w", "s"),
          node("Div", "x,s", "n"), node("Mul", "n,g", "y")], {"e": number(1e-5), "g": floats(768)})
    one("InstanceNormalization", "InstanceNormalization", IMAGE, [floats(64), floats(64)])
    one("InstanceNormalization 1d", "InstanceNormalization", [1, 80, 2666], [floats(80), floats(80)])
    one("GroupNormalization", "GroupNormalization", IMAGE, [floats(64), floats(64)], opset=21, num_groups=8)
    one("BatchNormalization", "BatchNormalization", IMAGE, [floats(64), floats(64), floats(64), np.abs(floats(64))])
    one("BatchNormalization 1d", "BatchNormalization", [1, 64, 500], [floats(64), floats(64), floats(64), np.abs(floats(64))])
    one("LRN", "LRN", IMAGE, size=5)
    one("LpNormalization", "LpNormalization", [197, 768], axis=-1, p=2)
    one("MeanVarianceNormalization", "MeanVarianceNormalization", IMAGE, axes=[2, 3])


def moves():
    for perm in ([0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1, 3], [3, 2, 1, 0], [0, 1, 3, 2]):
        one(f"Transpose {perm}", "Transpose", IMAGE, perm=perm)
    one("Transpose 021", "Transpose", [1, 256, 1000], perm=[0, 2, 1])
    one("Transpose heads", "Transpose", [1, 197, 12, 64], perm=[0, 2, 1, 3])
    one("Transpose u8", "Transpose", [1, 480, 640, 3], perm=[0, 3, 1, 2], dtype=np.uint8)
    one("Transpose u8 to pixels", "Transpose", [1, 3, 480, 640], perm=[0, 2, 3, 1], dtype=np.uint8)
    one("Transpose u8 64", "Transpose", IMAGE, perm=[0, 2, 3, 1], dtype=np.uint8)
    one("Transpose i64", "Transpose", IMAGE, perm=[0, 2, 3, 1], dtype=np.int64)
    one("Transpose photo", "Transpose", [1, 480, 640, 3], perm=[0, 3, 1, 2])
    one("Transpose photo to pixels", "Transpose", [1, 3, 480, 640], perm=[0, 2, 3, 1])
    case("Relu, Concat 1", IMAGE, [node("Relu", "x", "a"), node("Concat", "a,x", "y", axis=1)])
    case("Relu, Concat 3", IMAGE, [node("Relu", "x", "a"), node("Concat", "a,x", "y", axis=3)])
    case("Split, Mul", IMAGE, [node("Split", "x", "a,b", axis=1), node("Mul", "a,b", "y")])
    one("Slice", "Slice", IMAGE, [ints(1, 1), ints(55, 55), ints(2, 3)])
    one("Slice steps", "Slice", IMAGE, [ints(0, 0), ints(56, 56), ints(2, 3), ints(2, 2)])
    one("Pad", "Pad", IMAGE, [ints(0, 0, 1, 1, 0, 0, 1, 1)])
    one("Pad reflect", "Pad", IMAGE, [ints(0, 0, 3, 3, 0, 0, 3, 3)], mode="reflect")
    one("Pad edge", "Pad", IMAGE, [ints(0, 0, 1, 1, 0, 0, 1, 1)], mode="edge")
    one("Pad 1d reflect", "Pad", [1, 160000], [ints(0, 200, 0, 200)], mode="reflect")
    one("Tile", "Tile", IMAGE, [ints(1, 1, 2, 2)])
    one("Tile rows", "Tile", [1, 1, 768], [ints(1, 197, 1)])
    one("Expand", "Expand", [1, 64, 1, 56], [ints(1, 64, 56, 56)])
    one("Expand last", "Expand", [1, 64, 56, 1], [ints(1, 64, 56, 56)])
    one("Gather 0", "Gather", [1000, 256], [RANDOM.integers(0, 1000, 512)], axis=0)
    one("Gather 1", "Gather", IMAGE, [RANDOM.integers(0, 64, 32)], axis=1)
    one("Gather last", "Gather", [64, 56, 56], [RANDOM.integers(0, 56, 20)], axis=2)
    one("GatherND", "GatherND", [100, 100, 64], [RANDOM.integers(0, 100, (500, 2))])
    one("GatherElements last", "GatherElements", [64, 56, 56], [RANDOM.integers(0, 56, (64, 56, 56))], axis=2)
    one("GatherElements 1", "GatherElements", [64, 56, 56], [RANDOM.integers(0, 56, (64, 56, 56))], axis=1)
    case("ScatterND", [1000, 64], [node("ScatterND", "x,i,u", "y")], {"i": RANDOM.integers(0, 1000, (300, 1)), "u": floats(300, 64)})
    case("ScatterElements", [1000, 64], [node("ScatterElements", "x,i,u", "y", axis=0)],
         {"i": RANDOM.permuted(np.tile(np.arange(1000)[:, None], 64), axis=0)[:300], "u": floats(300, 64)})
    one("DepthToSpace", "DepthToSpace", IMAGE, blocksize=2)
    one("SpaceToDepth", "SpaceToDepth", IMAGE, blocksize=2)
    two = [None, np.array([1, 1, 2, 2], np.float32)]
    one("Resize nearest x2", "Resize", [1, 64, 40, 40], two, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    one("Resize nearest half pixel x2", "Resize", [1, 64, 40, 40], two, mode="nearest")
    one("Resize linear x2", "Resize", [1, 64, 40, 40], two, mode="linear")
    one("Resize linear corners x2", "Resize", [1, 64, 40, 40], two, mode="linear", coordinate_transformation_mode="align_corners")
    one("Resize cubic x2", "Resize", [1, 64, 40, 40], two, mode="cubic")
    one("Resize linear photo", "Resize", [1, 3, 480, 640], [None, None, ints(1, 3, 224, 224)], mode="linear")
    one("Resize 1d nearest x4", "Resize", [1, 64, 500], [None, np.array([1, 1, 4], np.float32)], mode="nearest",
        coordinate_transformation_mode="asymmetric")
    one("Resize 1d linear x4", "Resize", [1, 64, 500], [None, np.array([1, 1, 4], np.float32)], mode="linear")
    case("GridSample", [1, 32, 40, 40], [node("GridSample", "x,g", "y")], {"g": floats(1, 40, 40, 2) * 3})


def products():
    one("MatMul 197x768x768", "MatMul", [197, 768], [floats(768, 768)])
    one("MatMul 1x768x1000", "MatMul", [1, 768], [floats(768, 1000)])
    one("MatMul 400x16x400", "MatMul", [400, 16], [floats(16, 400)])
    one("MatMul 40x120x6625", "MatMul", [40, 120], [floats(120, 6625)])
    one("Gemm 32x512x512", "Gemm", [32, 512], [floats(512, 512), floats(512)])
    one("Gemm 1x512x1000", "Gemm", [1, 512], [floats(1000, 512), floats(1000)], transB=1)
    one("Gemm alpha", "Gemm", [32, 512], [floats(512, 512), floats(512)], alpha=.5)
    for heads, tokens, width in ((12, 197, 64), (8, 20, 32)):
        case(f"attention {heads}x{tokens}x{width}", [heads, tokens, width],
             [node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "x,t", "s"), node("Softmax", "s", "p"), node("MatMul", "p,x", "y")])
    case("Einsum bid,bjd->bij", [8, 197, 64], [node("Einsum", "x,x", "y", equation="bid,bjd->bij")])
    case("squeeze and excite", [1, 128, 28, 28],
         [node("GlobalAveragePool", "x", "g"), node("Conv", "g,v", "a"), node("Relu", "a", "b"), node("Conv", "b,w", "c"),
          node("HardSigmoid", "c", "d"), node("Mul", "x,d", "y")], {"v": floats(32, 128, 1, 1), "w": floats(128, 32, 1, 1)})

    def cell(name, op, steps, batch, width, hidden, directions=1, **attributes):
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
        case(f"{op} {name}", [steps, batch, width],
             [node(op, "x,w,r,b", "y,h", hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward", **attributes)],
             {"w": floats(directions, gates * hidden, width), "r": floats(directions, gates * hidden, hidden) * number(.5),
              "b": floats(directions, 2 * gates * hidden)})

    cell("100x128", "LSTM", 100, 1, 128, 128)
    cell("both 300x60-128", "LSTM", 300, 1, 60, 128, 2)
    cell("1x128", "LSTM", 1, 1, 128, 128)
    cell("1x64", "LSTM", 1, 1, 64, 64)
    cell("50x8x128", "LSTM", 50, 8, 128, 128)
    cell("both 40x512", "LSTM", 40, 1, 512, 512, 2)
    cell("both 80x96-48", "LSTM", 80, 1, 96, 48, 2)
    cell("100x128", "GRU", 100, 1, 128, 128, linear_before_reset=1)
    cell("40x256-512", "GRU", 40, 1, 256, 512)
    cell("both 21x32", "GRU", 21, 1, 32, 32, 2)
    cell("100x64", "RNN", 100, 1, 64, 64)
    case("DFT 512", [1, 100, 512, 1], [node("DFT", "x", "y", axis=2, onesided=1)])
    case("STFT 512", [1, 48000], [node("STFT", "x,s,w,f", "y", onesided=1)],
         {"s": number(160, np.int64), "w": np.hanning(512).astype(np.float32), "f": number(512, np.int64)})


def bytes_of(a):
    return np.clip(np.round(a * 127 / np.abs(a).max()), -127, 127).astype(np.int8)


def quantised():
    def qlinear(name, x, out, kernel, group=1, type_=np.uint8, **attributes):
        zero = number(128 if type_ == np.uint8 else 3, type_)
        case(f"QLinearConv {name}", x,
             [node("QuantizeLinear", "x,xs,z", "q"), node("QLinearConv", "q,xs,z,w,ws,wz,ys,z", "o", group=group, **attributes),
              node("DequantizeLinear", "o,ys,z", "y")],
             {"xs": number(.02), "z": zero, "w": bytes_of(floats(out, x[1] // group, *kernel)), "ws": np.full(out, .01, np.float32),
              "wz": np.zeros(out, np.int8), "ys": number(.05)})

    for kind, type_ in (("u8", np.uint8), ("s8", np.int8)):
        qlinear(f"{kind} 3x3 28 128", [1, 128, 28, 28], 128, (3, 3), 1, type_, pads=[1] * 4)
        qlinear(f"{kind} 1x1 28 256", [1, 256, 28, 28], 256, (1, 1), 1, type_)
        qlinear(f"{kind} depthwise 28 128", [1, 128, 28, 28], 128, (3, 3), 128, type_, pads=[1] * 4)
        qlinear(f"{kind} 3x3 s2 224 3-32", [1, 3, 224, 224], 32, (3, 3), 1, type_, pads=[1] * 4, strides=[2, 2])
        qlinear(f"{kind} groups 4", [1, 128, 28, 28], 128, (3, 3), 4, type_, pads=[1] * 4)
    qlinear("u8 1d 64 k3", [1, 64, 400], 64, (3,), pads=[1, 1])
    qlinear("s8 1d 64 k3", [1, 64, 400], 64, (3,), 1, np.int8, pads=[1, 1])
    for kind, zero in (("u8", number(128, np.uint8)), ("s8", number(0, np.int8))):
        case(f"QLinearMatMul {kind}", [197, 768],
             [node("QuantizeLinear", "x,xs,z", "q"), node("QLinearMatMul", "q,xs,z,w,ws,wz,ys,z", "o"), node("DequantizeLinear", "o,ys,z", "y")],
             {"xs": number(.02), "z": zero, "w": bytes_of(floats(768, 768)), "ws": number(.01), "wz": number(0, np.int8), "ys": number(.5)})
    scales = {"xs": number(.02), "z": number(128, np.uint8), "ws": np.full(128, .01, np.float32), "wz": np.zeros(128, np.int8), "ys": number(.05)}
    for name, group in (("3x3", 1), ("depthwise", 128)):
        for kind, zero in (("u8", number(128, np.uint8)), ("s8", number(0, np.int8))):
            case(f"QDQ conv {kind} {name} 28 128", [1, 128, 28, 28],
                 [node("QuantizeLinear", "x,xs,z", "q"), node("DequantizeLinear", "q,xs,z", "d"), node("DequantizeLinear", "w,ws,wz", "e", axis=0),
                  node("Conv", "d,e", "o", pads=[1] * 4, group=group), node("Relu", "o", "r"), node("QuantizeLinear", "r,ys,z", "p"),
                  node("DequantizeLinear", "p,ys,z", "y")], {**scales, "z": zero, "w": bytes_of(floats(128, 128 // group, 3, 3))})

    def dynamic(name, op, x, constants, operands, **attributes):
        case(f"{op} {name}", x,
             [node("DynamicQuantizeLinear", "x", "q,s,z"), node(op, operands, "i", **attributes), node("Cast", "i", "f", to=TensorProto.FLOAT),
              node("Mul", "s,ws", "m"), node("Mul", "f,m", "y")], {**constants, "ws": number(.01)})

    weights = bytes_of(floats(768, 768))
    dynamic("s8", "MatMulInteger", [197, 768], {"w": weights}, "q,w,z")
    dynamic("u8", "MatMulInteger", [197, 768],
            {"w": (weights.astype(np.int32) + 128).astype(np.uint8), "wz": number(110, np.uint8)}, "q,w,z,wz")
    dynamic("1 row", "MatMulInteger", [1, 768], {"w": weights}, "q,w,z")
    dynamic("3x3", "ConvInteger", [1, 64, 28, 28], {"w": bytes_of(floats(64, 64, 3, 3))}, "q,w,z", pads=[1] * 4)
    dynamic("1d", "ConvInteger", [1, 64, 400], {"w": bytes_of(floats(64, 64, 3))}, "q,w,z", pads=[1, 1])
    case("DynamicQuantizeLinear", [197, 768], [node("DynamicQuantizeLinear", "x", "y,s,z")])
    one("QuantizeLinear u8", "QuantizeLinear", IMAGE, [number(.02), number(128, np.uint8)])
    one("QuantizeLinear s8 channel", "QuantizeLinear", IMAGE, [np.full(64, .02, np.float32), np.zeros(64, np.int8)], axis=1)
    one("DequantizeLinear u8", "DequantizeLinear", IMAGE, [number(.02), number(128, np.uint8)], dtype=np.uint8)
    one("DequantizeLinear s8 channel", "DequantizeLinear", IMAGE, [np.full(64, .02, np.float32), np.zeros(64, np.int8)], dtype=np.int8, axis=1)


def halves():
    half = np.float16
    one("f16 Conv 3x3 28 128", "Conv", [1, 128, 28, 28], [floats(128, 128, 3, 3).astype(half)], dtype=half, pads=[1] * 4)
    one("f16 MatMul 197x768x768", "MatMul", [197, 768], [floats(768, 768).astype(half)], dtype=half)
    for op in "Relu Sigmoid Erf".split():
        one(f"f16 {op}", op, IMAGE, dtype=half)
    one("f16 Add", "Add", IMAGE, [floats(*IMAGE).astype(half)], dtype=half)
    one("f16 Softmax", "Softmax", [1, 12, 197, 197], dtype=half, axis=-1)
    one("f16 LayerNormalization", "LayerNormalization", [1, 197, 768], [floats(768).astype(half), floats(768).astype(half)], dtype=half, axis=-1)
    one("f16 Transpose", "Transpose", IMAGE, perm=[0, 2, 3, 1], dtype=half)
    one("f16 MaxPool", "MaxPool", [1, 64, 112, 112], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, dtype=half)


def more_pairs():
    """Forms that exporters write, beside those above."""
    mask = RANDOM.integers(0, 2, IMAGE).astype(np.bool_)
    for name, shape in (("same", IMAGE), ("row", (56,)), ("channel", (64, 1, 1)), ("scalar", ())):
        case(f"Where {name}", IMAGE, [node("Where", "m,x,z", "y")], {"m": mask, "z": floats(*shape)})
    case("Where mask of keys", [1, 12, 197, 197], [node("Where", "m,x,z", "y")],
         {"m": RANDOM.integers(0, 2, (1, 1, 1, 197)).astype(np.bool_), "z": number(-1e9)})
    case("Where i64", IMAGE, [node("Where", "m,x,z", "y")], {"m": mask, "z": number(0, np.int64)}, dtype=np.int64)
    for kind in "int32 uint8".split():
        for op in "Add Mul Max Min Equal Less".split():
            if op not in ("Max", "Min", "Less") or kind != "uint8":
                one(f"{op} {kind}", op, IMAGE, [number(3, kind)], dtype=np.dtype(kind))
    one("Mod i64", "Mod", IMAGE, [number(7, np.int64)], dtype=np.int64)
    one("Div i64", "Div", IMAGE, [number(7, np.int64)], dtype=np.int64)
    one("BitShift u8", "BitShift", IMAGE, [number(2, np.uint8)], dtype=np.uint8, direction="RIGHT")
    one("BitwiseAnd i32", "BitwiseAnd", IMAGE, [number(15, np.int32)], opset=18, dtype=np.int32)
    case("Or, Xor", IMAGE, [node("Greater", "x,z", "m"), node("Less", "x,o", "n"), node("Or", "m,n", "a"), node("Xor", "a,m", "y")],
         {"z": number(0), "o": number(-.2)})
    for op in "Tan Asin Cosh Asinh Atanh Relu Not".split():
        kind = np.bool_ if op == "Not" else np.float32
        if op != "Relu":
            one(f"{op} alone", op, IMAGE, dtype=kind)
    one("Acosh alone", "Acosh", IMAGE, opset=17)
    one("IsInf", "IsInf", IMAGE)
    one("Shrink", "Shrink", IMAGE, lambd=.5)
    one("Clip 0 1", "Clip", IMAGE, [number(0), number(1)])
    one("Clip i64", "Clip", IMAGE, [number(3, np.int64), number(60, np.int64)], dtype=np.int64)
    one("PRelu one", "PRelu", IMAGE, [floats(1)])
    case("Sum of 3", IMAGE, [node("Sum", "x,b,c", "y")], {"b": floats(*IMAGE), "c": floats(*IMAGE)})
    case("Max of 3", IMAGE, [node("Max", "x,b,c", "y")], {"b": floats(*IMAGE), "c": floats(64, 1, 1)})
    case("hard swish of parts", IMAGE, [node("Add", "x,t", "a"), node("Clip", "a,z,s", "b"), node("Mul", "x,b", "c"), node("Div", "c,s", "y")],
         {"t": number(3), "z": number(0), "s": number(6)})
    case("mish of parts", IMAGE, [node("Softplus", "x", "a"), node("Tanh", "a", "b"), node("Mul", "x,b", "y")])
    case("gelu by tanh of parts", [1, 197, 768],
         [node("Mul", "x,x", "a"), node("Mul", "a,x", "b"), node("Mul", "b,k", "c"), node("Add", "x,c", "d"), node("Mul", "d,r", "e"),
          node("Tanh", "e", "f"), node("Add", "f,o", "g"), node("Mul", "x,g", "h"), node("Mul", "h,half", "y")],
         {"k": number(.044715), "r": number(.79788456), "o": number(1), "half": number(.5)})


def more_moves():
    for kind in (np.int32, np.int64):
        short = np.dtype(kind).name
        one(f"Gather 0 {short}", "Gather", [30522, 128], [RANDOM.integers(0, 30522, (8, 64)).astype(kind)], axis=0)
    one("Gather of i64", "Gather", [1000, 16], [RANDOM.integers(0, 1000, 512)], dtype=np.int64, axis=0)
    one("Gather scalar", "Gather", [1, 197, 768], [number(0, np.int64)], axis=1)
    one("Slice backwards", "Slice", [1, 64, 1000], [ints(-1), ints(-2000), ints(2), ints(-1)])
    one("Slice 0", "Slice", [1, 197, 768], [ints(0), ints(1), ints(1)])
    one("Slice half last", "Slice", [1, 12, 197, 64], [ints(0), ints(32), ints(3)])
    for axis in (1, 2, 3):
        case(f"Split 2 {axis}", IMAGE, [helper.make_node("Split", ["x"], ["a", "b"], axis=axis), node("Add", "a,b", "y")])
        case(f"Concat 3 {axis}", IMAGE, [node("Concat", "x,b,x", "y", axis=axis)], {"b": floats(*IMAGE)})
    case("Split qkv", [1, 197, 2304], [node("Split", "x", "a,b,c", axis=2), node("Add", "a,b", "d"), node("Add", "c,d", "y")])
    one("Expand channels", "Expand", [1, 64, 1, 1], [ints(1, 64, 56, 56)])
    one("Expand batch", "Expand", [1, 197, 64], [ints(8, 197, 64)])
    one("Tile last", "Tile", [1, 64, 56, 1], [ints(1, 1, 1, 56)])
    one("Trilu", "Trilu", [1, 12, 197, 197], [number(0, np.int64)], upper=0)
    case("OneHot", [512], [node("OneHot", "x,d,v", "y")], {"d": ints(1000), "v": np.array([0, 1], np.float32)}, dtype=np.int64)
    case("ScatterND add", [1000, 64], [node("ScatterND", "x,i,u", "y", reduction="add")],
         {"i": RANDOM.integers(0, 1000, (300, 1)), "u": floats(300, 64)})
    case("ScatterElements 1", [1000, 64], [node("ScatterElements", "x,i,u", "y", axis=1)],
         {"i": np.argsort(RANDOM.random((1000, 64)), axis=1)[:, :16], "u": floats(1000, 16)})
    one("ReverseSequence", "ReverseSequence", [50, 8, 64], [RANDOM.integers(1, 50, 8)], time_axis=0, batch_axis=1)
    one("Pad i64", "Pad", [1, 64, 56], [ints(0, 0, 2, 0, 0, 2)], dtype=np.int64)
    one("Pad last", "Pad", [1, 80, 3000], [ints(0, 0, 0, 0, 0, 8)])
    one("Reshape, Transpose, Reshape", "SpaceToDepth", [1, 3, 640, 640], blocksize=2)
    case("channel shuffle", IMAGE, [node("Reshape", "x,a", "b"), node("Transpose", "b", "c", perm=[0, 2, 1, 3, 4]), node("Reshape", "c,d", "y")],
         {"a": ints(1, 2, 32, 56, 56), "d": ints(*IMAGE)})
    case("windows", [1, 56, 56, 96], [node("Reshape", "x,a", "b"), node("Transpose", "b", "c", perm=[0, 1, 3, 2, 4, 5]), node("Reshape", "c,d", "y")],
         {"a": ints(1, 8, 7, 8, 7, 96), "d": ints(64, 49, 96)})
    one("f16 Concat-like Transpose", "Transpose", [1, 12, 197, 64], perm=[0, 2, 1, 3], dtype=np.float16)
    case("rotary", [1, 12, 197, 64],
         [node("Slice", "x,z,h,a", "p"), node("Slice", "x,h,w,a", "q"), node("Neg", "q", "n"), node("Concat", "n,p", "r", axis=3),
          node("Mul", "x,cos", "c"), node("Mul", "r,sin", "s"), node("Add", "c,s", "y")],
         {"z": ints(0), "h": ints(32), "w": ints(64), "a": ints(3), "cos": floats(197, 64), "sin": floats(197, 64)})


def more_layers():
    one("LpPool", "LpPool", [1, 64, 56, 56], kernel_shape=[2, 2], strides=[2, 2])
    one("maxpool 3x3 s1", "MaxPool", IMAGE, kernel_shape=[3, 3], pads=[1] * 4)
    one("maxpool 13x13 s1", "MaxPool", [1, 256, 20, 20], kernel_shape=[13, 13], pads=[6] * 4)
    one("avgpool 7x7", "AveragePool", [1, 512, 7, 7], kernel_shape=[7, 7])
    one("global average 1d", "GlobalAveragePool", [1, 512, 200])
    one("f16 Gemm", "Gemm", [32, 512], [floats(512, 512).astype(np.float16), floats(512).astype(np.float16)], dtype=np.float16)
    one("f16 BatchNormalization", "BatchNormalization", IMAGE,
        [np.abs(floats(64)).astype(np.float16) + np.float16(.1) for _ in range(4)], dtype=np.float16)
    one("f16 ReduceMean", "ReduceMean", [1, 197, 768], dtype=np.float16, axes=[-1])
    for equation, x, z in (("bhid,bhjd->bhij", (1, 8, 197, 64), (1, 8, 197, 64)), ("bij,bjk->bik", (8, 197, 64), (8, 64, 197)),
                           ("nchw,cd->ndhw", (1, 64, 28, 28), (64, 32)), ("btd,de->bte", (1, 197, 64), (64, 128)),
                           ("bhwc,hkc->bhwk", (8, 14, 14, 64), (14, 14, 64))):
        case(f"Einsum {equation}", list(x), [node("Einsum", "x,z", "y", equation=equation)], {"z": floats(*z)})
    case("layer norm over channels", IMAGE,
         [node("ReduceMean", "x", "m", axes=[1]), node("Sub", "x,m", "d"), node("Mul", "d,d", "q"), node("ReduceMean", "q", "v", axes=[1]),
          node("Add", "v,e", "w"), node("Sqrt", "w", "s"), node("Div", "d,s", "n"), node("Mul", "n,g", "o"), node("Add", "o,b", "y")],
         {"e": number(1e-6), "g": floats(64, 1, 1), "b": floats(64, 1, 1)})
    case("group norm of parts", IMAGE,
         [node("Reshape", "x,a", "r"), node("InstanceNormalization", "r,one,zero", "i"), node("Reshape", "i,s", "j"), node("Mul", "j,g", "o"),
          node("Add", "o,b", "y")],
         {"a": ints(1, 8, -1), "s": ints(*IMAGE), "one": np.ones(8, np.float32), "zero": np.zeros(8, np.float32), "g": floats(64, 1, 1),
          "b": floats(64, 1, 1)})
    case("cosine similarity", [197, 768], [node("ReduceL2", "x", "n", axes=[-1]), node("Clip", "n,e", "m"), node("Div", "x,m", "y")], {"e": number(1e-12)})
    case("MatMul of batch 3d", [8, 197, 64], [node("MatMul", "x,w", "y")], {"w": floats(64, 256)})
    case("MatMul + Add", [1, 197, 768], [node("MatMul", "x,w", "a"), node("Add", "a,b", "y")], {"w": floats(768, 768), "b": floats(768)})
    case("DequantizeLinear weights, MatMul", [197, 768], [node("DequantizeLinear", "w,s,z", "d", axis=1), node("MatMul", "x,d", "y")],
         {"w": bytes_of(floats(768, 768)), "s": np.full(768, .01, np.float32), "z": np.zeros(768, np.int8)})

    def microsoft(name, op, x, constants, **attributes):
        case(name, x, [node("QuantizeLinear", "x,s,z", "q"), helper.make_node(op, ["q", "s", "z", *constants], ["o"], domain="com.microsoft", **attributes),
                       node("DequantizeLinear", "o,t,z", "y")],
             {"s": number(.02), "t": number(.05), "z": number(128, np.uint8), "b": RANDOM.integers(0, 255, x).astype(np.uint8)})

    microsoft("QLinearAdd", "QLinearAdd", IMAGE, ["b", "s", "z", "t", "z"])
    microsoft("QLinearMul", "QLinearMul", IMAGE, ["b", "s", "z", "t", "z"])
    microsoft("QLinearGlobalAveragePool", "QLinearGlobalAveragePool", [1, 512, 7, 7], ["t", "z"], channels_last=0)
    microsoft("QLinearSigmoid", "QLinearSigmoid", IMAGE, ["t", "z"])
    microsoft("QLinearLeakyRelu", "QLinearLeakyRelu", IMAGE, ["t", "z"], alpha=.1)


FAMILIES = (convolutions, pools, elementwise, reductions, normalisations, moves, products, quantised, halves, more_pairs, more_moves,
            more_layers, *TYPES_AND_SHAPES)
ELEMENT = {np.dtype(t): o for t, o in ((np.float32, TensorProto.FLOAT), (np.float16, TensorProto.FLOAT16), (np.float64, TensorProto.DOUBLE),
                                       (np.int64, TensorProto.INT64), (np.int32, TensorProto.INT32), (np.uint8, TensorProto.UINT8),
                                       (np.int8, TensorProto.INT8), (np.bool_, TensorProto.BOOL),
                                       (np.uint32, TensorProto.UINT32), (np.uint64, TensorProto.UINT64))}


def make_model(shape, nodes, constants, opset, dtype):
    """The type of "y" is what shape inference finds."""
    x = helper.make_tensor_value_info("x", ELEMENT[np.dtype(dtype)], shape)
    made = [numpy_helper.from_array(np.asarray(c), name) for name, c in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [onnx.ValueInfoProto(name="y")], made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def make_input(shape, dtype, positive):
    if np.issubdtype(np.dtype(dtype), np.floating):
        x = RANDOM.standard_normal(shape) * .3
        return (np.abs(x) + .1 if positive else x).astype(dtype)
    return RANDOM.integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)


def measure(a, name, folder):
    shape, nodes, constants, opset, dtype, positive = CASES[name]
    path = folder / "model.onnx"
    onnx.save(make_model(shape, nodes, constants, opset, dtype), path)
    try:
        theirs = run.OnnxRuntime(str(path), a.threads)
    except Exception as e:  # an operator that ONNX Runtime lacks for the type
        print(f"| {name} | ONNX Runtime: {str(e).splitlines()[0][:100]} |")
        return None
    theirs.feeds = {"x": make_input(shape, dtype, positive)}
    run.write_feeds(folder, theirs.feeds)
    theirs.infer()
    try:
        ours = run.Penstock(a.program, str(path), folder, a.threads)
    except RuntimeError as e:
        print(f"| {name} | refused: {str(e)[-120:]} |")
        return None
    ours_ms, theirs_ms, ratio, least = run.compare(ours, theirs, a.seconds, a.pairs)
    difference = f" {run.check(ours, theirs, folder)} |" if a.check else ""
    ours.close()
    if a.all or min(ratio, least) > 1.3:
        print(f"| {name} | {ours_ms * 1e3:.1f} | {theirs_ms * 1e3:.1f} | {ratio:.2f} | {least:.2f} |{difference}", flush=True)
    return min(ratio, least)


def main(families=FAMILIES, text=__doc__, kind="operator"):
    p = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", default="build/release/bin/bench_models_run")
    p.add_argument("--only", default="")
    p.add_argument("--family", default="", help="of functions in operators*.py")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--pairs", type=int, default=9)
    p.add_argument("--seconds", type=float, default=.01)
    p.add_argument("--all", action="store_true")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    for family in families:
        if re.search(a.family, family.__name__):
            family()
    ratios = {}
    print(f"| {kind} | Penstock, us | ONNX Runtime, us | ratio | of shortest times |" + (" difference |" if a.check else ""))
    print("| --- | --- | --- | --- | --- |" + (" --- |" if a.check else ""))
    for name in CASES:
        if re.search(a.only, name):
            with tempfile.TemporaryDirectory() as folder:
                ratio = measure(a, name, pathlib.Path(folder))
            if ratio:
                ratios[name] = ratio
    if ratios:
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        print(f"\n{len(ratios)} {kind}s, geometric mean {mean:.2f}; above 1.3: {sum(r > 1.3 for r in ratios.values())}")


if __name__ == "__main__":
    main()
