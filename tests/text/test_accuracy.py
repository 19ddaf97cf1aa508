"""MiniLM through /v1/embeddings on the STS benchmark's development sentences: Spearman, times 100, of cosines and scores."""
import base64
import csv
import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.request

import pytest

numpy = pytest.importorskip("numpy")
stats = pytest.importorskip("scipy.stats")

import compare

MODEL = compare.ROOT / ".cache/minilm"
SENTENCES = pathlib.Path(os.environ.get("PENSTOCK_SHARED", compare.ROOT.parent / "shared")) / "text/stsb-en-dev.csv"
REFERENCE = 86.716  # sentence-transformers in FP32

pytestmark = pytest.mark.skipif(not (compare.BINARY.exists() and MODEL.exists() and SENTENCES.exists()), reason="needs penstock, .cache/minilm (./serve minilm) and ../shared/text")


def spearman(tmp_path, precision):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % s.getsockname()[1]
    command = [compare.BINARY, "serve", "--model", f"minilm={MODEL}", "--precision", precision, "--listen", address, "--cache", tmp_path]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://{address}/v2/health/ready", timeout=5)
                    break
                except OSError:
                    assert server.poll() is None, (tmp_path / "log").read_text()
                    time.sleep(0.1)
            rows = [row for row in csv.reader(SENTENCES.open(newline="")) if len(row) == 3]
            first, second = (embed(address, [row[i] for row in rows]) for i in (0, 1))
        finally:
            server.terminate()
    return 100 * stats.spearmanr((first * second).sum(1), [float(row[2]) for row in rows])[0]


def embed(address, texts):
    found = []
    for at in range(0, len(texts), 500):
        body = json.dumps(dict(model="minilm", input=texts[at : at + 500], encoding_format="base64")).encode()
        with urllib.request.urlopen(urllib.request.Request(f"http://{address}/v1/embeddings", body, {"Content-Type": "application/json"}), timeout=300) as response:
            found += [numpy.frombuffer(base64.b64decode(d["embedding"]), "<f4") for d in json.load(response)["data"]]
    return numpy.array(found)


@pytest.mark.parametrize("precision, loss", [("fp32", 0.02), ("bf16", 0.02), ("int8", 0.05)])
def test_minilm_on_the_sts_benchmark(tmp_path, precision, loss):
    found = spearman(tmp_path, precision)
    assert found > REFERENCE - loss and (precision == "int8" or found < REFERENCE + loss), found
