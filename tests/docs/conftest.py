import contextlib
import ctypes
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.request

import pytest

from pages import ROOT

PORT = 8080
START_S, STOP_S, COMMAND_S = 120, 30, 120
SAME_SIGNAL_S = 1.1  # within a second, a second signal is the first one (docs/lifecycle.md)
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def enter_network_namespace():
    """Moves this process into a network of its own, whose loopback is up. Returns whether the system allowed it."""
    libc, uid, gid = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNET) != 0:
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            return False
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        siocgifflags, siocsifflags, iff_up = 0x8913, 0x8914, 1
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(s, siocgifflags, request))[1]
        fcntl.ioctl(s, siocsifflags, struct.pack("16sH14x", b"lo", flags | iff_up))
    return True


def port_is_free():
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", PORT)) != 0


@pytest.fixture(scope="session", autouse=True)
def network():
    if not (ROOT / "build/release/bin/penstock").exists():
        pytest.skip("build/release/bin/penstock is not built")
    if not enter_network_namespace() and not port_is_free():
        pytest.skip(f"port {PORT} is taken, and the system allows no network namespace")


class Page:
    """Where the commands of one page run: a folder that looks like the repository's root, and the page's server."""

    def __init__(self, folder):
        self.folder, self.process, self.server_text = folder, None, None
        for entry in ROOT.iterdir():
            if entry.name != ".git":
                (folder / entry.name).symlink_to(entry)
        home = folder.parent / (folder.name + "-home")
        home.mkdir()
        # curl draws a progress meter unless it writes to a terminal.
        (home / ".curlrc").write_text("silent\nshow-error\n")
        self.environment = dict(os.environ, CURL_HOME=str(home), PATH=f"{ROOT / 'build/release/bin'}:{os.environ['PATH']}")

    def run(self, text):
        """Exit code and output of a command that ends."""
        process = subprocess.Popen(["bash", "-c", text], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        try:
            printed = process.communicate(timeout=COMMAND_S)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"$ {text}\nhas not ended after {COMMAND_S} s and printed:\n{process.communicate()[0].decode(errors='replace')}")
        return process.returncode, printed.decode(errors="replace").replace("\r", "")

    def serve(self, text):
        """Has that server running, ready, and no other. Returns what it printed so far."""
        log = self.folder.parent / (self.folder.name + "-server.log")
        if self.server_text != text or self.process.poll() is not None:
            self.stop()
            with open(log, "wb") as out:
                self.process = subprocess.Popen(["bash", "-c", "exec " + text], cwd=self.folder, env=self.environment,
                                                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)  # fmt: skip
            self.server_text = text
            end = time.monotonic() + START_S
            while not self.is_ready():
                assert self.process.poll() is None, f"{text}\nended with {self.process.returncode}:\n{log.read_text()[-3000:]}"
                assert time.monotonic() < end, f"{text}\nis not ready after {START_S} s:\n{log.read_text()[-3000:]}"
                time.sleep(0.05)
        return log.read_text(errors="replace")

    @staticmethod
    def is_ready():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v2/health/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(SAME_SIGNAL_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGINT)  # the second one ends the drain
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                raise
        self.process = None


@pytest.fixture(scope="session")
def page_of(tmp_path_factory):
    """page_of(name): the page's folder and server. Pages come one after the other: a new one stops the last one's server."""
    current = {}

    def page_of(name):
        if name not in current:
            for page in current.values():
                page.stop()
            current.clear()
            current[name] = Page(tmp_path_factory.mktemp(name.replace("/", "-")))
        return current[name]

    yield page_of
    for page in current.values():
        page.stop()
        shutil.rmtree(page.folder, ignore_errors=True)
