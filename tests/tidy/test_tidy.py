"""The rules of the tree that a compiler does not check (docs/architecture.md has them in words)."""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = [ROOT / f for f in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()]
FILES = [f for f in FILES if f.is_file()]
ROOMS = {
    # room: what it may include beside itself
    "base": set(),
    "kernels": {"base"},
    "graph": {"base"},
    "devices": {"kernels", "graph", "base"},
    "models": {"devices", "kernels", "graph", "base"},
    "batcher": {"models", "devices", "kernels", "graph", "base"},
    # Beside the others: config fills the rooms' options, and reads no function of theirs but the defaults.
    "config": {"base", "server", "batcher", "models", "devices", "graph"},
    "server": {"config", "batcher", "models", "devices", "kernels", "graph", "base"},
    "loadtest": {"base"},
}
C_FILES = [f for f in FILES if f.suffix in (".c", ".h") and f.relative_to(ROOT).parts[0] in (*ROOMS, "tests", "bench", "tools")]
ROOM_FILES = [f for f in C_FILES if f.relative_to(ROOT).parts[0] in ROOMS]
HEADERS = [f for f in ROOM_FILES if f.suffix == ".h"]


def name(path):
    return path.relative_to(ROOT).as_posix()


def room(path):
    return path.relative_to(ROOT).parts[0]


def includes(path):
    return re.findall(r'^\s*#\s*include\s+([<"][^>"]+)[>"]', path.read_text(errors="replace"), re.M)


def report(wrong):
    assert not wrong, "\n" + "\n".join(wrong)


def test_there_is_something_to_check():
    assert len(ROOM_FILES) > 50 and len(HEADERS) > 20


def test_includes_point_one_way():
    wrong = []
    for path in ROOM_FILES:
        # One exception: config/ takes the option structs of the rooms above it; only main and the `command_` files of server/ take config/.
        for include in includes(path):
            other = include[1:].split("/")[0]
            if include[0] == '"' and other in ROOMS and other != room(path) and other not in ROOMS[room(path)]:
                wrong.append(f"{name(path)} includes {include[1:]}")
    report(wrong)


# header: the files that may include it
CONTAINED = {
    r"h2o(\.h|/)": r"^(server/|bench/)",
    r"jansson\.h": r"^(config/|server/|models/|loadtest/|graph/|bench/)",
    r"liburing(\.h|/)": r"^(base/file_[a-z]+\.c|loadtest/|tests/)",
    r"(devices/pjrt_abi\.h|pjrt_c_api\.h)": r"^(devices/pjrt_|tests/|tools/)",
    r"nghttp2/": r"^(loadtest/|tests/)",
    r"zlib\.h": r"^(server/|tests/)",
    r"protobuf-c/": r"^(graph/|tests/)",
}


@pytest.mark.parametrize("library", CONTAINED)
def test_libraries_stay_in_their_rooms(library):
    wrong = [
        f"{name(path)} includes {include[1:]}"
        for path in C_FILES
        if not name(path).startswith("tests/unit/") or library.startswith("h2o")
        for include in includes(path)
        if re.match(library, include[1:]) and not re.match(CONTAINED[library], name(path)) and not name(path).startswith("tests/")
    ]
    report(wrong)


def test_only_the_clock_reads_the_time():
    pattern = re.compile(r"\b(clock_gettime|gettimeofday|time)\s*\(\s*(CLOCK_|&|NULL|0\))")
    wrong = []
    for path in ROOM_FILES:
        if name(path) == "base/clock.c" or room(path) == "loadtest":
            continue
        wrong += [f"{name(path)}:{i}: {l.strip()}" for i, l in enumerate(path.read_text().splitlines(), 1) if pattern.search(l)]
    report(wrong)


def test_headers_are_short():
    # kernels/x86/*vector.h are no interfaces: code that each vector level compiles with its own flags, under the limit of files.
    limit = lambda p: 600 if re.match(r"kernels/(x86|arm)/.*vector\.h", name(p)) else 300
    report([f"{name(p)}: {n} lines" for p in HEADERS if (n := len(p.read_text().splitlines())) > limit(p) and "abi" not in p.name])


def test_headers_have_guards_named_after_them():
    wrong = []
    for path in HEADERS:
        guard = re.sub(r"[^A-Z0-9]", "_", name(path).upper())
        text = path.read_text()
        if not re.search(rf"^#ifndef {guard}\n#define {guard}\n", text, re.M):
            wrong.append(f"{name(path)}: wants #ifndef {guard}")
    report(wrong)


