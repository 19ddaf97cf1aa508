"""More of operators.py: other element types, odd sizes, short last axes, batches, and operators that models have now and then."""
import numpy as np
from onnx import TensorProto, helper

from cases import IMAGE, RANDOM, case, floats, ints, node, number, one

HALF = np.float16
BATCH = [8, 32, 28, 28]
ODD = [1, 61, 53, 47]


def pools_wide():
    for kind in (np.uint8, np.int8, HALF, np.float64):
        short = np.dtype(kind).name
        one(f"MaxPool {short} 3x3 s2", "MaxPool", [1, 64, 56, 56], dtype=kind, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, opset=12)
    one("AveragePool float16 3x3 s1", "AveragePool", [1, 96, 28, 28], dtype=HALF, kernel_shape=[3, 3], pads=[1] * 4)
    for name, x, attributes in (("2x2 s2 odd", ODD, dict(kernel_shape=[2, 2], strides=[2, 2])),
                                ("3x3 s2 odd ceil", ODD, dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)),
                                ("3x3 s1 batch 8", BATCH, dict(kernel_shape=[3, 3], pads=[1] * 4)),
                                ("3x3 s1 7x7", [1, 832, 7, 7], dict(kernel_shape=[3, 3], pads=[1] * 4)),
                                ("3x3 s3", [1, 64, 57, 57], dict(kernel_shape=[3, 3], strides=[3, 3])),
                                ("2x1 s2x1", [1, 64, 32, 320], dict(kernel_shape=[2, 1], strides=[2, 1])),
                                ("4x4 s4", IMAGE, dict(kernel_shape=[4, 4], strides=[4, 4])),
                                ("9x9 s1", [1, 128, 20, 20], dict(kernel_shape=[9, 9], pads=[4] * 4)),
                                ("3d 3x3x3 s2", [1, 16, 16, 28, 28], dict(kernel_shape=[3] * 3, strides=[2] * 3, pads=[1] * 6)),
                                ("1d k2 s2", [1, 128, 2000], dict(kernel_shape=[2], strides=[2])),
                                ("1d k3 s1", [1, 128, 2000], dict(kernel_shape=[3], pads=[1, 1]))):
        one(f"MaxPool {name}", "MaxPool", x, **attributes)
        one(f"AveragePool {name}", "AveragePool", x, **attributes)
    one("AveragePool counts padding", "AveragePool", [1, 192, 35, 35], kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    one("AveragePool 8x8", "AveragePool", [1, 256, 8, 8], kernel_shape=[8, 8])
    one("AveragePool 3x1 s2x1", "AveragePool", [1, 512, 3, 80], kernel_shape=[3, 1], strides=[3, 1])
    one("GlobalAveragePool 8", "GlobalAveragePool", [8, 256, 7, 7])
    one("GlobalAveragePool float16", "GlobalAveragePool", [1, 512, 14, 14], dtype=HALF)
    one("GlobalMaxPool 1d", "GlobalMaxPool", [1, 256, 400])
    case("MaxPool with places", [1, 64, 56, 56], [node("MaxPool", "x", "v,p", kernel_shape=[2, 2], strides=[2, 2]),
                                                  node("Cast", "p", "q", to=TensorProto.FLOAT), node("Add", "v,q", "y")])


def elementwise_wide():
    for op in ("HardSwish LeakyRelu Clip Tanh Gelu Elu Softplus Exp Sqrt Abs Neg HardSigmoid Log Mish Floor Reciprocal Celu "
               "ThresholdedRelu").split():
        constants = [number(0, HALF), number(6, HALF)] if op == "Clip" else []
        one(f"float16 {op}", op, [1, 64, 28, 28], constants, opset=20, dtype=HALF, positive=op in ("Log", "Sqrt"))
    for op in "Relu Sigmoid Tanh Exp Log Sqrt Abs Floor Erf".split():
        one(f"float64 {op}", op, [1, 64, 28, 28], dtype=np.float64, positive=op in ("Log", "Sqrt"))
    for op in "Abs Neg Relu Sign".split():
        for kind in (np.int32, np.int64, np.int8):
            one(f"{np.dtype(kind).name} {op}", op, IMAGE, dtype=kind, opset=14)
    for kind in (HALF, np.float64):
        short = np.dtype(kind).name
        for op in "Sub Mul Div Max Pow".split():
            one(f"{short} {op} scalar", op, [1, 64, 28, 28], [number(2, kind)], dtype=kind)
        for op in "Add Mul".split():
            one(f"{short} {op} channel", op, [1, 64, 28, 28], [floats(64, 1, 1).astype(kind)], dtype=kind)
            one(f"{short} {op} last", op, [1, 197, 768], [floats(768).astype(kind)], dtype=kind)
        for op in "Equal Greater".split():
            one(f"{short} {op}", op, [1, 64, 28, 28], [number(0, kind)], dtype=kind)
    for kind in (np.int8, np.uint8):
        short = np.dtype(kind).name
        one(f"{short} Clip", "Clip", IMAGE, [number(3, kind), number(60, kind)], dtype=kind)
        for op in "Max Min".split():
            one(f"{short} {op}", op, IMAGE, [RANDOM.integers(0, 99, IMAGE).astype(kind)], dtype=kind)
        for op in "Sub Div".split():
            one(f"{short} {op}", op, IMAGE, [number(3, kind)], dtype=kind)
    for op in "Sub Div Max Min".split():
        one(f"int64 {op} same", op, [1, 64, 28, 28], [RANDOM.integers(1, 99, (1, 64, 28, 28))], dtype=np.int64)
    one("int32 Div", "Div", IMAGE, [number(7, np.int32)], dtype=np.int32)
    one("int32 Mod", "Mod", IMAGE, [number(7, np.int32)], dtype=np.int32)
    one("int64 Mod same", "Mod", IMAGE, [RANDOM.integers(1, 99, IMAGE)], dtype=np.int64)
    one("float32 Mod same", "Mod", IMAGE, [np.abs(floats(*IMAGE)) + number(.1)], fmod=1)
    one("int64 Pow 2", "Pow", IMAGE, [number(2, np.int64)], dtype=np.int64)
    for exponent in (3, -1, -.5, 1.7):
        one(f"Pow {exponent}", "Pow", IMAGE, [number(exponent)], positive=True)
    one("Pow of a scalar", "Pow", [1, 64, 28, 28], [floats(1, 64, 28, 28)], positive=True)
    case("Pow of base 10", [1, 64, 28, 28], [node("Pow", "b,x", "y")], {"b": number(10)})
    for direction in "LEFT RIGHT".split():
        one(f"BitShift uint32 {direction}", "BitShift", IMAGE, [number(3, np.uint32)], dtype=np.uint32, direction=direction)
        one(f"BitShift uint64 {direction}", "BitShift", IMAGE, [number(3, np.uint64)], dtype=np.uint64, direction=direction)
    for op in "And Or Xor".split():
        one(f"{op} row", op, IMAGE, [RANDOM.integers(0, 2, (56,)).astype(np.bool_)], dtype=np.bool_)
    one("Equal bool", "Equal", IMAGE, [np.bool_(True)], dtype=np.bool_)
    for kind in (np.int64, np.int32):
        one(f"{np.dtype(kind).name} Greater same", "Greater", IMAGE, [RANDOM.integers(0, 99, IMAGE).astype(kind)], dtype=kind)
    mask = RANDOM.integers(0, 2, IMAGE).astype(np.bool_)
    for kind in (HALF, np.float64, np.int32, np.uint8, np.bool_):
        case(f"Where {np.dtype(kind).name}", IMAGE, [node("Where", "m,x,z", "y")], {"m": mask, "z": number(0, kind)}, dtype=kind)
    case("Where short last", [1, 3136, 3], [node("Where", "m,x,z", "y")],
         {"m": RANDOM.integers(0, 2, (1, 3136, 1)).astype(np.bool_), "z": number(0)})
    for last in (1, 2, 3, 4, 5, 7):
        one(f"Add rows of {last}", "Add", [1, 8400, last], [floats(last)])
        one(f"Mul column to {last}", "Mul", [1, 8400, last], [floats(8400, 1)])
    one("Add of 5-D", "Add", [1, 8, 16, 28, 28], [floats(8, 1, 28, 28)])
    one("Add of two axes", "Add", [8, 12, 49, 49], [floats(8, 1, 1, 49)])
    one("Add outer", "Add", [1, 197, 1], [floats(197)])
    one("Add batch 8", "Add", [8, 197, 64], [floats(197, 64)])
    one("Sub means", "Sub", [8, 197, 64], [floats(8, 197, 1)])
    case("hard swish float16 of parts", [1, 64, 28, 28],
         [node("Add", "x,t", "a"), node("Clip", "a,z,s", "b"), node("Mul", "x,b", "c"), node("Div", "c,s", "y")],
         {"t": number(3, HALF), "z": number(0, HALF), "s": number(6, HALF)}, dtype=HALF)
    case("silu float16", [1, 64, 28, 28], [node("Sigmoid", "x", "s"), node("Mul", "x,s", "y")], dtype=HALF)
    case("silu 7x7", [1, 1280, 7, 7], [node("Sigmoid", "x", "s"), node("Mul", "x,s", "y")])
    case("glu", [1, 512, 200], [node("Split", "x", "a,b", axis=1), node("Sigmoid", "b", "s"), node("Mul", "a,s", "y")])
    case("geglu", [1, 197, 1024], [node("Split", "x", "a,b", axis=2), node("Gelu", "b", "s"), node("Mul", "a,s", "y")], opset=20)
    case("normalise picture", [1, 3, 224, 224], [node("Sub", "x,m", "a"), node("Div", "a,s", "y")],
         {"m": floats(3, 1, 1), "s": np.abs(floats(3, 1, 1)) + number(.2)})
    case("normalise bytes", [1, 224, 224, 3],
         [node("Cast", "x", "f", to=TensorProto.FLOAT), node("Div", "f,k", "d"), node("Sub", "d,m", "a"), node("Div", "a,s", "b"),
          node("Transpose", "b", "y", perm=[0, 3, 1, 2])],
         {"k": number(255), "m": floats(3), "s": np.abs(floats(3)) + number(.2)}, dtype=np.uint8)


def casts_wide():
    kinds = {"float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64, "int32": TensorProto.INT32,
             "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL}
    pairs = ("int64 bool, bool int64, int32 int64, bool int32, int32 bool, uint8 int32, uint8 int64, int64 uint8, int8 int32, int32 int8, "
             "uint8 float16, float16 int64, int64 float16, float64 int64, int64 float64, float16 float64, bool float16, int64 int8, "
             "float64 int32, bool uint8, uint8 bool")
    for pair in pairs.split(", "):
        a, b = pair.split()
        one(f"Cast {pair}", "Cast", IMAGE, dtype=np.dtype(a), to=kinds[b])


def reductions_wide():
    for kind in (np.int64, np.int32):
        short = np.dtype(kind).name
        for op in "ReduceMax ReduceMin ReduceProd".split():
            one(f"{short} {op} last", op, [64, 1000], dtype=kind, axes=[1], opset=13)
        one(f"{short} ReduceSum 0", "ReduceSum", [64, 1000], [ints(0)], dtype=kind)
        one(f"{short} ReduceMean last", "ReduceMean", [64, 1000], dtype=kind, axes=[1])
        one(f"{short} ArgMax last", "ArgMax", [64, 1000], dtype=kind, axis=1)
    for kind in (HALF, np.float64):
        short = np.dtype(kind).name
        one(f"{short} ReduceSum last", "ReduceSum", [64, 1000], [ints(1)], dtype=kind)
        one(f"{short} ReduceMax 0", "ReduceMax", [64, 1000], dtype=kind, axes=[0])
        one(f"{short} ReduceMean 0", "ReduceMean", [64, 1000], dtype=kind, axes=[0])
        one(f"{short} ArgMax last", "ArgMax", [64, 1000], dtype=kind, axis=1)
        one(f"{short} Softmax", "Softmax", [64, 1000], dtype=kind, axis=1)
    for kind in (np.uint8, np.int8):
        one(f"{np.dtype(kind).name} ReduceMax last", "ReduceMax", [64, 1000], dtype=kind, axes=[1], opset=13)
        one(f"{np.dtype(kind).name} ArgMax last", "ArgMax", [64, 1000], dtype=kind, axis=1, opset=13)
    for last in (2, 3, 4, 5, 7):
        for op in "ReduceMax ReduceMean ReduceL2".split():
            one(f"{op} of {last}", op, [8400, last], axes=[1])
        one(f"Softmax of {last}", "Softmax", [8400, last], axis=1)
        one(f"ArgMax of {last}", "ArgMax", [8400, last], axis=1)
    one("Softmax of 16, axis 2", "Softmax", [1, 4, 16, 8400], axis=2)
    one("Softmax axis 1 of 2", "Softmax", [1, 2, 160, 160], axis=1)
    one("Softmax of 20", "Softmax", [32, 8, 20, 20], axis=3)
    one("LogSoftmax of 37", "LogSoftmax", [200, 37], axis=1)
    one("ReduceLogSumExp of 37", "ReduceLogSumExp", [200, 37], axes=[1])
    one("ReduceSum all", "ReduceSum", IMAGE)
    one("ReduceMean all", "ReduceMean", IMAGE)
    one("ReduceMax [1, 3]", "ReduceMax", [2, 64, 56, 56], axes=[1, 3])
    one("ReduceMean [0, 2, 3]", "ReduceMean", [2, 64, 56, 56], axes=[0, 2, 3])
    one("ReduceMean 5-D", "ReduceMean", [1, 8, 16, 28, 28], axes=[2])
    one("ReduceMean time", "ReduceMean", [8, 197, 64], axes=[1])
    one("ReduceL1 time", "ReduceL1", [8, 197, 64], axes=[1])
    one("ArgMax 1 of 21", "ArgMax", [1, 21, 160, 160], axis=1)
    one("ArgMin last", "ArgMin", [64, 1000], axis=1)
    one("ArgMax select last", "ArgMax", [64, 1000], axis=1, select_last_index=1)
    one("CumSum i64", "CumSum", [8, 512], [number(1, np.int64)], dtype=np.int64)
    one("CumSum i32", "CumSum", [8, 512], [number(1, np.int64)], dtype=np.int32)
    one("CumSum last odd", "CumSum", [40, 333], [number(1, np.int64)])
    one("CumSum reverse", "CumSum", [40, 333], [number(1, np.int64)], reverse=1, exclusive=1)


def selections_wide():
    def topk(name, x, k, axis=-1, **attributes):
        case(f"TopK {name}", x, [node("TopK", "x,k", "y,i", axis=axis, **attributes)], {"k": ints(k)})

    topk("1 of 80, axis 2", [1, 8400, 80], 1)
    topk("10 of 80", [300, 80], 10)
    topk("smallest 5", [100, 256], 5, largest=0)
    topk("100 of 80x80", [1, 6400], 100)
    topk("1000 of 100000", [1, 100000], 1000)
    topk("sort of 64", [200, 64], 64)
    topk("unsorted 50", [8, 5000], 50, sorted=0)
    case("TopK i64", [8, 1000], [node("TopK", "x,k", "y,i")], {"k": ints(5)}, dtype=np.int64)
    one("NonZero of half", "NonZero", [64, 500], dtype=np.bool_)
    one("NonZero i64", "NonZero", [64, 500], dtype=np.int64)
    one("NonZero f32", "NonZero", [64, 500])
    case("Unique", [5000], [node("Unique", "x", "y")], dtype=np.int64)
    case("Unique all", [5000], [node("Unique", "x", "y,a,b,c")], dtype=np.int64)
    one("Compress rows", "Compress", [1000, 64], [RANDOM.integers(0, 2, 1000).astype(np.bool_)], axis=0)
    one("Compress flat", "Compress", [64, 500], [RANDOM.integers(0, 2, 32000).astype(np.bool_)])
    for kind in (np.int64, np.int32):
        case(f"OneHot {np.dtype(kind).name}", [8, 64], [node("OneHot", "x,d,v", "y")],
             {"d": ints(100), "v": np.array([0, 1], np.float32)}, dtype=kind)
    case("OneHot axis 1", [8, 64], [node("OneHot", "x,d,v", "y", axis=1)], {"d": ints(100), "v": np.array([0, 1], np.float32)}, dtype=np.int64)


def moves_wide():
    for kind in (HALF, np.uint8, np.int64):
        short = np.dtype(kind).name
        one(f"{short} Pad", "Pad", [1, 32, 56, 56], [ints(0, 0, 1, 1, 0, 0, 1, 1)], dtype=kind)
        one(f"{short} Slice", "Slice", IMAGE, [ints(1, 1), ints(55, 55), ints(2, 3)], dtype=kind)
        one(f"{short} Gather last", "Gather", [64, 1000], [RANDOM.integers(0, 1000, 100)], dtype=kind, axis=1)
        one(f"{short} Concat", "Concat", IMAGE, [floats(*IMAGE).astype(kind)], dtype=kind, axis=1)
        one(f"{short} Expand", "Expand", [1, 64, 1, 1], [ints(1, 64, 56, 56)], dtype=kind)
        one(f"{short} Tile", "Tile", [1, 64, 28, 28], [ints(1, 1, 2, 2)], dtype=kind)
        one(f"{short} Transpose 021", "Transpose", [1, 256, 500], dtype=kind, perm=[0, 2, 1])
        one(f"{short} DepthToSpace", "DepthToSpace", [1, 64, 28, 28], dtype=kind, blocksize=2)
        one(f"{short} GatherElements", "GatherElements", [64, 500], [RANDOM.integers(0, 500, (64, 100))], dtype=kind, axis=1)
    one("DepthToSpace CRD", "DepthToSpace", [1, 144, 56, 56], blocksize=4, mode="CRD")
    one("DepthToSpace CRD 3", "DepthToSpace", [1, 27, 112, 112], blocksize=3, mode="CRD")
    one("SpaceToDepth 4", "SpaceToDepth", [1, 3, 224, 224], blocksize=4)
    for axis, x in ((1, [1, 640, 200]), (3, IMAGE)):
        one(f"Slice step 2 axis {axis}", "Slice", x, [ints(0), ints(10000), ints(axis), ints(2)])
    one("Slice step 3 last", "Slice", [1, 64, 3000], [ints(1), ints(3000), ints(2), ints(3)])
    one("Slice columns 2 of 6", "Slice", [1, 8400, 6], [ints(0), ints(2), ints(2)])
    one("Slice one column of 85", "Slice", [1, 8400, 85], [ints(4), ints(5), ints(2)])
    one("Slice 4 of 85", "Slice", [1, 8400, 85], [ints(0), ints(4), ints(2)])
    one("Slice rows backwards", "Slice", IMAGE, [ints(-1), ints(-100), ints(2), ints(-1)])
    one("Slice channels backwards", "Slice", [1, 3, 224, 224], [ints(-1), ints(-100), ints(1), ints(-1)])
    one("Slice colours backwards", "Slice", [1, 224, 224, 3], [ints(-1), ints(-100), ints(3), ints(-1)])
    case("focus", [1, 3, 320, 320],
         [node("Slice", "x,o,e,a,s", "p"), node("Slice", "x,i,e,a,s", "q"), node("Slice", "x,j,e,a,s", "r"), node("Slice", "x,k,e,a,s", "t"),
          node("Concat", "p,q,r,t", "y", axis=1)],
         {"o": ints(0, 0), "i": ints(1, 0), "j": ints(0, 1), "k": ints(1, 1), "e": ints(9999, 9999), "a": ints(2, 3), "s": ints(2, 2)})
    for last in (1, 2, 3, 4, 6):
        case(f"Concat rows of {last}", [1, 8400, last], [node("Concat", "x,b", "y", axis=2)], {"b": floats(1, 8400, 4)})
        one(f"Transpose to last {last}", "Transpose", [1, last, 8400], perm=[0, 2, 1])
        one(f"Transpose from last {last}", "Transpose", [1, 8400, last], perm=[0, 2, 1])
    one("Transpose 5-D windows", "Transpose", [8, 8, 7, 8, 32], perm=[0, 1, 3, 2, 4])
    one("Transpose qkv", "Transpose", [1, 197, 3, 12, 64], perm=[2, 0, 3, 1, 4])
    one("Transpose batch 8", "Transpose", [8, 197, 64], perm=[0, 2, 1])
    one("Transpose odd", "Transpose", ODD, perm=[0, 2, 3, 1])
    one("Transpose lstm", "Transpose", [1, 40, 512], perm=[1, 0, 2])
    one("Transpose yolo", "Transpose", [1, 255, 80, 80], perm=[0, 2, 3, 1])
    one("Transpose yolo 5-D", "Transpose", [1, 3, 85, 80, 80], perm=[0, 1, 3, 4, 2])
    case("Split 3 last of 6", [1, 8400, 6], [node("Split", "x,s", "a,b,c", axis=2), node("Add", "a,b", "d"), node("Concat", "c,d", "y", axis=2)],
         {"s": ints(2, 2, 2)})
    for mode in "reflect edge constant".split():
        one(f"Pad 1d of 128 {mode}", "Pad", [1, 128, 1000], [ints(0, 0, 3, 0, 0, 3)], mode=mode)
        one(f"Pad odd {mode}", "Pad", ODD, [ints(0, 0, 1, 2, 0, 0, 3, 1)], mode=mode)
    one("Pad crop", "Pad", IMAGE, [ints(0, 0, -1, -1, 0, 0, -1, -1)])
    one("Pad channels", "Pad", [1, 64, 28, 28], [ints(0, 16, 0, 0, 0, 16, 0, 0)])
    one("Pad last of 3", "Pad", [1, 224, 224, 3], [ints(0, 0, 0, 0, 0, 0, 0, 1)])
    one("Pad rows of 49", "Pad", [1, 12, 49, 49], [ints(0, 0, 0, 0, 0, 0, 0, 1)])
    one("Expand to heads", "Expand", [1, 4, 1, 100, 64], [ints(1, 4, 3, 100, 64)])
    one("Expand scalar", "Expand", [1], [ints(1, 64, 56, 56)])
    one("Expand middle", "Expand", [64, 1, 7], [ints(64, 400, 7)])
    one("Tile batch", "Tile", [1, 197, 64], [ints(8, 1, 1)])
    one("Tile last of 3", "Tile", [8400, 3], [ints(1, 4)])
    one("Gather rows of 3", "Gather", [10000, 3], [RANDOM.integers(0, 10000, 3000)], axis=0)
    one("Gather one column", "Gather", [1, 8400, 6], [number(4, np.int64)], axis=2)
    one("Gather columns", "Gather", [1, 8400, 6], [ints(2, 1, 0)], axis=2)
    one("Gather table of 32", "Gather", [169, 12], [RANDOM.integers(0, 169, (49, 49))], axis=0)
    one("GatherND pairs", "GatherND", [1, 100, 85], [np.stack([np.zeros(400, np.int64), RANDOM.integers(0, 100, 400), RANDOM.integers(0, 85, 400)], 1)])
    one("GatherND batch", "GatherND", [8, 197, 64], [RANDOM.integers(0, 197, (8, 20, 1))], batch_dims=1)
    one("GatherElements rows", "GatherElements", [1000, 4], [np.tile(RANDOM.integers(0, 1000, (300, 1)), 4)], axis=0)
    case("ScatterND rows", [1, 512, 768], [node("ScatterND", "x,i,u", "y")],
         {"i": np.stack([np.zeros(100, np.int64), RANDOM.permutation(512)[:100]], 1), "u": floats(100, 768)})
    case("ScatterND points", [100, 100], [node("ScatterND", "x,i,u", "y")],
         {"i": np.stack(np.unravel_index(RANDOM.permutation(10000)[:2000], (100, 100)), 1), "u": floats(2000)})
    case("ScatterElements add", [1000, 64], [node("ScatterElements", "x,i,u", "y", axis=0, reduction="add")],
         {"i": RANDOM.integers(0, 1000, (300, 64)), "u": floats(300, 64)})
    case("ScatterElements i64", [64, 500], [node("ScatterElements", "x,i,u", "y", axis=1)],
         {"i": np.argsort(RANDOM.random((64, 500)), axis=1)[:, :50], "u": RANDOM.integers(0, 9, (64, 50))}, dtype=np.int64)


def resizes_wide():
    def resize(name, x, scales, sizes=None, dtype=np.float32, opset=17, **attributes):
        constants = [None, np.array(scales, np.float32)] if scales else [None, None, ints(*sizes)]
        one(f"Resize {name}", "Resize", x, constants, dtype=dtype, opset=opset, **attributes)

    floor = dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    resize("nearest x2 batch 8", BATCH, [1, 1, 2, 2], **floor)
    resize("nearest x2 20", [1, 256, 20, 20], [1, 1, 2, 2], **floor)
    resize("nearest x4", [1, 64, 40, 40], [1, 1, 4, 4], **floor)
    resize("nearest x8", [1, 24, 20, 20], [1, 1, 8, 8], **floor)
    resize("nearest half", [1, 64, 80, 80], [1, 1, .5, .5], **floor)
    resize("nearest odd", ODD, None, [1, 61, 101, 99], mode="nearest")
    resize("nearest uint8", [1, 3, 320, 320], None, [1, 3, 640, 640], np.uint8, mode="nearest")
    resize("nearest colours last", [1, 320, 320, 3], None, [1, 640, 640, 3], mode="nearest")
    resize("nearest float16", [1, 64, 40, 40], [1, 1, 2, 2], HALF, **floor)
    resize("linear uint8", [1, 3, 480, 640], None, [1, 3, 224, 224], np.uint8, mode="linear")
    resize("linear float16", [1, 64, 40, 40], [1, 1, 2, 2], HALF, mode="linear")
    resize("linear half", [1, 64, 80, 80], [1, 1, .5, .5], mode="linear")
    resize("linear x4", [1, 2, 56, 56], [1, 1, 4, 4], mode="linear")
    resize("linear x8 corners", [1, 21, 28, 28], [1, 1, 8, 8], mode="linear", coordinate_transformation_mode="align_corners")
    resize("linear odd", ODD, None, [1, 61, 101, 99], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    resize("linear batch 8", [8, 3, 112, 112], None, [8, 3, 64, 64], mode="linear")
    resize("linear 3d", [1, 8, 8, 28, 28], [1, 1, 2, 2, 2], mode="linear")
    resize("linear colours last", [1, 480, 640, 3], None, [1, 224, 224, 3], mode="linear")
    resize("linear antialias", [1, 3, 480, 640], None, [1, 3, 224, 224], mode="linear", antialias=1, opset=18)
    resize("cubic photo", [1, 3, 240, 320], None, [1, 3, 224, 224], mode="cubic")
    resize("cubic positions", [1, 384, 16, 16], None, [1, 384, 14, 14], mode="cubic")
    for mode, padding in (("nearest", "zeros"), ("linear", "border"), ("cubic", "zeros")):
        case(f"GridSample {mode} {padding}", [1, 32, 40, 40], [node("GridSample", "x,g", "y", mode=mode, padding_mode=padding)],
             {"g": floats(1, 40, 40, 2) * 3}, opset=20)
    case("GridSample deformable", [8, 32, 40, 40], [node("GridSample", "x,g", "y")], {"g": floats(8, 100, 4, 2) * 3}, opset=20)


def normalisations_wide():
    for kind in (HALF, np.float64):
        short = np.dtype(kind).name
        one(f"{short} InstanceNormalization", "InstanceNormalization", [1, 64, 28, 28], [floats(64).astype(kind), floats(64).astype(kind)], dtype=kind)
    one("LayerNormalization 7", "LayerNormalization", [1, 8400, 7], [floats(7), floats(7)], axis=-1)
    one("LayerNormalization 33", "LayerNormalization", [8, 197, 33], [floats(33), floats(33)], axis=-1)
    one("LayerNormalization of images", "LayerNormalization", [4, 64, 14, 14], [floats(64, 14, 14), floats(64, 14, 14)], axis=1)
    one("LayerNormalization batch 8", "LayerNormalization", [8, 197, 384], [floats(384), floats(384)], axis=-1)
    one("RMSNormalization", "RMSNormalization", [1, 197, 768], [floats(768)], opset=23, axis=-1)
    one("InstanceNormalization 8", "InstanceNormalization", BATCH, [floats(32), floats(32)])
    one("InstanceNormalization 3d", "InstanceNormalization", [1, 8, 16, 28, 28], [floats(8), floats(8)])
    one("GroupNormalization 32", "GroupNormalization", [1, 256, 14, 14], [floats(256), floats(256)], opset=21, num_groups=32)
    one("BatchNormalization 2-D", "BatchNormalization", [64, 512], [floats(512), floats(512), floats(512), np.abs(floats(512))])
    one("BatchNormalization 7x7", "BatchNormalization", [1, 1280, 7, 7], [floats(1280), floats(1280), floats(1280), np.abs(floats(1280))])
    one("BatchNormalization float64", "BatchNormalization", [1, 64, 28, 28],
        [np.abs(floats(64)).astype(np.float64) + .1 for _ in range(4)], dtype=np.float64)
    one("LpNormalization 1", "LpNormalization", [1, 64, 28, 28], axis=1, p=2)
    one("LRN 96", "LRN", [1, 96, 27, 27], size=5, alpha=1e-4, beta=.75)
    case("Normalizer of parts", [8, 512], [node("ReduceL2", "x", "n", axes=[1], keepdims=1), node("Max", "n,e", "m"), node("Div", "x,m", "y")],
         {"e": number(1e-12)})
    case("weighted pooling", [8, 197, 384], [node("Mul", "x,m", "a"), node("ReduceSum", "a,k", "s", keepdims=0), node("Div", "s,n", "y")],
         {"m": np.ones((8, 197, 1), np.float32), "k": ints(1), "n": number(197)})


def products_wide():
    for equation, x, z in (("bqhd,bkhd->bhqk", (1, 197, 8, 32), (1, 197, 8, 32)), ("bhqk,bkhd->bqhd", (1, 8, 197, 197), (1, 197, 8, 32)),
                           ("ij,ij->i", (197, 768), (197, 768)), ("i,j->ij", (400,), (300,)), ("bnc,bmc->bnm", (1, 300, 256), (1, 400, 256)),
                           ("bhwc,wkc->bhwk", (8, 14, 14, 64), (14, 14, 64)), ("abc,cd->abd", (1, 197, 64), (64, 64)), ("bct,bct->bt", (1, 64, 400), (1, 64, 400))):
        case(f"Einsum {equation} wide", list(x), [node("Einsum", "x,z", "y", equation=equation)], {"z": floats(*z)})
    one("float64 MatMul", "MatMul", [64, 128], [floats(128, 64).astype(np.float64)], dtype=np.float64)
    one("int32 MatMul", "MatMul", [64, 128], [RANDOM.integers(0, 9, (128, 64)).astype(np.int32)], dtype=np.int32)
    case("DFT 400", [1, 100, 400, 1], [node("DFT", "x", "y", axis=2, onesided=1)])
    case("DFT complex 256", [1, 64, 256, 2], [node("DFT", "x", "y", axis=2)])
    case("DFT inverse 256", [1, 64, 256, 2], [node("DFT", "x", "y", axis=2, inverse=1)])
    case("STFT 400", [1, 16000], [node("STFT", "x,s,w,f", "y", onesided=1)],
         {"s": number(160, np.int64), "w": np.hanning(400).astype(np.float32), "f": number(400, np.int64)})


def quantised_wide():
    def between(name, op, x, constants, inputs, **attributes):
        case(name, x, [node("QuantizeLinear", "x,s,z", "q"), helper.make_node(op, inputs.split(","), ["o"], domain="com.microsoft", **attributes),
                       node("DequantizeLinear", "o,t,z", "y")],
             {"s": number(.02), "t": number(.05), "z": number(128, np.uint8), **constants})

    other = RANDOM.integers(0, 255, IMAGE).astype(np.uint8)
    between("QLinearConcat", "QLinearConcat", IMAGE, {"b": other}, "t,z,q,s,z,b,s,z", axis=1)
    between("QLinearAveragePool", "QLinearAveragePool", IMAGE, {}, "q,s,z,t,z", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    between("QLinearAveragePool s1", "QLinearAveragePool", [1, 192, 35, 35], {}, "q,s,z,t,z", kernel_shape=[3, 3], pads=[1] * 4)
    between("QLinearAdd batch 8", "QLinearAdd", [8, 64, 28, 28], {"b": RANDOM.integers(0, 255, (8, 64, 28, 28)).astype(np.uint8)}, "q,s,z,b,s,z,t,z")
    between("QLinearMul channel", "QLinearMul", IMAGE, {"b": RANDOM.integers(0, 255, (1, 64, 1, 1)).astype(np.uint8)}, "q,s,z,b,s,z,t,z")
    between("QLinearSoftmax", "QLinearSoftmax", [64, 1000], {}, "q,s,z,t,z", axis=1, opset=13)
    quantised = {"s": number(.02), "z": number(128, np.uint8), "t": number(.05)}
    for name, nodes in (("MaxPool", [node("MaxPool", "q", "o", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)]),
                        ("Transpose", [node("Transpose", "q", "o", perm=[0, 2, 3, 1])]), ("Concat", [node("Concat", "q,q", "o", axis=1)]),
                        ("Relu of parts", [node("DequantizeLinear", "q,s,z", "d"), node("Relu", "d", "r"), node("QuantizeLinear", "r,t,z", "o")]),
                        ("HardSwish of parts", [node("DequantizeLinear", "q,s,z", "d"), node("HardSwish", "d", "r"), node("QuantizeLinear", "r,t,z", "o")]),
                        ("Add of parts", [node("DequantizeLinear", "q,s,z", "d"), node("Add", "d,d", "r"), node("QuantizeLinear", "r,t,z", "o")]),
                        ("average of parts", [node("DequantizeLinear", "q,s,z", "d"), node("GlobalAveragePool", "d", "r"),
                                              node("QuantizeLinear", "r,t,z", "o")]),
                        ("Resize", [node("Resize", "q,,k", "o", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")])):
        case(f"u8 {name}", IMAGE, [node("QuantizeLinear", "x,s,z", "q"), *nodes, node("DequantizeLinear", "o,t,z", "y")],
             {**quantised, "k": np.array([1, 1, 2, 2], np.float32)})
    for rows in (1, 8, 40):
        case(f"DynamicQuantizeLinear {rows} rows", [rows, 768], [node("DynamicQuantizeLinear", "x", "y,s,z")])
    one("QuantizeLinear last", "QuantizeLinear", [1, 197, 768], [np.full(768, .02, np.float32), np.zeros(768, np.int8)], axis=2)
    one("DequantizeLinear i32", "DequantizeLinear", [1, 197, 768], [number(.02)], dtype=np.int32)
    case("MatMulInteger small", [40, 64], [node("DynamicQuantizeLinear", "x", "q,s,z"), node("MatMulInteger", "q,w,z", "i"),
                                           node("Cast", "i", "y", to=TensorProto.FLOAT)], {"w": RANDOM.integers(-99, 99, (64, 64)).astype(np.int8)})


TYPES_AND_SHAPES = (pools_wide, elementwise_wide, casts_wide, reductions_wide, selections_wide, moves_wide, resizes_wide, normalisations_wide,
                    products_wide, quantised_wide)
