"""A ResNet-18 with random weights, batch free, and its INT8 QDQ form by ONNX Runtime's quantiser.

    make_resnet.py FOLDER [--size 224]   writes FOLDER/resnet18.onnx, FOLDER/resnet18_int8_qdq.onnx
"""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

RNG = np.random.default_rng(18)


class Builder:
    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def node(self, op, inputs, **attributes):
        out = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def conv(self, x, c_in, c_out, kernel, stride, relu=True, gain=1.0):
        n = f"w{len(self.weights)}"
        std = gain * np.sqrt(2.0 / (c_in * kernel * kernel))
        w = self.weight(n, RNG.normal(0, std, (c_out, c_in, kernel, kernel)))
        b = self.weight(n + "b", RNG.normal(0, 0.1, c_out))
        pad = kernel // 2
        x = self.node("Conv", [x, w, b], kernel_shape=[kernel, kernel], strides=[stride, stride],
                      pads=[pad] * 4)
        return self.node("Relu", [x]) if relu else x

    def block(self, x, c_in, c_out, stride):
        y = self.conv(x, c_in, c_out, 3, stride)
        y = self.conv(y, c_out, c_out, 3, 1, relu=False, gain=0.5)
        if stride != 1 or c_in != c_out:
            x = self.conv(x, c_in, c_out, 1, stride, relu=False, gain=0.7)
        return self.node("Relu", [self.node("Add", [y, x])])


def build(size):
    b = Builder()
    x = b.conv("image", 3, 64, 7, 2)
    x = b.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    c_in = 64
    for c_out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = b.block(x, c_in, c_out, stride)
        x = b.block(x, c_out, c_out, 1)
        c_in = c_out
    x = b.node("Flatten", [b.node("GlobalAveragePool", [x])])
    w = b.weight("fc", RNG.normal(0, 0.05, (1000, 512)))
    x = b.node("Gemm", [x, w, b.weight("fcb", np.zeros(1000))], transB=1)
    b.nodes[-1].output[0] = "logits"
    graph = helper.make_graph(
        b.nodes, "resnet18",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, size, size])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1000])], b.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model


class Images(CalibrationDataReader):
    def __init__(self, size):
        self.left = [RNG.normal(0, 1, (4, 3, size, size)).astype(np.float32) for _ in range(4)]

    def get_next(self):
        return {"image": self.left.pop()} if self.left else None


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder")
    p.add_argument("--size", type=int, default=224)
    a = p.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    plain = os.path.join(a.folder, "resnet18.onnx")
    onnx.save(build(a.size), plain)
    quantize_static(plain, os.path.join(a.folder, "resnet18_int8_qdq.onnx"), Images(a.size),
                    quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


if __name__ == "__main__":
    main()
