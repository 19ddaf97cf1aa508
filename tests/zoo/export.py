"""Exports the zoo's models into a folder: NAME/model.onnx beside NAME/cases.npz with inputs and ONNX Runtime's answers.
Run by zoo.py in the zoo's own environment; a model that is there already is left alone."""
import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import time
import traceback
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import numpy
import onnx
import onnxruntime
import torch

from architectures import REGISTRY

onnxruntime.set_default_logger_severity(4)
torch.set_num_threads(1)


def session(path, optimise=True):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def unzip(answers):
    """ZipMap's lists of {label: score} as scores; their labels are in order."""
    return [numpy.array([list(v.values()) for v in a], "f4") if isinstance(a, list) else a for a in answers]


def write_cases(folder, sizes, make):
    """cases.npz and meta.json: inputs of every size, the answers, and how long ONNX Runtime takes for the last one."""
    run = session(folder / "model.onnx")
    from check import difference, tolerance
    plain = session(folder / "model.onnx", False) if tolerance(folder.name) > 1e-3 else None
    arrays, kept, slowest, noise = {}, [], 0.0, 0.0
    wanted = {i.name: i for i in run.get_inputs()}
    for number, (b, s) in enumerate(sizes):
        feeds = {k: v for k, v in make(b, s, numpy.random.default_rng(100 + number)).items() if k in wanted}
        try:
            answers = unzip(run.run(None, feeds))
        except Exception as error:
            print(f"    onnxruntime refuses {folder.name} at {b}x{s}: {str(error)[:200]}", flush=True)
            continue
        times = []
        for _ in range(3):
            before = time.perf_counter()
            run.run(None, feeds)
            times.append(time.perf_counter() - before)
        slowest = max(slowest, min(times))
        if plain:  # ONNX Runtime differs from itself where a rounding falls the other way
            names = [o.name for o in run.get_outputs()]
            noise = max(noise, difference(dict(zip(names, unzip(plain.run(None, feeds)))), dict(zip(names, answers)))[0])
        for k, v in feeds.items():
            arrays[f"{number}/in/{k}"] = v
        for o, v in zip(run.get_outputs(), answers):
            arrays[f"{number}/out/{o.name}"] = v
        kept.append([number, b, s])
    if not kept:
        raise RuntimeError("onnxruntime itself runs none of the cases")
    numpy.savez(folder / "cases.npz", **arrays)
    (folder / "meta.json").write_text(json.dumps({"cases": kept, "seconds": slowest, "noise": noise}))


def randomise(net):
    """Running statistics and biases that are not zero, so that a mistake in them shows."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, buffer in net.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn(buffer.shape, generator=generator) * 0.1)
            if name.endswith("running_var"):
                buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
        for name, parameter in net.named_parameters():
            if name.endswith("bias"):
                parameter.add_((torch.randn(parameter.shape, generator=generator) * 0.1).to(parameter.dtype))


def export_torch(architecture, exporter, path):
    a = architecture
    torch.manual_seed(1)
    net = a.build().eval()
    randomise(net)
    b, s = a.sizes[0] if a.fixed else (2, 8)
    feeds = a.inputs(b, s, numpy.random.default_rng(1))
    example = tuple(torch.from_numpy(numpy.ascontiguousarray(v)) for v in feeds.values())
    names = list(feeds)
    with contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        if exporter == "dynamo":
            shapes = None
            if not a.fixed:
                batch, sequence = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("sequence", min=1, max=64)
                shapes = tuple({0: batch, **({a.lengths[n]: sequence} if n in a.lengths else {})} for n in names)
                if type(net).forward.__code__.co_flags & 4:  # *x: one argument that is a tuple
                    shapes = (shapes,)
            torch.onnx.export(net, example, str(path), dynamo=True, input_names=names, output_names=list(a.outputs), dynamic_shapes=shapes,
                              external_data=False, verbose=False)
            return
        axes = None
        if not a.fixed:
            axes = {n: {0: "batch", **({a.lengths[n]: "sequence"} if n in a.lengths else {})} for n in names}
            for o in a.outputs:
                if o not in ("mean",):
                    axes[o] = {0: "batch", **a.output_axes.get(o, {})}
        torch.onnx.export(net, example, str(path), dynamo=False, opset_version=int(exporter.split("-")[1]), input_names=names,
                          output_names=list(a.outputs), dynamic_axes=axes)


def attempt(folder, name, make, cases):
    """One export: folder/name, or a line in its failed.txt that says why the exporter could not."""
    place = folder / name
    if (place / "meta.json").exists() or (place / "failed.txt").exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    began = time.time()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            make(place / "model.onnx")
        cases(place)
        print(f"{name}: {sum(f.stat().st_size for f in place.glob('model*')) // 1024} KiB, {time.time() - began:.1f} s", flush=True)
    except (Exception, SystemExit) as error:
        text = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:400]
        (place / "failed.txt").write_text(text + "\n")
        (place / "trace.txt").write_text(traceback.format_exc())
        print(f"{name}: NOT EXPORTED: {text[:160]}", flush=True)


def torch_models(folder, pattern):
    for a in REGISTRY.values():
        for exporter in a.exporters:
            name = f"{a.name}.{exporter}"
            if re.search(pattern, name):
                attempt(folder, name, lambda path: export_torch(a, exporter, path), lambda place: write_cases(place, a.sizes, a.inputs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", default="torch,variants,sklearn,directories")
    options = parser.parse_args()
    kinds = options.kind.split(",")
    if "torch" in kinds:
        torch_models(options.folder, options.only)
    if "variants" in kinds:
        import variants
        variants.make(options.folder, options.only, attempt)
    if "sklearn" in kinds:
        import classical
        classical.make(options.folder, options.only, attempt)
    if "directories" in kinds:
        import hugging_face
        hugging_face.make(options.folder, options.only, attempt)


if __name__ == "__main__":
    main()
