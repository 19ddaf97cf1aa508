"""Models given as StableHLO programs: exported by JAX (tools/export_jax.py), served, and compared with JAX's own answers."""
import dataclasses
import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading

import devices
import numpy
import pytest
import serving
from conftest import PLUGIN

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="jax (tests/pjrt/requirements.txt) is not installed")
sys.path.insert(0, str(serving.ROOT / "tools"))
import export_jax  # noqa: E402

RANDOM = numpy.random.default_rng(0)
PARAMS = dict(
    table=RANDOM.standard_normal((50, 16)).astype(numpy.float32),
    dense=dict(kernel=RANDOM.standard_normal((16, 8)).astype(numpy.float32), bias=RANDOM.standard_normal(8).astype(numpy.float32)),
)
INPUTS = [export_jax.read_input("ids:INT32[batch,sequence]<50"), export_jax.read_input("mask:INT32[batch,sequence]")]
BUCKETS = [(1, 8), (4, 8), (4, 16)]


def encode(params, ids, mask, library=jax.numpy):
    """One layer of attention and a dense one: the mean over real positions, and each position. JAX compiles for each shape; numpy does not."""
    x = library.take(params["table"], ids, axis=0)
    scores = x @ library.swapaxes(x, 1, 2) / 4 + (1 - mask[:, None, :]) * numpy.float32(-1e9)
    weights = library.exp(scores - scores.max(-1, keepdims=True))
    h = library.tanh(weights / weights.sum(-1, keepdims=True) @ x @ params["dense"]["kernel"] + params["dense"]["bias"])
    real = mask[..., None].astype(h.dtype)
    return (h * real).sum(1) / real.sum(1), h


def export(folder, is_text=False, has_weights=False, buckets=BUCKETS, function=None, outputs_named=("pooled", "hidden"), **more):
    function = function or (encode if has_weights else lambda *arguments: encode(PARAMS, *arguments))
    return export_jax.export(
        function, folder, INPUTS, buckets, PARAMS if has_weights else None, outputs_named, ["mask"], platform="cpu", is_text=is_text, **more
    )


class Flat:
    """FlatBuffers, written by hand: what serialize() of a jax.export.Exported makes, also of versions that no JAX here writes."""

    def __init__(self):
        self.data = bytearray(4)

    def table(self, fields):
        """fields: {slot: (format, value)} of scalars and {slot: ("@", place)} of what is written already. Returns where the table is."""
        slots = max(fields, default=-1) + 1
        sizes = {slot: struct.calcsize(f.replace("@", "I")) for slot, (f, _) in fields.items()}
        self.data += bytes(-len(self.data) % 4)
        vtable, at, offsets = len(self.data), 4, {}
        for slot in fields:
            at += -at % sizes[slot]
            offsets[slot] = at
            at += sizes[slot]
        self.data += struct.pack(f"<{slots + 2}H", 4 + 2 * slots, at, *(offsets.get(slot, 0) for slot in range(slots)))
        self.data += bytes(-len(self.data) % 4)
        table = len(self.data)
        self.data += struct.pack("<i", table - vtable) + bytes(at - 4)
        for slot, (form, value) in fields.items():
            place = table + offsets[slot]
            # Offsets point forward; what a table refers to is written behind it, by refer().
            struct.pack_into("<" + form.replace("@", "I"), self.data, place, 0 if form == "@" else value)
        self.places = {slot: table + offsets[slot] for slot in fields}
        return table

    def refer(self, place):
        """What is written next is what `place` points to."""
        self.data += bytes(-len(self.data) % 4)
        struct.pack_into("<I", self.data, place, len(self.data) - place)

    def vector(self, place, form, values):
        self.refer(place)
        at = len(self.data) + 4
        self.data += struct.pack(f"<I{len(values)}{form}", len(values), *values)
        return [at + i * struct.calcsize(form) for i in range(len(values))]

    def text(self, place, value):
        self.refer(place)
        self.data += struct.pack("<I", len(value)) + value.encode() + b"\0"


