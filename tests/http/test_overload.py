"""More work than the server can do: a refused client is told when to come back, and is served when it does as it is told."""
import threading
import time

import numpy
import pytest

import serving

ROWS = 64


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overload")
    model = serving.slow_model(folder, layers=serving.SLOW_LAYERS * 2 // 5)
    with serving.Server(folder / "server.log", {"slow": model}, "--set", f"batching.queue_rows_max={12 * ROWS}") as s:
        yield s


def test_a_full_queue_says_when_to_come_back(server):
    """Forty clients that come back when told: all are served. (That the time is the right one is for tests/sim, which has a clock of its own.)"""
    body, headers = serving.binary_request({"in": numpy.ones((ROWS, 1024), numpy.float32)})
    is_over = threading.Event()

    def ask():
        """Until the queue was full; returns how many seconds it was told to wait, each time."""
        waits, served = [], 0
        while not is_over.is_set() or served == 0:
            answer = server.post("/v2/models/slow/infer", body, headers)
            if answer.status == 200:
                served += 1
                continue
            assert answer.status == 429, answer
            assert "full" in answer.json()["error"]
            waits.append(int(answer.headers["retry-after"]))
            if "will have begun in" in answer.json()["error"]:  # from when batches have been measured
                is_over.set()
            time.sleep(waits[-1])
        return waits

    waits = [seconds for waits in serving.at_once([ask] * 40, workers=40) for seconds in waits]
    assert waits and min(waits) >= 1
