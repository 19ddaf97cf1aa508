#!/usr/bin/env python3
"""Accuracy: quantiles within 1% + 0.2 ms of the delays that a test server makes, rate error under 0.5%.

    quiet python3 bench/load/accuracy.py [--bin build/release/bin]

The server measures its own delays from the kernel's time stamp of a request on, and the client ends at the stamp of the answer: what is
left beside the delays is the loopback and the client's lateness at sending. Wants a quiet machine, or the right to schedule ahead of
others (CAP_SYS_NICE), which both sides then use. Exit code 1 if a figure is beyond.
"""
import argparse
import json
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DELAYS = ["constant:5ms", "uniform:2ms:50ms", "exponential:10ms", "bimodal:3ms:60ms:0.04"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--rate", type=float, default=400)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    bad = 0
    print(f"{'delay':<24} {'protocol':<8} " + "".join(f"{q:>22}" for q in ("p50", "p90", "p95", "p99")) + "   rate error")
    for delay in DELAYS:
        for protocol in ("--http1", "--http2"):
            server = subprocess.Popen([options.bin / "load_test_server", "--delay", delay, "--realtime"], stdout=subprocess.PIPE, text=True)
            port = int(server.stdout.readline().split()[1])
            out = subprocess.run(
                [options.bin / "penstock-load", f"http://127.0.0.1:{port}", "--rate", str(options.rate), "--duration", f"{options.seconds}s",
                 "--warm-up", "0s", "--quiet", "--realtime", "--json", "-", protocol],
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            server.send_signal(signal.SIGTERM)
            made, report = json.loads(server.stdout.read()), json.loads(out)
            cells = []
            for q in ("p50", "p90", "p95", "p99"):
                seen, wanted = report["latency_ms"][q], made["percentiles"][int(q[1:])]
                beyond = abs(seen - wanted) > 0.01 * wanted + 0.2
                bad += beyond
                cells.append(f"{wanted:9.3f} {seen:9.3f} {'!!' if beyond else 'ok'}")
            error = abs(report["rate_sent"] / options.rate - 1)
            bad += error > 0.005
            print(f"{delay:<24} {protocol[2:]:<8} " + "".join(f"{c:>22}" for c in cells) + f"   {error:.3%}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