def serialized(module, convention=10, platforms=("cpu",), devices=1, kept=(0, 1), arguments=2, waived=(), effects=(), is_symbolic=False):
    flat = Flat()
    vectors = {9: "@", 10: "@", 12: "@", 13: "@", 15: "@", 22: "@"}
    root = flat.table({14: ("H", convention), 16: ("B", is_symbolic), 18: ("I", devices)} | {slot: (f, 0) for slot, f in vectors.items()})
    places = flat.places
    struct.pack_into("<I", flat.data, 0, root)
    for slot, names in ((9, platforms), (10, effects)):
        for place, name in zip(flat.vector(places[slot], "I", [0] * len(names)), names):
            flat.text(place, name)
    for place, name in zip(flat.vector(places[12], "I", [0] * len(waived)), waived):
        flat.refer(place)
        flat.table({0: ("b", 1), 1: ("@", 0)})
        struct.pack_into("<I", flat.data, place, len(flat.data) - 12 - place)
        flat.text(flat.places[1], name)
    flat.vector(places[15], "H", kept)
    flat.vector(places[22], "I", [0] * arguments)
    flat.refer(places[13])
    flat.data += struct.pack("<I", len(module)) + module
    return bytes(flat.data)


def rewrite(folder, **facts):
    for program in folder.glob("*.mlir"):
        program.write_bytes(serialized(program.read_bytes(), **facts))
    return folder


def start(tmp_path, model, *flags, plugin=PLUGIN, name="server"):
    return serving.Server(tmp_path / f"{name}.log", dict(exported=model), "--device", f"pjrt:{plugin}", *flags)


def inputs(length, rows=1, seed=0):
    random = numpy.random.default_rng(seed)
    return dict(ids=random.integers(0, 50, (rows, length), dtype=numpy.int32), mask=numpy.ones((rows, length), numpy.int32))


def check(server, x):
    pooled, hidden = encode(PARAMS, x["ids"], x["mask"], numpy)
    ours = server.infer("exported", x)
    numpy.testing.assert_allclose(ours["pooled"], pooled, atol=1e-5)
    numpy.testing.assert_allclose(ours["hidden"], hidden, atol=1e-5)


@pytest.mark.parametrize("has_weights", [False, True], ids=["constants", "weights"])
@pytest.mark.parametrize("is_text", [False, True], ids=["artifact", "text"])
def test_answers_are_those_of_jax(tmp_path, is_text, has_weights):
    model = tmp_path / "models"
    export(model / "1", is_text, has_weights)
    cache = ["--cache", str(tmp_path / "cache")]
    with start(tmp_path, model, *cache, name="first") as s:
        described = s.get("/v2/models/exported").json()
        assert described["platform"] == "stablehlo"
        assert described["inputs"] == [dict(name=n, datatype="INT32", shape=[-1, -1]) for n in ("ids", "mask")]
        assert described["outputs"][1] == dict(name="hidden", datatype="FP32", shape=[-1, -1, 8])
        for length in range(1, 17):
            check(s, inputs(length, seed=length))
        check(s, inputs(5, rows=4))
        check(s, inputs(16, rows=3))
        assert devices.total(devices.metrics(s), "device_compiles_total", device="pjrt:0") == len(BUCKETS)
    with start(tmp_path, model, *cache, name="second") as s:
        check(s, inputs(7))
        found = devices.metrics(s)
    assert devices.total(found, "device_compiles_total", device="pjrt:0") == 0
    assert devices.total(found, "device_cache_hits_total", device="pjrt:0") == len(BUCKETS)
    assert devices.total(found, "compiles_total", phase="serving") == 0
    assert devices.total(found, "fallbacks_total") == 0


def test_without_a_sequence_axis(tmp_path):
    scale = numpy.arange(1, 4, dtype=numpy.float32)
    export_jax.export(lambda x: (x * scale, x.sum(1)), tmp_path / "m", [export_jax.read_input("x:FP32[batch,3]")], [(1, 0), (8, 0)], platform="cpu")
    assert sorted(p.name for p in (tmp_path / "m").glob("*.mlir")) == ["program.1.mlir", "program.8.mlir"]
    with start(tmp_path, tmp_path / "m") as s:
        x = numpy.arange(15, dtype=numpy.float32).reshape(5, 3)
        ours = s.infer("exported", dict(x=x))
        numpy.testing.assert_allclose(ours["output_0"], x * scale)
        numpy.testing.assert_allclose(ours["output_1"], x.sum(1))


