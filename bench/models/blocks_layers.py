"""Blocks of blocks.py that are one layer or a few: the convolutions and products of architectures that operators.py has no size of."""
import numpy as np
from onnx import helper

from cases import case, floats, node, number, one
from net import block
from operators import bytes_of


def convolution_layers():
    def conv(name, x, out, kernel, group=1, bias=True, **attributes):
        weights = floats(out, x[1] // group, *kernel)
        one(f"layer {name}", "Conv", x, [weights, floats(out)] if bias else [weights], group=group, **attributes)

    conv("1x1 s2 56 256-512 (ResNet)", [1, 256, 56, 56], 512, (1, 1), strides=[2, 2], bias=False)
    conv("1x1 56 24-144 (MobileNet)", [1, 24, 56, 56], 144, (1, 1))
    conv("1x1 56 144-24 (MobileNet)", [1, 144, 56, 56], 24, (1, 1))
    conv("1x1 80 128-80 (head)", [1, 128, 80, 80], 80, (1, 1))
    conv("3x3 s2 160 32-64 (YOLO)", [1, 32, 160, 160], 64, (3, 3), pads=[1] * 4, strides=[2, 2])
    conv("6x6 s2 320 3-16 (YOLOv5)", [1, 3, 320, 320], 16, (6, 6), pads=[2] * 4, strides=[2, 2])
    conv("3x3 s2 224 3-32, 0 0 1 1 (TF)", [1, 3, 224, 224], 32, (3, 3), pads=[0, 0, 1, 1], strides=[2, 2])
    conv("groups 32 3x3 56 128 (ResNeXt)", [1, 128, 56, 56], 128, (3, 3), 32, pads=[1] * 4)
    conv("groups 32 3x3 14 1024 (ResNeXt 8)", [1, 256, 14, 14], 256, (3, 3), 32, pads=[1] * 4)
    conv("groups 9 3x3 s2 28 216 (RegNet)", [1, 216, 28, 28], 216, (3, 3), 9, pads=[1] * 4, strides=[2, 2])
    conv("groups 16 3x3 14 48 (RegNetY)", [1, 48, 14, 14], 48, (3, 3), 6, pads=[1] * 4)
    conv("3x3 dilated 6 33 256-64 (ASPP)", [1, 256, 33, 33], 64, (3, 3), pads=[6] * 4, dilations=[6, 6])
    conv("3x3 dilated 18 33 256-64 (ASPP)", [1, 256, 33, 33], 64, (3, 3), pads=[18] * 4, dilations=[18, 18])
    conv("depthwise 3x3 dilated 2 33 320", [1, 320, 33, 33], 320, (3, 3), 320, pads=[2] * 4, dilations=[2, 2])
    conv("1x3 17 192", [1, 192, 17, 17], 192, (1, 3), pads=[0, 1, 0, 1])
    conv("1x7 17 128-192 (Inception)", [1, 128, 17, 17], 192, (1, 7), pads=[0, 3, 0, 3])
    conv("7x1 17 128-192 (Inception)", [1, 128, 17, 17], 192, (7, 1), pads=[3, 0, 3, 0])
    conv("11x11 s4 224 3-64 (AlexNet)", [1, 3, 224, 224], 64, (11, 11), pads=[2] * 4, strides=[4, 4])
    conv("depthwise 31x31 28 128 (RepLKNet)", [1, 128, 28, 28], 128, (31, 31), 128, pads=[15] * 4)
    conv("depthwise 11x11 14 192", [1, 192, 14, 14], 192, (11, 11), 192, pads=[5] * 4)
    conv("depthwise 7x7 56 96 (ConvNeXt)", [1, 96, 56, 56], 96, (7, 7), 96, pads=[3] * 4)
    conv("depthwise 3x3 s2 112 64 (MobileNet)", [1, 64, 112, 112], 64, (3, 3), 64, pads=[1] * 4, strides=[2, 2])
    conv("depthwise 3x3 7 960 (MobileNet)", [1, 960, 7, 7], 960, (3, 3), 960, pads=[1] * 4)
    conv("depthwise 1x7 40 64", [1, 64, 40, 40], 64, (1, 7), 64, pads=[0, 3, 0, 3])
    conv("16x16 s16 224 3-192 (ViT)", [1, 3, 224, 224], 192, (16, 16), strides=[16, 16])
    conv("4x4 s4 224 3-96 (Swin)", [1, 3, 224, 224], 96, (4, 4), strides=[4, 4])
    conv("2x2 s2 56 96-192 (ConvNeXt)", [1, 96, 56, 56], 192, (2, 2), strides=[2, 2])
    conv("3x3 96 1-32 (CRNN)", [1, 1, 32, 320], 32, (3, 3), pads=[1] * 4)
    conv("3x3 48 64-1 (mask)", [1, 64, 48, 48], 1, (3, 3), pads=[1] * 4)
    conv("3x3 128 64-3 (image)", [1, 64, 128, 128], 3, (3, 3), pads=[1] * 4)
    conv("9x9 64 3-64 (SRCNN)", [1, 3, 64, 64], 64, (9, 9), pads=[4] * 4)
    conv("5x5 32 1-20 no padding", [1, 1, 32, 32], 20, (5, 5))
    conv("3x3 batch 16 8 64", [16, 64, 8, 8], 64, (3, 3), pads=[1] * 4)
    conv("1d k10 s5 16000 1-512 (wav2vec)", [1, 1, 16000], 512, (10,), strides=[5], bias=False)
    conv("1d k3 s2 400 512 (wav2vec)", [1, 512, 400], 512, (3,), strides=[2], bias=False)
    conv("1d k2 s2 100 512 (wav2vec)", [1, 512, 100], 512, (2,), strides=[2], bias=False)
    conv("1d k5 200 80-512 (TDNN)", [1, 80, 200], 512, (5,))
    conv("1d k3 dilated 3 200 256 (TDNN)", [1, 256, 200], 256, (3,), dilations=[3])
    conv("1d k7 16000 1-32 (EnCodec)", [1, 1, 16000], 32, (7,), pads=[6, 0])
    conv("1d k16 s8 2000 64-128 (EnCodec)", [1, 64, 2000], 128, (16,), strides=[8], pads=[8, 0])
    conv("1d k7 dilated 9 2000 32 (HiFi-GAN)", [1, 32, 2000], 32, (7,), pads=[27, 27], dilations=[9])
    conv("1d k11 dilated 5 4000 16 (HiFi-GAN)", [1, 16, 4000], 16, (11,), pads=[25, 25], dilations=[5])
    conv("1d k7 8000 32-1 (vocoder end)", [1, 32, 8000], 1, (7,), pads=[3, 3])
    conv("1d k2 dilated 64 1600 64-128 (WaveNet)", [1, 64, 1600], 128, (2,), dilations=[64])
    conv("1d k400 s160 16000 1-514 (STFT)", [1, 1, 16000], 514, (512,), strides=[160], bias=False)
    conv("1d depthwise k9 300 256 (QuartzNet)", [1, 256, 300], 256, (9,), 256, pads=[4, 4])
    conv("1d depthwise k33 300 256 (QuartzNet)", [1, 256, 300], 256, (33,), 256, pads=[16, 16])
    conv("1d k3 1 channel 500", [1, 1, 500], 1, (3,), pads=[1, 1])
    conv("3d 3x3x3 s1 3-16 (video)", [1, 3, 8, 56, 56], 16, (3, 3, 3), pads=[1] * 6)
    conv("3d 1x3x3 64 (R2+1D)", [1, 64, 8, 14, 14], 64, (1, 3, 3), pads=[0, 1, 1, 0, 1, 1])
    conv("3d 3x1x1 64 (R2+1D)", [1, 64, 8, 14, 14], 64, (3, 1, 1), pads=[1, 0, 0, 1, 0, 0])
    conv("3d 1x1x1 64-128", [1, 64, 8, 14, 14], 128, (1, 1, 1))
    conv("3d 3x3x3 s2 32-64", [1, 32, 8, 28, 28], 64, (3, 3, 3), pads=[1] * 6, strides=[2, 2, 2])
    conv("3d depthwise 3x3x3 64 (X3D)", [1, 64, 8, 14, 14], 64, (3, 3, 3), 64, pads=[1] * 6)
    conv("3d 2x2x2 s2 16 (patches)", [1, 4, 16, 32, 32], 64, (2, 4, 4), strides=[2, 4, 4])


def transposed_layers():
    def back(name, x, weights, group=1, **attributes):
        one(f"layer transposed {name}", "ConvTranspose", x, [floats(*weights), floats(weights[1] * group)], group=group, **attributes)

    back("4x4 1 100-256 (GAN)", [1, 100, 1, 1], (100, 256, 4, 4))
    back("4x4 s2 8 256-128 (GAN)", [1, 256, 8, 8], (256, 128, 4, 4), strides=[2, 2], pads=[1] * 4)
    back("4x4 s2 32 64-3 (GAN)", [1, 64, 32, 32], (64, 3, 4, 4), strides=[2, 2], pads=[1] * 4)
    back("2x2 s2 28 128-64 (U-Net)", [1, 128, 28, 28], (128, 64, 2, 2), strides=[2, 2])
    back("3x3 s2 64 32-16", [1, 32, 64, 64], (32, 16, 3, 3), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    back("3x3 s1 28 32", [1, 32, 28, 28], (32, 32, 3, 3), pads=[1] * 4)
    back("16x16 s8 20 21 (FCN)", [1, 21, 20, 20], (21, 1, 16, 16), 21, strides=[8, 8], pads=[4] * 4)
    back("1d k16 s8 100 256-128 (HiFi-GAN)", [1, 256, 100], (256, 128, 16), strides=[8], pads=[4, 4])
    back("1d k4 s2 800 64-32 (HiFi-GAN)", [1, 64, 800], (64, 32, 4), strides=[2], pads=[1, 1])
    back("1d k1024 s256 80 514-1 (iSTFT)", [1, 514, 80], (514, 1, 1024), strides=[256])
    back("3d 2x2x2 s2 32-16", [1, 32, 4, 14, 14], (32, 16, 2, 2, 2), strides=[2, 2, 2])


def product_layers():
    for m, k, n in ((1000, 1, 64), (1000, 2, 64), (1000, 3, 32), (197, 4, 300), (500, 8, 500), (1000, 64, 1), (1000, 256, 1), (33, 77, 55),
                    (1, 1000, 1), (7, 300, 5), (4, 512, 2048), (2, 512, 512), (3, 1280, 320), (64, 64, 64), (16, 16, 16), (1, 16, 8), (128, 1000, 3),
                    (49, 2048, 10)):
        one(f"layer MatMul {m}x{k}x{n}", "MatMul", [m, k], [floats(k, n)])
    one("layer Gemm transA 256x64 100", "Gemm", [64, 256], [floats(64, 100), floats(100)], transA=1)
    one("layer Gemm transA transB", "Gemm", [64, 256], [floats(100, 64), floats(100)], transA=1, transB=1)
    one("layer Gemm 8x256x10", "Gemm", [8, 256], [floats(10, 256), floats(10)], transB=1)
    one("layer Gemm 1x2048x1000", "Gemm", [1, 2048], [floats(1000, 2048), floats(1000)], transB=1)
    one("layer Gemm beta 0.5, c row", "Gemm", [64, 64], [floats(64, 64), floats(64, 1)], beta=.5)
    for name, x, weights in (("one left", [1, 197, 64], (8, 64, 32)), ("one right", [8, 197, 64], (1, 64, 32)), ("2d right of 4d", [2, 4, 50, 64], (64, 96)),
                             ("heads", [1, 8, 50, 50], (4, 8, 50, 24)), ("vector right", [8, 197, 64], (64,)), ("vector left", [64], (64, 300)),
                             ("small 4x4", [200, 4, 4], (200, 4, 4)), ("small 3x3 points", [1, 3, 3], (1, 3, 5000)), ("points 3x3", [1, 5000, 3], (1, 3, 3)),
                             ("columns of one", [64, 20, 30], (64, 30, 1)), ("rows of one", [64, 1, 30], (64, 30, 20))):
        one(f"layer MatMul batch {name}", "MatMul", x, [floats(*weights)])
    for heads, tokens, width in ((4, 100, 24), (8, 100, 40), (4, 49, 48), (12, 1, 64), (16, 17, 80), (2, 300, 128), (1, 1024, 32)):
        def attention(n, x, heads=heads, tokens=tokens, width=width):
            q, k, v = (n.turn(n.shape(n.linear(x, heads * width, heads * width), 1, tokens, heads, width), *p)
                       for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
            s = n.op("Softmax", n.op("Mul", n.op("MatMul", q, k), number(width ** -.5)), axis=-1)
            return n.shape(n.turn(n.op("MatMul", s, v), 0, 2, 1, 3), 1, tokens, heads * width)
        block(f"layer attention {heads}x{tokens}x{width}", [1, tokens, heads * width])(attention)
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        for steps, batch, width, hidden in ((50, 1, 40, 64), (20, 4, 64, 256), (1, 1, 512, 512), (200, 2, 32, 32), (10, 16, 64, 64)):
            case(f"layer {op} {steps}x{batch}x{width}-{hidden}", [steps, batch, width], [node(op, "x,w,r,b", "y,h", hidden_size=hidden)],
                 {"w": floats(1, gates * hidden, width), "r": floats(1, gates * hidden, hidden) * number(.5), "b": floats(1, 2 * gates * hidden)})


def quantised_layers():
    def qdq(name, x, out, kernel, group=1, zero=number(128, np.uint8), **attributes):
        case(f"layer QDQ {name}", x,
             [node("QuantizeLinear", "x,xs,z", "q"), node("DequantizeLinear", "q,xs,z", "d"), node("DequantizeLinear", "w,ws,wz", "e", axis=0),
              node("Conv", "d,e", "o", group=group, **attributes), node("QuantizeLinear", "o,ys,z", "p"), node("DequantizeLinear", "p,ys,z", "y")],
             {"xs": number(.02), "z": zero, "w": bytes_of(floats(out, x[1] // group, *kernel)), "ws": np.full(out, .01, np.float32),
              "wz": np.zeros(out, np.int8), "ys": number(.05)})

    for kind, zero in (("u8", number(128, np.uint8)), ("s8", number(0, np.int8))):
        qdq(f"{kind} 7x7 s2 224 3-64", [1, 3, 224, 224], 64, (7, 7), 1, zero, pads=[3] * 4, strides=[2, 2])
        qdq(f"{kind} 1x1 s2 28 256-512", [1, 256, 28, 28], 512, (1, 1), 1, zero, strides=[2, 2])
        qdq(f"{kind} 1x1 56 24-144", [1, 24, 56, 56], 144, (1, 1), 1, zero)
        qdq(f"{kind} depthwise 5x5 28 120", [1, 120, 28, 28], 120, (5, 5), 120, zero, pads=[2] * 4)
        qdq(f"{kind} depthwise 3x3 s2 112 64", [1, 64, 112, 112], 64, (3, 3), 64, zero, pads=[1] * 4, strides=[2, 2])
        qdq(f"{kind} groups 32 3x3 14 256", [1, 256, 14, 14], 256, (3, 3), 32, zero, pads=[1] * 4)
        qdq(f"{kind} 1d k3 400 64", [1, 64, 400], 64, (3,), 1, zero, pads=[1, 1])
        qdq(f"{kind} 3d 3x3x3 8 16", [1, 16, 8, 14, 14], 16, (3, 3, 3), 1, zero, pads=[1] * 6)
        case(f"layer QDQ {kind} transposed 2x2 s2 28 64", [1, 64, 28, 28],
             [node("QuantizeLinear", "x,xs,z", "q"), node("DequantizeLinear", "q,xs,z", "d"), node("DequantizeLinear", "w,ws,wz", "e", axis=1),
              node("ConvTranspose", "d,e", "o", strides=[2, 2]), node("QuantizeLinear", "o,ys,z", "p"), node("DequantizeLinear", "p,ys,z", "y")],
             {"xs": number(.02), "z": zero, "w": bytes_of(floats(64, 32, 2, 2)), "ws": np.full(32, .01, np.float32), "wz": np.zeros(32, np.int8),
              "ys": number(.05)})
        case(f"layer QDQ {kind} Gemm 1x512x1000", [1, 512],
             [node("QuantizeLinear", "x,xs,z", "q"), node("DequantizeLinear", "q,xs,z", "d"), node("DequantizeLinear", "w,ws,wz", "e", axis=0),
              node("Gemm", "d,e,b", "o", transB=1), node("QuantizeLinear", "o,ys,z", "p"), node("DequantizeLinear", "p,ys,z", "y")],
             {"xs": number(.02), "z": zero, "w": bytes_of(floats(1000, 512)), "ws": np.full(1000, .01, np.float32), "wz": np.zeros(1000, np.int8),
              "ys": number(.05), "b": floats(1000)})
        case(f"layer QDQ {kind} MatMul of activations 8x50x64", [8, 50, 64],
             [node("QuantizeLinear", "x,xs,z", "q"), node("DequantizeLinear", "q,xs,z", "d"), node("Transpose", "d", "t", perm=[0, 2, 1]),
              node("MatMul", "d,t", "o"), node("QuantizeLinear", "o,ys,z", "p"), node("DequantizeLinear", "p,ys,z", "y")],
             {"xs": number(.02), "z": zero, "ys": number(.05)})
    weights = bytes_of(floats(512, 2048))
    for rows in (1, 8, 40):
        case(f"layer MatMulInteger {rows}x512x2048", [rows, 512],
             [node("DynamicQuantizeLinear", "x", "q,s,z"), node("MatMulInteger", "q,w,z", "i"), node("Cast", "i", "f", to=1), node("Mul", "s,ws", "m"),
              node("Mul", "f,m", "y")], {"w": weights, "ws": np.full(2048, .01, np.float32)})
    case("layer DynamicQuantizeLSTM 40x128", [40, 1, 128],
         [helper.make_node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "h"], domain="com.microsoft",
                           hidden_size=128)],
         {"w": bytes_of(floats(1, 128, 512)), "r": bytes_of(floats(1, 128, 512)), "b": floats(1, 1024), "ws": number([.002]), "wz": np.zeros(1, np.int8),
          "rs": number([.002]), "rz": np.zeros(1, np.int8)})
    half = np.float16
    for name, x, weights_shape, attributes in (
            ("1x1 28 256", [1, 256, 28, 28], (256, 256, 1, 1), {}), ("depthwise 3x3 28 256", [1, 256, 28, 28], (256, 1, 3, 3), {"group": 256, "pads": [1] * 4}),
            ("7x7 s2 224 3-64", [1, 3, 224, 224], (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
            ("1d k3 400 256", [1, 256, 400], (256, 256, 3), {"pads": [1, 1]}), ("3d 3x3x3 16", [1, 16, 8, 14, 14], (16, 16, 3, 3, 3), {"pads": [1] * 6})):
        one(f"layer f16 {name}", "Conv", x, [floats(*weights_shape).astype(half)], dtype=half, **attributes)
    one("layer f16 transposed 4x4 s2 14 128-64", "ConvTranspose", [1, 128, 14, 14], [floats(128, 64, 4, 4).astype(half)], dtype=half, strides=[2, 2],
        pads=[1] * 4)
    one("layer f16 Gemm 1x512x1000", "Gemm", [1, 512], [floats(1000, 512).astype(half)], dtype=half, transB=1)
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        case(f"layer f16 {op} 40x128", [40, 1, 128], [node(op, "x,w,r,b", "y,h", hidden_size=128)],
             {"w": floats(1, gates * 128, 128).astype(half), "r": (floats(1, gates * 128, 128) * number(.5)).astype(half),
              "b": floats(1, 2 * gates * 128).astype(half)}, dtype=half)


def neighbours():
    """Layers with others around them: fusions and moves between the layouts."""
    @block("layer ASPP", [1, 128, 33, 33])
    def _(n, x):
        ys = [n.act(n.conv(x, 128, 64), "Relu")] + [n.act(n.conv(x, 128, 64, 3, dilation=d), "Relu") for d in (6, 12, 18)]
        pooled = n.op("Resize", n.act(n.conv(n.op("GlobalAveragePool", x), 128, 64), "Relu"), "", "", np.array([1, 64, 33, 33]), mode="linear")
        return n.act(n.conv(n.op("Concat", *ys, pooled, axis=1), 320, 64), "Relu")

    @block("layer ResNeXt bottleneck 14", [1, 256, 14, 14])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 256, 128), "Relu"), 128, 128, 3, group=32), "Relu")
        return n.act(n.op("Add", n.conv(y, 128, 256), x), "Relu")

    @block("layer RegNetY block 14", [1, 208, 14, 14])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 208, 208), "Relu"), 208, 208, 3, group=13), "Relu")
        return n.act(n.op("Add", n.conv(n.se(y, 208, 52, "Sigmoid"), 208, 208), x), "Relu")

    @block("layer ESPCN x4", [1, 3, 64, 64])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 3, 64, 5), "Tanh"), 64, 32, 3), "Tanh")
        return n.op("DepthToSpace", n.conv(y, 32, 48, 3), blocksize=4, mode="CRD")

    @block("layer EDSR block", [1, 32, 48, 48])
    def _(n, x):
        y = n.conv(n.act(n.conv(x, 32, 32, 3), "Relu"), 32, 32, 3)
        y = n.conv(n.op("Add", n.op("Mul", y, number(.1)), x), 32, 128, 3)
        return n.conv(n.op("DepthToSpace", y, blocksize=2, mode="CRD"), 32, 3, 3)

    @block("layer DCGAN", [1, 100, 1, 1])
    def _(n, x):
        for cin, cout, options in ((100, 128, {}), (128, 64, {"strides": [2, 2], "pads": [1] * 4}), (64, 3, {"strides": [2, 2], "pads": [1] * 4})):
            x = n.op("ConvTranspose", x, n.weights(cin, cout, 4, 4), **options)
            x = n.act(n.bn(x, cout), "Relu") if cout > 3 else n.act(x, "Tanh")
        return x

    @block("layer 3-d ResNet block", [1, 32, 8, 14, 14])
    def _(n, x):
        y = n.act(n.bn(n.conv(x, 32, 32, (3, 3, 3), bias=False), 32), "Relu")
        return n.act(n.op("Add", n.bn(n.conv(y, 32, 32, (3, 3, 3), bias=False), 32), x), "Relu")

    @block("layer C3D start", [1, 3, 8, 56, 56])
    def _(n, x):
        x = n.op("MaxPool", n.act(n.conv(x, 3, 16, (3, 3, 3)), "Relu"), kernel_shape=[1, 2, 2], strides=[1, 2, 2])
        return n.op("MaxPool", n.act(n.conv(x, 16, 32, (3, 3, 3)), "Relu"), kernel_shape=[2, 2, 2], strides=[2, 2, 2])

    @block("layer 3-d U-Net end", [1, 16, 8, 16, 16])
    def _(n, x):
        y = n.act(n.op("InstanceNormalization", n.conv(x, 16, 32, (3, 3, 3)), n.weights(32) + 1, n.weights(32)), "LeakyRelu")
        return n.conv(n.op("ConvTranspose", y, n.weights(32, 16, 2, 2, 2), strides=[2, 2, 2]), 16, 2, (1, 1, 1))

    @block("layer wav2vec front", [1, 1, 8000])
    def _(n, x):
        for cin, k, s in ((1, 10, 5), (128, 3, 2), (128, 3, 2)):
            y = n.op("Conv", x, n.weights(128, cin, k), strides=[s])
            y = n.norm(n.turn(y, 0, 2, 1), 128)
            x = n.act(n.turn(y, 0, 2, 1), "gelu")
        return x

    @block("layer HiFi-GAN stage", [1, 64, 200])
    def _(n, x):
        x = n.op("ConvTranspose", n.op("LeakyRelu", x, alpha=.1), n.weights(64, 32, 8), strides=[4], pads=[2, 2])
        ys = []
        for k, d in ((3, 1), (7, 3)):
            y = n.conv(n.op("LeakyRelu", x, alpha=.1), 32, 32, (k,), dilation=d)
            ys.append(n.op("Add", n.conv(n.op("LeakyRelu", y, alpha=.1), 32, 32, (k,)), x))
        return n.act(n.conv(n.op("Div", n.op("Add", *ys), number(2)), 32, 1, (7,)), "Tanh")

    @block("layer EnCodec LSTM", [1, 32, 160])
    def _(n, x):
        y = n.conv(n.op("Elu", x), 32, 64, (4,), stride=2, pad=(1,))
        y = n.turn(y, 2, 0, 1)
        h, *_ = n.op("LSTM", y, floats(1, 256, 64), floats(1, 256, 64), outputs=3, hidden_size=64)
        return n.turn(n.op("Add", n.op("Squeeze", h, np.array([1])), y), 1, 2, 0)

    @block("layer channel attention 1d (ECA)", [1, 64, 28, 28])
    def _(n, x):
        g = n.shape(n.op("GlobalAveragePool", x), 1, 1, 64)
        return n.op("Mul", x, n.shape(n.act(n.op("Conv", g, n.weights(1, 1, 3), pads=[1, 1]), "Sigmoid"), 1, 64, 1, 1))

    @block("layer GhostNet module", [1, 40, 28, 28])
    def _(n, x):
        a = n.act(n.conv(x, 40, 60), "Relu")
        return n.op("Concat", a, n.act(n.conv(a, 60, 60, 3, group=60), "Relu"), axis=1)

    @block("layer depthwise alone between transposes", [1, 196, 192])
    def _(n, x):
        y = n.shape(n.turn(x, 0, 2, 1), 1, 192, 14, 14)
        y = n.turn(n.shape(n.conv(y, 192, 192, 3, group=192), 1, 192, 196), 0, 2, 1)
        return n.act(y, "gelu")

    @block("layer coordinate attention", [1, 64, 28, 28])
    def _(n, x):
        h = n.op("ReduceMean", x, axes=[3])
        w = n.turn(n.op("ReduceMean", x, axes=[2]), 0, 1, 3, 2)
        y = n.act(n.conv(n.op("Concat", h, w, axis=2), 64, 8), "HardSwish")
        h, w = n.op("Split", y, np.array([28, 28]), outputs=2, axis=2)
        a = n.act(n.conv(h, 8, 64), "Sigmoid")
        b = n.act(n.conv(n.turn(w, 0, 1, 3, 2), 8, 64), "Sigmoid")
        return n.op("Mul", n.op("Mul", x, a), b)

    @block("layer MLP-Mixer", [1, 49, 128])
    def _(n, x):
        y = n.turn(n.norm(x, 128), 0, 2, 1)
        x = n.op("Add", x, n.turn(n.mlp(y, 49, 64), 0, 2, 1))
        return n.op("Add", x, n.mlp(n.norm(x, 128), 128, 256))

    @block("layer PointNet", [1, 3, 1024])
    def _(n, x):
        for cin, cout in ((3, 64), (64, 128), (128, 256)):
            x = n.act(n.bn(n.conv(x, cin, cout, (1,)), cout), "Relu")
        return n.op("ReduceMax", x, axes=[2], keepdims=0)

    @block("layer linear attention", [1, 256, 64])
    def _(n, x):
        q, k, v = (n.linear(x, 64, 64) for _ in range(3))
        k = n.op("Softmax", n.turn(k, 0, 2, 1), axis=-1)
        return n.op("MatMul", n.op("Softmax", q, axis=-1), n.op("MatMul", k, v))


FAMILIES = convolution_layers, transposed_layers, product_layers, quantised_layers, neighbours
