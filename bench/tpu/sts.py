#!/usr/bin/env python3
"""What the programs for TPUs do to a task: Spearman's correlation on the STS benchmark, beside FP32 on the CPU.

    .venv/bin/python bench/tpu/sts.py --model .cache/minilm --data ../shared/text/stsb-en-dev.csv

The programs run on the CPU plugin of PyPI's xla-cpu-pjrt, whose devices call themselves TPUs here, so that each gets the form that
it would get on such a TPU. Ends with code 1 when bf16 is more than 0.02 points from FP32, or int8 more than 0.1 (points of 100).
"""
import argparse
import csv
import json
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/pjrt"), str(ROOT / "tests/http")]

import compare  # noqa: E402
import devices  # noqa: E402
import numpy  # noqa: E402
import serving  # noqa: E402
from conftest import FAULT, PLUGIN  # noqa: E402

serving.START_S = 1800
POINTS = dict(bf16=0.02, int8=0.1)
TEXTS = 32  # of a request
SQUARE = "384x384xi8>"  # a weight of MiniLM's attention
# name: precision, device kind, what the compiler is made to estimate (a word of the program: cycles). The words tell static scales in all
# layers from those in the FFN in batches of 16 x 32; elsewhere see what the programs compute in.
CASES = {
    "bf16, v5e": ("bf16", "TPU v5 lite", ""),
    "bf16, v6e": ("bf16", "TPU v6 lite", ""),
    "bf16, v5p": ("bf16", "TPU v5", ""),
    "bf16, v4": ("bf16", "TPU v4", ""),
    "int8, v5e, the cheapest is bf16": ("int8", "TPU v5 lite", "xi8>:900,:500"),
    "int8, v5e, the cheapest has dynamic scales": ("int8", "TPU v5 lite", "stablehlo.abs:500,:900"),
    "int8, v5e, the cheapest has static scales": ("int8", "TPU v5 lite", f"stablehlo.abs:900,{SQUARE}:500,:900"),
    "int8, v5e, the cheapest is int8 in the FFN": ("int8", "TPU v5 lite", f"stablehlo.abs:900,{SQUARE}:900,xi8>:500,:900"),
}


def ranks(values):
    """Equal values share the mean of their ranks."""
    order = numpy.argsort(values, kind="stable")
    places = numpy.empty(len(values))
    places[order] = numpy.arange(len(values))
    _, group, counts = numpy.unique(values, return_inverse=True, return_counts=True)
    return (numpy.bincount(group, places) / counts)[group]


def spearman(a, b):
    return 100 * numpy.corrcoef(ranks(a), ranks(b))[0, 1]


def similarities(server, texts):
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    embeddings = {}
    for start in range(0, len(texts), TEXTS):
        some = order[start : start + TEXTS]
        answer = server.post("/embed", dict(inputs=[texts[i] for i in some], truncate=True))
        assert answer.status == 200, answer
        embeddings |= dict(zip(some, answer.json(), strict=True))
    e = numpy.array([embeddings[i] for i in range(len(texts))])
    e /= numpy.linalg.norm(e, axis=1, keepdims=True)
    half = len(texts) // 2
    return (e[:half] * e[half:]).sum(1)


def computes(programs):
    kinds = {p["sequence"]: p["arithmetic"] + ("" if p["scales"] == "none" else f", {p['scales']} scales") for p in programs}
    if len(set(kinds.values())) == 1:
        return next(iter(kinds.values()))
    return "; ".join(f"{length} tokens: {kinds[length]}" for length in sorted(kinds))


def run(folder, model, texts, case=None):
    """Similarities, and what the programs compute in."""
    if case is None:
        with serving.Server(folder / "cpu.log", dict(m=model)) as server:
            return similarities(server, texts), "fp32 on the CPU"
    precision, kind, cycles = CASES[case]
    orders = dict(cycles=cycles) if cycles else {}
    with devices.faults(plugin=PLUGIN, kind=kind, devices=1, **orders):
        flags = ("--device", f"pjrt:{FAULT}", "--precision", precision, "--set", "batching.fallback=never")
        with serving.Server(folder / "device.log", dict(m=model), *flags) as server:
            (stats,) = server.get("/v2/models/m/stats").json()["model_stats"]
            return similarities(server, texts), computes(stats["device_programs"])


def copy_of(model, folder, rows, lengths):
    """The model with few buckets, so that little is compiled."""
    made = folder / "model"
    made.mkdir()
    for path in model.resolve().iterdir():
        if path.name != "model.json":
            (made / path.name).symlink_to(path)
    (made / "model.json").write_text(json.dumps(dict(packing="never", buckets=dict(batch=[rows], sequence=lengths))))
    return made


def add(o, case, result):
    with o.write.open("a") as file:
        file.write(json.dumps(dict(case=case, model=o.model.name, commit=compare.commit()) | result) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", type=pathlib.Path, required=True)
    p.add_argument("--data", type=pathlib.Path, required=True, help="lines of sentence, sentence, score")
    p.add_argument("--rows", type=int, default=16, help="of a batch; fewer where a batch takes half a minute, which counts as a hang")
    p.add_argument("--length", nargs="+", type=int, default=[32], help="tokens of the buckets; sentences longer than all are cut")
    p.add_argument("--write", type=pathlib.Path, help="add the results to this file: bench/tpu/sts.jsonl, which compare.py --table shows")
    p.add_argument("--case", nargs="+", default=list(CASES), choices=list(CASES))
    o = p.parse_args()
    rows = list(csv.reader(o.data.open()))
    texts, gold = [r[0] for r in rows] + [r[1] for r in rows], numpy.array([float(r[2]) for r in rows])
    is_good = True
    with tempfile.TemporaryDirectory(prefix="penstock-sts-") as folder:
        folder = pathlib.Path(folder)
        model = copy_of(o.model, folder, o.rows, o.length)
        reference, _ = run(folder, model, texts)
        points = spearman(reference, gold)
        print(f"fp32 on the CPU: {points:.3f} ({len(rows)} pairs)\n\n| program | computes in | Spearman x 100 | beside fp32 | similarities differ by up to |")
        print("| --- | --- | ---: | ---: | ---: |", flush=True)
        for case in o.case:
            found, arithmetic = run(folder, model, texts, case)
            apart = spearman(found, gold) - points
            is_kept = abs(apart) <= POINTS[CASES[case][0]]
            is_good &= is_kept
            if o.write:
                result = dict(
                    buckets=f"{o.rows} x {', '.join(map(str, o.length))}", arithmetic=arithmetic, fp32=points, apart=apart,
                    difference=abs(found - reference).max(), pairs=len(rows),
                )  # fmt: skip
                add(o, case, result)
            print(f"| {case} | {arithmetic} | {points + apart:.3f} | {apart:+.3f}{'' if is_kept else ' FAILED'} | {abs(found - reference).max():.4f} |", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    start = time.monotonic()
    code = main()
    print(f"\n{time.monotonic() - start:.0f} s")
    sys.exit(code)
