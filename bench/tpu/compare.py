#!/usr/bin/env python3
"""Penstock's programs for TPUs beside those of JAX: cycles by the compiler's estimate, code, memory, seconds of compiling.

    pip install libtpu==0.0.52 jax numpy
    bench/tpu/compare.py --folder DIR --layers 2 --write bench/tpu/compared.jsonl
    bench/tpu/compare.py --table bench/tpu/compared.jsonl >bench/tpu.md

No TPU is needed, and nothing runs on one. `penstock compile` compiles all programs, JAX's too (bench/tpu/jax_encoder.py, exported), so
compiler, options, targets and buckets are the same. Weights are random. What is compiled is kept in DIR: a second run goes on where the first
one was, and after a change of Penstock compiles only what changed. --layers gives the models fewer layers than they have, which costs fewer hours;
--batch and --sequence leave other buckets as they are in the results.

With --check, ends with code 1 unless in every cell int8 has at most the cycles of bf16, bf16 at most those of tuned JAX, and
bf16 at most 0.9 of tuned JAX in geometric mean; and unless the whole models of MiniLM and BERT-base have all of their cells.
BEHIND names the cells, of other models, where tuned JAX is known to be ahead, and by how much at most.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(pathlib.Path(__file__).parent)]
import shapes  # noqa: E402

TARGETS = ["v4:2x2x1", "v5e:1x1", "v5p:2x2x1", "v6e:1x1", "tpu7x:1x1x1"]
BATCHES, LENGTHS = (1, 8, 32), (32, 128)
BEHIND = {("v5e:1x1", "bert_large", 32, 128): 1.10}
INT8 = ("int8", "int8-static", "int8-static-ffn")
PROGRAMS = ("bf16", "int8", "jax plain", "jax tuned")
MODELS = dict(minilm="MiniLM-L6", bert_base="BERT-base", bert_large="BERT-large")
POOLING = dict(word_embedding_dimension=0, pooling_mode_cls_token=False, pooling_mode_mean_tokens=True, pooling_mode_max_tokens=False)


def hugging_face(folder, model, layers):
    """The encoder as a sentence-transformers folder."""
    import jax_encoder
    import numpy

    hidden, heads, inner, _ = shapes.SHAPES[model]
    config = dict(
        architectures=["BertModel"], model_type="bert", hidden_act="gelu", hidden_size=hidden, intermediate_size=inner, num_attention_heads=heads,
        num_hidden_layers=layers, layer_norm_eps=shapes.EPSILON, max_position_embeddings=shapes.POSITIONS, type_vocab_size=2,
        vocab_size=shapes.VOCABULARY, pad_token_id=0, position_embedding_type="absolute",
    )  # fmt: skip
    params, tensors = jax_encoder.parameters(model, layers), []

    def dense(name, p):
        tensors.extend([(name + ".weight", p["kernel"].astype(numpy.float32).T), (name + ".bias", p["bias"])])

    def norm(name, p):
        tensors.extend([(name + ".weight", p["scale"]), (name + ".bias", p["bias"])])

    for table, key in (("word", "word"), ("position", "position"), ("token_type", "type")):
        tensors.append((f"embeddings.{table}_embeddings.weight", params[key]))
    norm("embeddings.LayerNorm", params["norm"])
    for i, p in enumerate(params["layers"]):
        at = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            dense(f"{at}attention.self.{part}", p[part])
        dense(at + "attention.output.dense", p["output"])
        norm(at + "attention.output.LayerNorm", p["norm1"])
        dense(at + "intermediate.dense", p["up"])
        dense(at + "output.dense", p["down"])
        norm(at + "output.LayerNorm", p["norm2"])
    import export_jax

    (folder / "1_Pooling").mkdir(parents=True)
    export_jax.write_safetensors(folder / "model.safetensors", tensors)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    named = [dict(idx=i, name=str(i), path=path, type="sentence_transformers.models." + kind) for i, (path, kind) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(named))
    (folder / "1_Pooling/config.json").write_text(json.dumps(POOLING | dict(word_embedding_dimension=hidden)))
    (folder / "config.json").write_text(json.dumps(config))


def exported(folder, model, layers, style):
    import export_jax
    import jax_encoder

    _, heads, _, _ = shapes.SHAPES[model]
    inputs = [export_jax.read_input(name + ":INT32[batch,sequence]") for name in ("input_ids", "attention_mask", "token_type_ids")]
    export_jax.export(
        jax_encoder.encoder(heads, style), folder, inputs, [(b, s) for s in LENGTHS for b in BATCHES], jax_encoder.parameters(model, layers),
        ["embedding"], ["attention_mask"], platform="tpu", trusts_padding=True,
    )  # fmt: skip


def model_of(o, model, layers, program):
    """The folder of a model, made when it is missing."""
    folder = o.folder / f"{model}-{layers}" / program.replace(" ", "-").replace("int8", "bf16")
    if not (folder / "complete").exists():
        if program.startswith("jax"):
            exported(folder, model, layers, program.split()[1])
        else:
            hugging_face(folder, model, layers)
        (folder / "complete").touch()
    return folder


def compile_cells(o, target, model, layers, program):
    """Yields a row for each bucket."""
    command = [
        str(o.penstock), "compile", "--model", str(model_of(o, model, layers, program)), "--target", "tpu:" + target, "--cache", str(o.folder / "cache"),
        "--plugin", str(o.plugin), "--json",
    ]  # fmt: skip
    if not program.startswith("jax"):
        command += ["--precision", program, "--batch", ",".join(map(str, o.batch)), "--sequence", ",".join(map(str, o.sequence))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield dict(program=program, model=model, layers=layers, commit=o.commit) | json.loads(line)
    if process.returncode != 0:
        print(f"{target} {model} {program}: penstock compile ended with {process.returncode}", file=sys.stderr)


def key(row):
    return row["target"], row["model"], row["layers"], row["batch"], row["sequence"], row["program"]


def read(path):
    rows = [json.loads(line) for line in path.open()] if path.exists() else []
    return {key(r): r for r in rows}


def write(path, rows):
    text = "".join(json.dumps(rows[k]) + "\n" for k in sorted(rows))
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def measure(o):
    import jax_encoder

    rows = read(o.write)
    for model in o.model:
        layers = min(o.layers or 10**9, shapes.SHAPES[model][3])
        for target in o.target:
            for program in o.program:
                for row in compile_cells(o, target, model, layers, program):
                    rows[key(row)] = row
                    write(o.write, rows)
                    print(target, model, layers, program, row["batch"], row["sequence"], row.get("candidate"), row["estimated_cycles"], flush=True)


# --- the table ---

HEAD = """# Programs for TPUs, beside those of JAX

