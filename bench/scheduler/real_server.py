#!/usr/bin/env python3
"""The scheduler's promises on the real server: MiniLM INT8 on this machine's CPU, client included.

    python3 bench/scheduler/real_server.py find                        goodput at 99% attainment; kept for the phases after it
    python3 bench/scheduler/real_server.py steady overload priority tenants noisy

Every request has a deadline (--deadline, from the model's slo_ms). Phases: `find` (penstock-load --find-max), `steady` (60 s, Poisson, at
90% of that rate), `overload` (twice that rate), `priority` (the same, a fifth of it of class 0), `tenants` (weights 1:3, both over what
there is: device time by the server's counters), `noisy` (a quiet tenant beside a busy one, beside one at over three times that rate, and
beside one at that rate whose quota refuses as much: so the client and the server's loops have the same work, and what is left of the
difference is the scheduler's). Requests have the lengths of sentences (mean 38, p50 22, p95 128, at most 256). Results:
build/real_server.json, and one line for each phase.
"""
import argparse
import bisect
import json
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
DURATION_S = 60
CALM = 0.6  # of the goodput found: a tenant that is busy and within its means


def write_bodies(path, seed, priority=None, count=512):
    """A file of KServe bodies with sentence lengths; returns the lengths by body size."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        length = min(256, max(1, int(rng.lognormvariate(3.09, 1.06))))
        ids = [rng.randrange(1000, 10000) for _ in range(length)]  # of one width: the access log's sizes tell lengths
        body = {"inputs": [{"name": "input_ids", "shape": [1, length], "datatype": "INT64", "data": ids}]}
        if priority is not None:
            body["parameters"] = {"priority": priority}
        lines.append(json.dumps(body, separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n")


class Server:
    def __init__(self, options, folder, quota):
        model = folder / "models/minilm"
        model.mkdir(parents=True)
        (model / "1").symlink_to(pathlib.Path("/var/tmp/minilm.path").read_text().strip())
        (model / "model.json").write_text(json.dumps({"precision": "int8", "slo_ms": options.deadline, "sequence_max": 256}))
        self.log = folder / "access.jsonl"
        settings = {
            "repository": str(folder / "models"),
            "cache_folder": str(ROOT / "build/real_server_cache"),
            "scheduling": {"slo_deadline": True},
            "tenants": {"one": {"weight": 1}, "three": {"weight": 3}, "noise": {}, "capped": {"requests_per_s": quota}},
            "server": {"access_log": str(self.log), "listen": [f"127.0.0.1:{options.port}"]},
            "batching": {"queue_rows_max": 100000},
            "log": {"level": "warning"},
        }
        (folder / "penstock.json").write_text(json.dumps(settings))
        self.url = f"http://127.0.0.1:{options.port}"
        self.process = subprocess.Popen([options.bin / "penstock", "serve", "--config", folder / "penstock.json"])
        for _ in range(600):
            try:
                urllib.request.urlopen(self.url + "/v2/health/ready", timeout=1)
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("the server ended")
                time.sleep(0.1)
        raise SystemExit("the server is not ready after a minute")

    def device_seconds(self):
        """Device time by tenant, since start."""
        text = urllib.request.urlopen(self.url + "/metrics", timeout=5).read().decode()
        return {name: float(value) for name, value in re.findall(r'^penstock_tenant_device_seconds_total\{tenant="(\w*)"\} (\S+)', text, re.M)}

    def served(self, since):
        """The access log's inference requests from byte `since` on, and where it ends."""
        time.sleep(0.7)  # it is written every half second
        with open(self.log) as file:
            file.seek(since)
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [line for line in lines if line["path"].endswith("/infer")]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


class Load:
    """One penstock-load, started."""

    def __init__(self, options, server, folder, bodies, rate, *more, seconds=DURATION_S):
        self.out = folder / f"report-{time.monotonic_ns()}.json"
        command = [options.bin / "penstock-load", server.url, "--model", "minilm", "--rate", f"{rate:.1f}", "--duration", f"{seconds}s"]
        command += ["--data", bodies] if bodies else ["--lengths", "lognormal:22:1.06:max=256"]
        command += ["--warm-up", "3s", "--json", self.out, "--quiet", "--http1", "--slo", f"p99={options.deadline}ms", *more]
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL)

    def report(self):
        code = self.process.wait()
        if code not in (0, 1, 4):
            raise SystemExit(f"penstock-load ended with {code}")
        return json.loads(self.out.read_text())


def summary(report):
    """What a report says about deadlines: those refused, those admitted, and those of these in time."""
    codes = {int(code): n for code, n in report["codes"].items()}
    return {
        "rate": report["rate_sent"],
        "goodput": report["goodput"],
        "attainment": report["within_slo"] / report["requests"],
        "codes": codes,
        "answered_late_at_the_client": report["answered"] - report["within_slo"],
        "latency_ok_ms": report["latency_ok_ms"],
        "refused_ms": report.get("refused_ms"),
        "server_ms": report.get("server_ms"),
        "client_lag_p99_ms": report["client"]["lag_ms"]["p99"] if "lag_ms" in report["client"] else None,
    }


