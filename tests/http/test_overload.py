"""More work than the server can do: what a refused client is told is true."""
import time

import numpy
import pytest

import serving

ROWS = 64


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overload")
    model = serving.slow_model(folder, layers=16)
    with serving.Server(folder / "server.log", {"slow": model}, "--set", f"batching.queue_rows_max={12 * ROWS}") as s:
        yield s


def test_a_full_queue_says_when_to_come_back(server):
    body, headers = serving.binary_request({"in": numpy.ones((ROWS, 1024), numpy.float32)})

    def send():
        return server.post("/v2/models/slow/infer", body, headers)

    def ask():
        answer = send()
        if answer.status == 429:
            seconds = int(answer.headers["retry-after"])
            assert "full" in answer.json()["error"] and "will have begun in" in answer.json()["error"]
            time.sleep(seconds)
            return seconds, send().status
        return None, answer.status

    serving.at_once([send] * 40, workers=40)  # how long batches take beside each other is measured here
    answers = serving.at_once([ask] * 40, workers=40)
    waits = [seconds for seconds, _ in answers if seconds is not None]
    assert waits and min(waits) >= 1
    # Who came back when told met others who did, and most of them found room: at most 12 of them at a time fit.
    came_back = [status for seconds, status in answers if seconds is not None]
    assert came_back.count(200) >= min(12, len(came_back)), came_back
    assert all(status == 200 for seconds, status in answers if seconds is None)
