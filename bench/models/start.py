#!/usr/bin/env python3
"""Start and memory of `penstock serve` beside ONNX Runtime in a process of its own, for the models of models.json.

    start.py [--penstock BUILD/bin/penstock] [--models FOLDER] [--only REGEX] [--runs 3]

Penstock: from the start of the process to the line in its log that says ready, with an empty cache folder and with the cache of
that start; resident memory when ready, after three requests, and at its highest. A first start goes on for --keep seconds: graph
and packed weights are written after ready. ONNX Runtime: from the start of Python to the first answer, and its
resident memory then. Processor seconds are of the whole process, helper threads included: on a machine that others use they say
more than the time. The least of --runs starts counts. A `*` marks what is over the bounds: 1.5 times ONNX Runtime's time and
memory; a second start that takes more than half of the first one's time, or of its processor time.
"""
import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import run

ORT = """
import json, re, resource, sys, time
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, dict(numpy.load(sys.argv[2])))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([time.time(), used.ru_utime + used.ru_stime, int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024]))
"""
READY_S = 300


def mib(pid, key):
    return int(re.search(rf"{key}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def cpu_s(pid):
    return time.clock_gettime((~pid << 3) | 2)  # the process's clock, clock_getcpuclockid(3)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_ready(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/v2/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def body_of(feeds):
    """A KServe request with binary tensors."""
    names = {np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64", np.dtype(np.int32): "INT32", np.dtype(np.float16): "FP16"}
    data = [np.ascontiguousarray(a).tobytes() for a in feeds.values()]
    head = json.dumps({"inputs": [{"name": n, "datatype": names[a.dtype], "shape": list(a.shape), "parameters": {"binary_data_size": len(d)}}
                                  for (n, a), d in zip(feeds.items(), data)],
                       "parameters": {"binary_data_output": True}}).encode()  # fmt: skip
    return head + b"".join(data), {"Inference-Header-Content-Length": str(len(head))}


def serve(a, path, cache, feeds, keep_s=0.0):
    """One start, which goes on for some seconds. Raises what the server says where it refuses the model."""
    port = free_port()
    begun = time.time()
    process = subprocess.Popen([a.penstock, "serve", "--model", f"m={path}", "--listen", f"127.0.0.1:{port}", "--cache", cache,
                                "--log-format", "json", "--set", "drain.delay_ms=0"], stderr=subprocess.PIPE, text=True)  # fmt: skip
    with process.stderr as log:  # a few hundred bytes: the pipe holds what comes after ready
        try:
            line = log.readline()
            while "m version 1 is ready" not in line:
                if not line or '"error"' in line:
                    raise RuntimeError((re.findall(r'"message":"(.*)"', line) or ["not ready"])[-1])
                line = log.readline()
            found = {"s": time.time() - begun, "cpu_s": cpu_s(process.pid), "ready": mib(process.pid, "VmRSS")}
            while not is_ready(port):  # it is told right after
                time.sleep(0.001)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_S)
            body, headers = body_of(feeds)
            for _ in range(3):
                connection.request("POST", "/v2/models/m/infer", body, headers)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"the request got {answer.status}: {text[:120]!r}")
            time.sleep(keep_s)
            return found | {"after": mib(process.pid, "VmRSS"), "peak": mib(process.pid, "VmHWM")}
        finally:
            process.kill()
            process.wait()


def least(starts):
    return {key: min(s[key] for s in starts) for key in starts[0]}


def reference(path, feeds):
    begun = time.time()
    done = subprocess.run([sys.executable, "-c", ORT, path, feeds], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-120:])
    end, cpu, memory = json.loads(done.stdout)
    return {"s": end - begun, "cpu_s": cpu, "ready": memory}


def types_of(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return {i.name: run.TYPES[i.type] for i in onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).get_inputs()}


def one(a, model):
    path = run.path_of(a.models, model)
    feeds = run.make_feeds(model, 1, types_of(path))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/feeds.npz", **feeds)
        try:
            first, second, theirs = [], [], []
            for i in range(a.runs):
                first.append(serve(a, path, f"{folder}/cache{i}", feeds, a.keep))
                second.append(serve(a, path, f"{folder}/cache{i}", feeds))
                theirs.append(reference(path, f"{folder}/feeds.npz"))
        except RuntimeError as e:
            return print(f"| {model['name']} | {str(e)[-150:]} |", flush=True)
    ours, again, other = least(first), least(second), least(theirs)
    memory = max(ours["ready"], ours["after"])
    print(f"| {model['name']} | {ours['s'] * 1e3:.0f}{'*' * (ours['s'] > 1.5 * other['s'])} ({ours['cpu_s']:.3f}) | "
          f"{again['s'] * 1e3:.0f}{'*' * (again['s'] > ours['s'] / 2 or again['cpu_s'] > ours['cpu_s'] / 2)} ({again['cpu_s']:.3f}) | "
          f"{other['s'] * 1e3:.0f} ({other['cpu_s']:.3f}) | {ours['s'] / other['s']:.2f} | {ours['ready']:.0f} | {ours['after']:.0f} | {ours['peak']:.0f} | "
          f"{other['ready']:.0f} | {memory / other['ready']:.2f}{'*' * (memory > 1.5 * other['ready'])} |", flush=True)  # fmt: skip


def main():
    p = run.make_parser(__doc__)
    p.add_argument("--penstock", default="build/release/bin/penstock")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--keep", type=float, default=1.0)
    a = p.parse_args()
    print("| model | ready, ms (processor s) | with the cache | ONNX Runtime | ratio | MiB when ready | after requests | highest | ONNX Runtime | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for model in run.LIST["models"]:
        if re.search(a.only, model["name"]):
            one(a, model)


if __name__ == "__main__":
    main()
