"""What bench/ says of programs for TPUs is what its results hold, and they keep what was promised."""
import subprocess
import sys

import pytest

from tree import ROOT

TPU = ROOT / "bench/tpu"


def compare(*arguments):
    return subprocess.run([sys.executable, TPU / "compare.py", *arguments], capture_output=True, text=True)


def test_programs_for_tpus_keep_their_cycles():
    """int8 is nowhere above bf16, bf16 nowhere above tuned JAX but in the cells that compare.py names, and no cell is missing."""
    found = compare("--check", TPU / "compared.jsonl")
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("program", ["bf16", "int8"])
def test_a_program_that_costs_more_is_told(tmp_path, program):
    rows = (TPU / "compared.jsonl").read_text()
    line = next(r for r in rows.splitlines() if f'"{program}"' in r and '"minilm"' in r and '"layers": 6' in r)
    head, cycles, tail = line.rpartition('"estimated_cycles": ')
    worse = tmp_path / "compared.jsonl"
    worse.write_text(rows.replace(line, f"{head}{cycles}9{tail}"))
    found = compare("--check", worse)
    assert found.returncode == 1 and "minilm" in found.stderr


def test_the_page_is_that_of_the_results():
    assert compare("--table", TPU / "compared.jsonl").stdout == (ROOT / "bench/tpu.md").read_text()
