#!/usr/bin/env python3
"""Exports a JAX function as a model that Penstock serves on PJRT devices: one StableHLO program for each bucket, and model.json.

    tools/export_jax.py model.py:encode FOLDER --input 'input_ids:INT32[batch,sequence]' --input 'attention_mask:INT32[batch,sequence]' \\
        --mask attention_mask --output embedding --bucket 1x32 --bucket 8x32 --bucket 8x128 --platform tpu

FILE.py:FUNCTION takes one array for each --input, in order, and returns one array or a tuple of them. Their first dim is "batch"; another one
may be "sequence". With --params NAME the function takes the pytree NAME of the same file before them. docs/models.md describes model.json.
From Python: export(function, folder, inputs, buckets, ...).

Weights: values that the function closes over become constants of every program, so each bucket has a copy; use this for small models. The
leaves of --params become arguments of the programs, stored once in weights.safetensors and once on each device.

Before it writes, the tool runs a row alone, and padded in a batch with other rows (unless --trust-padding). If the results differ, it writes nothing.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import struct
import sys

import jax
import numpy
from jax import export as jax_export

# KServe's names of datatypes, and those of safetensors.
TYPES = dict(BOOL="bool", UINT8="uint8", UINT16="uint16", UINT32="uint32", UINT64="uint64", INT8="int8", INT16="int16", INT32="int32",
             INT64="int64", FP16="float16", BF16="bfloat16", FP32="float32", FP64="float64")
KSERVE = {name: kserve for kserve, name in TYPES.items()}
SAFETENSORS = dict(bool="BOOL", uint8="U8", uint16="U16", uint32="U32", uint64="U64", int8="I8", int16="I16", int32="I32", int64="I64",
                   float16="F16", bfloat16="BF16", float32="F32", float64="F64")
CALLING_VERSIONS = 9, 10  # of jax.export, that the server knows (models/loading/jax_export.h)
TOLERANCE_OF_RANGE = 1e-4  # of padding's effect: what the order of additions may change


class ExportError(Exception):
    pass


def read_input(text):
    """'ids:INT32[batch,sequence]<1000' -> (name, numpy dtype, dims, limit of random values); the limit may be left out."""
    match = re.fullmatch(r"(.+?):([A-Z0-9]+)\[([^\]]*)\](?:<(\d+))?", text)
    if not match or match[2] not in TYPES:
        raise ExportError(f"input {text!r}: must be NAME:DATATYPE[batch,...], with a datatype of {', '.join(TYPES)}")
    dims = [d.strip() for d in match[3].split(",")]
    dims = [d if d in ("batch", "sequence") else int(d) if d.isdigit() else None for d in dims]
    if dims[0] != "batch" or None in dims or dims.count("batch") > 1 or dims.count("sequence") > 1:
        raise ExportError(f"input {text!r}: dims are 'batch' first, then sizes and at most one 'sequence'")
    return match[1], jax.numpy.dtype(TYPES[match[2]]), dims, int(match[4] or 2)


def read_bucket(text):
    match = re.fullmatch(r"([1-9]\d*)(?:x([1-9]\d*))?", text)
    if not match:
        raise ExportError(f"bucket {text!r}: must be BATCH, or BATCHxLENGTH, such as 8x128")
    return int(match[1]), int(match[2] or 0)


def shape_at(dims, bucket):
    return tuple({"batch": bucket[0], "sequence": bucket[1]}.get(d, d) for d in dims)


def as_tuple(outputs):
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def find_output_dims(call, inputs, params):
    """Which dims of the outputs are axes: those that follow when one axis of the inputs grows."""
    def shapes(bucket):
        arguments = [jax.ShapeDtypeStruct(shape_at(dims, bucket), dtype) for _, dtype, dims, _ in inputs]
        return as_tuple(jax.eval_shape(call, params, *arguments))

    probes = {"": (3, 17), "batch": (5, 17), "sequence": (3, 19)}
    found = {axis: shapes(bucket) for axis, bucket in probes.items()}
    described = []
    for i, base in enumerate(found[""]):
        dims = []
        for k, size in enumerate(base.shape):
            grown = {axis: found[axis][i].shape[k] - size for axis in ("batch", "sequence")}
            if grown == dict(batch=0, sequence=0):
                dims.append(int(size))
            elif grown == dict(batch=2, sequence=0) and size == 3:
                dims.append("batch")
            elif grown == dict(batch=0, sequence=2) and size == 17:
                dims.append("sequence")
            else:
                raise ExportError(f"output {i}: dim {k} is neither a size nor an axis of the inputs (it grows by {grown})")
        if not dims or dims[0] != "batch":
            raise ExportError(f"output {i}: its first dim must be the batch; it has the dims {dims}")
        described.append((base.dtype, dims))
    return described


def check_rows(call, inputs, params, outputs, masks, pads, bucket):
    """A row alone at its own length must give what it gives padded among others."""
    random = numpy.random.default_rng(1)
    length = bucket[1] - bucket[1] // 2 if bucket[1] else 0
    alone, among = [], []
    for name, dtype, dims, limit in inputs:
        make = lambda shape: (random.standard_normal(shape) if jax.numpy.issubdtype(dtype, jax.numpy.floating) else random.integers(0, limit, shape)).astype(dtype)
        row, others = make(shape_at(dims, (1, length))), make(shape_at(dims, (3, bucket[1])))
        if name in masks:
            row, others = numpy.ones_like(row), numpy.ones_like(others)
        if "sequence" in dims:
            axis = dims.index("sequence")
            moved = numpy.moveaxis(others, axis, 1)
            moved[1] = 0 if name in masks else pads.get(name, 0)
            moved[1, :length] = numpy.moveaxis(row, axis, 1)[0]
        else:
            others[1] = row[0]
        alone.append(row)
        among.append(others)
    one, many = as_tuple(call(params, *alone)), as_tuple(call(params, *among))
    for i, (dtype, dims) in enumerate(outputs):
        x = numpy.asarray(one[i], numpy.float64)[0]
        y = numpy.asarray(many[i], numpy.float64)[1]
        if "sequence" in dims:
            y = numpy.take(y, range(length), axis=dims.index("sequence") - 1)
        apart = numpy.max(numpy.abs(x - y), initial=0) / max(numpy.max(numpy.abs(x), initial=0), 1e-30)
        if not apart <= TOLERANCE_OF_RANGE:
            raise ExportError(f"output {i}: a row padded in a batch differs by {apart:.1e} of its range from the row alone; masks are named with "
                              "--mask, padding values with --pad, and --trust-padding skips this check")


def write_safetensors(path, tensors):
    header, parts, at = {}, [], 0
    for name, array in tensors:
        data = numpy.ascontiguousarray(array).tobytes()
        header[name] = dict(dtype=SAFETENSORS[str(array.dtype)], shape=list(array.shape), data_offsets=[at, at + len(data)])
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def leaf_name(path):
    return "/".join(str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path)


def export_program(call, platform, params, arguments):
    """One StableHLO program. JAX refuses custom calls whose meaning may change from release to release."""
    try:
        exported = jax_export.export(call, platforms=[platform])(params, *arguments)
    except ValueError as error:
        if "custom call" not in str(error).lower():
            raise
        raise ExportError(f"JAX makes no promise about custom calls of this function, so no server can rely on them: {error}") from None
    convention, (least, most) = exported.calling_convention_version, CALLING_VERSIONS
    if convention > most:
        raise ExportError(f"calling convention {convention} of this JAX is newer than what Penstock knows, {least} to {most}: use an older JAX, or set "
                          f"JAX_EXPORT_CALLING_CONVENTION_VERSION={most}, or use a newer Penstock")
    if convention < least:
        raise ExportError(f"calling convention {convention} of this JAX is older than what Penstock knows, {least} to {most}: use a newer JAX")
    return exported


def export(function, folder, inputs, buckets, params=None, outputs=(), masks=(), pads=None, platform="tpu", is_text=False, trusts_padding=False):
    """Writes FOLDER/program.<bucket>.mlir, model.json and, with params, weights.safetensors.

    inputs: (name, dtype, dims, limit) as read_input gives them; buckets: (batch, length), length 0 without a sequence axis."""
    folder, pads = pathlib.Path(folder), pads or {}
    has_sequence = any("sequence" in dims for _, _, dims, _ in inputs)
    for bucket in buckets:
        if (bucket[1] > 0) != has_sequence:
            raise ExportError(f"bucket {bucket[0]}x{bucket[1]}: the inputs have {'a' if has_sequence else 'no'} sequence axis")
    for name in [*masks, *pads]:
        if name not in [i[0] for i in inputs]:
            raise ExportError(f"{name!r} is not an input")
    # Every argument stays one, used or not: model.json lists them all.
    if params is None:
        call = jax.jit(lambda params, *arguments: function(*arguments), keep_unused=True)
        leaves = []
    else:
        call = jax.jit(function, keep_unused=True)
        leaves = [(leaf_name(path), numpy.asarray(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(params)]
    described = find_output_dims(call, inputs, params)
    names = list(outputs) or [f"output_{i}" for i in range(len(described))]
    if len(names) != len(described):
        raise ExportError(f"{len(names)} names for {len(described)} outputs")
    if not trusts_padding:
        check_rows(call, inputs, params, described, masks, pads, min(buckets, key=lambda b: b[1]))
    folder.mkdir(parents=True, exist_ok=True)
    for bucket in buckets:
        arguments = [jax.ShapeDtypeStruct(shape_at(dims, bucket), dtype) for _, dtype, dims, _ in inputs]
        exported = export_program(call, platform, params, arguments)
        name = f"program.{bucket[0]}" + (f"x{bucket[1]}" if bucket[1] else "") + ".mlir"
        if is_text:
            (folder / name).write_text(exported.mlir_module())
        else:
            (folder / name).write_bytes(exported.mlir_module_serialized)
    tensor = lambda name, dtype, dims: dict(name=name, datatype=KSERVE[str(jax.numpy.dtype(dtype))], dims=dims)
    program = dict(inputs=[tensor(name, dtype, dims) for name, dtype, dims, _ in inputs],
                   outputs=[tensor(name, dtype, dims) for name, (dtype, dims) in zip(names, described)])
    if leaves:
        write_safetensors(folder / "weights.safetensors", leaves)
        program.update(weights="weights.safetensors", arguments=[name for name, _ in leaves] + [i[0] for i in inputs])
    manifest = dict(can_batch=True, program=program)
    if has_sequence:
        manifest["can_pad"] = True
    said = {name: dict(mask=True) for name in masks} | {name: dict(pad=value) for name, value in pads.items()}
    if said:
        manifest["inputs"] = said
    (folder / "model.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return folder


def load_module(path):
    spec = importlib.util.spec_from_file_location("exported_model", path)
    if spec is None or not pathlib.Path(path).exists():
        raise ExportError(f"{path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_pad(text):
    name, _, value = text.partition("=")
    try:
        return name, float(value) if "." in value else int(value)
    except ValueError:
        raise ExportError(f"--pad {text!r}: must be NAME=NUMBER") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", help="FILE.py:FUNCTION")
    parser.add_argument("folder", help="a version folder, such as models/encoder/1; created if missing")
    parser.add_argument("--input", action="append", required=True, help="NAME:DATATYPE[batch,...], optionally <LIMIT of ids")
    parser.add_argument("--output", action="append", default=[], help="name of an output, in order")
    parser.add_argument("--bucket", action="append", required=True, help="BATCH or BATCHxLENGTH; once for each bucket")
    parser.add_argument("--params", help="a pytree of FILE.py that is the function's first argument")
    parser.add_argument("--mask", action="append", default=[], help="an input that is 1 for real tokens")
    parser.add_argument("--pad", action="append", default=[], help="NAME=VALUE for padded tokens, instead of 0")
    parser.add_argument("--platform", default="tpu", help="platform to lower for: tpu, cuda, rocm or cpu")
    parser.add_argument("--text", action="store_true", help="StableHLO text instead of portable artifacts")
    parser.add_argument("--trust-padding", action="store_true", help="do not run the function to check padding")
    options = parser.parse_args()
    try:
        path, _, name = options.function.rpartition(":")
        module = load_module(path)
        if not hasattr(module, name):
            raise ExportError(f"{path} has no {name!r}")
        if options.params and not hasattr(module, options.params):
            raise ExportError(f"{path} has no {options.params!r}")
        inputs = [read_input(text) for text in options.input]
        if any(dtype.itemsize == 8 for _, dtype, _, _ in inputs):
            jax.config.update("jax_enable_x64", True)
        folder = export(getattr(module, name), options.folder, inputs, [read_bucket(b) for b in options.bucket],
                        getattr(module, options.params) if options.params else None, options.output, options.mask,
                        dict(read_pad(p) for p in options.pad), options.platform, options.text, options.trust_padding)
    except ExportError as error:
        sys.exit(f"export_jax: {error}")
    print(f"{folder}: {len(options.bucket)} programs")


if __name__ == "__main__":
    main()
