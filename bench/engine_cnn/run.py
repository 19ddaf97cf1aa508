"""Image models on Penstock's plans beside OpenVINO and ONNX Runtime, in one paired run.

    run.py --penstock BUILD/bin/bench_run_model --models FOLDER [--rounds 5] [--seconds 2]

FOLDER is what make_resnet.py wrote. In each round every engine runs every case once, in turn, so
that neighbours' load hits all alike; the table has the medians of the rounds' figures and of their
ratios. Run it under `flock /tmp/bench.lock`. Penstock runs a batch per thread; OpenVINO runs as many
streams (one thread each) with an asynchronous queue, its throughput setting; ONNX Runtime sessions
of one thread each on Python threads.
"""
import argparse
import json
import os
import statistics
import subprocess
import threading
import time

import numpy as np
import onnxruntime
import openvino


def run_penstock(program, path, batch, threads, seconds):
    out = subprocess.run([program, path, str(batch), str(threads), str(seconds)], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)["rows_per_s"]


class OpenVino:
    def __init__(self, path, batch, threads, size):
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({model.inputs[0]: [batch, 3, size, size]})
        self.compiled = core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": threads,
            "INFERENCE_PRECISION_HINT": "f32"})
        self.queue = openvino.AsyncInferQueue(self.compiled, threads)
        self.image = np.random.default_rng(1).normal(0, 1, (batch, 3, size, size)).astype(np.float32)
        self.batch = batch

    def run(self, seconds):
        for _ in range(3):
            self.queue.start_async([self.image])
        self.queue.wait_all()
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            self.queue.start_async([self.image])
            count += 1
        self.queue.wait_all()
        return count * self.batch / (time.perf_counter() - start)


class OnnxRuntime:
    def __init__(self, path, batch, threads, size):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.sessions = [onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
                         for _ in range(threads)]
        self.image = np.random.default_rng(1).normal(0, 1, (batch, 3, size, size)).astype(np.float32)
        self.batch = batch

    def run(self, seconds):
        rates = [0.0] * len(self.sessions)

        def work(i):
            session = self.sessions[i]
            session.run(None, {"image": self.image})
            start, count = time.perf_counter(), 0
            while time.perf_counter() - start < seconds:
                session.run(None, {"image": self.image})
                count += 1
            rates[i] = count * self.batch / (time.perf_counter() - start)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(rates))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(rates)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--penstock", required=True)
    p.add_argument("--models", required=True)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--cases", default="resnet18_int8_qdq:1:1,resnet18_int8_qdq:1:2,"
                   "resnet18_int8_qdq:8:2,resnet18:1:2,resnet18:8:2")
    a = p.parse_args()
    print("| model | batch | threads | Penstock /s | OpenVINO /s | ONNX Runtime /s | to OpenVINO |"
          " to ONNX Runtime |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in a.cases.split(","):
        name, batch, threads = case.split(":")
        path, batch, threads = os.path.join(a.models, name + ".onnx"), int(batch), int(threads)
        peers = [OpenVino(path, batch, threads, a.size), OnnxRuntime(path, batch, threads, a.size)]
        rounds = []
        for _ in range(a.rounds):
            rounds.append([run_penstock(a.penstock, path, batch, threads, a.seconds)] +
                          [peer.run(a.seconds) for peer in peers])
        middle = [statistics.median(r[i] for r in rounds) for i in range(3)]
        ratios = [statistics.median(r[0] / r[i] for r in rounds) for i in (1, 2)]
        print(f"| {name} | {batch} | {threads} | " + " | ".join(f"{x:.1f}" for x in middle) +
              " | " + " | ".join(f"{x:.2f}" for x in ratios) + " |", flush=True)


if __name__ == "__main__":
    main()
