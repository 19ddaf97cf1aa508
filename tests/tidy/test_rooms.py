"""Every room has its page and its unit tests, named after what they test."""
import re

import pytest

from tree import C_FILES, FILES, FOLDERS, ROOM_FILES, ROOMS, ROOT, folder, name, report, text

PAGE_LINES = 80

# Unit tests that are named after a property of several files -> which.
OF_SEVERAL_FILES = {}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_a_page(room):
    page = ROOT / room / "README.md"
    assert page.exists()
    assert len(text(page).splitlines()) <= PAGE_LINES


def test_every_sub_room_has_a_page():
    """Its own, or its place on the page of the room above it, as `sub/`."""
    wrong = []
    for path in (ROOT / f for f in FOLDERS if (ROOT / f).is_dir() and not (ROOT / f / "README.md").exists()):
        above = next(p for p in path.parents if (p / "README.md").exists())
        if above == ROOT or f"`{path.relative_to(above).as_posix()}/" not in text(above / "README.md"):
            wrong.append(f"{name(path)}: no README.md, and {name(above / 'README.md')} does not name `{path.relative_to(above).as_posix()}/`")
    report(wrong)


def test_pages_name_only_files_that_exist():
    """Tables that say which file does what: their first column."""
    wrong = []
    for folder_name in FOLDERS:
        page = ROOT / folder_name / "README.md"
        for cell in re.findall(r"^\| `([^`|]+)`", text(page), re.M) if page.exists() else ():
            for file in re.split(r",\s*|\s+", cell):
                if re.fullmatch(r"[\w/]+\.(c|h|inc)", file) and not (page.parent / file).exists():
                    wrong.append(f"{name(page)}: {file}")
    report(wrong)


def test_unit_tests_are_named_after_what_they_test():
    """tests/unit/<folder>/test_<file>.c, or test_<file>_<aspect>.c, tests <folder>/<file>."""
    wrong = []
    for path in (f for f in C_FILES if name(f).startswith("tests/unit/") and f.name.startswith("test_")):
        tested = name(path.parent)[len("tests/unit/") :]
        words = path.stem[len("test_") :].split("_")
        names = ["_".join(words[:n]) for n in range(len(words), 0, -1)]
        if name(path) not in OF_SEVERAL_FILES and not any((ROOT / tested / f"{n}.{e}").exists() for n in names for e in "ch"):
            wrong.append(f"{name(path)}: there is no {tested}/{names[0]}.c or .h")
    report(wrong)


def test_every_exception_is_needed():
    report([f"{f} is gone" for f in OF_SEVERAL_FILES if not (ROOT / f).exists()])


def test_every_c_file_of_a_room_is_below_a_room():
    report([name(f) for f in FILES if f.suffix in (".c", ".h") and f not in C_FILES])
    assert {folder(f).split("/")[0] for f in ROOM_FILES} == set(ROOMS)
