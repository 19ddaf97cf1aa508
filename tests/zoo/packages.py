#!/usr/bin/env python3
"""Trained models out of public packages, served without a model.json and compared with ONNX Runtime: one request, requests
of several rows and of other sizes, and all of them at once. The packages are those of bench/models/models.json, which served
to develop, and of more_packages.json, which were fetched when the code was as it is.

    tests/zoo/packages.py --binary build/release/bin/penstock [--only REGEX] [--models .cache/models] [--table docs/models-packages.md]
"""
import argparse
import concurrent.futures
import http.client
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy
import onnx
import onnxruntime

from check import Server, infer, inspect

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS, CLIENTS = 3, 6
TOLERANCE = {"isnet-fp16w": 2e-2, "isnet-int8": 4e-2, "bge-small-en-v1.5-q": 4e-2, "ddddocr-old-int8": 4e-2}
ROWS_MORE = (2, 5)
SLOW_ROWS = ("ppocr4-det", "nudenet-320n", "open-nsfw")  # two rows are enough

# Other sizes of the dims that a model's file leaves open, beside those of models.json.
SIZES = {
    "nudenet-320n": [{"images": [1, 3, 256, 320]}, {"images": [1, 3, 640, 480]}],
    "ppocr4-det": [{"x": [1, 3, 320, 320]}, {"x": [1, 3, 736, 96]}],
    "ppocr4-rec": [{"x": [1, 3, 48, 483]}, {"x": [6, 3, 48, 160]}, {"x": [1, 3, 48, 1000]}],
    "ddddocr-ocr": [{"input1": [1, 1, 64, w]} for w in (83, 200, 400)],
    "ddddocr-old-int8": [{"input1": [1, 1, 64, w]} for w in (83, 200, 400)],
    "mtcnn-pnet": [{"input_1": [1, 12, 12, 3]}, {"input_1": [1, 333, 251, 3]}],
    "attacut-c": [{"input": [1, n]} for n in (2, 7, 30, 700)],
    "attacut-sc": [{"input": [1, 2, n]} for n in (2, 7, 30, 700)],
    "silero-vad-4": [{"input": [1, 1536], "sr": [], "h": [2, 1, 64], "c": [2, 1, 64]}],
    "silero-16k-sequence": [{"input": [n, 576], "h": [1, 1, 128], "c": [1, 1, 128]} for n in (1, 40)],
    "silero-v6-batched": [{"input": [n, 576], "h": [1, 1, 128], "c": [1, 1, 128]} for n in (1, 40)],
    "oww-melspectrogram": [{"input": [1, 1760]}],
}
SIZES |= {name: [{k: [1, n] for k in ("input_ids", "attention_mask", "token_type_ids")} for n in (5, 40, 333)]
          for name in ("bge-small-zh-v1.5", "bge-small-en-v1.5-q")}
SAMPLES = (8000, 12345, 40001)


