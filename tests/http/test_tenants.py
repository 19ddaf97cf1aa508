"""Tenants: who is one, what quotas are for those who are none, and what one tenant's full queue is to another."""
import collections
import json
import re
import threading
import time

import numpy
import pytest
from hyperframe.frame import DataFrame, HeadersFrame

import frames
import serving

PATH = "/v2/models/digits/infer"
IMAGE = {"inputs": [serving.json_input("image", numpy.zeros((1, 64), numpy.float32))]}
BODY = json.dumps(IMAGE).encode()
QUOTA = 3  # so small that a burst is over it however slow the machine


def start(log, models, tenants, *flags):
    return serving.Server(log, models, "--set", f"tenants={json.dumps(tenants)}", *flags)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    tenants = {"gold": {"key": "s3cret", "weight": 3}, "team": {"requests_per_s": 1000000}, "small": {"key": "k", "requests_per_s": QUOTA}}
    with start(tmp_path_factory.mktemp("tenants") / "log", {"digits": serving.DIGITS}, tenants) as s:
        yield s


def burst(server, headers, count=30):
    """How often each code came."""
    connection = server.connect()
    codes = collections.Counter(server.post(PATH, BODY, headers, connection).status for _ in range(count))
    connection.close()
    return codes


@pytest.mark.parametrize("headers", [{"X-API-Key": "s3cret"}, {"Authorization": "Bearer s3cret"}, {"Authorization": "bearer   s3cret"}, {"X-Tenant": "team"}])
def test_tenants_have_their_own_quotas(server, headers):
    assert burst(server, headers) == {200: 30}


@pytest.mark.parametrize("headers", [
    {}, {"X-API-Key": ""}, {"X-API-Key": "nope"}, {"X-API-Key": "s3cre"}, {"X-API-Key": "s3cret "* 2}, {"Authorization": "Basic s3cret"},
    {"Authorization": "Bearer"}, {"X-Tenant": "gold"}, {"X-Tenant": "default"}, {"X-Tenant": "anybody"}, {"X-API-Key": "(masked)"},
])  # fmt: skip
def test_without_a_key_the_smallest_quota_is_for_all_together(server, headers):
    codes = burst(server, headers)
    assert codes[429] > 0 and set(codes) == {200, 429} or codes == {429: 30}, codes
    refused = server.post(PATH, BODY, headers)
    while refused.status == 200:
        refused = server.post(PATH, BODY, headers)
    assert '"default" is over its quota' in refused.json()["error"] and int(refused.headers["retry-after"]) >= 1


@pytest.mark.parametrize("name", [b"X-API-Key", b"Authorization", b"X-Tenant"])
def test_two_identities_are_none(server, name):
    """Of two, a proxy in front may have checked the other."""
    lines = [b"POST " + PATH.encode() + b" HTTP/1.1", b"Host: a", b"Connection: close", b"Content-Length: %d" % len(BODY), name + b": s3cret", name + b": s3cret"]
    got = server.raw(b"\r\n".join(lines) + b"\r\n\r\n" + BODY)
    assert got.startswith(b"HTTP/1.1 400 ") and b"twice" in got, got


def test_keys_in_trailers_are_no_keys(server):
    """Over HTTP/1.1 and HTTP/2: the burst is the default tenant's."""
    lines = [b"POST " + PATH.encode() + b" HTTP/1.1", b"Host: a", b"Transfer-Encoding: chunked", b"Trailer: X-API-Key"]
    one = b"\r\n".join(lines) + b"\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\nX-API-Key: s3cret\r\nX-Tenant: team\r\n\r\n"
    got = server.raw(one * 30, half_close=True)
    assert got.count(b"HTTP/1.1 ") == 30 and got.count(b"HTTP/1.1 429 ") > 0
    client = frames.Client(server.port)
    for _ in range(30):
        stream, client.next_stream = client.next_stream, client.next_stream + 2
        fields = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", PATH)]
        head = HeadersFrame(stream, client.encoder.encode(fields), flags=["END_HEADERS"])
        end = HeadersFrame(stream, client.encoder.encode([("x-api-key", "s3cret"), ("x-tenant", "team")]), flags=["END_HEADERS", "END_STREAM"])
        client.waiting[stream] = [None, b""]
        client.socket.sendall(head.serialize() + DataFrame(stream, BODY).serialize() + end.serialize())
    codes = []
    while client.waiting:
        codes += [code for _, code, _ in client.receive()]
    assert len(codes) == 30 and set(codes) <= {200, 429} and codes.count(429) > 0, codes


