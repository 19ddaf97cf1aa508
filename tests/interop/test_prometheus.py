"""Prometheus' own checks of what it reads: /metrics, and the alert rules, each of which fires on a series made up for it and not without."""
import re
import subprocess

import yaml

import programs
import serving

RULES = serving.ROOT / "deploy/prometheus-alerts.yaml"
M, I = 'model="m",version="1"', 'job="penstock",instance="i"'
SERVED = (f'penstock_requests_total{{{M},{I},protocol="kserve",code="200"}}', "0+600x200")
DEVICE = f'{I},device="pjrt:0",kind="TPU v5e"'


def failing(reason, a_minute):
    return f'penstock_request_failures_total{{{M},{I},protocol="kserve",reason="{reason}"}}', f"0+{a_minute}x200"


# alert: the series that it fires on, and those that it does not
ALERTS = {
    "PenstockDown": ([(f"up{{{I}}}", "0x200")], [(f"up{{{I}}}", "1x200")]),
    "PenstockAbsent": ([('up{job="other"}', "1x200")], [(f"up{{{I}}}", "0x200")]),
    "PenstockNotReady": ([(f"penstock_ready{{{I}}}", "0x200")], [(f"penstock_ready{{{I}}}", "1x200")]),
    "PenstockModelFailed": ([(f'penstock_model_versions{{{I},state="failed"}}', "1x200")], [(f'penstock_model_versions{{{I},state="ignored"}}', "1x200")]),
    "PenstockErrors": ([SERVED, (f'penstock_requests_total{{{M},{I},protocol="grpc",code="504"}}', "0+60x200")], [SERVED]),
    "PenstockQueueFull": ([SERVED, failing("queue_full", 1)], [SERVED, failing("quota", 1)]),
    "PenstockDeadlines": ([SERVED, failing("deadline_queue", 60)], [SERVED, failing("deadline_queue", 1)]),
    "PenstockClientsLeave": ([SERVED, failing("client_gone", 60)], [SERVED, failing("client_gone", 6)]),
    "PenstockOverQuota": ([SERVED, failing("quota", 60)], [SERVED, failing("quota", 6)]),
    "PenstockBadRequests": ([SERVED, failing("too_large", 90)], [SERVED, failing("bad_request", 6), failing("quota", 600)]),
    "PenstockUnauthorized": (
        [(f'penstock_access_refusals_total{{{I},reason="wrong_key"}}', "0+120x200")],
        [(f'penstock_access_refusals_total{{{I},reason="wrong_key"}}', "0+6x200")],
    ),
    "PenstockNotServing": ([failing("not_ready", 6)], [failing("overloaded", 6)]),
    "PenstockOverloaded": ([(f"penstock_memory_shortages_total{{{I}}}", "0+1x200")], [failing("not_ready", 6)]),
    "PenstockDeviceLost": ([failing("device_lost", 1)], [failing("internal", 1)]),
    "PenstockInternalErrors": ([failing("internal", 1)], [failing("internal", 0)]),
    "PenstockSlow": (
        [(f'penstock_request_seconds_bucket{{{M},{I},le="{le}"}}', f"0+{n}x200") for le, n in (("0.22", 980), ("0.27", 980), ("1", 1000), ("+Inf", 1000))],
        [(f'penstock_request_seconds_bucket{{{M},{I},le="{le}"}}', f"0+{n}x200") for le, n in (("0.22", 999), ("0.27", 1000), ("1", 1000), ("+Inf", 1000))],
    ),
    "PenstockLoopStuck": ([(f'penstock_loop_stuck_seconds{{{I},loop="0"}}', "9x200")], [(f'penstock_loop_stuck_seconds{{{I},loop="0"}}', "1x200")]),
    "PenstockAccessLogDropped": ([(f"penstock_access_log_dropped_total{{{I}}}", "0+1x200")], [(f"penstock_access_log_dropped_total{{{I}}}", "7x200")]),
    "PenstockCompiledWhileServing": (
        [(f'penstock_compiles_total{{{M},{I},phase="serving"}}', "0+1x200")],
        [(f'penstock_compiles_total{{{M},{I},phase="deferred"}}', "0+1x200")],
    ),
    "PenstockCompileCache": ([(f"penstock_device_cache_corrupt_total{{{DEVICE}}}", "0+1x200")], [(f"penstock_device_cache_hits_total{{{DEVICE}}}", "0+1x200")]),
    "PenstockDeviceDown": ([(f"penstock_device_healthy{{{DEVICE}}}", "0x200")], [(f"penstock_device_healthy{{{DEVICE}}}", "1x200")]),
    "PenstockDeviceMissing": ([(f"penstock_device_missing{{{I}}}", "1x200")], [(f"penstock_device_missing{{{I}}}", "0x200")]),
    "PenstockDeviceRestarts": ([(f"penstock_device_restarts_total{{{DEVICE}}}", "0+1x200")], [(f"penstock_device_restarts_total{{{DEVICE}}}", "1x200")]),
    "PenstockFallback": (
        [(f'penstock_fallbacks_total{{{M},{I},reason="sooner"}}', "0+60x200"), (f"penstock_batches_total{{{M},{I}}}", "0+600x200")],
        [(f'penstock_fallbacks_total{{{M},{I},reason="sooner"}}', "0+6x200"), (f"penstock_batches_total{{{M},{I}}}", "0+600x200")],
    ),
    "PenstockPaddingWaste": (
        [(f"penstock_real_tokens_total{{{M},{I}}}", "0+60x200"), (f"penstock_computed_tokens_total{{{M},{I}}}", "0+100x200")],
        [(f"penstock_real_tokens_total{{{M},{I}}}", "0+80x200"), (f"penstock_computed_tokens_total{{{M},{I}}}", "0+100x200")],
    ),
}


def promtool(*arguments, text=b""):
    run = subprocess.run([programs.find("promtool"), *map(str, arguments)], input=text, capture_output=True)
    assert run.returncode == 0, (run.stdout + run.stderr).decode()[-3000:]
    return (run.stdout + run.stderr).decode()


def test_metrics_lint(server, exchanges):
    """Requests of each kind first, so that every family has samples."""
    for exchange in exchanges:
        assert server.post("/v2/models/echo/infer", exchange.body, exchange.headers).status == 200
    server.post("/v2/models/echo/infer", b"{")
    text = server.get("/metrics").body
    assert b"penstock_request_failures_total{" in text and b"penstock_request_seconds_bucket{" in text and b"penstock_bucket_execute_seconds_sum{" in text
    assert promtool("check", "metrics", text=text).strip() == ""


def test_rules_are_sound_and_all_are_tested():
    names = re.findall(r"^      - alert: (\w+)$", RULES.read_text(), re.M)
    assert f"{len(names)} rules found" in promtool("check", "rules", RULES)
    assert names == list(ALERTS)


def one_test(alert, series, fires):
    found = [{"expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > bool 0', "eval_time": "150m" if alert == "PenstockPaddingWaste" else "45m", "exp_samples": [{"labels": "{}", "value": 1}] if fires else []}]
    return {"interval": "1m", "input_series": [{"series": s, "values": v} for s, v in series], "promql_expr_test": found}


def test_each_alert_fires_when_it_should(tmp_path):
    tests = [one_test(alert, series, fires) for alert, (bad, good) in ALERTS.items() for series, fires in ((bad, True), (good, False))]
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", file)
