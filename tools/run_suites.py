#!/usr/bin/env python3
"""Builds what test suites need, runs them and adds them up: the body of ./test.

Several suites run at once, and a suite begins as soon as what it needs is built: sanitizer builds go on beside suites. Suites that wait for clocks
and sockets most of the time have places of their own, so that they hold up none that computes. The whole output of a suite goes to
build/logs/NAME.log, one line about it to the terminal. What cannot run here is counted as skipped, with the reason.
"""
import concurrent.futures
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import threading
import time

from suites import COMPILED, FUZZ_S, LOGS, ROOT, Counts, suites

TIMEOUT_S = 900
# Suites at once: of those that compute, and of those that wait (Suite.waits).
COMPUTING, WAITING = 2, 6
# How much they and the sanitizer builds give way (nice) to the suites that others wait for (Suite.is_awaited).
WAITING_NICE, COMPUTING_NICE, BUILD_NICE = 4, 6, dict(release=0, asan=2, tsan=6, fuzz=6)

# Criterion does not fail a run for these, so they are looked for in every log.
SANITIZER_WORDS = ("LeakSanitizer", "ERROR: AddressSanitizer", "ThreadSanitizer", "runtime error:")
CONFIGURE = {"release": "configure release -DPENSTOCK_TESTS=ON", "asan": "configure asan", "tsan": "configure tsan", "fuzz": "install_packages fuzz; configure fuzz"}


def shell(command, nice=0):
    """Runs functions of tools/setup.sh; they say what they do. Returns whether they succeeded."""
    return subprocess.run(["nice", "-n", str(nice), "bash", "-euo", "pipefail", "-c", f". tools/setup.sh; {command}"], cwd=ROOT).returncode == 0


def computed_s(usage):
    """Processor seconds of processes that have ended. Unlike the time on the clock, they say the same beside other work."""
    return usage.ru_utime + usage.ru_stime


def finish(process, timeout_s):
    """Waits for it, at most that long. Returns its exit code (None: not done by then, and killed) and the processor seconds of it and its children."""
    late = threading.Event()
    clock = threading.Timer(timeout_s, lambda: (late.set(), process.kill()))
    clock.start()
    _, code, usage = os.wait4(process.pid, 0)
    clock.cancel()
    process.returncode = os.waitstatus_to_exitcode(code)
    return None if late.is_set() else process.returncode, computed_s(usage)


class Preparation:
    """The builds and downloads that suites need, each done once. Sanitizer builds follow the release build, one after the other."""

    def __init__(self, chosen):
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.done = {}
        last = None
        for preset in CONFIGURE:
            targets = sorted({t for suite in chosen for t in suite.targets.get(preset, ())})
            if targets:
                last = self.done[preset] = self.pool.submit(self.build, preset, targets, last)
        before = None  # each step needs the ones before it
        for step in ("test_python", "text_python", "h2spec", "interop_programs", "pjrt_python"):
            if any(step in suite.prepared for suite in chosen):
                before = self.done[step] = self.pool.submit(self.prepare, step, before)

    @staticmethod
    def prepare(step, before):
        if before is not None:
            before.result()
        return shell(step)

    @staticmethod
    def build(preset, targets, before):
        if before is not None:
            before.result()
        return shell(f"{CONFIGURE[preset]}; build {preset} {shlex.join(targets)}", BUILD_NICE[preset])

    def is_ready(self, suite):
        return all(self.done[need].done() for need in (*suite.targets, *suite.prepared))

    def failed_builds(self, suite):
        return [preset for preset in suite.targets if not self.done[preset].result()]


