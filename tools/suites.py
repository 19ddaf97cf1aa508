"""The test suites of ./test: what each needs built, how it runs, how its output is counted. docs/testing.md says what they test.

Suites are found from the tree alone, so that they can be listed before anything is built. Only the standard library is used.
"""
import dataclasses
import os
import pathlib
import re
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/logs"
PYTHON = ROOT / ".venv/bin/python"
# Programs that suites of PJRT devices compile, for those that follow: each is compiled once in a run.
COMPILED = ROOT / "build/test-compiled"

ASAN = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1",
        "LSAN_OPTIONS": f"suppressions={ROOT / 'tools/lsan.supp'}:print_suppressions=0"}  # fmt: skip
TSAN = {"TSAN_OPTIONS": "halt_on_error=0 exitcode=66 second_deadlock_stack=1"}
ENVIRONMENTS = {"release": {}, "asan": ASAN, "tsan": TSAN, "fuzz": ASAN}
# Of tests/pjrt, minutes under the sanitizers that run none of the server's code that the others do not: programs of every precision and encoder, a
# full queue, what JAX exports (test_exported has smaller ones), forms and scales that test_forms and the first of test_tune have, too.
SLOW_UNDER_SANITIZERS = ("answers_are_those_of", "models_give_their", "full_queue", "as_jax_computes_it", "static_scales_are_in", "far_from_fp32")
# The files of tests/pjrt about a server with devices; the others are about programs.
PJRT_SERVING = ("test_faults", "test_serving", "test_start", "test_transfers", "test_profile", "test_joining", "test_memory")
FUZZ_S = int(os.environ.get("FUZZ_SECONDS", 30))  # for each target


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    why: str = ""
    computed_s: float = 0  # by the processors

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.computed_s += other.computed_s


@dataclasses.dataclass
class Suite:
    name: str
    command: list
    read: object  # (output, exit code) -> Counts
    targets: dict  # preset -> what the suite needs built there
    files: list  # what must be there once that is built, or the suite is skipped
    environment: dict = dataclasses.field(default_factory=dict)
    prepared: tuple = ()  # steps of tools/setup.sh that it needs: test_python, text_python, pjrt_python, h2spec, interop_programs
    after: str = ""  # the suite that must have ended before this one begins
    waits: bool = False  # for clocks and sockets, most of the time
    is_awaited: bool = False  # of the longest line of suites that come one after the other: it goes before all else
    is_extra: bool = False  # runs only when it is named

    @property
    def preset(self):
        """The build that it tests."""
        return next((p for p in ("asan", "tsan", "fuzz") if p in self.targets), "release")


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
            reports = list(xml.etree.ElementTree.parse(path).getroot().iter("testsuite"))
        except (OSError, xml.etree.ElementTree.ParseError):
            return Counts(failed=1, why="pytest left no report")
        total = lambda key: sum(int(report.get(key, 0)) for report in reports)
        failed, skipped = total("failures") + total("errors"), total("skipped")
        passed = total("tests") - failed - skipped
        if passed + failed + skipped == 0:
            return Counts(failed=1, why="no test was run")
        return Counts(passed, max(failed, 1 if code else 0), skipped)

    return read


def built(preset, target):
    return ROOT / "build" / preset / "bin" / target


def program(target, preset="release", read=read_counts_line, arguments=()):
    """A program of ours that ends with its counts or with an exit code."""
    name = target.replace("_", "-") if preset == "release" else preset + "-" + target.replace("_", "-")
    return Suite(name, [built(preset, target), *arguments], read, {preset: [target]}, [built(preset, target)], ENVIRONMENTS[preset])


def criterion(target, preset="release"):
    """A Criterion program. Two tests at once under a sanitizer: each takes several times the memory."""
    return program(target, preset, read_criterion, ["--verbose", *(["--jobs", "2"] if preset != "release" else [])])


