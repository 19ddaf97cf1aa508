"""Triton through PyTriton, with requests of different lengths allowed in one batch. BATCH, WAIT_MS, PORT from the environment."""
import os

import numpy
from engine import Engine
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.model_config.generator import ModelConfigGenerator
from pytriton.triton import Triton, TritonConfig

# PyTriton has no option for allow_ragged_batch; without it Triton batches only requests of equal length (184 instead of 392 req/s).
set_signature = ModelConfigGenerator._set_model_signature


def set_ragged_signature(self, configuration):
    set_signature(self, configuration)
    for tensor in configuration["input"]:
        tensor["allow_ragged_batch"] = True


ModelConfigGenerator._set_model_signature = set_ragged_signature
engine = Engine()


def infer(requests):
    vectors = engine.embed([request["ids"][0] for request in requests])
    return [{"emb": vector[None]} for vector in vectors]


port = int(os.environ["PORT"])
wait_us = int(float(os.environ["WAIT_MS"]) * 1000)
triton = Triton(config=TritonConfig(http_port=port, http_address="127.0.0.1", allow_grpc=False, allow_metrics=False, log_verbose=0, http_thread_count=8))
triton.bind(
    "embed",
    infer_func=infer,
    inputs=[Tensor(name="ids", dtype=numpy.int64, shape=(-1,))],
    outputs=[Tensor(name="emb", dtype=numpy.float32, shape=(384,))],
    config=ModelConfig(max_batch_size=int(os.environ["BATCH"]), batcher=DynamicBatcher(max_queue_delay_microseconds=wait_us)),
)
triton.serve()
