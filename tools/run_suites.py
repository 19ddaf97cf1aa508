#!/usr/bin/env python3
"""Runs the test suites that ./test has built and adds them up.

A suite is a name, a command and a way to read its counts. Its whole output goes to build/logs/NAME.log, one line about it to the
terminal. What cannot run here is counted as skipped, with the reason. Only the standard library is used.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/logs"
RELEASE, ASAN, TSAN = (ROOT / "build" / name / "bin" for name in ("release", "asan", "tsan"))
PYTHON = ROOT / ".venv/bin/python"
# Programs that suites of PJRT devices compile, for those that follow: each is compiled once in a run.
COMPILED = ROOT / "build/test-compiled"
TIMEOUT_S = 900

# Criterion does not fail a run for these, so they are looked for in every log.
SANITIZER_WORDS = ("LeakSanitizer", "AddressSanitizer", "ThreadSanitizer", "runtime error:")


class Counts:
    def __init__(self, passed=0, failed=0, skipped=0, why=""):
        self.passed, self.failed, self.skipped, self.why = passed, failed, skipped, why

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def read_criterion(text, code):
    """Criterion prints its usage and exits 0 when it misreads a flag: a run counts only with its closing line and tests in it. That line leaves
    out what was skipped, which is told only with --verbose."""
    match = re.search(r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)", text)
    if not match:
        return Counts(failed=1, why="no closing line of Criterion")
    tested, passing, failing, crashing = map(int, match.groups())
    skipped = len(re.findall(r"^\[SKIP\]", text, re.M))
    if tested == 0 and skipped == 0:
        return Counts(failed=1, why="no test was run")
    failed = failing + crashing
    return Counts(passing, max(failed, 1 if code else 0), skipped)


def read_counts_line(text, code):
    """For our own programs: the last line 'N passed, N failed[, N skipped]', else the exit code alone."""
    lines = re.findall(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\b", text, re.M)
    if not lines:
        return Counts(passed=int(code == 0), failed=int(code != 0))
    passed, failed, skipped = (int(n or 0) for n in lines[-1])
    return Counts(passed, max(failed, 1 if code else 0), skipped)


def read_junit(name):
    def read(text, code):
        path = LOGS / f"{name}.xml"
        try:
            suites = list(xml.etree.ElementTree.parse(path).getroot().iter("testsuite"))
        except (OSError, xml.etree.ElementTree.ParseError):
            return Counts(failed=1, why="pytest left no report")
        total = lambda key: sum(int(suite.get(key, 0)) for suite in suites)
        failed, skipped = total("failures") + total("errors"), total("skipped")
        passed = total("tests") - failed - skipped
        if passed + failed + skipped == 0:
            return Counts(failed=1, why="no test was run")
        return Counts(passed, max(failed, 1 if code else 0), skipped)

    return read


def criterion(name, path, environment=None, arguments=()):
    return program(name, path, read_criterion, environment, ["--verbose", *arguments])


def pytest(name, folder, environment=None, arguments=()):
    command = [str(PYTHON), "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", f"--junit-xml={LOGS / name}.xml", *arguments]
    return dict(name=name, command=command + [str(ROOT / folder)], read=read_junit(name), needs=[PYTHON], environment=environment or {})


def program(name, path, read, environment=None, arguments=()):
    return dict(name=name, command=[str(path), *map(str, arguments)], read=read, needs=[path], environment=environment or {})


def suites():
    """In the order they run: what is quick and basic first."""
    found = []
    asan = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99", "UBSAN_OPTIONS": "print_stacktrace=1",
            "LSAN_OPTIONS": f"suppressions={ROOT / 'tools/lsan.supp'}:print_suppressions=0"}
    for path in sorted(RELEASE.glob("unit_*")):
        found.append(criterion(path.name.replace("unit_", "unit-"), path))
    for path in sorted(RELEASE.glob("check*")):
        found.append(program(path.name.replace("_", "-"), path, read_counts_line))
    found.append(program("specialise-models", RELEASE / "specialise_models", read_counts_line))
    # The onnx package's node tests; what Penstock refuses with a reason is skipped.
    conformance = RELEASE / "conformance"
    found.append(program("conformance", PYTHON, read_counts_line, arguments=[ROOT / "tests/conformance/run.py", conformance]))
    found[-1]["needs"].append(conformance)
    found.append(pytest("tidy", "tests/tidy"))
    found.append(pytest("docs", "tests/docs"))
    found.append(pytest("http", "tests/http"))
    compiled = {"PENSTOCK_TEST_COMPILED": str(COMPILED)}
    found.append(program("batcher-allocations", RELEASE / "batcher_allocations", read_counts_line))
    found.append(pytest("steady", "tests/steady"))
    found.append(pytest("pjrt", "tests/pjrt", compiled))
    found.append(pytest("load", "tests/load"))
    for path in sorted(ASAN.glob("unit_*")):
        found.append(criterion(path.name.replace("unit_", "asan-unit-"), path, asan, ["--jobs", "2"]))
    for path in sorted(ASAN.glob("check*")):
        found.append(program("asan-" + path.name.replace("_", "-"), path, read_counts_line, asan))
    # The server itself under the sanitizers: the same clients, without those that only measure the protocol library.
    found.append(pytest("asan-http", "tests/http", dict(asan, PENSTOCK_BINARY=str(ASAN / "penstock")), ["-m", "not slow"]))
    # The server's side of the device path under the sanitizers. The plugin's process is the same program; it ends without exit handlers, so what
    # a plugin leaks is not looked for. Not here: programs of every precision and encoder and a full queue, minutes under the sanitizers that run
    # none of the server's code that the others do not.
    found.append(pytest("asan-pjrt", "tests/pjrt", dict(asan, **compiled, PENSTOCK_BINARY=str(ASAN / "penstock")),
                        ["-k", "not answers_are_those_of and not models_give_their and not full_queue"]))
    found[-1]["needs"].append(ASAN / "penstock")
    tsan = {"PENSTOCK_BINARY": str(TSAN / "penstock"), "TSAN_OPTIONS": "halt_on_error=0 exitcode=66 second_deadlock_stack=1"}
    found.append(pytest("tsan-load", "tests/http", tsan, ["-m", "load"]))
    found[-1]["needs"].append(TSAN / "penstock")
    return found


def run(suite):
    missing = [str(path.relative_to(ROOT)) for path in suite["needs"] if not path.exists()]
    if missing:
        return Counts(skipped=1, why="not there: " + ", ".join(missing))
    log = LOGS / f"{suite['name']}.log"
    (LOGS / f"{suite['name']}.xml").unlink(missing_ok=True)
    with open(log, "wb") as out:
        try:
            code = subprocess.run(
                suite["command"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                env=dict(os.environ, **suite["environment"]), timeout=TIMEOUT_S,
            ).returncode
        except subprocess.TimeoutExpired:
            return Counts(failed=1, why=f"not done after {TIMEOUT_S} s")
    text = log.read_text(errors="replace")
    counts = suite["read"](text, code)
    if suite["name"].startswith(("asan", "tsan", "unit")) and any(word in text for word in SANITIZER_WORDS):
        counts.failed = max(1, counts.failed)
        counts.why = "a sanitizer spoke"
    return counts


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    chosen = suites()
    if sys.argv[1:] == ["--list"]:
        print("\n".join(suite["name"] for suite in chosen))
        return 0
    if sys.argv[1:]:
        chosen = [s for s in chosen if any(s["name"] == word or s["name"].startswith(word + "-") for word in sys.argv[1:])]
        if not chosen:
            print("no such suite: ./test --list names them", file=sys.stderr)
            return 2
    shutil.rmtree(COMPILED, ignore_errors=True)
    total = Counts()
    for suite in chosen:
        started = time.monotonic()
        counts = run(suite)
        total.add(counts)
        mark = "FAILED" if counts.failed else "ok" if counts.passed else "skipped"
        line = f"{suite['name']:<22} {mark:<8} {counts.passed:>5} passed {counts.failed:>4} failed {counts.skipped:>4} skipped"
        print(f"{line} {time.monotonic() - started:7.1f} s  {counts.why}".rstrip(), flush=True)
        if counts.failed:
            print(f"    see build/logs/{suite['name']}.log", flush=True)
            show_failures(LOGS / f"{suite['name']}.log")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed or not total.passed else 0


def show_failures(log):
    """The lines that name failures, so that a log of somebody else's machine tells enough."""
    if not log.exists():
        return
    lines = [l for l in log.read_text(errors="replace").splitlines() if re.search(r"^FAILED|^ERROR|\[FAIL\]|Assertion Failed|Sanitizer:|runtime error:|^FAIL", l)]
    for line in lines[:25]:
        print("    " + line[:200], flush=True)


if __name__ == "__main__":
    sys.exit(main())
