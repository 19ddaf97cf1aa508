"""What the runner of ./test counts."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import suites  # noqa: E402

SYNTHESIS = "[====] Synthesis: Tested: 2 | Passing: 1 | Failing: 1 | Crashing: 0 \n"


@pytest.mark.parametrize(
    "text, code, counts",
    [
        (SYNTHESIS, 1, (1, 1, 0)),
        ("[SKIP] a::b: no shared models\n" + SYNTHESIS, 1, (1, 1, 1)),
        ("[SKIP] a::b: all of them\n[====] Synthesis: Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0 \n", 0, (0, 0, 1)),
        ("[====] Synthesis: Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0 \n", 0, (0, 1, 0)),
        ("[====] Synthesis: Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0 \n", 99, (3, 1, 0)),
        ("Usage: unit_base OPTIONS\n", 0, (0, 1, 0)),
    ],
)
def test_criterion(text, code, counts):
    found = suites.read_criterion(text, code)
    assert (found.passed, found.failed, found.skipped) == counts


def test_a_criterion_test_that_skips_itself_is_told(tmp_path):
    source, program = tmp_path / "skips.c", tmp_path / "skips"
    source.write_text('#include <criterion/criterion.h>\nTest(a, skips)\n{\n    cr_skip_test("no shared models");\n}\nTest(a, passes)\n{\n}\n')
    built = subprocess.run(["cc", str(source), "-o", str(program), "-lcriterion"], capture_output=True, text=True)
    if built.returncode:
        pytest.skip("no C compiler, or no Criterion")
    suite = suites.criterion("skips")
    done = subprocess.run([program, *suite.command[1:]], capture_output=True, text=True)
    found = suite.read(done.stdout + done.stderr, done.returncode)
    assert (found.passed, found.failed, found.skipped) == (1, 0, 1)