def admitted(lines, deadline_ms):
    """By the server's own clock. A refusal on admission has no time in the queue; a request that was let in and then given up has."""
    at_door = [l for l in lines if l["code"] == 504 and l["total_us"] < 10000]
    given_up = [l for l in lines if l["code"] == 504 and l["total_us"] >= 10000]
    answered = [l for l in lines if l["code"] == 200]
    late = [l for l in answered if l["total_us"] > deadline_ms * 1000]
    let_in = len(answered) + len(given_up)
    return {
        "rejected_on_admission": len(at_door),
        "given_up_later": len(given_up),
        "answered": len(answered),
        "answered_late": len(late),
        "admitted_in_time": (len(answered) - len(late)) / let_in if let_in else None,
        "refusal_us_p50_p99": quantiles([l["total_us"] for l in at_door]),
        "batch_rows_mean": statistics.mean(l["batch_rows"] for l in answered) if answered else None,
    }


def quantiles(values):
    values = sorted(values)
    return [values[int(q * (len(values) - 1))] for q in (0.5, 0.99)] if values else None


def made_of(lines):
    """Milliseconds (p50, p99) of each part of an answer's time in the server, and of all of it."""
    parts = {name: [l.get(name + "_us", 0) for l in lines] for name in ("total", "parse", "queue", "batch", "execute")}
    parts["rest"] = [l["total_us"] - sum(l.get(name + "_us", 0) for name in ("parse", "queue", "batch", "execute")) for l in lines]
    return {name: [round(us / 1000, 1) for us in quantiles(values)] for name, values in parts.items()}


def truth(lines, deadline_ms):
    """Of those refused: what became of the one of like size (within 10%) that was let in nearest in time (within 20 ms)? A refusal was
    wrong where that one had over a fifth of its time to spare."""
    answered = sorted((l for l in lines if l["code"] == 200), key=lambda l: l["time_ms"])
    times = [l["time_ms"] for l in answered]
    wrong = compared = 0
    used = []
    for l in lines:
        if l["code"] != 504:
            continue
        near = answered[bisect.bisect_left(times, l["time_ms"] - 20) : bisect.bisect_right(times, l["time_ms"] + 20)]
        near = [a for a in near if abs(a["request_bytes"] - l["request_bytes"]) <= 0.1 * l["request_bytes"]]
        if not near:
            continue
        nearest = min(near, key=lambda a: abs(a["time_ms"] - l["time_ms"]))
        compared += 1
        used.append(nearest["total_us"] / 1000 / deadline_ms)
        wrong += nearest["total_us"] < 0.8 * deadline_ms * 1000
    return {"compared": compared, "wrong_share": wrong / compared if compared else None, "neighbours_time_p10_p50": [sorted(used)[int(q * (len(used) - 1))] for q in (0.1, 0.5)] if used else None}


def run_find(options, server, folder, known):
    report = Load(
        options, server, folder, folder / "bodies.jsonl", options.first_rate, "--find-max", "--resolution", "0.05", "--confirm", "1", seconds=options.seconds or 8
    ).report()
    known["find"] = {"goodput99": report["find_max"]["rate"], "runs": report["find_max"]["runs"]}
    print(f"find: {known['find']['goodput99']:.0f} requests/s within {options.deadline} ms for 99%")


def run_one(name, factor):
    def run(options, server, folder, known):
        rate = factor * known["find"]["goodput99"]
        begun = server.log.stat().st_size if server.log.exists() else 0
        report = Load(options, server, folder, folder / "bodies.jsonl", rate, seconds=options.seconds or DURATION_S).report()
        lines = server.served(begun)
        known[name] = {**summary(report), "server": admitted(lines, options.deadline), "truth": truth(lines, options.deadline)}
        of = known[name]
        print(
            f"{name}: {of['rate']:.0f}/s offered, goodput {of['goodput']:.0f}/s ({of['goodput'] / known['find']['goodput99']:.3f} of the one found), "
            f"{of['codes']}, admitted in time {of['server']['admitted_in_time']:.5f}, late at the client {of['answered_late_at_the_client']}, "
            f"answers p50/p99/p99.9 {of['latency_ok_ms']['p50']:.1f}/{of['latency_ok_ms']['p99']:.1f}/{of['latency_ok_ms']['p99.9']:.1f} ms\n"
            f"    rejections: {of['server']['rejected_on_admission']} on admission, {of['server']['given_up_later']} later, client p50/p99 "
            f"{of['refused_ms'] and (of['refused_ms']['p50'], of['refused_ms']['p99'])} ms, server us {of['server']['refusal_us_p50_p99']}, "
            f"truth {of['truth']}, rows in a batch {of['server']['batch_rows_mean']}"
        )

    return run