def pytest(name, folder, preset="release", targets=("penstock",), prepared=("test_python",), arguments=(), after="", waits=True, is_awaited=False):
    command = [PYTHON, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", f"--junit-xml={LOGS / name}.xml", *arguments, ROOT / folder]
    environment = dict(ENVIRONMENTS[preset], PENSTOCK_TEST_COMPILED=str(COMPILED))
    if preset != "release":
        environment["PENSTOCK_BINARY"] = str(built(preset, "penstock"))
    return Suite(name, command, read_junit(name), {preset: list(targets)}, [PYTHON, built(preset, "penstock")], environment, prepared, after, waits, is_awaited)


def fuzzer(target):
    """libFuzzer on one target (tests/fuzz). What it learns stays in build/fuzz/corpus, what it finds in build/fuzz/found: the build makes both."""
    name = f"fuzz-{target.replace('_', '-')}"
    learnt, found = ROOT / "build/fuzz/corpus" / target, ROOT / "build/fuzz/found" / target
    binary = built("fuzz", f"fuzz_{target}")
    command = [binary, f"-max_total_time={FUZZ_S}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=16384", "-print_final_stats=1",
               f"-artifact_prefix={found}/", learnt, ROOT / "tests/fuzz/corpus" / target]  # fmt: skip
    return Suite(name, command, read_counts_line, {"fuzz": [f"fuzz_{target}"]}, [binary], ENVIRONMENTS["fuzz"], is_extra=True)


def fuzz_targets():
    return re.findall(r"^FUZZ_TARGET\((\w+)\)", (ROOT / "tests/fuzz/targets.inc").read_text(), re.M)


def programs_named(pattern):
    """Test programs whose name matches, from the CMake files: those with a file list of their own, and one for each room in tests/unit."""
    found = {f"unit_{folder.name}" for folder in (ROOT / "tests/unit").iterdir() if folder.is_dir()}
    for path in (ROOT / "tests").glob("*/CMakeLists.txt"):
        found.update(re.findall(r"add_executable\((\w+)", path.read_text()))
    found.update(path.stem for path in (ROOT / "tests/tsan").glob("*.c"))  # a program for each file
    return sorted(name for name in found if re.fullmatch(pattern, name))


def torture_models():
    """What tests/torture/load.c loads: an encoder, a network, and models that go through much of the importer and the fusion passes."""
    data = ROOT / "tests/data"
    return [data / "torture/quantised.onnx", data / "torture/control.onnx", ROOT / "examples/models/digits/1", data / "hugging_face/chain_dense_norm"]


def torture_tokenizers():
    """What tests/torture/text.c loads: a tokenizer.json of each family (seeds of the fuzzer), and a vocab.txt."""
    seeds = ROOT / "tests/fuzz/corpus/tokenizer"
    return [*(seeds / name for name in ("bert", "byte_level", "llama", "unigram", "word_level")), ROOT / "tests/data/torture/vocab"]


def suites():
    """In the order they begin, each as soon as what it needs is built. Of those that compute: what is quick and basic first, then sanitizers. Of
    those that wait, the longest first."""
    units, checks, threads = programs_named(r"unit_\w+"), programs_named(r"check\w+"), programs_named(r"check_\w+")
    plugins = ["fault_plugin", "not_a_plugin", "pjrt_golden", "pjrt_host"]
    found = [criterion(name) for name in units]
    found += [program(name) for name in checks]
    found.append(pytest("text", "tests/text", prepared=("test_python", "text_python"), waits=False))
    found.append(program("specialise_models"))
    # The onnx package's node tests; what Penstock refuses with a reason is skipped.
    conformance = built("release", "conformance")
    found.append(Suite("conformance", [PYTHON, ROOT / "tests/conformance/run.py", conformance], read_counts_line, {"release": ["conformance"]},
                       [PYTHON, conformance], {}, ("test_python",)))  # fmt: skip
    found.append(program("batcher_allocations"))
    found.append(program("netsim_http2"))
    found.append(pytest("tidy", "tests/tidy", waits=False))
    # The server itself: the same clients, without those that only measure the protocol library.
    found.append(pytest("asan-http", "tests/http", "asan", prepared=("test_python", "h2spec"), arguments=["-m", "not slow"]))
    # The server's side of the device path under the sanitizers. The plugin's process is the same program; it ends without exit handlers, so what
    # a plugin leaks is not looked for.
    # In two halves, as it is the last to end. The compiler of the plugin allocates all the time: stacks of ten frames take a tenth less of the whole
    # than the usual thirty.
    fast, half = " and ".join(f"not {name}" for name in SLOW_UNDER_SANITIZERS), " or ".join(PJRT_SERVING)
    for name, chosen in (("asan-pjrt-serving", half), ("asan-pjrt-programs", f"not ({half})")):
        found.append(pytest(name, "tests/pjrt", "asan", ["penstock", *plugins], ("test_python", "pjrt_python"),
                            ["-k", f"({chosen}) and {fast}"], after="pjrt", is_awaited=True))  # fmt: skip
        found[-1].environment["ASAN_OPTIONS"] += ":malloc_context_size=10"
    found.append(pytest("pjrt", "tests/pjrt", targets=["penstock", *plugins], prepared=("test_python", "pjrt_python"), is_awaited=True))
    found.append(pytest("http", "tests/http", prepared=("test_python", "h2spec")))
    found.append(pytest("attacks", "tests/attacks"))
    found.append(pytest("load", "tests/load", targets=["penstock", "penstock-load", "load_test_server", "without_io_uring"]))
    found.append(pytest("interop", "tests/interop", prepared=("test_python", "interop_programs")))
    found.append(pytest("docs", "tests/docs", targets=["penstock", "penstock-load"]))
    found.append(pytest("torture", "tests/torture", targets=["penstock", "penstock_preloadable", "fail_calls"]))
    found.append(pytest("grpc", "tests/grpc"))
    found.append(pytest("netsim-http1", "tests/netsim"))
    found.append(pytest("steady", "tests/steady", targets=["penstock", "penstock_preloadable", "count_allocations", "send_requests"]))
    found += [program(name, "asan") for name in checks]
    found += [criterion(name, "asan") for name in units]
    found += [program(name, "asan") for name in ("fuzz_replay", "netsim_http2")]
    found.append(program("torture_load", "asan", arguments=[os.environ.get("TORTURE_TRIALS", "100"), *torture_models()]))
    found.append(program("torture_text", "asan", arguments=[os.environ.get("TORTURE_TRIALS", "0"), *torture_tokenizers()]))
    found += [fuzzer(target) for target in fuzz_targets()]
    found += [program(name, "tsan") for name in threads]
    found.append(pytest("tsan-load", "tests/http", "tsan", arguments=["-m", "load"]))
    return found
