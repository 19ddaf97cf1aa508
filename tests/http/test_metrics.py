"""/metrics as Prometheus reads it, and the access log."""
import contextlib
import json
import os
import re
import time

import numpy
import pytest

import serving

parser = pytest.importorskip("prometheus_client.parser")
FILES = [serving.ROOT / "deploy/grafana-dashboard.json", serving.ROOT / "deploy/prometheus-alerts.yaml", serving.ROOT / "docs/metrics.md"]


def samples(server):
    families = list(parser.text_string_to_metric_families(server.get("/metrics").body.decode()))
    return families, [s for f in families for s in f.samples]


def test_format(server):
    server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    answer = server.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families, found = samples(server)
    assert len({f.name for f in families}) == len(families)
    for family in families:
        assert family.name.startswith("penstock_"), family.name
        assert family.documentation and family.type != "unknown", family.name
    keys = [(s.name, tuple(sorted(s.labels.items()))) for s in found]
    assert len(set(keys)) == len(keys)
    assert all(s.value == s.value for s in found)


def test_histograms_are_cumulative(server):
    families, _ = samples(server)
    for family in (f for f in families if f.type == "histogram"):
        series = {}
        for s in family.samples:
            if s.name.endswith("_bucket"):
                series.setdefault(tuple(sorted((k, v) for k, v in s.labels.items() if k != "le")), []).append((float(s.labels["le"]), s.value))
        for cells in series.values():
            cells.sort()
            assert cells[-1][0] == float("inf")
            assert [c for _, c in cells] == sorted(c for _, c in cells), family.name
        ends = {end: {tuple(sorted(s.labels.items())): s.value for s in family.samples if s.name == family.name + end} for end in ("_count", "_sum")}
        assert set(ends["_count"]) == set(ends["_sum"]) == set(series), family.name
        assert all(ends["_count"][k] == cells[-1][1] for k, cells in series.items())


def test_quantiles_by_model_stage_and_bucket(server):
    for rows in (1, 1, 1, 3):
        server.infer("digits", {"image": numpy.zeros((rows, 64), numpy.float32)})
    _, found = samples(server)
    wanted = {(w, q) for w in ("60s", "start") for q in ("0.5", "0.95", "0.99", "0.999")}
    stages, buckets = {}, {}
    for s in (s for s in found if s.labels.get("model") == "digits"):
        if s.name == "penstock_latency_seconds":
            stages.setdefault(s.labels["stage"], {})[s.labels["window"], s.labels["quantile"]] = s.value
        if s.name == "penstock_bucket_seconds":
            key = s.labels["batch"], s.labels["sequence"], s.labels["stage"]
            buckets.setdefault(key, {})[s.labels["window"], s.labels["quantile"]] = s.value
    assert {"parse", "queue", "execute", "respond", "total"} <= set(stages) and buckets
    for values in (*stages.values(), *buckets.values()):
        windows = {w for w, _ in values}
        assert windows in ({"start"}, {"60s", "start"})  # what was not used for a minute has no quantile of the minute
        assert set(values) == {(w, q) for w, q in wanted if w in windows}
        for window in windows:
            line = [values[window, q] for q in ("0.5", "0.95", "0.99", "0.999")]
            assert line == sorted(line)
    stats = server.get("/v2/models/digits/stats").json()["model_stats"][0]
    assert {(str(b["batch"]), str(b["sequence"])) for b in stats["buckets"]} == {k[:2] for k in buckets}
    assert all(b["latency_ms"]["start"]["total"]["p99"] > 0 for b in stats["buckets"])
    assert any(b["latency_ms"]["60s"]["total"]["p99"] > 0 for b in stats["buckets"])
    assert any(len(values) == len(wanted) for values in buckets.values())


def test_requests_are_counted_by_code(server):
    def count(code):
        return sum(s.value for s in samples(server)[1] if s.name == "penstock_requests_total" and s.labels["model"] == "digits" and s.labels["code"] == code)

    ok, bad = count("200"), count("400")
    for _ in range(5):
        server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    server.post("/v2/models/digits/infer", b"{")
    # A request is counted when its response is sent: a client may have that a moment before.
    serving.wait_until(lambda: (count("200") - ok, count("400") - bad) == (5, 1), "five and one are counted")


def test_cardinality_does_not_follow_what_clients_send(server):
    before = len(samples(server)[1])
    for i in range(30):
        server.get(f"/v2/models/made_up_{i}")
        server.post(f"/v2/models/made_up_{i}/infer", {})
        server.get(f"/path/{i}")
    assert len(samples(server)[1]) - before < 10


def test_no_compile_after_ready(server):
    server.infer("digits", {"image": numpy.zeros((3, 64), numpy.float32)})
    compiles = [s for s in samples(server)[1] if s.name == "penstock_compiles_total" and s.labels["model"] == "digits"]
    assert sum(s.value for s in compiles if s.labels["phase"] == "warm_up") > 0
    assert sum(s.value for s in compiles if s.labels["phase"] != "warm_up") == 0


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_metric_named_elsewhere_exists(server, path):
    server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    families, found = samples(server)
    known = {s.name for s in found} | {f.name for f in families} | {f.name + "_total" for f in families if f.type == "counter"}
    known |= {f.name + end for f in families if f.type == "histogram" for end in ("_bucket", "_sum", "_count")}
    named = set(re.findall(r"\bpenstock_[a-z0-9_]+\b", path.read_text()))
    assert named and named <= known, sorted(named - known)


def test_access_log(tmp_path):
    log = tmp_path / "access.jsonl"
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--access-log", str(log)) as s:
        s.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
        s.post("/v2/models/digits/infer", b"{", {"traceparent": 'quote" \\ x'})
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    infer = [l for l in lines if "infer" in json.dumps(l)]
    assert len(infer) == 2


def test_device_time_by_tenant(tmp_path):
    tenants = json.dumps({"gold": {"weight": 3}, "idle": {}})
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", f"tenants={tenants}") as s:
        body, headers = serving.binary_request({"image": numpy.zeros((1, 64), numpy.float32)})
        for name in ("gold", "nobody"):
            assert s.post("/v2/models/digits/infer", body, {**headers, "X-Tenant": name}).status == 200
        times = {x.labels["tenant"]: x.value for x in samples(s)[1] if x.name == "penstock_tenant_device_seconds_total"}
    assert set(times) == {"", "gold", "idle"}
    assert times["gold"] > 0 and times[""] > 0 and times["idle"] == 0


def test_an_access_log_that_nobody_reads(tmp_path):
    """A full pipe holds no request up: lines are dropped and counted, and those that are written are whole."""
    pipe = tmp_path / "access"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--access-log", str(pipe), "--set", "server.loops=1") as s:
        connection = s.connect()
        for _ in range(1500):
            assert s.request("GET", "/v2/" + 1000 * "x", connection=connection).status == 404
        assert next(x.value for x in samples(s)[1] if x.name == "penstock_access_log_dropped_total") > 0
        text, end = b"", time.monotonic() + 60
        while b"/v2/last" not in text:  # it is read again, and goes on
            assert time.monotonic() < end
            s.get("/v2/last")
            with contextlib.suppress(BlockingIOError):
                while part := os.read(reader, 1 << 20):
                    text += part
    for line in text.splitlines()[:-1]:
        assert json.loads(line)["code"] in (200, 404, 503)
    os.close(reader)
