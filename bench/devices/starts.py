#!/usr/bin/env python3
"""How long a second start takes, whose programs all come from the cache, beside the plugin's own time for loading them.

    .venv/bin/python bench/devices/starts.py [--programs 40] [--model DIR]

The server starts three times on xla-cpu-pjrt: without a cache, then twice with it. The fault plugin passes everything on, and notes how long
the plugin needs to open its devices, to load each program, to copy weights and to execute each program once; what lasts at the same time
counts once. The rest of the start is the server's.
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/pjrt"), str(ROOT / "tests/http")]

import devices  # noqa: E402
import serving  # noqa: E402
from conftest import FAULT, PLUGIN  # noqa: E402


def make_model(folder, source, programs):
    """So many padded buckets: five batch sizes by lengths."""
    model = folder / "model"
    if pathlib.Path(source).is_dir():
        shutil.copytree(source, model)
    else:
        model.mkdir()
        shutil.copy(source, model / "model.onnx")
    lengths = programs // 5
    buckets = dict(batch=[1, 2, 4, 8, 16], sequence=[4 * (i + 1) for i in range(lengths)])
    (model / "model.json").write_text(json.dumps(dict(packing="never", buckets=buckets)))
    return model


def spans(times):
    """Seconds in which at least one call was under way, by kind and of all."""
    found = {}
    for line in times.read_text().splitlines():
        kind, begin, end = line.split()
        for name in (kind, "all"):
            found.setdefault(name, []).append((int(begin), int(end)))
    seconds = {}
    for name, calls in found.items():
        reached, total = 0, 0
        for begin, end in sorted(calls):
            total += max(0, end - max(begin, reached))
            reached = max(reached, end)
        seconds[name] = round(total / 1e6, 3)
    return seconds, {name: len(calls) for name, calls in found.items()}


def start(folder, model, name):
    times = folder / f"times-{name}"
    flags = ["--device", f"pjrt:{FAULT}", "--cache", str(folder / "cache")]
    with devices.faults(plugin=PLUGIN, devices=1, times=times):
        begun = time.monotonic()
        with serving.Server(folder / f"{name}.log", dict(model=model), *flags) as s:
            ready = time.monotonic() - begun
            found = devices.metrics(s)
    plugin, calls = spans(times)
    counted = {k: int(devices.total(found, f"device_{k}_total", device="pjrt:0")) for k in ("compiles", "cache_hits")}
    return dict(start=name, ready_s=round(ready, 2), **counted, plugin_s=plugin, calls=calls, beyond_the_plugin_s=round(ready - plugin["all"], 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--model", default=devices.BERT, help="ONNX file, or a model's folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = make_model(folder, options.model, options.programs)
        for name in ("first", "second", "third"):
            print(json.dumps(start(folder, model, name)), flush=True)


if __name__ == "__main__":
    main()