Written by [tpu/compare.py](tpu/compare.py) from [tpu/compared.jsonl](tpu/compared.jsonl): `bench/tpu/compare.py --table
bench/tpu/compared.jsonl >bench/tpu.md`; how to compile the programs again stands in its first lines. libtpu 0.0.52.

**Nothing here was measured on a TPU.** Cycles are the compiler's estimates, the sum of `estimated_cycles` in the
optimized HLO. Transfers, launch and queues are not in them. v4 and v5p targets are a host of 2x2x1 chips; the program
runs on one of them. Compile seconds are those of 2 cores shared with other work: upper bounds.

- `bf16`, `int8`: what `penstock compile --precision` makes. int8 is the cheapest of what keeps its accuracy, which its
  column `is` names: `bf16`, `int8` (scales by the row, as it runs), `int8-static` (scales known beforehand) or
  `int8-static-ffn` (the same in the feed-forward blocks, bf16 in attention). `by row`, `static`, `FFN`: cycles of the
  three, chosen or not; *in italics* where a check found them too far from FP32. Empty cells were not compiled.
- `JAX plain`, `JAX tuned`: [tpu/jax_encoder.py](tpu/jax_encoder.py), bf16. Plain: GELU by erf, layer normalisation and
  softmax in f32. Tuned: GELU by tanh in bf16, softmax divided after the second product, layer normalisation in one
  pass.
- All are sentence encoders: ids, mask and token types in; the mean over tokens, of length one, out. Random weights.
- `layers`: the encoder is compiled with so many of its layers; whole models are the rows with the most. What surrounds
  the layers (embeddings, pooling) weighs more where they are few, and what is kept in the core's memory changes.
- [tpu/bundles.md](tpu/bundles.md) sets schedules beside these estimates: they are a cost model, and often name another
  winner than the schedule.
