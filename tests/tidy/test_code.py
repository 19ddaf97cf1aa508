"""The rules for code and scripts that a compiler does not check (docs/architecture.md has them in words)."""
import concurrent.futures
import re
import shutil
import subprocess

import pytest

from tree import C_FILES, FILES, HEADERS, ROOM_FILES, ROOT, name, report, room


def test_only_the_clock_reads_the_time():
    pattern = re.compile(r"\b(clock_gettime|gettimeofday|time)\s*\(\s*(CLOCK_|&|NULL|0\))")
    wrong = []
    for path in ROOM_FILES:
        if name(path) == "base/clock.c" or room(path) == "loadtest":
            continue
        wrong += [f"{name(path)}:{i}: {l.strip()}" for i, l in enumerate(path.read_text().splitlines(), 1) if pattern.search(l)]
    report(wrong)


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
    h2o = subprocess.run(["pkg-config", "--cflags", "libh2o-evloop", "jansson", "openssl", "libprotobuf-c", "libpcre2-8", "libutf8proc"], capture_output=True, text=True)
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


def test_libraries_define_each_global_name_once():
    """Of equal names in static libraries the linker takes the first it meets, and says nothing."""
    libraries = sorted((ROOT / "build/release").glob("*/libpenstock_*.a"))
    if not libraries:
        pytest.skip("build/release is not built")
    owners = {}
    for library in libraries:
        listed = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", library], capture_output=True, text=True, check=True).stdout
        for symbol in {line.split()[0] for line in listed.splitlines() if len(line.split()) >= 3 and line.split()[1] in "TDBRC"}:
            owners.setdefault(symbol, []).append(library.name)
    report([f"{symbol}: {', '.join(names)}" for symbol, names in owners.items() if len(names) > 1])
