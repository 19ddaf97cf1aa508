"""What the runner of ./test counts."""
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import run_suites  # noqa: E402
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


def test_what_a_suite_computes_is_counted_with_its_children():
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    process = subprocess.Popen([sys.executable, "-c", f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {busy!r}]).returncode + 3)"])
    code, computed_s = run_suites.finish(process, 60)
    assert code == 3 and process.returncode == 3 and computed_s >= 0.2


def test_a_suite_that_does_not_end_is_killed():
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    assert run_suites.finish(process, 0.2)[0] is None and process.returncode == -signal.SIGKILL


def suite(name, waits, after=""):
    return suites.Suite(name, [], None, {}, [], waits=waits, after=after)


def test_suites_that_wait_hold_up_none_that_computes(monkeypatch):
    """More of them than there are places wait for the one that computes, which begins all the same; what comes after another begins after it."""
    computed, order, lock = threading.Event(), [], threading.Lock()

    def run(suite, preparation):
        assert computed.wait(60) if suite.waits else computed.set() is None
        with lock:
            order.append(suite.name)
        return suites.Counts(passed=1)

    monkeypatch.setattr(run_suites, "run", run)
    waiting = [suite(f"waits{i}", True, after="first" if i == 0 else "") for i in range(run_suites.WAITING + 1)]
    runner = run_suites.Runner([*waiting, suite("first", True), suite("computes", False)])
    runner.work_all()
    assert computed.is_set() and runner.total.passed == len(order) == run_suites.WAITING + 3
    assert order.index("waits0") > order.index("first")
