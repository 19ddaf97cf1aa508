"""Serves what export.py made, many models in one server, and compares the answers with ONNX Runtime's, alone and concurrently."""
import argparse
import concurrent.futures
import dataclasses
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy

TYPES = {"f2": "FP16", "f4": "FP32", "f8": "FP64", "i1": "INT8", "i2": "INT16", "i4": "INT32", "i8": "INT64", "u1": "UINT8", "u2": "UINT16",
         "u4": "UINT32", "u8": "UINT64", "b1": "BOOL"}
KINDS = {v: k for k, v in TYPES.items()}
MODELS_PER_SERVER = 60
SLOW = 20  # times ONNX Runtime


@dataclasses.dataclass
class Result:
    name: str
    verdict: str = ""  # served, rejected, WRONG, SLOW, CRASH, HANG, not exported
    reason: str = ""
    error: float = 0.0
    ratio: float = 0.0
    batched: str = ""
    load_s: float = 0.0


def tolerance(name):
    """Of the output's range. Half precision and quantisation round differently wherever the order of sums differs;
    ONNX Runtime with and without its optimiser (`noise`) too."""
    if "int8" in name or "qdq" in name or "qoperator" in name or "uint8" in name.split(".")[-1]:
        return 4e-2
    if "float16" in name:
        return 2e-2
    return 2e-4


