"""/metrics as Prometheus reads it, and the access log."""
import contextlib
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import time

import numpy
import onnx
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


def test_quantiles_by_model_and_stage(server):
    for rows in (1, 1, 1, 3):
        server.infer("digits", {"image": numpy.zeros((rows, 64), numpy.float32)})
    _, found = samples(server)
    stages = {}
    for s in (s for s in found if s.name == "penstock_stage_seconds" and s.labels["model"] == "digits"):
        stages.setdefault(s.labels["stage"], {})[s.labels["quantile"]] = s.value
    assert {"parse", "queue", "execute", "respond", "total"} <= set(stages)
    for values in stages.values():
        assert list(values) == ["0.5", "0.95", "0.99", "0.999"] and list(values.values()) == sorted(values.values())
    stats = server.get("/v2/models/digits/stats").json()["model_stats"][0]
    assert stages["total"]["0.99"] == pytest.approx(stats["latency_ms"]["60s"]["total"]["p99"] / 1e3, rel=0.05)
    buckets = {(s.labels["batch"], s.labels["sequence"]) for s in found if s.name == "penstock_bucket_execute_seconds_count" and s.labels["model"] == "digits"}
    assert {(str(b["batch"]), str(b["sequence"])) for b in stats["buckets"]} == buckets
    assert all(b["latency_ms"]["start"]["total"]["p99"] > 0 for b in stats["buckets"])
    assert any(b["latency_ms"]["60s"]["total"]["p99"] > 0 for b in stats["buckets"])


def test_a_quantile_of_the_histogram_is_in_its_cell(server):
    """What replicas add up: the cells are so narrow that p99 is off by a quarter at most, wherever it lies between 100 us and 10 s."""
    server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    _, found = samples(server)
    cells = sorted((float(s.labels["le"]), s.value) for s in found if s.name == "penstock_request_seconds_bucket" and s.labels["model"] == "digits")
    bounds = [le for le, _ in cells]
    assert bounds[0] == 1e-4 and bounds[-2] == 10 and all(b / a <= 1.26 for a, b in zip(bounds, bounds[1:-1]))
    p99 = server.get("/v2/models/digits/stats").json()["model_stats"][0]["latency_ms"]["start"]["total"]["p99"] / 1e3
    cell = next(le for le, count in cells if count >= 0.99 * cells[-1][1])
    assert p99 <= cell * 1.01 and (cell == bounds[0] or p99 >= cell / 1.27)


def test_a_model_has_few_series(server):
    """All stages and buckets of one model in use by two APIs."""
    for rows in range(1, 33):
        server.infer("digits", {"image": numpy.zeros((rows, 64), numpy.float32)})
    server.post("/v1/models/digits:predict", {"instances": [[0.0] * 64]})
    _, found = samples(server)
    of_model = [s for s in found if s.labels.get("model") == "digits"]
    assert len(of_model) < 260, len(of_model)
    assert sum('model' not in s.labels for s in found) < 160


