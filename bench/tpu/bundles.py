#!/usr/bin/env python3
"""A second witness for the compiler's estimates: the schedules that libtpu writes, counted bundle by bundle.

    pip install libtpu==0.0.52 jax numpy
    bench/tpu/bundles.py --folder DIR --write bench/tpu/bundles.jsonl [--only REGEX] [--forms]
    bench/tpu/bundles.py --table bench/tpu/bundles.jsonl >bench/tpu/bundles.md
    bench/tpu/bundles.py --read DUMP

No TPU is needed, and nothing runs on one. `penstock compile` compiles the programs of CASES while libtpu dumps their schedules (about 1 GB a
program, most of it deleted at once). llo.py counts the bundles that an execution issues. --read prints one line for each program of a dump.
Rows that are there stay, so that a second run goes on where the first one was; --again replaces them.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import compare  # noqa: E402
import llo  # noqa: E402

LAYERS = 2
SMALL, MIDDLE, BIG = (8, 32), (8, 128), (32, 128)
TARGETS = dict(v5e="v5e:1x1", v6e="v6e:1x1", v5p="v5p:2x2x1")


def cases():
    """(generation, model, program, batch, sequence), those first that take least; a program ends with " packed" where rows hold several sequences."""
    for model, bucket, generations in (("minilm", SMALL, TARGETS), ("bert_base", SMALL, TARGETS), ("minilm", MIDDLE, TARGETS), ("minilm", BIG, ("v5e", "v6e"))):
        for generation in generations:
            for program in ("bf16", "int8", "jax tuned"):
                yield (generation, model, program, *bucket)
        if (model, bucket) == ("minilm", MIDDLE):
            yield from ((generation, model, "bf16 packed", *bucket) for generation in ("v5e", "v6e"))


def name_of(row):
    return f"{row['generation']} {row['model']} {row['program']} {row['batch']}x{row['sequence']}"


# --- compiling with a dump ---


def thin(folder, done):
    """Deletes what is not read while it is written: one program's dump is about 1 GB."""
    while not done.wait(0.5):
        for path in folder.glob("*"):
            if not llo.is_read(path.name):
                path.unlink(missing_ok=True)


def packed_model(o, folder, bucket):
    """The same encoder with one bucket whose rows hold several sequences."""
    to = o.folder / f"{folder.parent.name}-packed-{bucket[0]}x{bucket[1]}"
    if not to.exists():
        shutil.copytree(folder, to)
        (to / "model.json").write_text(json.dumps(dict(packing="always", buckets=dict(batch=[bucket[0]], sequence=[bucket[1]]))))
    return to


def compile_dumped(o, generation, model, program, bucket, flags=()):
    """Yields (the line of --json, the programs that were compiled for it). An empty cache, so that all that is tried is compiled."""
    is_packed = program.endswith(" packed")
    precision = program.split()[0]
    folder = compare.model_of(o, model, LAYERS, program.removesuffix(" packed"))
    dump, cache = o.folder / "dump", o.folder / "empty-cache"
    for path in (dump, cache):
        shutil.rmtree(path, ignore_errors=True)
    dump.mkdir()
    command = [str(o.penstock), "compile", "--target", "tpu:" + TARGETS[generation], "--cache", str(cache), "--plugin", str(o.plugin), "--json", *flags]
    if is_packed:
        command += ["--model", str(packed_model(o, folder, bucket))]
    else:
        command += ["--model", str(folder), "--batch", str(bucket[0]), "--sequence", str(bucket[1])]
    if precision != "jax":
        command += ["--precision", precision]
    environment = dict(os.environ, LIBTPU_INIT_ARGS=f"--xla_jf_dump_to={dump} --xla_jf_dump_llo_text=true --xla_jf_dump_hlo_text=true")
    done = threading.Event()
    thread = threading.Thread(target=thin, args=(dump, done))
    thread.start()
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    finally:
        done.set()
        thread.join()
    if process.returncode != 0:
        print(f"penstock compile ended with {process.returncode}: {process.stderr[-500:]}", file=sys.stderr)
        return
    programs = iter(llo.read_dump(dump))
    for line in map(json.loads, process.stdout.splitlines()):
        yield line, [next(programs) for _ in line["tried"] or [line]]
    shutil.rmtree(dump)


def row_of(case, name, estimate, line, program, commit):
    generation, model, asked, batch, sequence = case
    return dict(
        generation=generation, model=model, layers=LAYERS, program=name, batch=batch, sequence=sequence, packed=line["packed"], asked=asked,
        estimated_cycles=estimate, commit=commit, **program.summary(),
    )  # fmt: skip


