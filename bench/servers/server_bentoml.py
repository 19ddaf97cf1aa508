"""BentoML with its adaptive batching. BATCH from the environment; `bentoml serve server_bentoml:Embed`."""
import os
import typing

import bentoml
from engine import Engine


@bentoml.service(workers=1, threads=1, traffic={"timeout": 60}, metrics={"enabled": False}, logging={"access": {"enabled": False}})
class Embed:
    def __init__(self):
        self.engine = Engine()

    @bentoml.api(batchable=True, batch_dim=0, max_batch_size=int(os.environ.get("BATCH", "64")), max_latency_ms=10000)
    def embed(self, ids: typing.List[typing.List[int]]) -> typing.List[typing.List[float]]:
        return [vector.tolist() for vector in self.engine.embed(ids)]
