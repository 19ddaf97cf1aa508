"""LitServe with its own batching. BATCH, WAIT_MS, PORT from the environment."""
import os

import litserve
import orjson
from engine import Engine
from starlette.responses import Response


class Embed(litserve.LitAPI):
    def setup(self, device):
        self.engine = Engine()

    def decode_request(self, request):
        return request["ids"]

    def batch(self, inputs):
        return inputs

    def predict(self, batch):
        return self.engine.embed(batch)

    def unbatch(self, output):
        return output

    def encode_response(self, vector):
        body = orjson.dumps({"embedding": vector}, option=orjson.OPT_SERIALIZE_NUMPY)
        return Response(body, media_type="application/json")


if __name__ == "__main__":
    api = Embed(max_batch_size=int(os.environ["BATCH"]), batch_timeout=float(os.environ["WAIT_MS"]) / 1e3)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=60, fast_queue=False)
    server.run(host="127.0.0.1", port=int(os.environ["PORT"]), num_api_servers=1, log_level="warning", generate_client_file=False, access_log=False)