def load_fetcher():
    """bench/models/run.py: the list, and the functions that fetch packages."""
    spec = importlib.util.spec_from_file_location("bench_models", ROOT / "bench/models/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    more = json.loads((pathlib.Path(__file__).parent / "more_packages.json").read_text())
    module.LIST["packages"].update(more["packages"])
    module.LIST["models"] += more["models"]
    return module


def shapes_of(fetcher, model):
    """What is asked: a list of {input: dims}."""
    at = lambda rows: {name: [rows if d == "B" else d for d in dims] for name, dims in model["inputs"].items()}
    shapes = [at(1)]
    if fetcher.has_batch(model):
        shapes += [at(rows) for rows in ((2,) if model["name"] in SLOW_ROWS else ROWS_MORE)]
    shapes += SIZES.get(model["name"], []) + model.get("sizes", [])
    if "waveforms" in model["inputs"]:
        shapes += [{"waveforms": [1, n], "waveforms_lens": [1]} for n in SAMPLES]
    return shapes


def noise(random, dims):
    """Areas with edges between them, as images have, and noise."""
    if len(dims) < 4:
        return random.standard_normal(dims)
    areas = random.standard_normal([(d + 15) // 16 if d >= 32 else d for d in dims])
    for axis, d in enumerate(dims):
        if d >= 32:
            areas = numpy.repeat(areas, 16, axis).take(range(d), axis)
    return areas + .1 * random.standard_normal(dims)


def make_request(model, shapes, types, seed):
    random, feeds = numpy.random.default_rng(seed), {}
    for name, dims in shapes.items():
        if name == "waveforms_lens":
            feeds[name] = numpy.full(dims, shapes["waveforms"][1], types[name])
        elif name in model.get("ranges", {}):
            feeds[name] = random.uniform(*model["ranges"][name], dims).astype(types[name])
        elif name in model.get("values", {}):
            feeds[name] = numpy.asarray(random.integers(*model["values"][name], dims)).astype(types[name])
        else:
            feeds[name] = (noise(random, dims) * (1 if len(dims) == 4 else .3)).astype(types[name])
    return feeds


def reference(path, optimised=True):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: {o.name: unzip(v) for o, v in zip(session.get_outputs(), session.run(None, feeds))}


def unzip(values):
    """ZipMap's list of {label: score}, as scores; their labels are in order."""
    return numpy.array([list(v.values()) for v in values], "f4") if isinstance(values, list) else values


class Ranges:
    """How far an output's answers reach, over all requests: what a difference is measured by. Probabilities reach to 1."""

    def __init__(self, answers):
        self.of = {}
        for answer in answers:
            for name, values in answer.items():
                finite = values[numpy.isfinite(values)] if values.dtype.kind == "f" else values
                low, high = (float(finite.min()), float(finite.max())) if finite.size else (0, 0)
                least, most = self.of.get(name, (low, high))
                self.of[name] = min(low, least), max(high, most)

    def difference(self, got, want, is_quantised):
        """(share of the range, output). The roundings of a quantised model fall on either side: the root of the mean square."""
        worst, where = 0.0, ""
        for name, w in want.items():
            g = got.get(name)
            if g is None or g.shape != w.shape or g.dtype != w.dtype:
                return float("inf"), f"output {name}: {g if g is None else (g.shape, g.dtype)} instead of {(w.shape, w.dtype)}"
            if w.dtype.kind == "f" and not (numpy.isfinite(g) == numpy.isfinite(w)).all():
                return float("inf"), f"output {name}: other values that are not finite"
            low, high = self.of[name]
            reach = max(abs(low), abs(high), high - low, 1.0 if 0 <= low and high <= 1 else 1e-6)
            both = numpy.isfinite(w) if w.dtype.kind == "f" else numpy.ones(w.shape, bool)
            apart = numpy.where(both, g, 0).astype("f8") - numpy.where(both, w, 0).astype("f8")
            d = (numpy.sqrt((apart ** 2).mean()) if is_quantised else numpy.abs(apart).max()) / reach if w.size else 0.0
            if d > worst:
                worst, where = float(d), f"output {name}"
        return worst, where


def ask(server, feeds):
    got, error, _ = infer(http.client.HTTPConnection("127.0.0.1", server.port, timeout=600), "m", feeds)
    return got, error


def compare(server, model, path, requests):
    """(verdict, reason, worst difference to ONNX Runtime)."""
    optimised, plain, worst, answers = reference(path), None, 0.0, []
    limit = 4e-2 if model.get("is_quantised") else TOLERANCE.get(model["name"], 3e-4)
    is_quantised = limit > 3e-2
    wanted = [optimised(feeds) for feeds in requests]
    ranges = Ranges(wanted)
    for feeds, want in zip(requests, wanted):
        where = ", ".join(str(list(v.shape)) for v in feeds.values())
        got, error = ask(server, feeds)
        if got is None:
            return "refused", f"{where}: {error}", worst
        answers.append(got)
        d, output = ranges.difference(got, want, is_quantised)
        allowed = limit
        if d > limit:  # what ONNX Runtime's own optimiser changes is no fault of ours
            plain = plain or reference(path, False)
            allowed = max(limit, 2 * ranges.difference(plain(feeds), want, is_quantised)[0])
        worst = max(worst, d)
        if not d <= allowed:
            return "WRONG", f"{where}: {output} differs by {d:.1e} of the range", worst
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [(i, pool.submit(ask, server, requests[i])) for i in range(len(requests)) for _ in range(ROUNDS)]
        for i, job in jobs:
            got, error = job.result()
            if got is None or ranges.difference(got, answers[i], False)[0] > 1e-4:
                return "WRONG", f"beside other requests: {error or 'another answer than alone'}", worst
    return "served", "", worst


def check_model(binary, fetcher, models, model):
    """(verdict, reason, difference, what was found about batching)."""
    path = fetcher.path_of(models, model)
    report, reason = inspect(binary, path, 600)
    if report is None:
        return "WRONG" if reason.startswith(("CRASH", "HANG")) else "refused", reason, 0.0, ""
    types = {i.name: onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in onnx.load(path, load_external_data=False).graph.input}
    requests = [make_request(model, shapes, types, seed) for seed, shapes in enumerate(shapes_of(fetcher, model))]
    server = Server(binary, {"m": path})
    try:
        if not server.wait(600):
            return "WRONG", "not ready: " + server.text()[-300:], 0.0, ""
        return *compare(server, model, path, requests), describe(report)
    finally:
        server.stop()


def describe(report):
    if report["can_batch"]:
        return "requests share batches"
    return "each request at its own shape" if "at its own shape" in report["findings"] else "one request at a time"


def shorten(reason):
    """What a refusal says after the path of the file, without the list of what is supported."""
    return re.sub(r'^model "\w+" version \d+: (\S+\.onnx: )?', "", reason).split("; supported")[0].replace("|", "/")


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def write_table(path, rows, totals):
    lines = ["# Trained models of public packages", "",
             "Written by `tests/zoo/packages.py` ([its page](../tests/zoo/README.md)): each model is served as its package has it,",
             "without a `model.json`, and compared with ONNX Runtime: one request, several rows, other sizes, and all at once.", "",
             f"Commit {commit()}, onnxruntime {onnxruntime.__version__}. {totals}.", "",
             "    V/bin/python tests/zoo/packages.py --table docs/models-packages.md", "",
             "The models from magika on (`tests/zoo/more_packages.json`) were fetched after the others were right, and nothing was",
             "changed for their sake but a rule of batching (brainmaze-spindles); atspm-detector has 15 more tree ensembles.", "",
             "| model | result | difference at most | how requests run |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {verdict}{': ' + reason if reason else ''} | {worst:.0e} | {how} |" for name, verdict, reason, worst, how in rows]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/penstock"))
    parser.add_argument("--models", default=str(ROOT / ".cache/models"))
    parser.add_argument("--only", default="")
    parser.add_argument("--table")
    options = parser.parse_args()
    fetcher, rows = load_fetcher(), []
    for model in fetcher.LIST["models"]:
        if not re.search(options.only, model["name"]):
            continue
        verdict, reason, worst, how = check_model(options.binary, fetcher, pathlib.Path(options.models).resolve(), model)
        rows.append((model["name"], verdict, shorten(reason), worst, how))
        print(f"{model['name']:22} {verdict:8} {worst:.0e}  {how}  {reason}", flush=True)
    count = lambda verdict: sum(r[1] == verdict for r in rows)
    totals = f"{count('served')} served right, {count('refused')} refused, {count('WRONG')} wrong"
    print(totals)
    if options.table:
        write_table(options.table, rows, totals)
    sys.exit(1 if count("WRONG") else 0)


if __name__ == "__main__":
    main()
