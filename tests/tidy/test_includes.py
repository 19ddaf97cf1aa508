"""Which file may include which: rooms, folders and libraries."""
import re

import pytest

from tree import C_FILES, FOLDERS, HEADERS, ROOM_FILES, ROOMS, circles, folder, included_files, includes, name, report, room

PLACE = {f: i for i, f in enumerate(FOLDERS)}


def test_there_is_something_to_check():
    assert len(ROOM_FILES) > 50 and len(HEADERS) > 20


def test_every_folder_has_its_place():
    found = {folder(path) for path in ROOM_FILES}
    report([f"{f} is not in FOLDERS of tests/tidy/tree.py" for f in sorted(found - set(FOLDERS))])
    # A folder that the next change brings may be named ahead; one that is gone may not.
    report([f"{f} of FOLDERS holds no C file" for f in FOLDERS if f not in found])


def test_includes_point_one_way_between_rooms():
    wrong = []
    for path in ROOM_FILES:
        for other in included_files(path):
            if room(other) != room(path) and room(other) not in ROOMS[room(path)]:
                wrong.append(f"{name(path)} includes {name(other)}: {room(path)} does not know {room(other)}")
    report(wrong)


def test_includes_point_one_way_between_folders():
    wrong = []
    for path in ROOM_FILES:
        for other in included_files(path):
            if PLACE.get(folder(other), 0) > PLACE.get(folder(path), len(FOLDERS)):
                wrong.append(f"{name(path)} includes {name(other)}: {folder(other)} stands above {folder(path)}")
    report(wrong)


def test_no_circle_of_files_is_larger_than_a_pair():
    """The .c and the .h of one name are one."""
    graph = {}
    for path in C_FILES:
        others = {name(o.with_suffix("")) for o in included_files(path)}
        graph.setdefault(name(path.with_suffix("")), set()).update(others - {name(path.with_suffix(""))})
    report([" <-> ".join(c) for c in circles(graph) if len(c) > 2])


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_no_file_includes_a_source_file():
    report([f"{name(path)} includes {i[1:]}" for path in ROOM_FILES for i in includes(path) if i.endswith(".c")])


# header: the files that may include it. Tests may include every library.
CONTAINED = {
    r"h2o(\.h|/)": r"^(server/(connection|http|http1|http2)/[a-z_]+\.[ch]$|server/http1/overrides/|bench/)",
    r"jansson\.h": r"^(config/|models/(manifest|loading|text)/|graph/(json_file\.h|safetensors\.c|hugging_face/)|cli/|loadtest/|bench/|text/(load/|tokenizer\.c$))",
    r"pcre2\.h": r"^text/pattern/",
    r"utf8proc\.h": r"^text/unicode/",
    r"liburing(\.h|/)": r"^(base/io/|loadtest/wire/)",
    r"(devices/pjrt/plugin/abi\.h|pjrt_c_api\.h)": r"^devices/pjrt/(plugin|host)/",
    r"nghttp2/": r"^(server/http2/session/|loadtest/wire/|bench/)",
    r"openssl/ssl\.h": r"^(server/(connection|http)/|loadtest/wire/)",
    r"openssl/(evp|crypto)\.h": r"^(devices/|server/access/)",
    r"zlib\.h": r"^server/protocol/",
    r"(protobuf-c/|.*\.pb-c\.h)": r"^(graph/onnx/|text/load/|server/(protocol|routes)/grpc/)",
    r"jemalloc/": r"^$",
}


@pytest.mark.parametrize("library", CONTAINED)
def test_libraries_stay_in_their_folders(library):
    wrong = []
    for path in C_FILES:
        if room(path) != "tests" and not re.match(CONTAINED[library], name(path)):
            wrong += [f"{name(path)} includes {i[1:]}" for i in includes(path) if re.match(library, i[1:])]
    report(wrong)


def test_unit_tests_include_no_library_of_the_edge():
    wrong = [f"{name(p)} includes {i[1:]}" for p in C_FILES if name(p).startswith("tests/unit/") for i in includes(p) if i[1:].startswith("h2o")]
    report(wrong)