def test_every_header_compiles_alone():
    # Where the parser of onnx.proto was generated.
    build = next((b for b in (ROOT / "build/release", *sorted(ROOT.glob("build/*"))) if (b / "graph/onnx/onnx.pb-c.h").exists()), None)
    if build is None:
        pytest.skip("nothing is built")
    h2o = subprocess.run(["pkg-config", "--cflags", "libh2o-evloop", "jansson", "openssl", "libprotobuf-c"], capture_output=True, text=True)
    if h2o.returncode or shutil.which("gcc") is None:
        pytest.skip("no compiler or libraries")
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-DH2O_USE_LIBUV=0", "-Wall", "-fsyntax-only", f"-I{ROOT}", f"-I{build}", f"-I{build}/graph", *h2o.stdout.split()]

    def compile_alone(path):
        source = f'#include "{name(path)}"\nint header_compiles_alone;\n'
        run = subprocess.run(["gcc", *flags, "-x", "c", "-"], input=source, capture_output=True, text=True)
        return f"{name(path)}: {run.stderr.splitlines()[0] if run.stderr else ''}" if run.returncode else None

    # Headers of one vector level need its flags, and an umbrella of the level has them.
    plain = [h for h in HEADERS if not re.match(r"kernels/(x86|arm)/", name(h))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        report([w for w in pool.map(compile_alone, plain) if w])


def test_every_room_has_a_page():
    wrong = [r for r in ROOMS if not (ROOT / r / "README.md").exists()]
    wrong += [f"{r}/README.md: {n} lines" for r in ROOMS if (ROOT / r / "README.md").exists() and (n := len((ROOT / r / "README.md").read_text().splitlines())) > 80]
    report(wrong)


def test_each_stage_has_its_file():
    text = (ROOT / "batcher/job/stage.h").read_text()
    stages = [s.lower() for s in re.findall(r"^\s+STAGE_([A-Z]+),", text, re.M)]
    assert len(stages) == 11
    wrong = [s for s in stages if s != "execute" and not any(list((ROOT / r).glob(f"{s}*.c")) for r in ("server", "batcher"))]
    report(wrong)
    spoken = set(re.findall(r'"([a-z]+)"', (ROOT / "batcher/job/stage.c").read_text()))
    assert set(stages) <= spoken


def test_kernel_names_say_what_they_compute_and_for_which_processor():
    levels = "scalar|avx2|avxvnni|avx512|avx512vnni|avx512bf16|amx|neon|dotprod|i8mm|sve"
    wrong = []
    for path in (p for p in ROOM_FILES if room(p) == "kernels" and p.suffix == ".c" and p.parent.name in ("scalar", "x86", "arm")):
        if not re.search(rf"_({levels})(_|\.)", path.name) and not path.stem.startswith(("x86", "arm", "scalar", "emulate")):
            wrong.append(f"{name(path)}: no level in its name")
    report(wrong)


def test_no_instruction_set_for_the_whole_program():
    report([name(f) for f in FILES if f.name in ("CMakeLists.txt", "CMakePresets.json") and re.search(r"-march=native|-mtune=native", f.read_text())])


def test_no_release_build_drops_assertions():
    report([name(f) for f in FILES if f.name == "CMakePresets.json" and "NDEBUG" in f.read_text()])


# Spelt in pieces, or this file would hold them itself.
HOSTS = ["pypi" + ".org", "files.python" + "hosted", "crates" + ".io", "proxy.golang" + ".org", "registry.npm" + "js", "deb.debian" + ".org", "repo1.maven" + ".org", "docker" + ".io", "gcr" + ".io", "huggingface" + ".co"]


def test_no_registry_is_named():
    wrong = []
    for path in FILES:
        if path.suffix in (".onnx", ".png", ".npz", ".svg", ".bin") or path.stat().st_size > 2_000_000:
            continue
        text = path.read_text(errors="replace")
        wrong += [f"{name(path)} names {host}" for host in HOSTS if host in text]
    report(wrong)


def test_formatting():
    program = shutil.which("clang-format")
    if program is None:
        pytest.skip("clang-format is not installed")
    files = [f for f in C_FILES if not f.name.endswith(".inc")]
    wrong = []
    for start in range(0, len(files), 40):
        run = subprocess.run([program, "--dry-run", *map(str, files[start : start + 40])], capture_output=True, text=True, cwd=ROOT)
        wrong += sorted({l.split(":")[0].replace(f"{ROOT}/", "") for l in run.stderr.splitlines() if "warning:" in l})
    report([f"{w}: clang-format -i changes it" for w in wrong])


def test_lines_are_at_most_100_wide():
    wrong = []
    for path in C_FILES:
        wrong += [f"{name(path)}:{i}" for i, l in enumerate(path.read_text(errors="replace").splitlines(), 1) if len(l) > 100 and '"' not in l and "http" not in l]
    report(wrong)


def long_functions(path, limit):
    start = title = None
    lines = path.read_text().splitlines()
    for i, line in enumerate(lines):
        if line == "{" and start is None:
            start, title = i, lines[i - 1].strip()
        elif line.startswith("}") and start is not None:
            if i - start > limit:
                yield f"{name(path)}:{start}: {i - start} lines in {title[:60]}"
            start = None


def test_length_of_files_and_functions():
    """A longer one is fine where cutting it would hide the thing, so only the far end fails; the rest warns."""
    wrong = []
    for path in ROOM_FILES:
        lines = len(path.read_text().splitlines())
        if lines > 600:
            warnings.warn(f"{name(path)}: {lines} lines")
        if lines > 1200:
            wrong.append(f"{name(path)}: {lines} lines")
        for text in long_functions(path, 90):
            warnings.warn(text)
        wrong += list(long_functions(path, 200))
    report(wrong)


def test_links_between_pages_lead_somewhere():
    wrong = []
    for path in (f for f in FILES if f.suffix == ".md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in target and not (path.parent / target).exists():
                wrong.append(f"{name(path)} -> {target}")
    report(wrong)


def test_scripts_are_sound():
    for script in ("serve", "test", ".ci/run", "tools/setup.sh"):
        assert subprocess.run(["bash", "-n", ROOT / script]).returncode == 0, script