def inspect(binary, path, limit_s=120):
    """(report or None, reason)."""
    try:
        run = subprocess.run([str(binary), "inspect", str(path), "--json"], capture_output=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None, "HANG"
    if run.returncode < 0 or b"Sanitizer" in run.stderr or b"runtime error" in run.stderr:
        return None, f"CRASH {run.returncode} " + run.stderr.decode(errors="replace")[-600:]
    try:
        report = json.loads(run.stdout)
    except ValueError:
        report = {}
    if run.returncode != 0:
        text = report.get("error") or (run.stderr.decode(errors="replace") + run.stdout.decode(errors="replace")).strip()
        return None, re.sub(r"\s+", " ", text)[:400]
    return report, ""


class Server:
    def __init__(self, binary, models, flags=()):
        self.log = tempfile.NamedTemporaryFile(mode="w+b", suffix=".log", delete=False)
        arguments = [str(binary), "serve", "--log-format", "json", "--set", "drain.delay_ms=0", "--listen", "127.0.0.1:0", *flags]
        for name, path in models.items():
            arguments += ["--model", f"{name}={path}"]
        self.process = subprocess.Popen(arguments, stdout=self.log, stderr=self.log)
        self.port = None

    def text(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def wait(self, limit_s):
        """True when ready; False when the server has ended or is not ready in time."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            if self.port is None:
                found = re.search(r"127\.0\.0\.1:(\d+)", self.text())
                self.port = int(found.group(1)) if found and found.group(1) != "0" else None
            if self.port:
                try:
                    c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                    c.request("GET", "/v2/health/ready")
                    if c.getresponse().status == 200:
                        return True
                except OSError:
                    pass
            time.sleep(0.1)
        return False

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def infer(connection, model, feeds):
    """(answers or None, error, seconds the device took)."""
    inputs, blobs = [], []
    for name, value in feeds.items():
        blob = numpy.ascontiguousarray(value).tobytes()
        inputs.append({"name": name, "shape": list(value.shape), "datatype": TYPES[value.dtype.str[1:]], "parameters": {"binary_data_size": len(blob)}})
        blobs.append(blob)
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    connection.request("POST", f"/v2/models/{model}/infer", head + b"".join(blobs),
                       {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        return None, f"{answer.status} {body.decode(errors='replace')[:300]}", 0.0
    timing = {m[0]: float(m[1]) / 1e3 for m in re.findall(r"(\w+);dur=([\d.]+)", answer.getheader("Server-Timing") or "")}
    size = int(answer.getheader("Inference-Header-Content-Length") or len(body))
    report, at, out = json.loads(body[:size]), size, {}
    for o in report["outputs"]:
        kind = numpy.dtype(KINDS[o["datatype"]])
        if "binary_data_size" in o.get("parameters", {}):
            n = o["parameters"]["binary_data_size"]
            out[o["name"]] = numpy.frombuffer(body[at:at + n], kind).reshape(o["shape"])
            at += n
        else:
            out[o["name"]] = numpy.array(o["data"], kind).reshape(o["shape"])
    return out, "", timing.get("execute", 0.0)


def difference(got, want, mask=None):
    """Of the range; infinity where shapes or discrete values differ. What stands at positions that the request itself masks is
    nobody's answer (DeBERTa's depends on the padding there)."""
    worst, where = 0.0, ""
    for name, w in want.items():
        if name not in got:
            return float("inf"), f"output {name} is missing"
        g = got[name]
        if g.shape != w.shape:
            return float("inf"), f"output {name} is {g.shape}, not {w.shape}"
        if g.dtype != w.dtype:
            return float("inf"), f"output {name} is {g.dtype}, not {w.dtype}"
        if mask is not None and w.ndim >= 2 and w.shape[:2] == mask.shape:
            g, w = g[mask != 0], w[mask != 0]
        if w.size == 0:
            continue
        if w.dtype.kind == "f":
            g, w = g.astype("f8"), w.astype("f8")
            if not (numpy.isfinite(g) == numpy.isfinite(w)).all():
                return float("inf"), f"output {name}: other values that are not finite"
            finite = numpy.isfinite(w)
            scale = max(numpy.abs(w[finite]).max(initial=0), 1e-6)
            d = numpy.abs(g[finite] - w[finite]).max(initial=0) / scale
        else:
            d = float((g != w).mean())
        if d > worst:
            worst, where = d, f"output {name}"
    return worst, where


def load_cases(folder):
    """[(rows, length, feeds, answers)], meta."""
    meta = json.loads((folder / "meta.json").read_text())
    cases = []
    if (folder / "cases.npz").exists():
        arrays = numpy.load(folder / "cases.npz")
        for number, b, s in meta["cases"]:
            pick = lambda kind: {k.split("/", 2)[2]: arrays[k] for k in arrays.files if k.startswith(f"{number}/{kind}/")}
            cases.append((b, s, pick("in"), pick("out")))
    return cases, meta


def check_model(port, result, cases, meta, rounds):
    limit = max(tolerance(result.name), 1.5 * meta.get("noise", 0))
    worst, slow = 0.0, 0.0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for b, s, feeds, want in cases:
            took = []
            for _ in range(rounds):
                got, error, seconds = infer(connection, result.name, feeds)
                if got is None:
                    return "error", f"{b}x{s}: {error}", worst, slow
                took.append(seconds)
                d, where = difference(got, want, feeds.get("attention_mask"))
                worst = max(worst, d)
                if not d <= limit:
                    return "WRONG", f"{b}x{s}: {where} differs by {d:.2g} of the range", worst, slow
            slow = max(slow, min(took))
    except TimeoutError:
        return "HANG", "no answer in 60 s", worst, slow
    except (OSError, http.client.HTTPException) as e:
        return "CRASH", f"{type(e).__name__}: {e}", worst, slow
    return "served", "", worst, slow


def judge(result, verdict, reason, worst, slow, meta):
    result.verdict, result.reason, result.error = verdict, reason, max(result.error, worst)
    if verdict == "served":
        result.ratio = slow / max(meta["seconds"], 1e-6)
        if result.ratio > SLOW and slow > 0.002:
            result.verdict, result.reason = "SLOW", f"{slow * 1e3:.1f} ms where ONNX Runtime takes {meta['seconds'] * 1e3:.2f} ms"


def serve_group(binary, folder, results, flags):
    """One server with these models: each alone, then all at once."""
    alive = {r.name: r for r in results}
    while alive:
        server = Server(binary, {n: folder / n for n in alive}, flags)
        if server.wait(180):
            break
        code, text = server.stop(), server.text()
        named = [n for n in alive if re.search(rf"[\"'/ ]{re.escape(n)}[\"'/ :]", text.splitlines()[-1] if text else "")]
        if not named:
            for r in alive.values():
                r.verdict, r.reason = "CRASH" if code else "HANG", f"start: code {code}: {text[-300:]}"
            return
        for n in named:
            alive.pop(n).verdict = "rejected"
    if not alive:
        return
    loaded = {n: load_cases(folder / n) for n in alive}
    try:
        for name, r in alive.items():
            cases, meta = loaded[name]
            judge(r, *check_model(server.port, r, cases, meta, 3), meta)
            if server.process.poll() is not None:
                r.verdict, r.reason = "CRASH", f"the server ended with {server.process.returncode}: {server.text()[-300:]}"
                return
        served = [r for r in alive.values() if r.verdict in ("served", "SLOW")]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            def again(r):
                return r, check_model(server.port, r, *loaded[r.name], 4)
            for r, (verdict, reason, worst, _) in pool.map(again, served * 3):
                r.error = max(r.error, worst)
                if verdict != "served":
                    r.verdict, r.reason = verdict, "concurrently, " + reason
    finally:
        code = server.stop()
        if code != 0:
            print(f"the server ended with {code}\n{server.text()[-2000:]}", flush=True)
            for r in alive.values():
                r.verdict, r.reason = "CRASH", f"the server ended with {code}"
        os.unlink(server.log.name)


def check(binary, folder, pattern, flags=()):
    results, group = [], []
    for place in sorted(folder.iterdir()):
        if not place.is_dir() or not re.search(pattern, place.name):
            continue
        r = Result(place.name)
        results.append(r)
        if not (place / "meta.json").exists():
            r.verdict = "not exported"
            r.reason = (place / "failed.txt").read_text().strip()[:200] if (place / "failed.txt").exists() else "unfinished"
            continue
        began = time.monotonic()
        report, reason = inspect(binary, place)
        r.load_s = time.monotonic() - began
        if report is None:
            r.verdict = reason.split()[0] if reason.split()[:1] in (["HANG"], ["CRASH"]) else "rejected"
            r.reason = reason
        else:
            r.batched = ("batched" if report.get("can_batch") else "alone") + (", padded" if report.get("can_pad") else "") + \
                        (", ragged" if report.get("ragged") else "")
            group.append(r)
    for i in range(0, len(group), MODELS_PER_SERVER):
        serve_group(binary, folder, group[i:i + MODELS_PER_SERVER], flags)
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--binary", default=os.environ.get("PENSTOCK_BINARY", "build/release/bin/penstock"))
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("flags", nargs="*", help="for penstock serve")
    options = parser.parse_args()
    results = check(options.binary, options.folder, options.only, options.flags)
    for r in results:
        if r.verdict != "served":
            print(f"{r.verdict:12} {r.name}: {r.reason}")
    counts = {}
    for r in results:
        counts[r.verdict] = counts.get(r.verdict, 0) + 1
    print(counts)
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(r) for r in results], indent=1))
    return 0 if all(r.verdict in ("served", "rejected", "not exported") for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
