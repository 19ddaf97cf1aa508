"""The servers, how each is installed, started and asked, and where the vector is in its answer."""
import os
import pathlib

WORK = pathlib.Path(os.environ.get("BENCH_WORK", "/var/tmp/penstock-bench"))
OPENVINO = "OpenVINO INT8, sorted groups of 4"

# packages: of its Python environment, the first ones named in the results; body and answer: its dialect; folder: where it is started.
PEERS = {
    "pytriton": dict(
        label="Triton (PyTriton)", engine=OPENVINO, packages=["nvidia-pytriton==0.7.0", "openvino", "onnxruntime", "orjson"],
        command=["{python}", "server_pytriton.py"], body="triton", path="/v2/models/embed/infer", environment=dict(BATCH="64", WAIT_MS="0"),
        # Its bundled stub loads Debian's libpython3.11 and fails with another 3.11's standard library.
        python="/usr/bin/python3.11",
    ),
    "litserve": dict(
        label="LitServe", engine=OPENVINO, packages=["litserve", "openvino", "orjson"],
        command=["{python}", "server_litserve.py"], body="ids", path="/predict", environment=dict(BATCH="64", WAIT_MS="10"),
    ),
    "bentoml": dict(
        label="BentoML", engine=OPENVINO, packages=["bentoml", "openvino", "orjson"],
        command=["{bin}/bentoml", "serve", "server_bentoml:Embed", "--host", "127.0.0.1", "-p", "{port}"], body="rows", path="/embed",
        environment=dict(BATCH="64", BENTOML_DO_NOT_TRACK="True", BENTOML_HOME=str(WORK / "bentoml")),
    ),
    "infinity": dict(
        label="infinity", engine="ONNX Runtime INT8, batch 4", packages=["infinity-emb[server,optimum,torch]==0.0.78"],
        # The model as ".": an absolute path does not find model_quantized.onnx.
        command=["{bin}/infinity_emb", "v2", "--model-id", ".", "--served-model-name", "m", "--engine", "optimum", "--device", "cpu",
                 "--batch-size", "4", "--no-bettertransformer", "--no-compile", "--onnx-disable-optimize", "--no-model-warmup", "--pooling-method", "mean",
                 "--log-level", "warning", "--host", "127.0.0.1", "--port", "{port}"],
        body="openai", path="/embeddings", folder=WORK / "infinity",
        environment=dict(INFINITY_ANONYMOUS_USAGE_STATS="0", HF_HUB_CACHE=str(WORK / "hub")),
    ),
    **{
        f"penstock-{precision}": dict(
            label=f"Penstock {precision}", engine="its own kernels", packages=None, body="penstock", path="/v2/models/minilm/infer", environment={},
            command=["{penstock}", "serve", "--model", "minilm={minilm}", "--precision", precision, "--listen", "127.0.0.1:{port}"],
        )
        for precision in ("int8", "bf16", "fp32")
    },
}  # fmt: skip

VECTOR = {
    "ids": lambda answer: answer["embedding"],
    "rows": lambda answer: answer[0],
    "triton": lambda answer: answer["outputs"][0]["data"],
    "penstock": lambda answer: answer["outputs"][0]["data"],
    "openai": lambda answer: answer["data"][0]["embedding"],
}
