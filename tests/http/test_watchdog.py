"""An event loop that is stuck: in a write of its access log, to a pipe that nobody reads."""
import ctypes
import fcntl
import os
import re
import signal

import pytest

import serving
from test_health_listener import ask

pytestmark = pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="no F_SETPIPE_SZ")


PIDFD_GETFD = 438  # the number of the system call, on every architecture


def make_blocking(process, path):
    """Writes of that process to that file wait from now on: O_NONBLOCK belongs to the open file, not to the descriptor."""
    folder = f"/proc/{process.pid}/fd"
    number = next(int(n) for n in os.listdir(folder) if os.readlink(f"{folder}/{n}") == str(path))
    whose = os.pidfd_open(process.pid)
    ours = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, whose, number, 0)
    os.close(whose)
    if ours < 0:
        pytest.skip(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
    os.set_blocking(ours, True)
    os.close(ours)


class Stuck:
    """A server whose only loop is stuck; health has another one. `free()` reads the pipe until the end."""

    def __init__(self, folder, *flags):
        self.pipe = folder / "access"
        os.mkfifo(self.pipe)
        self.reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.server = serving.Server(folder / "log", {"digits": serving.DIGITS}, "--access-log", str(self.pipe), "--listen-health", "127.0.0.1:0",
                                     "--set", "server.loops=1", "--set", "timeouts.liveness_ms=1500", *flags)  # fmt: skip

    def __enter__(self):
        self.server.__enter__()
        try:
            make_blocking(self.server.process, self.pipe)
        except BaseException:
            self.__exit__()
            raise
        fcntl.fcntl(self.reader, fcntl.F_SETPIPE_SZ, 4096)
        with serving.socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n" * 200)
        serving.wait_until(lambda: ask(self.server, "/v2/health/live").status != 200, "the loop is stuck")
        return self

    def __exit__(self, *_):
        if self.server.process.poll() is None:
            self.server.process.kill()
        self.server.process.wait()
        os.close(self.reader)

    def free(self):
        os.set_blocking(self.reader, True)
        serving.concurrent.futures.ThreadPoolExecutor(1).submit(lambda: [None for _ in iter(lambda: os.read(self.reader, 65536), b"")])


def test_a_loop_that_is_stuck_is_told_and_recovers(tmp_path):
    with Stuck(tmp_path) as s:
        answer = ask(s.server, "/v2/health/live")
        assert answer.status == 503 and "event loop has been stuck" in answer.json()["error"]
        assert re.search(r"loop 0 has been stuck for \d+\.\d s; it is in [^\"]*\bh2o_evloop_run\+0x", s.server.log())
        metrics = ask(s.server, "/metrics").body.decode()
        assert 'penstock_loop_stalls_total{loop="0"} 1\n' in metrics
        assert float(re.search(r'penstock_loop_stuck_seconds{loop="0"} (\S+)', metrics)[1]) >= 1.5
        assert 'penstock_loop_stuck_seconds{loop="1"} 0.000\n' in metrics
        s.free()
        serving.wait_until(lambda: ask(s.server, "/v2/health/live").status == 200, "the loop turns again")
        assert s.server.get("/v2/health/ready").status == 200
        assert "loop 0 turns again" in s.server.log()
        assert s.server.stop() == 0


def test_the_limit_of_the_drain_ends_a_process_whose_loop_is_stuck(tmp_path):
    with Stuck(tmp_path, "--set", "drain.limit_ms=500") as s:
        assert s.server.stop() == 1
        assert "an event loop is stuck and does not end" in s.server.log()


def test_a_second_signal_ends_a_process_whose_loop_is_stuck(tmp_path):
    with Stuck(tmp_path, "--set", "drain.limit_ms=0") as s:
        s.server.terminate()
        while s.server.process.poll() is None:  # signals within a second of the first do nothing
            try:
                s.server.process.send_signal(signal.SIGTERM)
                s.server.process.wait(0.1)
            except serving.subprocess.TimeoutExpired:
                pass
        assert s.server.process.returncode == 1
        assert "second signal: leaving at once" in s.server.log()


def test_two_signals_at_once_are_one(tmp_path):
    """As GNU timeout sends them."""
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}, delay_ms=300) as s:
        s.process.send_signal(signal.SIGTERM)
        s.process.send_signal(signal.SIGINT)
        assert s.process.wait(serving.STOP_S) == 0
