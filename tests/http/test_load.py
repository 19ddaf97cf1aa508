"""Many clients at once, of every protocol: batches form, nothing fails, nothing grows."""
import http.client
import json
import os
import random
import signal
import ssl
import threading
import time

import frames
import numpy
import pytest

import serving

ENCODER = "bert_tiny_cls_legacy"


@pytest.fixture(scope="module")
def load_server(tmp_path_factory, golden, certificate):
    """An encoder, a small model, and one to load and unload, on clear text and TLS. (All golden models take minutes under ThreadSanitizer.)"""
    folder, manifest = golden
    models = {ENCODER: folder / manifest[ENCODER]["file"], "digits": serving.DIGITS, "other": serving.DIGITS}
    with serving.Server(tmp_path_factory.mktemp("load") / "server.log", models, *serving.CONTROL, tls=certificate) as s:
        yield s


def resident_kib(server):
    for line in open(f"/proc/{server.process.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError


def check_growth(server, before_kib):
    """Room for allocator noise, not for a leak per request. A sanitizer keeps freed memory, and finds leaks by itself."""
    if not {"ASAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ):
        assert resident_kib(server) < before_kib * 1.15 + 16384


def any_request(dice):
    """A model and its inputs: mostly the small one, so that a slow machine still sees many requests."""
    if dice.random() < 0.2:
        return ENCODER, encoder_inputs(dice)
    return "digits", {"image": numpy.full((dice.randint(1, 4), 64), dice.random(), numpy.float32)}


def encoder_inputs(dice):
    rows, length = dice.randint(1, 3), dice.randint(1, 100)
    ids = numpy.full((rows, length), dice.randint(1, 80), numpy.int64)
    return {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}


def http1_client(server, dice, tls, is_over):
    """Binary and JSON requests, mistakes, and clients that leave before the answer."""

    def connect():
        if not tls:
            return server.connect()
        return http.client.HTTPSConnection("127.0.0.1", server.tls_port, timeout=60, context=ssl._create_unverified_context())

    connection, answered = connect(), 0
    while not is_over():
        (model, inputs), kind = any_request(dice), dice.random()
        path = f"/v2/models/{model}/infer"
        if kind < 0.45:
            server.infer_binary(model, inputs, connection)
        elif kind < 0.85:
            body = json.dumps({"inputs": [serving.json_input(n, a) for n, a in inputs.items()]})
            answer = server.post(path, body, connection=connection)
            assert answer.status == 200, answer
        elif kind < 0.90:
            assert server.post(path, b"{", connection=connection).status == 400
        elif kind < 0.95:
            connection.request("POST", path, *serving.binary_request(inputs))
            connection.close()  # gone before the answer
            connection = connect()
        else:
            path = dice.choice(["/metrics", f"/v2/models/{ENCODER}/stats", "/"])
            assert server.request("GET", path, connection=connection).status == 200
        answered += 1
    connection.close()
    return answered


def http2_client(server, dice, tls, is_over):
    """Eight streams at a time; some are reset while they run."""
    port, answered = server.tls_port if tls else server.port, 0
    client = frames.Client(port, tls)
    while not is_over() or client.waiting:
        while len(client.waiting) < 8 and not is_over():
            model, inputs = any_request(dice)
            body, headers = serving.binary_request(inputs)
            stream = client.ask(f"/v2/models/{model}/infer", body, [(k.lower(), v) for k, v in headers.items()])
            if dice.random() < 0.1:
                client.reset(stream)
        for _, status, _ in client.receive():
            assert status == 200, status
            answered += 1
    client.close()
    return answered


def storm(server, seconds, clients=32):
    """Mixed protocols, lengths, encodings and mistakes; returns requests answered and the failures."""
    end = time.monotonic() + seconds
    answered, failures = [0], []
    is_over = lambda: time.monotonic() > end or bool(failures)

    def run(seed):
        try:
            answered[0] += (http1_client, http2_client)[seed // 2 % 2](server, random.Random(seed), seed % 2 == 1, is_over)
        except Exception as error:  # noqa: BLE001: every kind is a finding
            failures.append(f"client {seed}: {error!r}")

    def disturb():
        """Certificates are read again and a model goes and comes, under load."""
        try:
            while not is_over():
                server.process.send_signal(signal.SIGHUP)
                for verb in ("unload", "load"):
                    assert server.post(f"/v2/repository/models/other/{verb}", "{}").status == 200
                time.sleep(0.2)
        except Exception as error:  # noqa: BLE001
            failures.append(f"control: {error!r}")

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(clients)] + [threading.Thread(target=disturb)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return answered[0], failures


@pytest.mark.load
def test_storm(load_server):
    _, failures = storm(load_server, 5)
    assert not failures, failures[:3]
    before = resident_kib(load_server)
    answered, failures = storm(load_server, 6)
    assert not failures, failures[:3]
    assert answered > 0
    check_growth(load_server, before)


def test_reloads_do_not_grow(load_server):
    def reload(times):
        for _ in range(times):
            for verb in ("unload", "load"):
                assert load_server.post(f"/v2/repository/models/{ENCODER}/{verb}", "{}").status == 200
            load_server.infer_binary(ENCODER, encoder_inputs(random.Random(1)))

    reload(5)
    before = resident_kib(load_server)
    reload(10)
    check_growth(load_server, before)


def test_batches_form(tmp_path):
    """Requests that wait together run together: 48 at once, four times. Each row costs milliseconds, so that they do wait."""
    with serving.Server(tmp_path / "log", {"slow": serving.slow_model(tmp_path, layers=serving.SLOW_LAYERS * 2)}) as server:
        body, headers = serving.binary_request({"in": numpy.zeros((1, 1024), numpy.float32)})
        connections = [server.connect() for _ in range(48)]
        for _ in range(4):
            with server.stopped():
                for connection in connections:
                    connection.request("POST", "/v2/models/slow/infer", body, headers)
            for connection in connections:
                response = connection.getresponse()
                assert response.read() and response.status == 200
        stats = lambda: server.get("/v2/models/slow/stats").json()["model_stats"][0]
        serving.wait_until(lambda: stats()["inference_count"] == 192, "all are counted")
        stats = stats()
        # Triton's form: every execution is in exactly one size, but for rounding.
        assert abs(sum(b["compute_infer"]["count"] for b in stats["batch_stats"]) - stats["execution_count"]) <= len(stats["batch_stats"])
        assert 192 / stats["execution_count"] > 2, stats["execution_count"]
