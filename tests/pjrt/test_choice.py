"""Several programs keep a promise of accuracy: a server takes the one that the compiler expects to be the fastest, and says so."""
import contextlib
import json

import devices
import numpy
import pytest
import serving
import test_arithmetic
from conftest import FAULT, PLUGIN

BUCKETS = dict(batch=(2,), sequence=(8,))


def start(tmp_path, name, precision="int8", **orders):
    model = devices.bert(tmp_path, **BUCKETS)
    with devices.faults(plugin=PLUGIN, **orders):
        return serving.Server(
            tmp_path / f"{name}.log", dict(bert=model), "--device", f"pjrt:{FAULT}", "--cache", str(tmp_path / "cache"),
            "--precision", precision, "--set", "batching.fallback=never",
        ).__enter__()  # fmt: skip


def programs_of(server):
    (stats,) = server.get("/v2/models/bert/stats").json()["model_stats"]
    return stats["device_programs"]


@pytest.mark.parametrize("s8, bf16, chosen", [(900, 500, "bf16"), (500, 900, "int8")])
def test_a_server_chooses_and_a_second_start_compiles_nothing(tmp_path, s8, bf16, chosen):
    answers = []
    for name, orders in (("first", dict(cycles=f"xi8>:{s8},:{bf16}")), ("second", dict(compile_fails=1))):
        server = start(tmp_path, name, **orders)
        try:
            (program,) = programs_of(server)
            assert (program["batch"], program["sequence"], program["packed"], program["arithmetic"]) == (2, 8, False, chosen)
            assert program["scales"] == ("dynamic" if chosen == "int8" else "none")
            assert program["reason"] == f"the fewest estimated cycles: int8 {s8}, bf16 {bf16}"
            found = devices.metrics(server)
            assert devices.total(found, "compiles_total", phase="serving") == 0
            answers.append(server.infer("bert", devices.inputs(8)))
        finally:
            server.__exit__(None, None, None)
    for output in answers[0]:
        assert numpy.array_equal(answers[0][output], answers[1][output])


def test_without_estimates_the_promise_is_taken_by_its_name(tmp_path):
    server = start(tmp_path, "plain")
    try:
        (program,) = programs_of(server)
        assert (program["arithmetic"], program["reason"]) == ("int8", "the default")
    finally:
        server.__exit__(None, None, None)


def test_a_choice_that_is_damaged_is_made_again(tmp_path):
    cycles = dict(cycles="xi8>:900,:500")
    start(tmp_path, "first", **cycles).__exit__(None, None, None)
    for path in (tmp_path / "cache").glob("*.program"):
        if path.stat().st_size < 4000:
            path.write_bytes(path.read_bytes()[:-1] + b"!")
    server = start(tmp_path, "second", **cycles)
    try:
        (program,) = programs_of(server)
        assert program["arithmetic"] == "bf16"
    finally:
        server.__exit__(None, None, None)


RARE = test_arithmetic.VOCABULARY - 1


def rare_token(tensors):
    """Where this token is, a unit of a feed-forward block becomes large, which nothing reads: 8 bits for its row leave the others nothing."""
    for name in tensors:
        if name.endswith("LayerNorm.weight"):
            tensors[name][:] = 1
    tensors["embeddings.word_embeddings.weight"][RARE, 0] = 2
    for i in range(test_arithmetic.LAYERS):
        layer = f"encoder.layer.{i}."
        tensors[layer + "intermediate.dense.weight"][0] = 0
        tensors[layer + "intermediate.dense.weight"][0, 0] = 500
        tensors[layer + "intermediate.dense.bias"][0] = -2500
        tensors[layer + "output.dense.weight"][:, 0] = 0


@contextlib.contextmanager
def on_tpu(tmp_path, name, samples, *flags, **orders):
    """A server with int8, on a device that calls itself a TPU; `samples` are what its model gets in production."""
    folder = tmp_path / "m"
    if not folder.exists():
        test_arithmetic.hugging_face(folder, change=rare_token)
    (folder / "model.json").write_text(json.dumps(dict(packing="never", warm_up="warm_up.txt", buckets=dict(batch=[2], sequence=[8]))))
    (folder / "warm_up.txt").write_text("".join(json.dumps(s) + "\n" for s in samples))
    flags = ("--device", f"pjrt:{FAULT}", "--cache", str(tmp_path / "cache"), "--precision", "int8", "--set", "batching.fallback=never", *flags)
    with devices.faults(plugin=PLUGIN, kind="TPU v5 lite", devices=1, **orders):
        with serving.Server(tmp_path / f"{name}.log", dict(bert=folder), *flags) as server:
            (program,) = programs_of(server)
            yield program


def forget_choices(tmp_path):
    for path in (tmp_path / "cache").glob("*.program"):
        if b"\nchosen " in path.read_bytes():
            path.unlink()


def test_without_compiling_new_samples_are_kept_to_the_promise(tmp_path):
    """int8 of the cache that today's samples reject is not served: bf16 of the cache is, if there is one."""
    usual = [[1 + (i * k) % (RARE - 1) for k in range(1, 8)] for i in range(1, 9)]
    rare = [[RARE] * length for length in range(1, 8)]
    with on_tpu(tmp_path, "int8", usual, cycles="xi8>:500,:900") as program:
        assert (program["arithmetic"], program["scales"]) == ("int8", "dynamic")
    with on_tpu(tmp_path, "kept", usual, "--cache-only", compile_fails=1) as program:
        assert program["arithmetic"] == "int8"
    with pytest.raises(AssertionError), on_tpu(tmp_path, "refused", rare, "--cache-only"):
        pass
    said = (tmp_path / "refused.log").read_text()
    assert "at 2x8: int8 is not accurate enough (cosine to FP32: mean 0." in said
    assert "the compile cache has no other program that is, and --cache-only forbids compiling" in said
    forget_choices(tmp_path)
    with on_tpu(tmp_path, "bf16", rare, cycles="xi8>:900,:700") as program:
        assert program["arithmetic"] == "bf16"
    forget_choices(tmp_path)
    with on_tpu(tmp_path, "again", rare, "--cache-only", compile_fails=1) as program:
        assert program["arithmetic"] == "bf16"
        assert program["reason"].startswith("the fewest estimated cycles of those that keep the accuracy: int8 500 (cosine to FP32: mean 0.")
    with on_tpu(tmp_path, "usual", usual, "--cache-only", compile_fails=1) as program:
        assert program["arithmetic"] == "int8", "it keeps the accuracy on these"