def run(suite, preparation):
    failed = preparation.failed_builds(suite)
    if failed:
        return Counts(failed=1, why=f"the build failed: build/logs/build-{failed[0]}.log")
    missing = [str(path.relative_to(ROOT)) for path in suite.files if not path.exists()]
    if missing:
        return Counts(skipped=1, why="not there: " + ", ".join(missing))
    log = LOGS / f"{suite.name}.log"
    (LOGS / f"{suite.name}.xml").unlink(missing_ok=True)
    limit_s = TIMEOUT_S + (FUZZ_S if suite.is_extra else 0)
    with open(log, "wb") as out:
        nice = 0 if suite.is_awaited else WAITING_NICE if suite.waits else COMPUTING_NICE
        process = subprocess.Popen(
            ["nice", "-n", str(nice), *map(str, suite.command)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=dict(os.environ, **suite.environment)
        )  # fmt: skip
        code, seconds = finish(process, limit_s)
    if code is None:
        return Counts(failed=1, why=f"not done after {limit_s} s", computed_s=seconds)
    text = log.read_text(errors="replace")
    counts = suite.read(text, code)
    counts.computed_s = seconds
    if any(word in text for word in SANITIZER_WORDS) and (suite.preset != "release" or suite.name.startswith("unit")):
        counts.failed = max(1, counts.failed)
        counts.why = "a sanitizer has found something"
    return counts


class Runner:
    def __init__(self, chosen):
        self.waiting, self.ended, self.total = list(chosen), set(), Counts()
        self.names = {suite.name for suite in chosen}
        self.preparation = Preparation(chosen)
        self.lock = threading.Lock()

    def take(self, waits):
        """The next suite of that kind that can begin, None when none is left; False when those that are left must wait."""
        with self.lock:
            of_kind = [suite for suite in self.waiting if suite.waits == waits]
            for suite in of_kind:
                is_its_turn = suite.after in self.ended or suite.after not in self.names
                if is_its_turn and self.preparation.is_ready(suite):
                    self.waiting.remove(suite)
                    return suite
            return False if of_kind else None

    def work(self, waits):
        while (suite := self.take(waits)) is not None:
            if suite is False:
                time.sleep(0.1)
                continue
            started = time.monotonic()
            counts = run(suite, self.preparation)
            with self.lock:
                self.ended.add(suite.name)
                self.total.add(counts)
                show(suite, counts, time.monotonic() - started)

    def work_all(self):
        workers = [threading.Thread(target=self.work, args=[waits]) for waits in [False] * COMPUTING + [True] * WAITING]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def show(suite, counts, seconds):
    mark = "FAILED" if counts.failed else "ok" if counts.passed else "skipped"
    line = f"{suite.name:<24} {mark:<8} {counts.passed:>5} passed {counts.failed:>4} failed {counts.skipped:>4} skipped"
    print(f"{line} {seconds:7.1f} s {counts.computed_s:7.1f} s computed  {counts.why}".rstrip(), flush=True)
    log = LOGS / f"{suite.name}.log"
    if counts.failed and log.exists():
        print(f"    see build/logs/{suite.name}.log", flush=True)
        # The lines that name failures, so that a log of another machine tells enough.
        pattern = r"^FAILED|^ERROR|\[FAIL\]|Assertion Failed|Sanitizer:|runtime error:|^FAIL"
        for line in [l for l in log.read_text(errors="replace").splitlines() if re.search(pattern, l)][:25]:
            print("    " + line[:200], flush=True)


def main(arguments):
    chosen = suites()
    if arguments == ["--list"]:
        print("\n".join(suite.name for suite in chosen))
        return 0
    if arguments:
        words = [word.replace("_", "-") for word in arguments]
        chosen = [s for s in chosen if any(s.name == word or s.name.startswith(word + "-") for word in words)]
        if not chosen:
            print("no such suite: ./test --list names them", file=sys.stderr)
            return 2
    else:
        chosen = [s for s in chosen if not s.is_extra]
    LOGS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(COMPILED, ignore_errors=True)
    started = time.monotonic()
    runner = Runner(chosen)
    runner.work_all()
    total, all_s = runner.total, computed_s(resource.getrusage(resource.RUSAGE_CHILDREN))
    seconds = time.monotonic() - started
    print(f"{seconds:.0f} s; computed {all_s:.0f} s, of which {all_s - total.computed_s:.0f} s building; {os.cpu_count()} processors", flush=True)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
