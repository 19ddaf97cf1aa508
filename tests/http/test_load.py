"""Many clients at once: batches form, nothing fails, nothing grows."""
import json
import random
import threading
import time

import numpy
import pytest

import serving

pytestmark = pytest.mark.load
ENCODER = "bert_tiny_cls_legacy"


def resident_kib(server):
    for line in open(f"/proc/{server.process.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError


def storm(server, seconds, connections=32):
    """Mixed models, lengths, encodings and mistakes; returns requests answered and the failures."""
    end = time.monotonic() + seconds
    answered, failures = [0], []

    def client(seed):
        dice = random.Random(seed)
        connection = server.connect()
        while time.monotonic() < end and not failures:
            try:
                rows, length = dice.randint(1, 3), dice.randint(1, 100)
                ids = numpy.full((rows, length), dice.randint(1, 80), numpy.int64)
                inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
                kind = dice.random()
                if kind < 0.45:
                    server.infer_binary(ENCODER, inputs, connection)
                elif kind < 0.85:
                    body = json.dumps({"inputs": [serving.json_input(n, a) for n, a in inputs.items()]})
                    answer = server.post(f"/v2/models/{ENCODER}/infer", body, connection=connection)
                    assert answer.status == 200, answer
                elif kind < 0.90:
                    assert server.post(f"/v2/models/{ENCODER}/infer", b"{", connection=connection).status == 400
                elif kind < 0.95:
                    connection.request("POST", f"/v2/models/{ENCODER}/infer", serving.binary_request(inputs)[0])
                    connection.close()  # gone before the answer
                    connection = server.connect()
                else:
                    assert server.request("GET", dice.choice(["/metrics", f"/v2/models/{ENCODER}/stats", "/"]), connection=connection).status == 200
                answered[0] += 1
            except Exception as error:  # noqa: BLE001: every kind is a finding
                failures.append(repr(error))

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return answered[0], failures


def test_storm(golden_server):
    storm(golden_server, 4)
    before = resident_kib(golden_server)
    answered, failures = storm(golden_server, 6)
    assert not failures, failures[:3]
    assert answered > 50
    # Room for allocator noise, not for a leak per request.
    assert resident_kib(golden_server) < before * 1.15 + 16384


def test_batches_form(golden_server):
    """Requests that wait together run together: the mean batch of this burst is over two rows."""

    def read():
        rows = batches = 0.0
        for line in golden_server.get("/metrics").body.decode().splitlines():
            if line.startswith("penstock_batch_rows_total{") and ENCODER in line:
                rows += float(line.rsplit(" ", 1)[1])
            if line.startswith("penstock_batches_total{") and ENCODER in line:
                batches += float(line.rsplit(" ", 1)[1])
        return rows, batches

    before = read()
    ids = numpy.ones((1, 100), numpy.int64)
    inputs = {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids * 0}
    here = threading.local()

    def one():
        if not hasattr(here, "connection"):
            here.connection = golden_server.connect()
        golden_server.infer_binary(ENCODER, inputs, here.connection)

    serving.at_once([one] * 600, workers=48)
    rows, batches = (b - a for a, b in zip(before, read()))
    assert batches > 0 and rows / batches > 2