"""


def cells_of(rows):
    """{(target, model, batch, sequence, layers): {program: row}}."""
    cells = {}
    for row in rows.values():
        cells.setdefault((row["target"][4:], row["model"], row["batch"], row["sequence"], row["layers"]), {})[row["program"]] = row
    return cells


def deepest(cells):
    """Those with the most layers of each bucket that JAX's program was compiled for, too."""
    found = {}
    for where, cell in cells.items():
        if ratio(cell, "bf16", "jax tuned") is not None and where[4] > found.get(where[:4], ((), {}, 0))[2]:
            found[where[:4]] = where, cell, where[4]
    return {where: cell for where, cell, _ in found.values()}


def ratio(cell, program, to):
    if program not in cell or to not in cell or not cell[to]["estimated_cycles"]:
        return None
    return cell[program]["estimated_cycles"] / cell[to]["estimated_cycles"]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def cycles_text(cell, program):
    if program not in cell:
        return ""
    row = cell[program]
    return f"{row['estimated_cycles']:,}" + ("\\*" if row["unestimated_instructions"] else "")


def tried_text(cell, candidate):
    tried = cell["int8"]["tried"] if "int8" in cell else []
    found = next((t for t in tried if t["candidate"] == candidate), None)
    if found is None:
        return ""
    text = f"{found['estimated_cycles']:,}"
    return f"*{text}*" if found.get("is_rejected") else text


def line_of(where, cell):
    target, model, batch, sequence, layers = where
    ours = cell.get("bf16")
    share = ratio(cell, "bf16", "jax tuned")
    text = lambda value, form: "" if value is None else format(value, form)
    parts = [
        MODELS[model], layers, f"{batch} x {sequence}", cycles_text(cell, "bf16"), cycles_text(cell, "int8"),
        cell["int8"]["candidate"] if "int8" in cell else "", *(tried_text(cell, c) for c in INT8), cycles_text(cell, "jax plain"),
        cycles_text(cell, "jax tuned"), text(share, ".2f"),
    ]  # fmt: skip
    if ours:
        parts += ["" if ours["estimated_mfu"] is None else f"{100 * ours['estimated_mfu']:.1f}%"]
        for name, unit in (("code_bytes", 2**20), ("temporary_bytes", 2**20), ("compile_seconds", 1)):
            theirs = f"{cell['jax tuned'][name] / unit:.1f}" if "jax tuned" in cell else ""
            parts.append(f"{ours[name] / unit:.1f} / {theirs}")
    return "| " + " | ".join(map(str, parts)) + " |"


