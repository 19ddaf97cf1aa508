"""A server with PJRT devices, its metrics, and the model these tests use."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy
import serving
from conftest import FAULT, PLUGIN

BERT = serving.ROOT / "tests/data/golden/models/bert_tiny_cls_legacy.onnx"
LENGTH_MAX = 32


def bert(folder, batch=(1, 4), sequence=(8, LENGTH_MAX), packing="never"):
    """A folder with the small encoder and few buckets, so that compiling takes seconds."""
    folder = pathlib.Path(folder) / "bert"
    if not folder.exists():
        folder.mkdir()
        shutil.copy(BERT, folder / "model.onnx")
        (folder / "model.json").write_text(json.dumps(dict(packing=packing, buckets=dict(batch=list(batch), sequence=list(sequence)))))
    return folder


def inputs(length, seed=0, rows=1):
    random = numpy.random.default_rng(seed)
    return dict(
        input_ids=random.integers(1, 100, (rows, length), dtype=numpy.int64),
        attention_mask=numpy.ones((rows, length), numpy.int64),
        token_type_ids=numpy.zeros((rows, length), numpy.int64),
    )


@contextlib.contextmanager
def faults(**orders):
    """Orders to the fault plugin for the servers started inside."""
    names = {f"PENSTOCK_FAULT_{k.upper()}": str(v) for k, v in orders.items()}
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]


def metrics(server):
    """name{labels} -> value, without the histogram lines' order."""
    text = server.get("/metrics").body.decode()
    return {key: float(value) for key, value in re.findall(r"^(penstock_\S+(?:\{.*?\})?) (\S+)$", text, re.M)}


def total(found, name, **labels):
    """Sum over the series of that name whose labels contain these."""
    wanted = [f'{k}="{v}"' for k, v in labels.items()]
    return sum(v for key, v in found.items() if key.split("{")[0] == f"penstock_{name}" and all(w in key for w in wanted))


def host_of(server, plugin=""):
    """The process of the device host, of that plugin if there are several, or None while there is none."""
    children = pathlib.Path(f"/proc/{server.process.pid}/task")
    for task in children.iterdir():
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                command = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
                if b"device-host" in command and str(plugin).encode() in command:
                    return int(child)
    return None


def compile_for(tmp_path, model, *flags, target="tpu:v5e:1x1", plugin=FAULT, **orders):
    """`penstock compile` into tmp_path/cache, with the fault plugin in libtpu's place."""
    command = [str(serving.BINARY), "compile", "--model", str(model), "--target", target, "--cache", str(tmp_path / "cache"), "--plugin", str(plugin)]
    with faults(plugin=PLUGIN, topology="TPU v5 lite", **orders):
        return subprocess.run([*command, *flags], capture_output=True, text=True, timeout=1800)


def lines_of(done):
    """What it says with --json."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
