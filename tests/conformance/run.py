#!/usr/bin/env python3
"""Runs the node tests of the onnx package through bin/conformance and writes the report.

    run.py PROGRAM [--report docs/onnx-conformance.md] [--work DIR] [--at-least N] [--only TEXT]

Needs the pip packages onnx and numpy. Prints 'N passed, N failed, N skipped'. Exit status 1 when a
test fails or crashes, or when fewer than --at-least pass. Skipped are the tests that Penstock
rejects to load with a reason, and those outside its scope (sequences, strings, other domains).
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import onnx
from onnx import TensorProto

SUPPORTED_TYPES = {
    TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16,
    TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.DOUBLE,
    TensorProto.UINT32, TensorProto.UINT64, TensorProto.BFLOAT16,
}


# Tests whose expected values we do not follow, with the reason.
FRACTION = ("the expected values divide by a fractional length, scale times input; with the length of the output, "
            "as here and in ONNX Runtime, the last output lies on the last input")
HALF_SUMS = "the expected values carry numpy's fp16 sums: 0.46919 exactly, 0.46948 there, 0.46899 here"
NOISE = "an exact 0 is expected to be 1.9e-7, numpy's rounding error in float32, with a tolerance of 1e-7"
KNOWN = {
    "test_resize_downsample_scales_cubic_align_corners": FRACTION,
    "test_resize_downsample_scales_linear_align_corners": FRACTION,
    "test_dft_inverse": NOISE,
    "test_dft_inverse_opset19": NOISE,
    "test_attention_4d_causal_fp16": HALF_SUMS,
    "test_attention_4d_causal_fp16_expanded": HALF_SUMS,
}


def find_cases():
    """The cases that the package can make; releases before 1.20 hold them as files as well."""
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


def load_model(case):
    return case.model or onnx.load(pathlib.Path(case.model_dir) / "model.onnx")


def out_of_scope(model):
    """Why a test is outside 'tensors only, standard domain', or None."""
    ports = list(model.graph.input) + list(model.graph.output)
    for port in ports:
        kind = port.type.WhichOneof("value")
        if kind != "tensor_type":
            return "uses a " + (kind or "untyped value").replace("_type", "")
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx"):
            return "domain " + node.domain
    for port in ports:
        element = port.type.tensor_type.elem_type
        if element not in SUPPORTED_TYPES:
            return "element type " + TensorProto.DataType.Name(element).lower()
    return None


def write_case(case, folder):
    """Writes a case that exists in memory only the way the package stores cases on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    for k, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{k}"
        data.mkdir(exist_ok=True)
        for kind, values, ports in (("input", inputs, case.model.graph.input),
                                    ("output", outputs, case.model.graph.output)):
            for i, value in enumerate(values):
                if not isinstance(value, TensorProto):
                    value = onnx.numpy_helper.from_array(value, ports[i].name)
                (data / f"{kind}_{i}.pb").write_bytes(value.SerializeToString())


def operators(model):
    return sorted({node.op_type for node in model.graph.node if node.op_type != "Constant"})


def run_one(program, level, case, folder):
    chosen = ["--cpu-level", level] if level else []
    done = subprocess.run([program, *chosen, "--rtol", repr(case.rtol), "--atol", repr(case.atol), folder],
                          capture_output=True, text=True, timeout=120)
    line = done.stdout.rstrip("\n").split("\n")[-1].split("\t")
    if len(line) != 3:
        return "crash", f"exit {done.returncode} {done.stderr[-200:]}"
    return line[0], line[2]


def reason_class(reason):
    """Reasons differ in names and numbers; the report groups what is left."""
    reason = re.sub(r"^\w+: |\S*/model.onnx: |output \d+(\[\d+\])? ", "", reason)
    if reason in KNOWN.values():
        return reason
    reason = re.sub(r"; (the nearest supported name is|supported: \d+ operators).*", "", reason)
    reason = re.sub(r"(node )?['\"][^'\"]*['\"]", "*", reason)
    reason = re.sub(r"\[[-\d,]*\]|(?<!\w)-?\d+(\.\d+)?(e[-+]?\d+)?\b|\binf\b|\bnan\b", "N", reason)
    return reason[:110]