def table(rows):
    print(HEAD, end="")
    cells = cells_of(rows)
    for target in sorted({where[0] for where in cells}, key=lambda t: [x.split(":")[0] for x in TARGETS].index(t.split(":")[0])):
        mine = {where: cell for where, cell in cells.items() if where[0] == target}
        commits = sorted({cell[p]["commit"] for cell in mine.values() for p in ("bf16", "int8") if p in cell})
        print(f"\n## {target}\n\nCommit {', '.join(commits)}. MiB and seconds: ours / tuned JAX.\n")
        print("| model | layers | bucket | bf16 | int8 | is | by row | static | FFN | JAX plain | JAX tuned | bf16 / tuned | MFU | code MiB | scratch MiB | compile s |")
        print("| --- | ---: | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for where in sorted(mine, key=lambda w: (list(MODELS).index(w[1]), -w[4], w[3], w[2])):
            print(line_of(where, mine[where]))
    shares = {where: ratio(c, "bf16", "jax tuned") for where, c in sorted(deepest(cells).items())}
    over = [f"{w[0]} {MODELS[w[1]]} {w[2]} x {w[3]}, {w[4]} layers: {s:.3f}" for w, s in shares.items() if s > 1]
    print(f"\nbf16 beside tuned JAX, where both were compiled with the most layers: {len(shares)} cells, geometric mean"
          f" {geometric_mean(list(shares.values())):.3f}.\nAbove 1:{'' if over else ' none.'}")  # fmt: skip
    print("".join(f"\n- {o}" for o in over))
    asked = [cell["int8"] for cell in cells.values() if "int8" in cell]
    lost = sum(row["candidate"] == "bf16" for row in asked)
    static = sum(any(t["candidate"] in INT8[1:] for t in row["tried"]) for row in asked)
    print(f"\nint8: {len(asked)} of {len(cells)} cells compiled, {static} of them with static scales too; bf16 was chosen in {lost}.")
    print("\n\\* without instructions that have no estimate (the gather of embeddings, mostly): the true cycles are higher.")


STS_HEAD = """
## Results on a task

**Executed on a plugin (xla-cpu), not on a TPU.** The programs have the form that they would have on such a TPU.
Spearman's correlation, times 100, on the STS benchmark (development split).
"""


def sts_table(path):
    """Of lines that bench/tpu/sts.py wrote."""
    rows = [json.loads(line) for line in path.open()] if path.exists() else []
    if not rows:
        return
    print(STS_HEAD)
    print("    .venv/bin/python bench/tpu/sts.py --model .cache/minilm --data ../shared/text/stsb-en-dev.csv --rows R --length S... --case PROGRAM\n")
    print("| model | pairs | buckets | program | computes in | fp32 on the CPU | Spearman | beside fp32 | similarities differ by up to | commit |")
    print("| --- | ---: | --- | --- | --- | ---: | ---: | ---: | ---: | --- |")
    for r in rows:
        figures = f"{r['fp32']:.3f} | {r['fp32'] + r['apart']:.3f} | {r['apart']:+.3f} | {r['difference']:.4f}"
        print(f"| {r['model']} | {r['pairs']:,} | {r['buckets']} | {r['case']} | {r['arithmetic']} | {figures} | {r['commit']} |")


def missing(cells):
    """What is not there of the cells that must be."""
    for target, model, batch, length in itertools.product(TARGETS, ("minilm", "bert_base"), BATCHES, LENGTHS):
        where = (target, model, batch, length, shapes.SHAPES[model][3])
        for program in ("bf16", "int8", "jax tuned"):
            if program not in cells.get(where, {}):
                yield f"{where}: {program} is missing"


def check(rows):
    cells = cells_of(rows)
    failures = list(missing(cells))
    for where, cell in cells.items():
        share = ratio(cell, "int8", "bf16")
        failures += [f"{where}: int8 / bf16 {share:.3f}"] if share is not None and share > 1 else []
    whole = {where: ratio(cell, "bf16", "jax tuned") for where, cell in deepest(cells).items()}
    failures += [f"{where}: bf16 / tuned JAX {share:.3f}" for where, share in whole.items() if share > BEHIND.get(where[:4], 1)]
    shares = list(whole.values())
    if not shares or geometric_mean(shares) > 0.9:
        failures.append(f"bf16 / tuned JAX in geometric mean: {geometric_mean(shares):.3f}")
    print("\n".join(failures), file=sys.stderr)
    return 1 if failures else 0


def find_plugin():
    if "TPU_LIBRARY_PATH" in os.environ:
        return os.environ["TPU_LIBRARY_PATH"]
    import libtpu

    return pathlib.Path(libtpu.__file__).with_name("libtpu.so")


def commit():
    return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--folder", type=pathlib.Path, help="models and compile cache; made if missing")
    p.add_argument("--write", type=pathlib.Path, help="results, one line for each program; those that are there are replaced or stay")
    p.add_argument("--table", type=pathlib.Path, help="print the table of these results, and of sts.jsonl beside them")
    p.add_argument("--check", type=pathlib.Path, help="check these results")
    p.add_argument("--target", nargs="+", default=TARGETS)
    p.add_argument("--model", nargs="+", default=["minilm", "bert_base"], choices=list(MODELS))
    p.add_argument("--program", nargs="+", default=list(PROGRAMS), choices=PROGRAMS)
    p.add_argument("--layers", type=int, default=0, help="at most so many; 0: all that the model has")
    p.add_argument("--batch", nargs="+", type=int, default=list(BATCHES), help="of ours; JAX's programs are exported with all")
    p.add_argument("--sequence", nargs="+", type=int, default=list(LENGTHS))
    p.add_argument("--penstock", type=pathlib.Path, default=ROOT / "build/release/bin/penstock")
    o = p.parse_args()
    if o.table:
        table(read(o.table))
        sts_table(o.table.with_name("sts.jsonl"))
    if o.check:
        sys.exit(check(read(o.check)))
    if o.write:
        o.plugin = find_plugin()
        o.commit = commit()
        o.folder.mkdir(parents=True, exist_ok=True)
        measure(o)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
