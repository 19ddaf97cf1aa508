"""What a start of the server costs, by what does not depend on the machine's load."""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

import serving

# libh2o comes as a shared library alone, and with OpenSSL, zlib and libwslay. Others take 0.05 to 0.6 ms of every start, and
# are put into the program (CMakeLists.txt).
LIBRARIES = {"libh2o-evloop.so", "libssl.so", "libcrypto.so", "libz.so", "libwslay.so", "libm.so", "libc.so", "ld-linux-x86-64.so", "ld-linux-aarch64.so"}


def test_a_server_that_is_ready_has_loaded_few_libraries(tmp_path):
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}) as server:
        maps = pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()
    loaded = set(re.findall(r"/([\w+-]+\.so)[.\d]*$", maps, re.M))
    if {"libasan.so", "libtsan.so"} & loaded:
        pytest.skip("sanitizers look into shared libraries")
    assert loaded - LIBRARIES == set(), "these take time at every start"


def test_the_program_is_position_independent_and_its_relocations_are_read_only():
    told = subprocess.run(["readelf", "-hlW", serving.BINARY], capture_output=True, text=True, check=True).stdout
    assert re.search(r"Type:\s+DYN", told) and "GNU_RELRO" in told


class Openings:
    """Counts how often a file is opened: inotify(7)."""

    OPENED = 0x20

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(self.fd, os.fsencode(path), self.OPENED) >= 0, os.strerror(ctypes.get_errno())

    def count(self):
        try:
            return len(os.read(self.fd, 65536)) // 16
        except BlockingIOError:
            return 0


def test_a_start_with_the_cache_does_not_open_the_model(tmp_path):
    model = shutil.copy(serving.DIGITS / "1/model.onnx", tmp_path / "digits.onnx")
    cache, openings, flags = tmp_path / "cache", Openings(model), ("--cache", str(tmp_path / "cache"))
    time.sleep(3.5)  # what changed in the last seconds is read each time: it may change again within the clock's step
    with serving.Server(tmp_path / "first", {"digits": model}, *flags):
        serving.wait_until(lambda: list(cache.glob("*.graph")) and list(cache.glob("*.weights")), "graph and weights in the cache")
    assert openings.count() > 0
    with serving.Server(tmp_path / "second", {"digits": model}, *flags):
        assert openings.count() == 0
    os.utime(model)
    with serving.Server(tmp_path / "third", {"digits": model}, *flags):
        assert openings.count() > 0, "a file that changed is read again"