def measure(o):
    rows = {name_of(r): r for r in map(json.loads, o.write.open())} if o.write.exists() else {}
    forms = [(g, "minilm", "bf16", b, s) for g in ("v5e", "v6e") for b, s in ((1, 32), SMALL)] if o.forms else []
    for case in [*cases(), *forms]:
        flags = ["--tune"] if case in forms else []
        made = f"{case[0]} {case[1]} {case[2]} {case[3]}x{case[4]}"
        if not re.search(o.only, made) or (not o.again and not flags and made in rows):
            continue
        for line, programs in compile_dumped(o, *case[:3], case[3:], flags):
            if line["packed"] != case[2].endswith(" packed"):
                continue
            tried = line["tried"] or [dict(candidate=case[2], estimated_cycles=line["estimated_cycles"])]
            for one, program in zip(tried, programs):
                if case[2] == "int8" and one["candidate"] != "int8":
                    continue  # what else was tried for int8 has rows of its own
                row = row_of(case, one["candidate"], one["estimated_cycles"], line, program, o.commit)
                rows[name_of(row)] = row
                print(name_of(row), row["estimated_cycles"], row["estimates_read"], row["scheduled_cycles"], round(row["scheduled_cycles"] / row["estimated_cycles"], 3), flush=True)
        o.write.with_suffix(".new").write_text("".join(json.dumps(rows[k]) + "\n" for k in sorted(rows)))
        o.write.with_suffix(".new").rename(o.write)


# --- the page ---

HEAD = """# A second witness: schedules of programs for TPUs

Written by [bundles.py](bundles.py) from [bundles.jsonl](bundles.jsonl): `bench/tpu/bundles.py --table
bench/tpu/bundles.jsonl >bench/tpu/bundles.md`; how to count again stands in its first lines. libtpu 0.0.52, two layers
of each model, random weights.

**Nothing here was measured on a TPU.** libtpu writes the VLIW bundles of each fusion; a core issues one a cycle.
[llo.py](llo.py) runs their counters and branches, and so counts loops as often as they run.

- `estimate`: the sum of `estimated_cycles`, which chooses programs ([../tpu.md](../tpu.md)) unless `penstock compile
  --rank schedule` asks for the schedule; some defaults trust the schedule, too ([README.md](README.md)). `schedule`:
  bundles that the same fusions issue, or what their matrix units take to read their rows, if that is more.
- `HBM`: bytes that operands, results and asynchronous copies move, at the published bandwidth. Most of it overlaps with
  computing. Not in it: the prefetch for the next execution (on v5e and v6e the whole table of embeddings, if it fits).
- `at least`: the larger of the two. Waiting for memory, launch and transfers are in neither.
- `busy`: shares of the scheduled cycles. The unit with the largest one limits the program.
- `bf16 newer forms`: bf16 as 10afb08 writes it; all else is of c704dbd.
"""
BYTES_PER_CYCLE = dict(v5e=819e9 / 1.5e9, v6e=1640e9 / 1.75e9, v5p=2765e9 / 1.75e9)  # published bandwidth, clock as in cli/compile.c


def hbm_cycles(row):
    return row["hbm_bytes"] / BYTES_PER_CYCLE[row["generation"]]


def at_least(row):
    return max(row["scheduled_cycles"], hbm_cycles(row))


def where(row):
    return row["generation"], row["model"], row["batch"], row["sequence"]


def order_key(row):
    return list(TARGETS).index(row["generation"]), list(compare.MODELS).index(row["model"]), -row["batch"] * row["sequence"], row["program"]


def describe(key):
    generation, model, batch, sequence = key
    return f"{generation} {compare.MODELS[model]} {batch} x {sequence}"


def program_line(row):
    busy = ", ".join(f"{unit} {100 * share:.0f}%" for unit, share in list(row["busy"].items())[:3])
    ratio = row["scheduled_cycles"] / row["estimated_cycles"]
    return (f"| {describe(where(row))} | {row['program']} | {row['estimated_cycles']:,} | {row['scheduled_cycles']:,} | {ratio:.2f} |"
            f" {hbm_cycles(row):,.0f} | {at_least(row):,.0f} | {busy} |")  # fmt: skip


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"median {middle:.2f}, half of them between {low:.2f} and {high:.2f}, all between {min(values):.3f} and {max(values):.1f}"