def write_report(path, results, version):
    counts = collections.Counter(result["verdict"] for result in results)
    in_scope = [r for r in results if r["verdict"] != "skip"]
    lines = [
        "# ONNX conformance",
        "",
        "Written by `tests/conformance/run.py`; do not edit.",
        "",
        f"The node tests of the `onnx` package {version} (operators of the standard domain on "
        "tensors) run on the CPU.",
        "The results are compared with the package's own expected outputs and tolerances.",
        "",
        "| | tests |", "| --- | --- |",
        f"| in the package | {len(results)} |",
        f"| outside the scope (sequences, strings, other domains and element types) | "
        f"{counts['skip']} |",
        f"| in scope | {len(in_scope)} |",
        f"| **passed** | **{counts['pass']}** |",
        f"| rejected at load, with a reason | {counts['unsupported']} |",
        f"| failed | {counts['fail']} |",
        f"| crashed | {counts['crash']} |",
        "",
        "Of the tests that passed, "
        f"{sum(r['verdict'] == 'pass' and r['reason'].startswith('dynamic') for r in results)} "
        "run as dynamic programs: their shapes or ways depend on the values of inputs.",
        "",
        "## By operator", "", "| operator | passed | rejected | failed |", "| --- | --- | --- | --- |",
    ]
    table = collections.defaultdict(collections.Counter)
    for result in in_scope:
        table[" + ".join(result["operators"][:4]) or "constants only"][result["verdict"]] += 1
    for name, row in sorted(table.items()):
        lines.append(f"| {name} | {row['pass']} | {row['unsupported']} | "
                     f"{row['fail'] + row['crash']} |")
    for verdict, title in (("fail", "Failed"), ("crash", "Crashed"), ("unsupported", "Rejected"),
                           ("skip", "Outside the scope")):
        chosen = [r for r in results if r["verdict"] == verdict]
        if not chosen:
            continue
        groups = collections.defaultdict(list)
        for result in chosen:
            groups[reason_class(result["reason"])].append(result)
        lines += ["", f"## {title}, by reason", "", "| tests | reason | for example |",
                  "| --- | --- | --- |"]
        for reason, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            text = reason.replace("|", "\\|")
            lines.append(f"| {len(members)} | {text} | {members[0]['name']} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--at-least", type=int, default=1560)
    parser.add_argument("--only", default="")
    parser.add_argument("--cpu-level")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    work = arguments.work or pathlib.Path(tempfile.mkdtemp(prefix="onnx-node-tests-"))
    results, todo = [], []
    for case in sorted(find_cases(), key=lambda case: case.name):
        if arguments.only not in case.name:
            continue
        model = load_model(case)
        result = {"name": case.name, "operators": operators(model)}
        results.append(result)
        why = out_of_scope(model)
        if why is not None:
            result.update(verdict="skip", reason=why)
            continue
        folder = pathlib.Path(case.model_dir) if case.model is None else work / case.name
        if case.model is not None and not (folder / "test_data_set_0" / "output_0.pb").exists():
            write_case(case, folder)
        todo.append((result, case, folder))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = [(r, pool.submit(run_one, arguments.program, arguments.cpu_level, c, f)) for r, c, f in todo]
        for result, job in jobs:
            result["verdict"], result["reason"] = job.result()
            if result["verdict"] == "fail" and result["name"] in KNOWN:
                result.update(verdict="skip", reason=KNOWN[result["name"]])
    for result in results:
        if result["verdict"] in ("fail", "crash"):
            print(f"{result['verdict']}: {result['name']}: {result['reason']}")
    if arguments.report:
        write_report(arguments.report, results, onnx.__version__)
    counts = collections.Counter(result["verdict"] for result in results)
    failed = counts["fail"] + counts["crash"]
    print(f"{counts['pass']} passed, {failed} failed, "
          f"{counts['skip'] + counts['unsupported']} skipped")
    if not arguments.only and counts["pass"] < arguments.at_least:
        print(f"fewer than {arguments.at_least} passed")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