def test_the_exporter_refuses_what_padding_changes(tmp_path):
    with pytest.raises(export_jax.ExportError, match="differs by"):
        export(tmp_path / "m", function=lambda ids, mask: encode(PARAMS, ids, 0 * mask + 1))
    assert not (tmp_path / "m").exists()
    with pytest.raises(export_jax.ExportError, match="have a sequence axis"):
        export(tmp_path / "m", buckets=[(1, 0)])


def ends(tmp_path, model, *flags):
    command = [str(serving.BINARY), "serve", "--model", f"exported={model}", "--listen", "127.0.0.1:0", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return export(tmp_path_factory.mktemp("exported") / "1")


def test_a_server_without_a_device_refuses_it(tmp_path, exported):
    code, text = ends(tmp_path, exported)
    assert code == 1
    assert "StableHLO programs run on PJRT devices only" in text
    assert "start it with --device" in text
    code, text = ends(tmp_path, exported, "--device", "pjrt:/nowhere/plugin.so")
    assert code == 1 and "no such device: plugin.so: " in text and "cannot be read" in text and "/nowhere/plugin.so" in text


def copy_with(tmp_path, exported, change):
    """A copy whose model.json is changed."""
    folder = tmp_path / "changed"
    folder.mkdir()
    for path in exported.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((folder / "model.json").read_text())
    change(manifest)
    (folder / "model.json").write_text(json.dumps(manifest, indent=1))
    return folder


def put(manifest, path, value):
    *way, last = path
    for step in way:
        manifest = manifest[step]
    if value is None:
        del manifest[last]
    else:
        manifest[last] = value


WRONG = {
    "no program": (["program"], None, "model.json: program: is missing"),
    "datatype": (["program", "inputs", 0, "datatype"], "FP32", 'argument 0, input "ids", is INT32[1,8] in the program and FP32[1,8] in model.json'),
    "datatype name": (["program", "inputs", 0, "datatype"], "float", "program.inputs[0].datatype: must be a KServe datatype"),
    "output dims": (["program", "outputs", 0, "dims"], ["batch", 9], 'output 0, "pooled", is FP32[1,8] in the program and FP32[1,9] in model.json'),
    "missing input": (["program", "inputs", 1], None, "the program takes 2 arguments, model.json lists 1"),
    "key": (["program", "output"], [], 'program.output: no such key; did you mean "outputs"?'),
    "dim": (["program", "inputs", 0, "dims"], ["batch", "length"], 'program.inputs[0].dims[1]: must be "batch", "sequence" or a size'),
    "no batch": (["program", "inputs", 0, "dims"], [4, "sequence"], "program.inputs[0].dims[0]: the first dim must be"),
    "buckets": (["buckets"], dict(batch=[1, 4], sequence=[8]), "program.4x16.mlir: model.json: buckets.sequence has no 16"),
    "more buckets": (["buckets"], dict(batch=[1, 4], sequence=[8, 16]), "model.json: buckets: there is no program.1x16.mlir"),
    "can_pad": (["can_pad"], None, "model.json: can_pad: must be true"),
    "can_batch": (["can_batch"], False, "model.json: can_batch: false, but there are programs for 4 rows"),
    "weights": (["program", "weights"], "w.safetensors", "needs \"arguments\""),
    "argument": (["program", "arguments"], ["ids", "mask", "w"], 'program.arguments[2]: "w" is no input'),
    "argument twice": (["program", "arguments"], ["ids", "ids"], 'program.arguments[1]: "ids" is listed twice'),
    "argument missing": (["program", "arguments"], ["ids"], 'program.arguments: input "mask" is missing'),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_named(tmp_path, exported, what):
    path, value, sentence = WRONG[what]
    needs_device = "in the program" in sentence or "the program takes" in sentence
    folder = copy_with(tmp_path, exported, lambda manifest: put(manifest, path, value))
    if what == "missing input":
        manifest = json.loads((folder / "model.json").read_text())
        del manifest["inputs"]
        (folder / "model.json").write_text(json.dumps(manifest))
    code, text = ends(tmp_path, folder, "--device", f"pjrt:{PLUGIN}")
    text = text.replace('\\"', '"')
    assert code == 1 and sentence in text, text[-2000:]
    assert not needs_device or "program." in text.split(sentence)[0].rsplit("bucket", 1)[1]


@pytest.mark.parametrize("name", ["program.mlir", "program.8.mlir", "program.08x8.mlir", "program.8x8x8.mlir", "program.x8.mlir"])
def test_names_say_the_bucket(tmp_path, exported, name):
    folder = copy_with(tmp_path, exported, lambda manifest: None)
    (folder / "program.4x16.mlir").rename(folder / name)
    code, text = ends(tmp_path, folder, "--device", f"pjrt:{PLUGIN}")
    assert code == 1 and f"{name}: " in text and "program.BATCH" in text


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"not a program", b"ML\xefR broken"], ids=["empty", "zeros", "words", "bytecode"])
def test_what_is_no_program(tmp_path, exported, content):
    folder = copy_with(tmp_path, exported, lambda manifest: None)
    (folder / "program.4x16.mlir").write_bytes(content)
    code, text = ends(tmp_path, folder, "--device", f"pjrt:{PLUGIN}")
    assert code == 1 and "program.4x16.mlir: " in text


