"""Several sequences in a row: the answers are those of a sequence alone, in each precision and for each kind of encoder."""
import concurrent.futures
import contextlib
import json
import pathlib
import shutil

import devices
import numpy
import pytest
import serving
from conftest import FAULT, PLUGIN

HUGGING_FACE = serving.ROOT / "tests/data/hugging_face"
LENGTH_MAX = 16
REQUESTS = 160


def folder_of(tmp_path, source, packing, batch=(1, 8), **more):
    """The model with few buckets; an .onnx file or a Hugging Face folder."""
    folder = pathlib.Path(tmp_path) / f"{source.stem}_{packing}"
    if not folder.exists():
        if source.is_dir():
            shutil.copytree(source, folder)
        else:
            folder.mkdir()
            shutil.copy(source, folder / "model.onnx")
        (folder / "model.json").write_text(json.dumps(dict(packing=packing, buckets=dict(batch=list(batch), sequence=[LENGTH_MAX]), **more)))
    return folder


def start(tmp_path, models, cache, *flags, plugin=PLUGIN, name="server"):
    flags = "--device", f"pjrt:{plugin}", "--cache", str(cache), "--set", "batching.fallback=on_failure", *flags
    return serving.Server(tmp_path / f"{name}.log", models, *flags)


def make_requests(server, model):
    """Rows of 1 to the longest; some requests have more short rows than a padded batch, some masks have holes."""
    random = numpy.random.default_rng(11)
    declared = server.get(f"/v2/models/{model}").json()["inputs"]
    requests = []
    for i in range(REQUESTS):
        length = {0: 1, 1: LENGTH_MAX}.get(i, int(random.integers(1, LENGTH_MAX // 2)))
        shape = (40, min(length, 4)) if i % 8 == 0 else (1, length)
        values = {}
        for tensor in declared:
            name = tensor["name"]
            if name == "input_ids":
                values[name] = random.integers(3, 20, shape, dtype=numpy.int64)
            elif name == "attention_mask":
                values[name] = numpy.ones(shape, numpy.int64)
                if i % 7 == 0 and length > 2:
                    values[name][:, length // 2] = 0
            else:
                values[name] = numpy.zeros(shape, numpy.int64)
        requests.append(values)
    return requests


def answer_all(server, model, requests, workers=64):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda r: server.infer_binary(model, r), requests))


def compare(packed, alone, tolerance):
    for ours, theirs in zip(packed, alone, strict=True):
        assert ours.keys() == theirs.keys()
        for name in ours:
            reach = max(1.0, float(numpy.abs(theirs[name]).max()))
            numpy.testing.assert_allclose(ours[name], theirs[name], atol=tolerance * reach, rtol=0)


def shared(name):
    path = serving.shared_models() / "models" / f"{name}.onnx"
    return path if path.exists() else None


SOURCES = [HUGGING_FACE / n for n in ("bert", "bert_classes", "roberta_classes", "mpnet", "sentence")]
SOURCES += [shared(n) for n in ("bert_tiny_cls_legacy", "roberta_tiny_legacy", "distilbert_tiny_legacy", "bert_tiny_fp16")]


# Those that have programs of one row, too: how many rows a program has does not depend on the kind of encoder.
WITH_ONE_ROW = [HUGGING_FACE / "bert", shared("bert_tiny_cls_legacy")]
TOLERANCES = dict(fp32=2e-5, bf16=2e-2, int8=5e-2)


@pytest.fixture(scope="module")
def precisions(tmp_path_factory, compiled):
    """A server for each precision with every source, packed and alone. They start side by side: compiling is most of it."""
    tmp_path = tmp_path_factory.mktemp("precisions")
    batches = {s: (1, 8) if s in WITH_ONE_ROW else (8,) for s in SOURCES if s}
    models = {s.stem + p: folder_of(tmp_path, s, w, b) for s, b in batches.items() for p, w in (("", "always"), ("_alone", "never"))}
    servers = {p: start(tmp_path, models, compiled, "--precision", p, name=p) for p in TOLERANCES}
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(stack.enter_context, servers.values()))
        yield servers


@pytest.mark.parametrize("precision", TOLERANCES)
def test_answers_are_those_of_a_sequence_alone(precisions, precision):
    s, tolerance = precisions[precision], TOLERANCES[precision]
    sources = [source.stem for source in SOURCES if source]
    for source in sources:
        requests = make_requests(s, source)
        packed = answer_all(s, source, requests)
        alone = answer_all(s, source + "_alone", requests)
        # Alone it computes in fp16, packed in fp32 as on the CPU.
        compare(packed, alone, max(tolerance, 5e-3) if "fp16" in source else tolerance)
    found = devices.metrics(s)
    for source in sources:
        assert devices.total(found, "packed_batches_total", model=source) > 0
        assert devices.total(found, "packed_batches_total", model=source + "_alone") == 0
    assert devices.total(found, "compiles_total", phase="serving") == 0
    assert devices.total(found, "fallbacks_total") == 0


def test_packed_batches_of_a_failing_device_are_computed_by_the_cpu(tmp_path, compiled):
    source = HUGGING_FACE / "sentence"
    with serving.Server(tmp_path / "cpu.log", dict(m=folder_of(tmp_path, source, "never"))) as s:
        requests = make_requests(s, "m")
        alone = answer_all(s, "m", requests, workers=4)
    models = dict(m=folder_of(tmp_path, source, "always"))
    with devices.faults(plugin=PLUGIN, execute_rate=0.3, execute_code=8), start(tmp_path, models, compiled, plugin=FAULT) as s:
        for _ in range(3):
            compare(answer_all(s, "m", requests), alone, 2e-5)
        found = devices.metrics(s)
    assert devices.total(found, "packed_batches_total", model="m") > 0
    assert devices.total(found, "fallbacks_total", reason="device_failed") > 0


def test_only_the_guilty_member_of_packed_rows_fails(tmp_path, compiled):
    source = HUGGING_FACE / "sentence"
    with start(tmp_path, dict(m=folder_of(tmp_path, source, "always")), compiled) as s:
        requests = make_requests(s, "m")
        alone = answer_all(s, "m", requests, workers=1)
        wrong = dict(requests[5], input_ids=requests[5]["input_ids"].copy())
        wrong["input_ids"][0, -1] = 100000
        body, headers = serving.binary_request(wrong)
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            bad, good = [], []
            for i, r in enumerate(requests):
                good.append(pool.submit(s.infer_binary, "m", r))
                if i % 20 == 0:
                    bad.append(pool.submit(s.post, "/v2/models/m/infer", body, headers))
            compare([g.result() for g in good], alone, 2e-5)
        last = wrong["input_ids"].shape[1] - 1
        for answer in bad:
            assert answer.result().status == 400
            assert f"100000 at row 0, position {last}" in answer.result().json()["error"]


def test_packed_programs_come_from_the_cache_and_have_a_label(tmp_path):
    models = dict(m=folder_of(tmp_path, HUGGING_FACE / "sentence", "always"))
    cache = tmp_path / "cache"
    with start(tmp_path, models, cache) as s:
        found = devices.metrics(s)
    programs = devices.total(found, "device_compiles_total", device="pjrt:0")
    assert programs == 4  # rows 1 and 8, padded and packed
    with start(tmp_path, models, cache, "--cache-only", name="again") as s:
        answer_all(s, "m", make_requests(s, "m"))
        found = devices.metrics(s)
        buckets = s.get("/v2/models/m/stats").json()["model_stats"][0]["buckets"]
    assert devices.total(found, "device_compiles_total", device="pjrt:0") == 0
    assert devices.total(found, "device_cache_hits_total", device="pjrt:0") == programs
    assert devices.total(found, "packed_batches_total") > 0
    assert devices.total(found, "bucket_execute_seconds_sum", packed="true") > 0
    assert any(b["packed"] for b in buckets)


def with_positions(folder, count):
    """Gives the small encoder in that folder `count` positions: config.json and the table in model.safetensors."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(dict(config, max_position_embeddings=count)))
    path = folder / "model.safetensors"
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    entries, tensors, at = json.loads(data[8:start]), [], 0
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        values = data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]
        if name.endswith("position_embeddings.weight"):
            rows = len(values) // entry["shape"][0]
            values = b"".join(values[i % entry["shape"][0] * rows :][:rows] for i in range(count))
            entry["shape"][0] = count
        entry["data_offsets"] = [at, at + len(values)]
        at += len(values)
        tensors.append(values)
    header = json.dumps(entries).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"".join(tensors))


def test_little_of_a_full_queue_is_padding(tmp_path, compiled):
    """Lengths of real sentences, one device that is slower than 192 clients: less than a tenth of the positions is padding. Clients of a busy
    machine may be slower than the first device, and leave it an empty queue; not so the last."""
    lengths = [int(line) for line in (serving.ROOT / "tests/data/sentence_lengths.txt").read_text().splitlines() if line[0] != "#"]
    folder = tmp_path / "m"
    shutil.copytree(HUGGING_FACE / "sentence", folder)
    with_positions(folder, 256)
    (folder / "model.json").write_text(json.dumps(dict(packing="always", buckets=dict(batch=[1, 4, 16], sequence=[64, 256]))))
    random = numpy.random.default_rng(5)
    requests = [dict(input_ids=random.integers(3, 20, (1, min(n, 256)), dtype=numpy.int64)) for n in lengths * 3]
    for values in requests:
        values["attention_mask"] = numpy.ones_like(values["input_ids"])
    for execute_ms in (60, 300, 1500):
        with devices.faults(plugin=PLUGIN, devices=1, execute_ms=execute_ms), start(tmp_path, dict(m=folder), compiled, plugin=FAULT) as s:
            before = devices.metrics(s)
            answer_all(s, "m", requests, workers=192)
            after = devices.metrics(s)
        grown = {n: devices.total(after, n) - devices.total(before, n) for n in ("real_tokens_total", "computed_tokens_total", "packed_batches_total", "batches_total")}
        waste = 1 - grown["real_tokens_total"] / grown["computed_tokens_total"]
        print(f"{waste:.1%} of the positions are padding: {grown}")
        assert grown["real_tokens_total"] == sum(v["input_ids"].size for v in requests)
        assert devices.total(after, "compiles_total", phase="serving") == 0
        assert devices.total(after, "fallbacks_total") == 0
        if waste < 0.1:
            return
    raise AssertionError(f"{waste:.1%} of the positions are padding")
