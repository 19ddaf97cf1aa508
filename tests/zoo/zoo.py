#!/usr/bin/env python3
"""Models as users bring them: exports many architectures, serves them, compares with ONNX Runtime, and writes the table.

    tests/zoo/zoo.py --binary build/release/bin/penstock [--only PATTERN] [--work DIR] [--table docs/models-tested.md]

Makes an environment of its own in the work folder (PyTorch, some GB), so it is not part of ./test."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ["torch", "torchvision", "transformers", "onnx", "onnxruntime", "onnxscript", "onnxconverter-common", "scikit-learn", "skl2onnx", "sympy"]


def environment(folder):
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def versions(python):
    code = "import importlib.metadata as m; print(', '.join(f'{p} {m.version(p)}' for p in %r))" % ["torch", "transformers", "onnx", "onnxruntime",
                                                                                                    "skl2onnx"]
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def commit():
    return subprocess.run(["git", "-C", HERE, "log", "-1", "--format=%h"], capture_output=True, text=True).stdout.strip()


def shorten(reason):
    """What a refusal says after the path of the file."""
    reason = re.sub(r'^model "\w+" version \d+: (/\S+: )*', "", reason).replace("|", "\\|")
    return re.split(r"; supported: \d+ operators|; the nearest|, of ", reason)[0][:200]


def write_table(results, path, told):
    """One line per architecture; its exports side by side."""
    by_model = {}
    for r in results:
        model, _, variant = r["name"].partition(".")
        by_model.setdefault(model, []).append((variant, r))
    count = lambda *kinds: sum(r["verdict"] in kinds for r in results)
    exported = len(results) - count("not exported")
    lines = ["# Models tested", "",
             f"Written by `tests/zoo/zoo.py` ([its page](../tests/zoo/README.md)): {exported} models, exported with random weights, are",
             "served over HTTP with binary tensors, alone and concurrently, at several batch sizes and lengths, and compared with",
             "ONNX Runtime.", "", f"{told}:", "", "    tests/zoo/zoo.py --table docs/models-tested.md", "",
             f"- {count('served')} served correctly",
             f"- {count('SLOW')} served correctly, and more than 20 times slower than ONNX Runtime",
             f"- {count('rejected')} rejected",
             f"- {count('WRONG', 'CRASH', 'HANG')} wrong", "",
             "Tolerance: 2e-4 of an output's range for FP32, 2e-2 for FP16, 4e-2 for quantised models (their roundings differ),",
             "or 1.5 times what ONNX Runtime's own optimiser changes. Tokens that a request's attention mask excludes are not",
             "compared.", "",
             "| model | served from | difference at most | otherwise |", "| --- | --- | --- | --- |"]
    for model, variants in by_model.items():
        good = [v for v, r in variants if r["verdict"] in ("served", "SLOW")]
        worst = max((r["error"] for v, r in variants if r["verdict"] in ("served", "SLOW")), default=None)
        other = [f"{v}: {r['verdict']}: {shorten(r['reason'])}" for v, r in variants if r["verdict"] not in ("served", "not exported")]
        if not good and not other:
            continue
        lines.append(f"| {model} | {', '.join(good)} | {'' if worst is None else format(worst, '.0e')} | {'<br>'.join(other)} |")
    lines += ["", "The exporters or ONNX Runtime themselves failed on:", ""]
    lines += [f"- {r['name']}" for r in results if r["verdict"] == "not exported"]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=HERE.parents[1] / "build/release/bin/penstock", type=pathlib.Path)
    parser.add_argument("--only", default="", help="regular expression over NAME.EXPORTER[.VARIANT]")
    parser.add_argument("--work", default=pathlib.Path("/var/tmp/penstock-zoo"), type=pathlib.Path)
    parser.add_argument("--environment", type=pathlib.Path, help="an environment that has the packages already")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    python = environment(options.environment or options.work / "venv")
    models, results = options.work / "models", options.work / "results.json"
    subprocess.run(["nice", python, HERE / "export.py", models, "--only", options.only], check=True)
    code = subprocess.run(["nice", python, HERE / "check.py", models, "--binary", options.binary, "--only", options.only, "--json", results]).returncode
    if options.table:
        write_table(json.loads(results.read_text()), options.table, f"Commit {commit()}, {versions(python)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
