"""Starts the test server and the tool under test. Binaries come from PENSTOCK_BIN, or from the newest build folder."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def binaries():
    if "PENSTOCK_BIN" in os.environ:
        return pathlib.Path(os.environ["PENSTOCK_BIN"])
    candidates = [ROOT / "build/release/bin", *ROOT.glob("build/*/bin")]
    built = [c for c in candidates if (c / "penstock-load").exists() and (c / "load_test_server").exists()]
    return built[0] if built else ROOT / "build/release/bin"


BIN = binaries()


def pytest_collection_modifyitems(items):
    if not (BIN / "penstock-load").exists() or not (BIN / "load_test_server").exists():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"penstock-load and load_test_server are not built in {BIN}"))


class Server:
    """`made` holds the number of requests and the percentiles of the delays that the server really made, in ms, once it has stopped."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([BIN / "load_test_server", *arguments], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.made = None

    def stop(self):
        if self.made is None:
            self.process.send_signal(signal.SIGTERM)
            self.made = json.loads(self.process.stdout.read() or "null")
            self.process.wait()
        return self.made


@pytest.fixture
def start():
    servers = []

    def begin(*arguments):
        servers.append(Server(*arguments))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture
def load():
    """Runs penstock-load; returns (exit code, JSON report or None, standard error)."""

    def run(*arguments, env=None, wrapper=(), json_report=True):
        command = [*map(str, wrapper), str(BIN / "penstock-load"), *map(str, arguments)]
        if json_report:
            command.append("--json")
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=dict(os.environ, **(env or {})))
        report = json.loads(done.stdout) if json_report and done.stdout.startswith("{") else None
        return done.returncode, report, done.stderr + ("" if json_report else done.stdout)

    return run
