"""A server under attack with a polite client beside it, and what must be true when the attack is over."""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import numpy

import serving

IMAGE = numpy.random.default_rng(1).integers(0, 16, (3, 64)).astype(numpy.float32)
MIB = 1 << 20
IDLE_S = 0.5  # less than any test lets a connection be idle
START_LOG_BYTES = 64 << 10
DRAIN_LIMIT_MS, DRAIN_SLACK_S = 5000, 60  # the slack is for busy machines and sanitizers


class Polite:
    """One client that asks again and again; each answer is compared with the first. `keeps_connection`: not a new one for each request."""

    def __init__(self, server, headers=None, keeps_connection=True):
        self.keeps_connection = keeps_connection
        body, self.headers = serving.binary_request({"image": IMAGE})
        self.body, self.headers = body, dict(self.headers, **(headers or {}))
        self.server, self.failures, self.answered, self.is_over = server, [], 0, False
        self.expected = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def ask(self, connection):
        answer = self.server.post("/v2/models/digits/infer", self.body, self.headers, connection)
        if answer.status != 200:
            self.failures.append(repr(answer))
            return answer
        found = serving.binary_outputs(answer)["logits"]
        if self.expected is None:
            self.expected = found
        if not numpy.array_equal(found, self.expected):
            self.failures.append("a wrong answer")
        self.answered += 1
        return answer

    def run(self):
        connection, used = None, time.monotonic()
        while not self.is_over:
            # One that was idle for long, on a busy machine, may be closed by now: a client that means well does not ask there.
            if connection and time.monotonic() - used > IDLE_S:
                connection.close()
                connection = None
            try:
                connection = connection or self.server.connect(timeout=serving.WAIT_S)
                answer = self.ask(connection)
                if answer.headers.get("Connection", "").lower() == "close" or not self.keeps_connection:
                    connection.close()
                    connection = None
            except Exception as error:  # noqa: BLE001: every kind is a failure
                self.failures.append(repr(error))
                connection = None
            used = time.monotonic()
            time.sleep(0.02)
        if connection:
            connection.close()

    def stop(self):
        self.is_over = True
        self.thread.join(60)


class Target(serving.Server):
    """`limits`: of prlimit(1), such as ("--nofile=64:64",). Drains for 5 s at the most."""

    def __init__(self, log, *flags, models=None, limits=(), **more):
        flags = ("--set", f"drain.limit_ms={DRAIN_LIMIT_MS}", *flags)
        super().__init__(log, models or {"digits": serving.DIGITS}, *flags, **more)
        if limits:
            self.arguments = ["prlimit", *limits, *self.arguments]

    def memory_bytes(self, key="VmRSS"):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith(key):
                return int(line.split()[1]) * 1024
        return 0

    def is_alive(self):
        return self.process.poll() is None

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_ticks(self):
        return sum(map(int, open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))

    def foreign_lines(self):
        """What is in the log and is not a line of ours."""
        wrong = []
        for line in self.log().splitlines():
            try:
                if not {"level", "message"} <= set(json.loads(line)):
                    wrong.append(line)
            except ValueError:
                wrong.append(line)
        return wrong

    def end(self):
        """SIGTERM, and the end within the limit of a drain."""
        self.process.send_signal(signal.SIGTERM)
        self.is_told = True
        try:
            return self.process.wait(DRAIN_LIMIT_MS / 1000 + DRAIN_SLACK_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not drained within its limit\n{self.log()[-2000:]}")


def wait_for_first(polite):
    """Until its connection is a client's: one that has sent nothing yet may be closed for others."""
    end = time.monotonic() + 60
    while polite.answered < 2 and not polite.failures and time.monotonic() < end:
        time.sleep(0.01)


@contextlib.contextmanager
def attacked(tmp_path, *flags, memory_mib=64, polite_headers=None, polite_keeps=True, is_drained=True, **more):
    """The body is the attack. `memory_mib`: what the server may hold beyond what it held before. `is_drained`: False where the attack ends the
    server by itself."""
    server = Target(tmp_path / "server.log", *flags, **more)
    with contextlib.ExitStack() as stack:
        server.__enter__()
        stack.callback(lambda: server.is_alive() and (server.process.kill(), server.process.wait()))
        polite = Polite(server, polite_headers, polite_keeps)
        polite.ask(None)
        before, log_before = server.memory_bytes(), len(server.log())
        polite.thread.start()
        wait_for_first(polite)
        server.polite = polite
        yield server
        if is_drained:
            assert server.is_alive(), f"ended with {server.process.returncode}\n{server.log()[-2000:]}"
            answered = polite.answered
            serving.wait_until(lambda: polite.answered >= answered + 3 or polite.failures, "polite requests are answered")
            polite.stop()
            assert not polite.failures, polite.failures[:5]
            held = server.memory_bytes("VmHWM") - before
            assert held < memory_mib * MIB, f"{held / MIB:.0f} MiB more than before"
            code = server.end()
            assert code == 0, f"exit code {code}\n{server.log()[-2000:]}"
        polite.stop()
        assert len(server.log()) - log_before < START_LOG_BYTES, "too much is logged"
        assert not server.foreign_lines(), server.foreign_lines()[:5]
