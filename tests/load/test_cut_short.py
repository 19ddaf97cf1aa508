"""SIGINT and SIGTERM end a run early: what was measured is reported, marked as cut short, and the exit code is 5."""
import json
import signal
import subprocess
import time

import pytest

from conftest import BIN

CUT_SHORT = 5


def stop_after(lines, number, server, *arguments):
    """Runs penstock-load until it has told so many lines (one a second, or one a run of a search), and sends it `number`.
    (exit code, JSON report, standard error)"""
    process = subprocess.Popen([BIN / "penstock-load", server.url, *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = "".join(process.stderr.readline() for _ in range(lines))
    if lines == 0:
        time.sleep(1.5)
    assert process.poll() is None, told + process.stderr.read()
    process.send_signal(number)
    out, error = process.communicate(timeout=600)
    return process.returncode, json.loads(out) if out else None, told + error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run(start, number):
    server = start("--delay", "constant:2ms")
    code, report, error = stop_after(2, number, server, "--rate", "200", "--duration", "60s", "--warm-up", "0s")
    assert code == CUT_SHORT and report["interrupted"] is True and "CUT SHORT by a signal" in error
    assert 0.5 < report["setup"]["duration_s"] < 20
    assert report["rate"] == pytest.approx(200, rel=0.15)  # of the time it ran
    assert report["errors"] == 0 and report["requests"] == report["answered"] + report["unfinished"]


@pytest.mark.parametrize("protocol", ["--http1", "--http2"])
def test_a_server_that_hangs(start, protocol):
    # Nothing is answered: that is what the report must say, and not that all went well.
    server = start("--delay", "constant:30s")
    code, report, error = stop_after(1, signal.SIGTERM, server, "--rate", "50", "--duration", "60s", "--warm-up", "0s", "--timeout", "60s", protocol)
    assert code == CUT_SHORT and report["answered"] == report["errors"] == 0
    assert report["unfinished"] == report["requests"] > 10
    assert report["unfinished_oldest_s"] > 0.5
    assert "without a response when the run was stopped" in error


def test_in_the_warm_up(start):
    code, report, error = stop_after(1, signal.SIGINT, start(), "--rate", "50", "--duration", "60s", "--warm-up", "30s")
    assert code == CUT_SHORT and report["requests"] == 0 and report["interrupted"] is True
    assert "nothing was measured yet" in error


def test_an_objective_is_not_held_by_half_a_run(start):
    code, report, _ = stop_after(1, signal.SIGTERM, start(), "--rate", "50", "--duration", "60s", "--warm-up", "0s", "--slo", "p99=10s")
    assert code == CUT_SHORT and report["slo_held"] is False


def test_a_sweep(start):
    # Those that were over are there, and no other begins.
    code, report, error = stop_after(
        4, signal.SIGTERM, start(), "--sweep", ",".join(["100"] * 60), "--duration", "500ms", "--warm-up", "0s", "--slo", "p99=5s"
    )
    runs = report["sweep"]["runs"]
    assert code == CUT_SHORT and report["interrupted"] is True
    assert 2 < len(runs) < 20 and all(run["held"] for run in runs[:-1])
    assert "CUT SHORT by a signal" in error


def test_a_search(start):
    server = start("--delay", "constant:1ms")
    code, report, error = stop_after(3, signal.SIGINT, server, "--find-max", "--slo", "p99=5s", "--rate", "5", "--duration", "1s", "--warm-up", "0s")
    assert code == CUT_SHORT and report["find_max"]["rate"] == 0 and report["interrupted"] is True
    assert report["find_max"]["runs"] and "cut short before the highest rate was found" in error


def test_a_search_before_its_first_run(start):
    # It is still guessing the first rate: nothing can be reported.
    server = start("--delay", "constant:1ms")
    code, report, error = stop_after(0, signal.SIGTERM, server, "--find-max", "--slo", "p99=5s", "--duration", "30s", "--warm-up", "0s")
    assert code == CUT_SHORT and report is None and "before anything was measured" in error
