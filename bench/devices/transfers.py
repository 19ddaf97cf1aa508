#!/usr/bin/env python3
"""What share of its time an accelerator computes while batches are copied to it and back.

    .venv/bin/python bench/devices/transfers.py [--binary OTHER/bin/penstock]

The accelerator is the fault plugin's simulated one: executions of 30 ms and copies, each way in a queue of its own, are clocked by the plugin.
The results are computed by xla-cpu-pjrt. So this shows what the server adds, on a machine that has time for it; no accelerator is measured.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/pjrt"), str(ROOT / "tests/http")]

import devices  # noqa: E402
import serving  # noqa: E402
from conftest import FAULT, PLUGIN  # noqa: E402

COMPUTE_MS = 30
COPIES_IN = 3  # of a batch


def measure(folder, transfer_ms, executions):
    trace = folder / f"trace{transfer_ms}"
    model = dict(bert=devices.bert(folder, batch=(2,), sequence=(8,)))
    with devices.faults(plugin=PLUGIN, devices=1, compute_ms=COMPUTE_MS, transfer_ms=transfer_ms, trace=trace):
        flags = ["--device", f"pjrt:{FAULT}", "--cache", str(folder / "cache"), "--set", "batching.fallback=on_failure"]
        with serving.Server(folder / "server.log", model, *flags) as s:
            over = threading.Event()

            def load():
                connection = s.connect(timeout=600)
                while not over.is_set():
                    assert s.post("/v2/models/bert/infer", *serving.binary_request(devices.inputs(5)), connection).status == 200

            threads = [threading.Thread(target=load) for _ in range(20)]
            for t in threads:
                t.start()
            serving.wait_until(lambda: trace.read_text().count("\n") > executions, "enough executions")
            stats = s.get("/v2/models/bert/stats").json()["model_stats"][0]
            over.set()
            for t in threads:
                t.join()
    runs = [[int(x) for x in line.split()] for line in trace.read_text().splitlines()][executions // 2 : executions]
    busy = sum(end - begin for _, begin, end in runs) / (runs[-1][2] - runs[0][1])
    depth = stats.get("devices", [{}])[0].get("pipeline_depth", 2)
    return dict(copies_in_of_execution=COPIES_IN * transfer_ms / COMPUTE_MS, depth=depth, busy=round(busy, 3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, help="another release's server, with this checkout's simulated device")
    parser.add_argument("--executions", type=int, default=400)
    options = parser.parse_args()
    serving.BINARY = options.binary or serving.BINARY
    with tempfile.TemporaryDirectory() as folder:
        for transfer_ms in (0, 2, 5, 10, 15):
            print(json.dumps(measure(pathlib.Path(folder), transfer_ms, options.executions)), flush=True)


if __name__ == "__main__":
    main()
