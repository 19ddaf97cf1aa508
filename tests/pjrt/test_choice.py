"""Several programs keep a promise of accuracy: a server takes the one that the compiler expects to be the fastest, and says so."""
import devices
import numpy
import pytest
import serving
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
