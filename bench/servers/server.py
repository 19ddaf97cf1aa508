"""A server under test: its environment, its process tree, what it uses, and whether its answers are right."""
import concurrent.futures
import http.client
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from peers import VECTOR, WORK

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHARED = pathlib.Path(os.environ.get("PENSTOCK_SHARED", ROOT.parent / "shared"))
MODELS = SHARED / "bench/models"
MINILM = ROOT / ".cache/minilm"
PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK_BINARY", ROOT / "build/release/bin/penstock"))
PORT = int(os.environ.get("BENCH_PORT", "18080"))
READY_S_MAX = 120
COSINE_MEAN_MIN, COSINE_MIN = 0.98, 0.9


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


def versions_of(peer, binaries):
    """Of the packages that serve and compute, as installed."""
    if peer["packages"] is None:
        done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
        return f"penstock {done.stdout.strip()}"
    names = [package.split("==")[0].split("[")[0] for package in peer["packages"]]
    names += ["onnxruntime"] if "ONNX" in peer["engine"] else []
    code = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    wanted = [n for n in names if n != "orjson" and not (n == "onnxruntime" and "OpenVINO" in peer["engine"])]
    return subprocess.run([binaries / "python", "-c", code, *wanted], check=True, capture_output=True, text=True).stdout.strip()


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


class Server:
    """Started and answering, or SystemExit with the end of its log."""

    def __init__(self, name, peer, data):
        binaries = environment_of(name, peer["packages"], peer.get("python", "python3.11")) if peer["packages"] else PENSTOCK.parent
        self.name, self.versions = name, versions_of(peer, binaries)
        places = dict(python=binaries / "python", bin=binaries, port=PORT, work=WORK, penstock=PENSTOCK, minilm=MINILM)
        environment = dict(
            os.environ, PORT=str(PORT), MODELS=str(MODELS), PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1", TOKENIZERS_PARALLELISM="false",
            DO_NOT_TRACK="1", HF_HUB_OFFLINE="1", **peer["environment"],
        )  # fmt: skip
        (WORK / "log").mkdir(exist_ok=True)
        self.log = WORK / "log" / f"{name}.log"
        self.path, self.vector = peer["path"], VECTOR[peer["body"]]
        self.url = f"http://127.0.0.1:{PORT}{self.path}"
        self.bodies = data / f"{peer['body']}.jsonl"
        started = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [part.format(**places) for part in peer["command"]], cwd=peer.get("folder", HERE), env=environment, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            self.wait_for_an_answer(started)
        except BaseException:
            self.stop()
            raise
        self.ready_s = time.monotonic() - started

    def wait_for_an_answer(self, started):
        first = self.bodies.read_text().splitlines()[0].encode()
        while True:
            if self.process.poll() is not None or time.monotonic() - started > READY_S_MAX:
                raise SystemExit(f"{self.name} does not serve: see {self.log}\n" + "".join(self.log.read_text(errors="replace").splitlines(True)[-5:]))
            try:
                request = urllib.request.Request(self.url, first, {"Content-Type": "application/json"})
                urllib.request.urlopen(request, timeout=5).read()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)

    def check(self, reference, at_once=64):
        """Every request once, many at a time; returns the mean and the lowest cosine to the float32 reference. SystemExit if it is not the model."""
        local = threading.local()

        def ask(body):
            if not hasattr(local, "connection"):
                local.connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            local.connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            answer = local.connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise SystemExit(f"{self.name}: {answer.status} {text[:200]}")
            return self.vector(json.loads(text))

        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            vectors = list(pool.map(ask, (line.encode() for line in self.bodies.read_text().splitlines())))
        cosines = []
        for got, wanted in zip(vectors, (json.loads(line) for line in reference.read_text().splitlines()), strict=True):
            if len(got) != len(wanted) or not all(map(math.isfinite, got)):
                raise SystemExit(f"{self.name}: an answer of {len(got)} values, {len(wanted)} finite ones were expected")
            length = math.sqrt(sum(x * x for x in got)) or 1
            cosines.append(sum(x * y for x, y in zip(got, wanted)) / length)
        mean, least = sum(cosines) / len(cosines), min(cosines)
        if mean < COSINE_MEAN_MIN or least < COSINE_MIN:
            raise SystemExit(f"{self.name}: wrong answers: cosine to float32 {mean:.4f} on average, {least:.4f} at least")
        return mean, least

    def pss_mib(self):
        total = 0
        for pid in tree(self.process.pid):
            try:
                text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
        return total // 1024

    def cpu_s(self):
        total = 0
        for pid in tree(self.process.pid):
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

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