UNITS = {"milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "percent", "kilobytes", "megabytes", "bits"}
SHORT = {"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "m", "h", "d"}


def test_names_follow_prometheus_rules(server):
    """What promtool check metrics looks for; tests/interop asks promtool itself."""
    server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", server.get("/metrics").body.decode(), re.M))
    families, _ = samples(server)
    for name, kind in kinds.items():
        words = name.split("_")
        assert re.fullmatch("[a-z0-9_]+", name) and not set(words) & (UNITS | SHORT | {"counter", "gauge", "histogram", "summary"}), name
        assert (kind == "counter") == name.endswith("_total"), name
        assert kind in ("histogram", "summary") or not re.search("_(count|sum|bucket)$", name), name
    for family in families:
        for s in family.samples:
            assert all(re.fullmatch("[a-z_]+", label) for label in s.labels), s
            assert "quantile" not in s.labels or family.type == "summary", s
            assert "le" not in s.labels or family.type == "histogram", s


def test_requests_are_counted_by_code(server):
    def count(code):
        return sum(s.value for s in samples(server)[1] if s.name == "penstock_requests_total" and s.labels["model"] == "digits" and s.labels["code"] == code)

    ok, bad = count("200"), count("400")
    for _ in range(5):
        server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    server.post("/v2/models/digits/infer", b"{")
    # A request is counted when its response is sent: a client may have that a moment before.
    serving.wait_until(lambda: (count("200") - ok, count("400") - bad) == (5, 1), "five and one are counted")


def failures(server, reason, protocol):
    labels = {"reason": reason, "protocol": protocol}
    return sum(s.value for s in samples(server)[1] if s.name == "penstock_request_failures_total" and labels.items() <= s.labels.items())


def grpc_infer(server, model, rows=1, timeout=60):
    """The status code of one call, as a number."""
    pytest.importorskip("grpc")
    grpc_client = pytest.importorskip("tritonclient.grpc")
    tensor = grpc_client.InferInput("image", [rows, 64], "FP32")
    tensor.set_data_from_numpy(numpy.zeros((rows, 64), numpy.float32))
    with contextlib.closing(grpc_client.InferenceServerClient(f"127.0.0.1:{server.port}")) as client:
        try:
            client.infer(model, [tensor], client_timeout=timeout)
        except grpc_client.InferenceServerException as error:
            return error.status()
    return "StatusCode.OK"


REFUSED = {
    "bad_request": ("POST", "/models/digits", b"{", {}),
    "not_found": ("POST", "/models/nobody", b"{}", {}),
    "unauthorized": ("POST", "/models/digits", b"{}", {"X-API-Key": "wrong"}),
    "too_large": ("POST", "/models/digits", b" " * 70000, {}),
    "quota": ("POST", "/models/digits", json.dumps({"inputs": [serving.json_input("image", numpy.zeros((1, 64), numpy.float32))]}).encode(), {"X-Tenant": "poor"}),
}


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Small limits, a tenant without any quota left, and an objective that no request meets."""
    folder = tmp_path_factory.mktemp("strict")
    models = {"digits": serving.DIGITS, "slow": serving.slow_model(folder, layers=serving.SLOW_LAYERS * 3 // 4)}
    tenants = json.dumps({"poor": {"requests_per_s": 1}, "default": {}})
    flags = ("--set", f"tenants={tenants}", "--set", "limits.body_bytes_max=65536", "--set", "batching.queue_rows_max=8", "--threads", "1")
    with serving.Server(folder / "log", models, *flags) as s:
        yield s


def test_refusals_are_counted_by_reason_and_protocol(strict):
    paths = {"kserve": "/v2{}/infer", "tensorflow": "/v1{}:predict"}
    for protocol, path in paths.items():
        for reason, (method, model, body, headers) in REFUSED.items():
            if reason == "unauthorized" or (reason, protocol) == ("quota", "tensorflow"):
                continue
            before = failures(strict, reason, protocol)
            codes = [strict.request(method, path.format(model), body, headers).status for _ in range(3)]  # of the quota the first may be
            wanted = 3 if reason != "quota" else 1
            serving.wait_until(lambda: failures(strict, reason, protocol) - before >= wanted, f"{protocol} {reason}: {codes}")


def test_refused_calls_are_counted_as_those_of_grpc(strict):
    before = failures(strict, "not_found", "grpc")
    assert grpc_infer(strict, "nobody") == "StatusCode.NOT_FOUND"
    serving.wait_until(lambda: failures(strict, "not_found", "grpc") == before + 1, "a call is counted")


def slow_request(timeout_ms=None):
    body, headers = serving.binary_request({"in": numpy.ones((4, 1024), numpy.float32)})
    return body, {**headers, **({"X-Request-Timeout-Ms": str(timeout_ms)} if timeout_ms else {})}


def test_refusals_under_load_are_counted_by_reason(strict):
    body, headers = slow_request()
    before = {reason: failures(strict, reason, "kserve") for reason in ("queue_full", "client_gone", "deadline_admission")}
    codes = [a.status for a in serving.at_once([lambda: strict.post("/v2/models/slow/infer", body, headers)] * 12, workers=12)]
    assert set(codes) == {200, 429}
    serving.wait_until(lambda: failures(strict, "queue_full", "kserve") - before["queue_full"] == codes.count(429), "each is counted")
    late, headers = slow_request(timeout_ms=1)
    assert strict.post("/v2/models/slow/infer", late, headers).status == 504
    serving.wait_until(lambda: failures(strict, "deadline_admission", "kserve") > before["deadline_admission"], "it is counted")
    head = f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{k}: {v}\r\n" for k, v in slow_request()[1].items())

    def leave():
        with socket.create_connection(("127.0.0.1", strict.port)) as connection:
            connection.sendall(head.encode() + b"\r\n" + body)
        return failures(strict, "client_gone", "kserve") > before["client_gone"]

    serving.wait_until(leave, "a client that left is counted")


def test_requests_without_a_key_or_a_ready_model(tmp_path):
    keys = tmp_path / "keys"
    made = subprocess.run([serving.BINARY, "key", "a", "--rights", "read,admin"], capture_output=True, text=True, check=True)
    keys.write_text(made.stdout)
    key = {"X-API-Key": made.stderr.strip()}
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--keys", str(keys)) as s:
        for headers in ({}, {"X-API-Key": "wrong"}, key):
            assert s.request("POST", "/v2/models/digits/infer", b"{}", headers).status in (401, 403)
        text = s.get("/metrics", key).body.decode()
        assert re.search(r'request_failures_total\{model="",version="0",protocol="kserve",reason="unauthorized"\} 3', text), text


def test_not_ready_is_a_reason(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": shutil.copytree(serving.DIGITS, tmp_path / "digits")}, *serving.CONTROL) as s:
        assert s.post("/v2/repository/models/digits/unload", {}).status == 200
        answer = s.post("/v2/models/digits/infer", {})
        reason = {503: "not_ready", 404: "not_found"}[answer.status]
        serving.wait_until(lambda: failures(s, reason, "kserve") == 1, "it is counted")


def test_names_of_triton(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--set", "metrics.triton_names=true") as s:
        for _ in range(3):
            s.infer("digits", {"image": numpy.zeros((2, 64), numpy.float32)})
        s.post("/v2/models/digits/infer", b"{")

        def read():
            lines = re.findall(r'^(nv_\w+)\{model="digits",version="1"(?:,reason="(\w+)")?\} (\d+)$', s.get("/metrics").body.decode(), re.M)
            return {(name, reason or None): int(value) for name, reason, value in lines}

        serving.wait_until(lambda: read()["nv_inference_request_failure", "OTHER"] == 1, "all are counted")
        found = read()
    assert {name for name, _ in found} == {
        "nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count", "nv_inference_exec_count", "nv_inference_request_duration_us",
        "nv_inference_queue_duration_us", "nv_inference_compute_input_duration_us", "nv_inference_compute_infer_duration_us",
        "nv_inference_compute_output_duration_us", "nv_inference_pending_request_count",
    }  # fmt: skip
    assert found["nv_inference_request_success", None] == 3 and found["nv_inference_count", None] == 6
    assert 1 <= found["nv_inference_exec_count", None] <= 6  # the first rows may run one by one: the larger buckets follow ready
    assert found["nv_inference_pending_request_count", None] == 0 and found["nv_inference_request_duration_us", None] > 0
    for reason, count in (("REJECTED", 0), ("CANCELED", 0), ("OTHER", 1)):
        assert found["nv_inference_request_failure", reason] == count


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
    known |= {f.name + end for f in families if f.type in ("histogram", "summary") for end in ("_bucket", "_sum", "_count")}
    named = set(re.findall(r"\bpenstock_[a-z0-9_]+\b", path.read_text()))
    assert named and named <= known, sorted(named - known)


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACED = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


def test_access_log(tmp_path):
    log = tmp_path / "access.jsonl"
    tenants = json.dumps({"gold": {"weight": 3}})
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--access-log", str(log), "--set", f"tenants={tenants}") as s:
        body, headers = serving.binary_request({"image": numpy.zeros((2, 64), numpy.float32)})
        assert s.post("/v2/models/digits/infer", body, {**headers, **TRACED, "X-Tenant": "gold", "X-Request-Id": "r-1"}).status == 200
        named = {"id": "n-2", "inputs": [serving.json_input("image", numpy.zeros((1, 64), numpy.float32))]}
        assert s.post("/v2/models/digits/infer", named).status == 200
        s.post("/v2/models/digits/infer", b"{", {"traceparent": 'quote" \\ x'})
        s.post("/v2/models/nobody/infer", b"{}")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    first, second, bad, nobody = [line for line in lines if "infer" in line["path"]]
    wanted = {"model": "digits", "version": 1, "tenant": "gold", "id": "r-1", "trace_id": TRACE, "traceparent": TRACED["traceparent"], "code": 200, "rows": 2}
    assert wanted.items() <= first.items() and first["batch_rows"] >= 2 and {"tokens", "queue_us", "execute_us", "total_us"} <= set(first)
    assert second["id"] == "n-2" and second["model"] == "digits" and not {"tenant", "trace_id", "reason"} & set(second)
    assert bad["code"] == 400 and bad["reason"] == "bad_request" and bad["traceparent"] == 'quote" \\ x' and "trace_id" not in bad
    assert nobody["reason"] == "not_found" and "model" not in nobody


def test_tokens_in_the_access_log(tmp_path):
    log = tmp_path / "access.jsonl"
    with serving.Server(tmp_path / "log", {"echo": serving.identity_model(tmp_path, onnx.TensorProto.FLOAT, "echo")}, "--access-log", str(log)) as s:
        s.infer("echo", {"in": numpy.zeros((3, 7), numpy.float32)})
    line = next(json.loads(line) for line in log.read_text().splitlines() if "/infer" in line)
    assert (line["rows"], line["tokens"]) == (3, 21)


def test_access_log_on_a_terminal(tmp_path):
    """Text for people: one line a request, which cannot move the cursor."""
    try:
        primary, terminal = pty.openpty()
    except OSError as error:  # a container without /dev/pts
        pytest.skip(f"no terminal: {error}")
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, "--access-log", os.ttyname(terminal)) as s:
        body, headers = serving.binary_request({"image": numpy.zeros((2, 64), numpy.float32)})
        s.post("/v2/models/digits/infer", body, {**headers, **TRACED, "X-Request-Id": "r-1"})
        s.raw(b"GET /\x1b[2J HTTP/1.0\r\nHost: a\r\n\r\n")
        s.get("/v2/last")
        text, end = b"", time.monotonic() + serving.WAIT_S
        while b"/v2/last" not in text and time.monotonic() < end:
            text += os.read(primary, 65536)
    os.close(primary)
    os.close(terminal)
    assert b"\x1b" not in text and b"{" not in text
    line = next(line for line in text.decode().splitlines() if "/infer" in line)
    wanted = r"\d\d:\d\d:\d\d\.\d{3} 200 POST /v2/models/digits/infer \d+\.\d{3} ms model=digits/1 rows=2 .*queue=\S+ .*execute=\S+ id=r-1 "
    assert re.fullmatch(wanted + f"trace={TRACE} from 127.0.0.1 http/1.1", line), line


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


def test_what_tokens_cost(tmp_path):
    """Over the last minute, by model: rates from the counters, dollars from the device time that was used."""
    price = 7.2  # dollars per hour: 0.002 a second
    flags = ("--threads", "2", "--set", f"cpu.cost_per_hour={price}", "--set", "device_cost_per_hour=1.5")
    with serving.Server(tmp_path / "server.log", dict(digits=serving.DIGITS), *flags) as s:
        begun = time.monotonic()
        for rows in range(1, 41):
            s.infer("digits", {"image": numpy.zeros((1 + rows % 7, 64), numpy.float32)})
        took = time.monotonic() - begun
        _, found = samples(s)
        of = lambda name, **labels: [x.value for x in found if x.name == f"penstock_{name}" and labels.items() <= x.labels.items()]
        (rate,), (waste,), (mfu,), (dollars,) = (
            of(f"recent_{name}", model="digits") for name in ("tokens_per_second", "padding_waste_ratio", "mfu_ratio", "dollars_per_million_tokens")
        )
        (real,), (computed,) = of("real_tokens_total", model="digits"), of("computed_tokens_total", model="digits")
        (busy,) = of("device_busy_seconds_total", device="cpu")
        assert of("device_dollars_per_hour", device="cpu") == [price]
        # The first second may have begun before the first request; the last one is under way.
        assert real / (took + 3) <= rate <= real / max(took - 1, 0.001)
        assert waste == pytest.approx(1 - real / computed, abs=1e-6)
        assert mfu == 0, "nobody publishes the peak of this CPU"
        # Two threads share the price; warm-up used some of the busy time.
        assert 0 < dollars <= busy / 2 * price / 3600 / real * 1e6 * 1.01
        minute = s.get("/v2/models/digits/stats").json()["model_stats"][0]["last_minute"]
        assert minute["dollars_per_million_tokens"] == pytest.approx(dollars, rel=1e-3) and minute["padding_waste"] == pytest.approx(waste, abs=1e-5)
        assert "last minute: " in s.get("/").body.decode()


def test_without_a_price_there_is_no_cost(server):
    server.infer("digits", {"image": numpy.zeros((1, 64), numpy.float32)})
    _, found = samples(server)
    assert {s.value for s in found if "dollars" in s.name} == {0}
