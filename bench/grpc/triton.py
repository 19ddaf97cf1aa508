"""Triton with an identity model, by PyTriton, for run.py. Usage: triton.py GRPC_PORT"""
import socket
import sys

import numpy
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@batch
def identity(x):
    return {"y": x}


config = TritonConfig(http_port=free_port(), grpc_port=int(sys.argv[1]), metrics_port=free_port())
with Triton(config=config) as triton:
    tensor = lambda name: Tensor(name=name, dtype=numpy.float32, shape=(256,))
    triton.bind(model_name="identity", infer_func=identity, inputs=[tensor("x")], outputs=[tensor("y")],
                config=ModelConfig(max_batch_size=128, batcher=DynamicBatcher()))
    triton.serve()