def run_pair(options, server, folder, first, second):
    """Two loads at once: (bodies, rate, more arguments) each."""
    loads = [Load(options, server, folder, bodies, rate, *more, seconds=options.seconds or 20) for bodies, rate, more in (first, second)]
    return [load.report() for load in loads]


def run_priority(options, server, folder, known):
    rate = 2 * known["find"]["goodput99"]
    write_bodies(folder / "high.jsonl", 3, priority=0)
    write_bodies(folder / "low.jsonl", 4, priority=2)
    high, low = run_pair(options, server, folder, (folder / "high.jsonl", 0.2 * rate, ()), (folder / "low.jsonl", 0.8 * rate, ()))
    known["priority"] = {"high": summary(high), "low": summary(low)}
    print(f"priority: class 0 at {0.2 * rate:.0f}/s attains {known['priority']['high']['attainment']:.4f}, class 2 {known['priority']['low']['attainment']:.4f}")


def run_tenants(options, server, folder, known):
    rate = 1.3 * known["find"]["goodput99"]
    seconds = options.seconds or 20
    used = []

    def watch():
        """Device time while both send, without the beginning and the end."""
        time.sleep(5)
        used.append(server.device_seconds())
        time.sleep(seconds - 4)
        used.append(server.device_seconds())

    watcher = threading.Thread(target=watch)
    watcher.start()
    reports = run_pair(
        options,
        server,
        folder,
        (None, rate, ("--header", "X-Tenant: one")),
        (None, rate, ("--header", "X-Tenant: three", "--seed", "2")),
    )
    watcher.join()
    times = [used[1][name] - used[0][name] for name in ("one", "three")]
    rates = [r["rate"] for r in reports]
    known["tenants"] = {"one": summary(reports[0]), "three": summary(reports[1]), "device_s": times}
    print(f"tenants 1:3: device time {times[0]:.2f} s and {times[1]:.2f} s ({times[1] / times[0]:.3f}), answers {rates[0]:.0f}/s and {rates[1]:.0f}/s")


def run_noisy(options, server, folder, known):
    most = known["find"]["goodput99"]
    results = {}
    for name, tenant, rate in (("busy", "noise", CALM * most), ("noisy", "noise", 2 * most), ("capped", "capped", 2 * most)):
        begun = server.log.stat().st_size if server.log.exists() else 0
        quiet, _ = run_pair(
            options,
            server,
            folder,
            (folder / "bodies.jsonl", 0.15 * most, ("--header", "X-Tenant: one", "--header", "traceparent: quiet")),
            (folder / "bodies.jsonl", rate, ("--header", f"X-Tenant: {tenant}", "--seed", "2")),
        )
        of = results[name] = summary(quiet)
        print(
            f"noisy: a quiet tenant beside a {name} one: p50/p99 {of['latency_ok_ms']['p50']:.1f}/{of['latency_ok_ms']['p99']:.1f} ms, in the server "
            f"{of['server_ms']['p50']:.1f}/{of['server_ms']['p99']:.1f} ms, {of['codes']}, late at the client {of['answered_late_at_the_client']}"
        )
        lines = [l for l in server.served(begun) if l["code"] == 200]
        of["made_of"] = made_of([l for l in lines if l.get("traceparent") == "quiet"])
        print(f"    in the server, of all its answers, ms p50/p99: {of['made_of']}, rows in a batch {statistics.mean(l['batch_rows'] for l in lines):.1f}")
        sys.stdout.flush()
    known["noisy"] = results
    p99 = {name: of["server_ms"]["p99"] for name, of in results.items()}
    print(f"noisy: p99 in the server {p99['noisy'] / p99['busy']:.3f} of that beside a busy one, {p99['noisy'] / p99['capped']:.3f} of that beside a capped one")


PHASES = {"find": run_find, "steady": run_one("steady", 0.9), "overload": run_one("overload", 2), "priority": run_priority, "tenants": run_tenants, "noisy": run_noisy}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phases", nargs="+", choices=PHASES)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--deadline", type=int, default=50, help="ms")
    parser.add_argument("--port", type=int, default=28731)
    parser.add_argument("--seconds", type=int, help="of each load")
    parser.add_argument("--first-rate", type=float, default=300)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/real_server.json")
    options = parser.parse_args()
    known = json.loads(options.results.read_text()) if options.results.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_bodies(folder / "bodies.jsonl", 1)
        server = Server(options, folder, round(CALM * known["find"]["goodput99"]) if "find" in known else 1000)
        try:
            for phase in options.phases:
                PHASES[phase](options, server, folder, known)
                sys.stdout.flush()
        finally:
            server.stop()
    options.results.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":
    main()