def test_the_default_tenant_can_be_given(tmp_path):
    tenants = {"small": {"key": "k", "requests_per_s": QUOTA}, "default": {"weight": 2}}
    with start(tmp_path / "log", {"digits": serving.DIGITS}, tenants) as s:
        assert burst(s, {}) == {200: 30}
        assert burst(s, {"X-API-Key": "k"})[429] > 0


def test_a_full_queue_of_one_tenant_is_not_anothers(tmp_path):
    """A crowd asks again as soon as it is refused; the other tenant is never refused."""
    rows = 64
    model = serving.slow_model(tmp_path, layers=serving.SLOW_LAYERS * 2 // 5)
    large, headers = serving.binary_request({"in": numpy.ones((rows, 1024), numpy.float32)})
    small, small_headers = serving.binary_request({"in": numpy.ones((1, 1024), numpy.float32)})
    with start(tmp_path / "log", {"slow": model}, {"gold": {"key": "s3cret"}}, "--set", f"batching.queue_rows_max={2 * rows}") as s:
        codes, is_over = collections.Counter(), threading.Event()

        def crowd():
            connection = s.connect()
            while not is_over.is_set():
                codes[s.post("/v2/models/slow/infer", large, headers, connection).status] += 1
            connection.close()

        def ask():
            return s.post("/v2/models/slow/infer", small, dict(small_headers, **{"X-API-Key": "s3cret"})).status

        threads = [threading.Thread(target=crowd) for _ in range(12)]
        for t in threads:
            t.start()
        try:
            while codes[429] < 20:
                is_over.wait(0.01)
            before = codes[429]
            served = serving.at_once([ask] * 20, workers=4)
            full = codes[429] - before
        finally:
            is_over.set()
            for t in threads:
                t.join()
        assert served == [200] * 20 and full > 0, (served, full)
        assert set(codes) == {200, 429}


LATE = 95  # refusals at once: more than a connection's burst, fewer than its streams


def ask_too_often(server):
    """A client with LATE requests over the quota that are open or answered, and what it sent."""
    client = frames.Client(server.port)
    return client, [client.ask(PATH, BODY) for _ in range(LATE)]


def test_who_asks_again_at_once_is_told_late(server):
    """Refusals beyond a burst come later than the response to another tenant's request behind them, and all come."""
    for _ in range(20):  # on a machine that stands still for a second, all of them are late
        client, _ = ask_too_often(server)
        gold = client.ask(PATH, BODY, [("x-api-key", "s3cret")])
        order, codes = [], collections.Counter()
        while client.waiting:
            for stream, code, _ in client.receive():
                order.append(stream)
                codes[code] += 1
        client.close()
        assert codes[429] >= LATE - 20 and set(codes) == {200, 429}, codes
        if order[-1] != gold:
            return
    raise AssertionError("refusals are never late")


def open_requests(server):
    return int(re.search(r"^penstock_requests_open (\d+)", server.get("/metrics").body.decode(), re.M)[1])


@pytest.mark.parametrize("leaves", ["connection", "streams", "http1"])
def test_who_does_not_wait_for_a_late_refusal_leaves_nothing_behind(server, leaves):
    if leaves == "http1":
        connection = server.connect()
        while server.post(PATH, BODY, {}, connection).status == 200:
            pass
        for _ in range(60):
            server.post(PATH, BODY, {}, connection)
        connection.request("POST", PATH, BODY)
    else:
        connection, streams = ask_too_often(server)
        for stream in streams if leaves == "streams" else ():
            connection.reset(stream)
        assert leaves == "connection" or connection.ask(PATH, BODY, [("x-api-key", "s3cret")])
        while leaves == "streams" and connection.waiting:
            connection.receive()
    connection.close()
    end = time.monotonic() + 60
    while open_requests(server) > 1:
        assert time.monotonic() < end, "requests stay open"
        time.sleep(0.02)
    assert burst(server, {"X-API-Key": "s3cret"}) == {200: 30}