def agreement(rows):
    print("\n## How far they agree\n\nSchedule divided by estimate.\n")
    programs = [r["scheduled_cycles"] / r["estimated_cycles"] for r in rows]
    print(f"- {len(programs)} programs: {spread(programs)}.")
    fusions = [f for r in rows for f in r["functions"]]
    print(f"- {len(fusions)} fusions: {spread([f['cycles'] / f['estimated'] for f in fusions])}.")
    total = sum(f["estimated"] * f["instances"] for f in fusions)
    near = sum(f["estimated"] * f["instances"] for f in fusions if 0.67 <= f["cycles"] / f["estimated"] <= 1.5)
    print(f"- Fusions that agree within a factor of 1.5 hold {100 * near / total:.0f}% of the estimated cycles.")
    small = [f for f in fusions if f["cycles"] < 200]
    print(f"- {len(small)} fusions issue fewer than 200 bundles; their estimate is {statistics.median(f['estimated'] for f in small):,.0f} in the median: a"
          "\n  fixed cost, which no bundle shows.")  # fmt: skip
    print("\n| a fusion's limit | fusions | share of scheduled cycles | schedule / estimate, median |\n| --- | ---: | ---: | ---: |")
    cycles = sum(f["cycles"] * f["instances"] for f in fusions)
    for limit in sorted({f["limit"] for f in fusions}, key=lambda u: -sum(f["cycles"] * f["instances"] for f in fusions if f["limit"] == u)):
        mine = [f for f in fusions if f["limit"] == limit]
        share = sum(f["cycles"] * f["instances"] for f in mine) / cycles
        print(f"| {limit} | {len(mine)} | {100 * share:.0f}% | {statistics.median(f['cycles'] / f['estimated'] for f in mine):.2f} |")


def pairs(rows):
    """Variants of one bucket, two by two: ours beside what else there is."""
    for key in sorted({where(r) for r in rows}):
        mine = {r["program"]: r for r in rows if where(r) == key}
        if "bf16" in mine:
            yield from ((key, mine["bf16"], other) for name, other in sorted(mine.items()) if name != "bf16" and not other["packed"])


def orders(rows):
    print("\n## The order of two variants\n")
    print("Cycles divided by those of bf16 as it is chosen. Where the estimate and `at least` name another winner, trust the\nlatter.\n")
    print("| bucket | variant | by estimate | by schedule | at least | |\n| --- | --- | ---: | ---: | ---: | --- |")
    others = 0
    count = 0
    for key, ours, other in pairs(rows):
        ratios = [f(other) / f(ours) for f in (lambda r: r["estimated_cycles"], lambda r: r["scheduled_cycles"], at_least)]
        is_other = (ratios[0] < 1) != (ratios[2] < 1) and ratios[0] != 1 and abs(ratios[2] - 1) > 0.005
        others += is_other
        count += 1
        print(f"| {describe(key)} | {other['program']} | " + " | ".join(f"{r:.2f}" for r in ratios) + f" | {'another order' if is_other else ''} |")
    print(f"\n{count} pairs; {others} of them in another order.")


def heaviest(rows):
    print("\n## The fusions that take most\n")
    print("Four of each larger program of ours: cycles of the schedule for one, how many there are, and the unit that limits\nit.\n")
    print("| bucket | program | fusion | of them | estimate | schedule | limit |\n| --- | --- | --- | ---: | ---: | ---: | --- |")
    for row in sorted(rows, key=order_key):
        if row["asked"] not in ("bf16", "int8") or row["program"] != row["asked"] or (row["batch"], row["sequence"]) not in (MIDDLE, BIG):
            continue
        for f in row["functions"][:4]:
            print(f"| {describe(where(row))} | {row['program']} | {f['name']} | {f['instances']} | {f['estimated']:,} | {f['cycles']:,} | {f['limit']} {100 * f['share']:.0f}% |")


def page(rows):
    print(HEAD, end="")
    print(f"\nCommit {', '.join(sorted({r['commit'] for r in rows}))}.\n\n## Programs\n")
    print("| bucket | program | estimate | schedule | ratio | HBM, cycles | at least | busy |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    named = [r for r in rows if r["program"] == r["asked"]]
    for row in sorted(named, key=order_key):
        print(program_line(row))
    unknown = sum(r["unknown_branches"] for r in rows)
    print(f"\nBranches that depend on data, taken for not taken: {unknown}.")
    agreement(rows)
    orders(rows)
    heaviest(rows)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--folder", type=pathlib.Path, help="models and dumps; made if missing")
    p.add_argument("--write", type=pathlib.Path, help="results, one line for each program")
    p.add_argument("--table", type=pathlib.Path, help="print the page of these results")
    p.add_argument("--read", type=pathlib.Path, help="print what a folder that libtpu dumped into says")
    p.add_argument("--only", default="", help="cases whose name this expression finds, such as 'v5e minilm'")
    p.add_argument("--forms", action="store_true", help="also every form that --tune tries, of small buckets")
    p.add_argument("--again", action="store_true", help="compile what has a row, too")
    p.add_argument("--penstock", type=pathlib.Path, default=compare.ROOT / "build/release/bin/penstock")
    o = p.parse_args()
    if o.read:
        for program in llo.read_dump(o.read):
            print(json.dumps(program.summary()))
    if o.table:
        page([json.loads(line) for line in o.table.open()])
    if o.write:
        o.plugin = compare.find_plugin()
        o.commit = compare.commit()
        o.folder.mkdir(parents=True, exist_ok=True)
        measure(o)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
