"""Blocks of blocks.py: classifiers, segmentation, detectors."""
import numpy as np

from net import block
from cases import ints, number


def images():
    @block("ResNet stage 28", [1, 128, 28, 28])
    def _(n, x):
        for _ in range(2):
            y = n.conv(n.act(n.conv(x, 128, 128, 3), "Relu"), 128, 128, 3)
            x = n.act(n.op("Add", x, y), "Relu")
        return x

    @block("ResNet bottlenecks 14", [1, 1024, 14, 14])
    def _(n, x):
        for _ in range(2):
            y = n.act(n.conv(n.act(n.conv(x, 1024, 256), "Relu"), 256, 256, 3), "Relu")
            x = n.act(n.op("Add", n.conv(y, 256, 1024), x), "Relu")
        return x

    @block("classifier tail", [1, 512, 7, 7])
    def _(n, x):
        return n.op("Softmax", n.gemm(n.op("Flatten", n.op("GlobalAveragePool", n.act(n.bn(x, 512), "Relu"))), 512, 1000))

    @block("LeNet", [1, 1, 28, 28])
    def _(n, x):
        x = n.op("MaxPool", n.act(n.conv(x, 1, 8, 5), "Relu"), kernel_shape=[2, 2], strides=[2, 2])
        x = n.op("MaxPool", n.act(n.conv(x, 8, 16, 5), "Relu"), kernel_shape=[2, 2], strides=[2, 2])
        return n.gemm(n.shape(x, 1, -1), 784, 10)

    @block("MobileNetV2 blocks 28", [1, 32, 28, 28])
    def _(n, x):
        for _ in range(2):
            y = n.act(n.conv(n.act(n.conv(x, 32, 192), "relu6"), 192, 192, 3, group=192), "relu6")
            x = n.op("Add", x, n.conv(y, 192, 32))
        return x

    for gate in ("HardSigmoid", "Sigmoid"):
        @block(f"MobileNetV3 block {gate}", [1, 80, 14, 14])
        def _(n, x, gate=gate):
            kind = "hardswish" if gate == "Sigmoid" else "HardSwish"
            y = n.act(n.conv(n.act(n.conv(x, 80, 480), kind), 480, 480, 5, group=480), kind)
            return n.op("Add", x, n.conv(n.se(y, 480, 120, gate), 480, 80))

    @block("EfficientNet block", [1, 40, 28, 28])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 40, 240), "silu"), 240, 240, 5, group=240), "silu")
        return n.op("Add", x, n.conv(n.se(y, 240, 10, "Sigmoid", "silu"), 240, 40))

    @block("ShuffleNetV2 block", [1, 116, 28, 28])
    def _(n, x):
        a, b = n.op("Split", x, ints(58, 58), outputs=2, axis=1)
        b = n.act(n.conv(n.conv(n.act(n.conv(b, 58, 58), "Relu"), 58, 58, 3, group=58), 58, 58), "Relu")
        y = n.shape(n.op("Concat", a, b, axis=1), 1, 2, 58, 28, 28)
        return n.shape(n.turn(y, 0, 2, 1, 3, 4), 1, 116, 28, 28)

    for channels, size in ((96, 56), (192, 28)):
        @block(f"ConvNeXt block {size}", [1, channels, size, size])
        def _(n, x, c=channels):
            y = n.norm(n.turn(n.conv(x, c, c, 7, group=c), 0, 2, 3, 1), c)
            y = n.op("Mul", n.mlp(y, c, 4 * c), n.weights(c))
            return n.op("Add", x, n.turn(y, 0, 3, 1, 2))

    @block("DenseNet layers", [1, 64, 28, 28])
    def _(n, x):
        for i in range(4):
            c = 64 + 32 * i
            y = n.conv(n.act(n.bn(x, c), "Relu"), c, 128, bias=False)
            x = n.op("Concat", x, n.conv(n.act(n.bn(y, 128), "Relu"), 128, 32, 3, bias=False), axis=1)
        return x

    @block("Inception branches", [1, 192, 35, 35])
    def _(n, x):
        a = n.act(n.conv(x, 192, 64), "Relu")
        b = n.act(n.conv(n.act(n.conv(x, 192, 48), "Relu"), 48, 64, 5), "Relu")
        d = n.act(n.conv(n.op("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1), 192, 32), "Relu")
        return n.op("Concat", a, b, d, axis=1)

    @block("U-Net end", [1, 64, 64, 64])
    def _(n, x):
        skip = n.act(n.conv(x, 64, 64, 3), "Relu")
        y = n.act(n.conv(n.op("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 64, 128, 3), "Relu")
        y = n.op("Concat", n.up(y, 128, 64), skip, axis=1)
        return n.act(n.conv(n.act(n.conv(y, 128, 64, 3), "Relu"), 64, 1), "Sigmoid")

    @block("FPN top", [1, 256, 20, 20])
    def _(n, x):
        y = n.op("Resize", n.conv(x, 256, 96), "", np.array([1, 1, 2, 2], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")
        return n.act(n.conv(y, 96, 96, 3), "Relu")

    @block("super resolution PixelShuffle", [1, 1, 96, 96])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 1, 64, 5), "Relu"), 64, 32, 3), "Relu")
        return n.op("DepthToSpace", n.conv(y, 32, 9, 3), blocksize=3, mode="CRD")

    @block("PReLU face net", [1, 64, 56, 56])
    def _(n, x):
        for _ in range(2):
            y = n.op("PRelu", n.bn(n.conv(n.bn(x, 64), 64, 64, 3, bias=False), 64), n.weights(64, 1, 1))
            x = n.op("Add", x, n.bn(n.conv(y, 64, 64, 3, bias=False), 64))
        return x

    @block("channels last as tf2onnx writes", [1, 96, 96, 3])
    def _(n, x):
        y = n.act(n.conv(n.turn(x, 0, 3, 1, 2), 3, 32, 3, 2), "relu6")
        y = n.act(n.conv(n.act(n.conv(y, 32, 32, 3, group=32), "relu6"), 32, 64), "relu6")
        return n.op("Softmax", n.linear(n.op("ReduceMean", n.turn(y, 0, 2, 3, 1), axes=[1, 2], keepdims=0), 64, 10))

    @block("CBAM", [1, 128, 28, 28])
    def _(n, x):
        def gate(y):
            return n.conv(n.act(n.conv(y, 128, 8), "Relu"), 8, 128)
        x = n.op("Mul", x, n.act(n.op("Add", gate(n.op("GlobalAveragePool", x)), gate(n.op("GlobalMaxPool", x))), "Sigmoid"))
        y = n.op("Concat", n.op("ReduceMean", x, axes=[1]), n.op("ReduceMax", x, axes=[1]), axis=1)
        return n.op("Mul", x, n.act(n.conv(y, 2, 1, 7), "Sigmoid"))

    @block("InstanceNorm style block", [1, 64, 64, 64])
    def _(n, x):
        y = n.op("Pad", x, ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
        y = n.op("InstanceNormalization", n.conv(y, 64, 64, 3, pad=(0, 0)), n.weights(64) + 1, n.weights(64))
        return n.op("Add", x, n.act(y, "Relu"))

    @block("GroupNorm block (diffusion)", [1, 128, 32, 32])
    def _(n, x):
        y = n.op("InstanceNormalization", n.shape(x, 1, 32, -1), np.ones(32, np.float32), np.zeros(32, np.float32))
        y = n.op("Add", n.op("Mul", n.shape(y, 1, 128, 32, 32), n.weights(128, 1, 1)), n.weights(128, 1, 1))
        return n.op("Add", x, n.conv(n.act(y, "silu"), 128, 128, 3))


def detectors():
    @block("YOLO C2f", [1, 64, 40, 40])
    def _(n, x):
        a, b = n.op("Split", n.act(n.conv(x, 64, 64), "silu"), ints(32, 32), outputs=2, axis=1)
        c = n.op("Add", b, n.act(n.conv(n.act(n.conv(b, 32, 32, 3), "silu"), 32, 32, 3), "silu"))
        return n.act(n.conv(n.op("Concat", a, b, c, axis=1), 96, 64), "silu")

    @block("YOLO SPPF", [1, 256, 20, 20])
    def _(n, x):
        x = n.act(n.conv(x, 256, 128), "silu")
        all_ = [x]
        for _ in range(3):
            all_.append(n.op("MaxPool", all_[-1], kernel_shape=[5, 5], pads=[2] * 4))
        return n.act(n.conv(n.op("Concat", *all_, axis=1), 512, 256), "silu")

    @block("YOLOv8 head (DFL)", [1, 144, 2100])
    def _(n, x):
        box, cls = n.op("Split", x, ints(64, 80), outputs=2, axis=1)
        d = n.op("Softmax", n.turn(n.shape(box, 1, 4, 16, 2100), 0, 2, 1, 3), axis=1)
        d = n.shape(n.op("Conv", d, np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)), 1, 4, 2100)
        a, b = n.op("Split", d, ints(2, 2), outputs=2, axis=1)
        grid = n.weights(1, 2, 2100)
        low, high = n.op("Sub", grid, a), n.op("Add", b, grid)
        size = n.op("Div", n.op("Add", low, high), number(2))
        box = n.op("Mul", n.op("Concat", size, n.op("Sub", high, low), axis=1), n.weights(1, 2100))
        return n.op("Concat", box, n.act(cls, "Sigmoid"), axis=1)

    @block("YOLOv5 head", [1, 255, 20, 20])
    def _(n, x):
        y = n.act(n.turn(n.shape(x, 1, 3, 85, 20, 20), 0, 1, 3, 4, 2), "Sigmoid")
        xy, wh, rest = n.op("Split", y, ints(2, 2, 81), outputs=3, axis=4)
        xy = n.op("Mul", n.op("Add", n.op("Mul", xy, number(2)), n.weights(1, 3, 20, 20, 2)), number(32))
        wh = n.op("Mul", n.op("Pow", n.op("Mul", wh, number(2)), number(2)), n.weights(1, 3, 1, 1, 2))
        return n.shape(n.op("Concat", xy, wh, rest, axis=4), 1, 1200, 85)

    @block("TopK tail", [1, 8400, 84])
    def _(n, x):
        box, cls = n.op("Split", x, ints(4, 80), outputs=2, axis=2)
        _, at = n.op("TopK", n.op("ReduceMax", cls, axes=[2], keepdims=0), ints(300), outputs=2, axis=1)
        at = n.op("Tile", n.op("Unsqueeze", at, ints(2)), ints(1, 1, 4))
        return n.op("GatherElements", box, at, axis=1)

    def detector(n, x, cells):
        for cin, cout in ((3, 16), (16, 32), (32, 64)):
            x = n.act(n.conv(x, cin, cout, 3, 2), "Relu")
        boxes = n.act(n.shape(n.turn(n.conv(x, 64, 4), 0, 2, 3, 1), 1, cells, 4), "Sigmoid")
        scores = n.act(n.shape(n.conv(x, 64, 2), 1, 2, cells), "Sigmoid")
        found = n.op("NonMaxSuppression", boxes, scores, ints(20), number([.5]), number([.4]))
        at = n.op("Squeeze", n.op("Slice", found, ints(2), ints(3), ints(1)), ints(1))
        return n.op("Gather", boxes, at, axis=1)

    @block("detector with NonMaxSuppression", [1, 3, 128, 128])
    def _(n, x):
        return detector(n, x, 256)
