"""Programs of others: where they are, and proxies that run while a test does."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest

import serving
from exchange import PATH

CACHE = serving.ROOT / ".cache"
FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", str(CACHE / "interop/usr/sbin"), str(CACHE / "interop/usr/bin"), str(CACHE / "bin"), str(pathlib.Path(sys.executable).parent)])


def find(name):
    """The program's path; without it the test is skipped."""
    path = os.environ.get(f"PENSTOCK_{name.upper()}") or shutil.which(name, path=FOLDERS)
    if path is None:
        pytest.skip(f"no {name} on this machine")
    return path


def run(*command, folder=None):
    """What the program prints; it must end with success."""
    done = subprocess.run([str(word) for word in command], capture_output=True, cwd=folder, timeout=600)
    assert done.returncode == 0, (command[0], done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def h2load(url, e, times, *flags):
    """So many requests on four connections, 16 at a time on each; answers are counted, not looked at."""
    told = run(find("h2load"), *flags, "-n", times, "-c", 4, "-m", 16, "-d", e.file, *e.header_flags(), url + PATH).decode()
    assert f"{times} succeeded, 0 failed, 0 errored" in told and f"status codes: {times} 2xx" in told, told
    assert int(re.search(r"\((\d+)\) data\s*$", told, re.M)[1]) > times * e.array.nbytes, told


def nghttp(url, e, times, *flags):
    """One request, whose answer is looked at, and so many together."""
    assert e.is_answer(run(find("nghttp"), *flags, "-d", e.file, *e.header_flags(), url + PATH))
    told = run(find("nghttp"), *flags, "-ns", "-m", times, "-d", e.file, *e.header_flags(), url + PATH).decode()
    assert len(re.findall(rf" 200 +\S+ {PATH}$", told, re.M)) == times, told


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=serving.WAIT_S).close()
        return True
    except OSError:
        return False


@contextlib.contextmanager
def running(command, ports, log):
    """A proxy that listens on these ports."""
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        for port in ports:
            serving.wait_until(lambda: process.poll() is not None or is_open(port), f"{command[0]} listens")
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        yield process
    finally:
        process.terminate()
        process.wait()