def test_weights_that_do_not_fit(tmp_path):
    folder = export(tmp_path / "m", has_weights=True)
    data = bytearray((folder / "weights.safetensors").read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    data[8 : 8 + length] = data[8 : 8 + length].replace(b"dense/bias", b"dense/bios")
    (folder / "weights.safetensors").write_bytes(data)
    code, text = ends(tmp_path, folder, "--device", f"pjrt:{PLUGIN}")
    assert code == 1 and 'is no input and not in weights.safetensors' in text


def test_a_killed_host_costs_no_request(tmp_path, exported):
    """No CPU stands in: batches wait for the device and run again."""
    with start(tmp_path, exported, "--cache", str(tmp_path / "cache")) as s:
        failed, done = [], threading.Event()

        def work(seed):
            while not done.is_set():
                try:
                    check(s, inputs(1 + seed, seed=seed))
                except Exception as error:
                    failed.append(repr(error))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()

        def serves_after(executions, restarts):
            found = devices.metrics(s)
            served = sum(v for k, v in found.items() if k.startswith("penstock_device_executions_total"))
            return served if served > executions and devices.total(found, "device_restarts_total", device="pjrt:0") >= restarts else 0

        served = 0
        for restarts in range(4):
            serving.wait_until(lambda: serves_after(served, restarts), f"it serves after {restarts} restarts")
            if restarts < 3:
                os.kill(devices.host_of(s), signal.SIGKILL)
                served = serves_after(-1, 0)
        done.set()
        for thread in threads:
            thread.join()
        assert failed == [], failed[:3]
        found = devices.metrics(s)
        assert devices.total(found, "fallbacks_total", reason="no_device") == 0


def test_a_device_that_stays_away_is_an_answer(tmp_path, exported):
    """504 at the deadline, never a hang; and answers again when the device is back."""
    plugin = tmp_path / "plugin.so"
    plugin.symlink_to(PLUGIN)
    with start(tmp_path, exported, plugin=plugin) as s:
        check(s, inputs(4))
        plugin.unlink()
        os.kill(devices.host_of(s), signal.SIGKILL)
        body = dict(inputs=[serving.json_input(n, a) for n, a in inputs(4).items()], parameters=dict(timeout=500000))
        for _ in range(3):
            assert s.post("/v2/models/exported/infer", body).status == 504
        assert devices.total(devices.metrics(s), "device_healthy", device="pjrt:0") == 0
        plugin.symlink_to(PLUGIN)
        check(s, inputs(4))  # names no deadline: it waits


def test_inspect_needs_no_device(exported):
    done = subprocess.run([str(serving.BINARY), "inspect", str(exported), "--json"], capture_output=True, text=True)
    shown = json.loads(done.stdout)
    assert done.returncode == 0 and shown["platform"] == "stablehlo"
    assert shown["buckets"] == [dict(batch=b, sequence=s, is_deferred=False) for b, s in [(1, 8), (4, 8), (4, 16)]]
    assert "PJRT devices only" in shown["findings"]


def test_reload_while_served(tmp_path, exported):
    with start(tmp_path, exported, "--set", "server.repository_control=true") as s:
        check(s, inputs(3))
        assert s.post("/v2/repository/models/exported/load", {}).status == 200
        check(s, inputs(3))


def test_compiled_ahead_it_has_its_own_precision_and_no_share_of_the_peak(tmp_path, exported):
    lines = devices.lines_of(devices.compile_for(tmp_path, exported, "--json", "--precision", "int8"))
    assert [(l["batch"], l["sequence"]) for l in lines] == [(1, 8), (4, 8), (4, 16)]
    for line in lines:
        assert line["precision"] == "as exported" and line["estimated_mfu"] is None and line["packed"] is False
        assert line["dense_layers"] == line["dense_layers_int8"] == 0
    table = devices.compile_for(tmp_path, exported).stdout
    assert "the precision it was exported with" in table and "0 programs compiled in 0.0 s, 3 already in the cache" in table
    assert [row.split()[:5] for row in table.splitlines() if " in the cache " in row and " - " in row] == [
        [*bucket, "in", "the", "cache"] for bucket in ("18", "48", ["4", "16"])
    ]


def test_compiled_ahead_it_is_compared_with_what_is_declared(tmp_path, exported):
    folder = copy_with(tmp_path, exported, lambda manifest: put(manifest, ["program", "outputs", 0, "dims"], ["batch", 9]))
    done = devices.compile_for(tmp_path, folder, "--json", "--batch", "1")
    assert done.returncode == 1 and done.stdout == "", done
    assert 'penstock compile: batch 1, length 8: output 0, "pooled", is FP32[1,8] in the program and FP32[1,9] in model.json' in done.stderr, done.stderr


@pytest.mark.parametrize("version, said", [("9", "older than the program: export it with a JAX of the plugin's age"), ("0", "newer than the program")])
def test_a_program_of_another_time_is_explained(tmp_path, version, said):
    """The head of a portable artifact says with which StableHLO it was written."""
    model = export(tmp_path / "1", buckets=[(1, 8)])
    program = model / "program.1x8.mlir"
    data = program.read_bytes()
    head = re.match(rb"ML\xefR.StableHLO_v\d", data, re.S)
    assert head, data[:40]
    # What the program says of itself is changed, and its end is missing, so that the plugin refuses it.
    program.write_bytes(data[: head.end() - 1] + version.encode() + data[head.end() : 200])
    code, text = ends(tmp_path, model, "--device", f"pjrt:{PLUGIN}")
    assert code == 1 and re.search(rf"program\.1x8\.mlir, StableHLO {version}\.\d+\.\d+, for a plugin with \d+\.\d+\.\d+ \(the plugin is ", text), text
    assert said in text


def test_custom_calls_without_a_promise_are_refused(tmp_path):
    """jax.export keeps a list of custom calls whose meaning does not change; others never reach a server."""

    def calls_a_stranger(ids, mask):
        return jax.ffi.ffi_call("a_stranger", jax.ShapeDtypeStruct((ids.shape[0], 1), numpy.float32))(ids)

    with pytest.raises(export_jax.ExportError, match="no promise about custom calls"):
        export(tmp_path / "m", function=calls_a_stranger, trusts_padding=True, outputs_named=["sum"])
    assert not list((tmp_path / "m").glob("*.mlir"))


def test_a_serialized_export_is_served_as_it_is(tmp_path):
    """What exported.serialize() returns, in the place of its artifact."""
    model = rewrite(export(tmp_path / "1"))
    with start(tmp_path, model) as s:
        for length in (1, 8, 13):
            check(s, inputs(length, seed=length))
    shown = subprocess.run([str(serving.BINARY), "inspect", str(model)], capture_output=True, text=True)
    assert shown.returncode == 0 and "jax.export" in shown.stdout, shown


def test_arguments_that_jax_drops_need_no_change(tmp_path):
    """jax.jit leaves out what nothing reads; model.json may list it."""

    def lengths(ids, mask):
        return (mask.sum(1, keepdims=True).astype(numpy.float32),)

    model = export(tmp_path / "1", function=lengths, trusts_padding=True, outputs_named=["length"])
    for batch, length in BUCKETS:
        shapes = [jax.ShapeDtypeStruct((batch, length), numpy.int32)] * 2
        exported = jax.export.export(jax.jit(lengths), platforms=["cpu"])(*shapes)
        assert exported.module_kept_var_idx == (1,)
        (model / f"program.{batch}x{length}.mlir").write_bytes(serialized(exported.mlir_module_serialized, kept=(1,)))
    with start(tmp_path, model) as s:
        assert s.infer("exported", inputs(6, rows=3))["length"].tolist() == [[6]] * 3


def test_what_jax_itself_serializes_is_read(tmp_path):
    pytest.importorskip("flatbuffers", reason="flatbuffers, which jax.export's serialize() needs, is not installed")
    model = export(tmp_path / "1")
    for batch, length in BUCKETS:
        shapes = [jax.ShapeDtypeStruct((batch, length), numpy.int32)] * 2
        exported = jax.export.export(jax.jit(lambda ids, mask: encode(PARAMS, ids, mask)), platforms=["cpu"])(*shapes)
        (model / f"program.{batch}x{length}.mlir").write_bytes(exported.serialize())
    with start(tmp_path, model) as s:
        check(s, inputs(11))


FOREIGN = {
    "newer": (dict(convention=11), "calling convention 11 of jax.export is newer than this server, which knows 9 to 10: export it with an older JAX"),
    "older": (dict(convention=8), "calling convention 8 of jax.export is older than this server reads, which knows 9 to 10: export it again"),
    "devices": (dict(devices=4), "exported for 4 devices at once; a program runs on one"),
    "platforms": (dict(platforms=("cpu", "tpu")), "exported for 2 platforms at once"),
    "effects": (dict(effects=("print",)), "has ordered effects"),
    "symbolic": (dict(is_symbolic=True), "has symbolic shapes: export a program with the sizes of each bucket"),
    "arguments": (dict(arguments=3, kept=(0, 1, 2)), "the exported function takes 3 arguments, model.json lists 2"),
    "kept": (dict(kept=(1, 0)), "a damaged jax.export.Exported"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_exports_that_cannot_run_are_explained_in_a_sentence(tmp_path, exported, what):
    """Without a device: nothing has to be compiled to know."""
    facts, sentence = FOREIGN[what]
    model = rewrite(copy_with(tmp_path, exported, lambda manifest: None), **facts)
    shown = subprocess.run([str(serving.BINARY), "inspect", str(model)], capture_output=True, text=True)
    assert shown.returncode == 1 and sentence in shown.stderr, shown


def test_custom_calls_that_were_let_pass_are_named(tmp_path, exported):
    model = rewrite(copy_with(tmp_path, exported, lambda manifest: None), waived=("a_stranger", "Sharding", "lapack_sgeqrf_ffi"))
    with start(tmp_path, model) as s:
        check(s, inputs(3))
        logged = s.log()
    assert "custom calls without a promise of jax.export: a_stranger;" in logged
    text = export(tmp_path / "text", is_text=True)
    program = text / "program.1x8.mlir"
    line = '    %99 = stablehlo.custom_call @another_stranger(%arg0) : (tensor<1x8xi32>) -> tensor<1x8xi32>\n    return'
    program.write_text(program.read_text().replace("    return", line, 1))
    shown = subprocess.run([str(serving.BINARY), "inspect", str(text)], capture_output=True, text=True)
    assert "custom calls without a promise of jax.export: another_stranger" in " ".join(shown.stdout.split()), shown


@pytest.mark.parametrize("convention, said", [(11, "is newer than what Penstock knows"), (8, "is older than what Penstock knows")])
def test_the_exporter_knows_the_servers_versions(tmp_path, monkeypatch, convention, said):
    real = export_jax.jax_export.export

    def pretend(*arguments, **named):
        make = real(*arguments, **named)
        return lambda *shapes: dataclasses.replace(make(*shapes), calling_convention_version=convention)

    monkeypatch.setattr(export_jax.jax_export, "export", pretend)
    with pytest.raises(export_jax.ExportError, match=f"calling convention {convention} of this JAX {said}"):
        export(tmp_path / "m")
    assert not list((tmp_path / "m").glob("*.mlir"))
