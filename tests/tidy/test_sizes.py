"""Limits on files, functions, headers, folders and lines. Where one of them would hide the thing, LONGER says why."""
import collections
import re

from tree import C_FILES, FILES, HEADERS, folder, name, report, text

FILE_LINES, FUNCTION_LINES, HEADER_LINES, FOLDER_FILES, LINE_WIDTH, PAGE_WIDTH = 600, 70, 300, 24, 100, 120

# file, or file:function -> why it may be longer
LONGER = {
    "devices/pjrt/plugin/abi.h": "a table of the PJRT C API, compared with its header by tests/abi",
}


def functions(path):
    """(name, first line, lines of its body) of each function, as clang-format lays them out."""
    start = title = None
    lines = text(path).splitlines()
    for i, line in enumerate(lines):
        if line == "{" and start is None:
            head = " ".join(lines[max(0, i - 4) : i])
            start, title = i, (re.findall(r"(\w+)\(", head) or ["?"])
        elif line.startswith("}") and start is not None:
            yield title[0], start, i - start - 1
            start = None


def test_files():
    files = [f for f in FILES if f.suffix in (".c", ".h", ".py", ".inc", ".sh")]
    report([f"{name(f)}: {n} lines" for f in files if (n := len(text(f).splitlines())) > FILE_LINES and name(f) not in LONGER])


def test_functions():
    wrong = []
    for path in C_FILES:
        wrong += [f"{name(path)}:{at}: {n} lines in {title}" for title, at, n in functions(path) if n > FUNCTION_LINES and f"{name(path)}:{title}" not in LONGER]
    report(wrong)


def test_headers():
    # These are no interfaces: code that each level of vector instructions compiles with its own flags, and each element type with its names.
    templates = re.compile(r"kernels/(x86|arm|scalar)/.*(vector|template).*\.h|kernels/(x86|arm)/vector/|devices/cpu/elementwise/")
    report([f"{name(p)}: {n} lines" for p in HEADERS if (n := len(text(p).splitlines())) > HEADER_LINES and not templates.match(name(p)) and name(p) not in LONGER])


def test_every_exception_is_needed():
    """An exemption ends with its reason."""
    long_files = {name(f) for f in FILES if f.suffix in (".c", ".h", ".py") and len(text(f).splitlines()) > HEADER_LINES}
    long_functions = {f"{name(p)}:{title}" for p in C_FILES for title, _, n in functions(p) if n > FUNCTION_LINES}
    report([f"{key} is not longer any more" for key in LONGER if key not in long_files | long_functions])


def test_folders():
    count = collections.Counter(folder(f) for f in C_FILES)
    report([f"{f}: {n} source files" for f, n in count.items() if n > FOLDER_FILES])


def test_lines_of_code():
    wrong = []
    for path in C_FILES:
        wrong += [f"{name(path)}:{i}" for i, l in enumerate(text(path).splitlines(), 1) if len(l) > LINE_WIDTH and '"' not in l and "http" not in l]
    report(wrong)


def test_lines_of_pages():
    """Rows of tables and links may be longer: they cannot be broken."""
    wrong = []
    for path in (f for f in FILES if f.suffix == ".md"):
        for i, line in enumerate(text(path).splitlines(), 1):
            if len(line) > PAGE_WIDTH and not line.startswith(("|", "    ")) and not re.search(r"\]\(\S{60,}\)|https?://\S{60,}", line):
                wrong.append(f"{name(path)}:{i}: {len(line)}")
    report(wrong)
