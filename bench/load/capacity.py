#!/usr/bin/env python3
"""Load capacity: penstock-load beside wrk (HTTP/1.1) and h2load (h2c), one thread each, on the same trivial endpoint.

    quiet python3 bench/load/capacity.py [--endpoint h2o|nginx] [--pairs 5] [--seconds 3]

The client has core 0, the endpoint core 1: bench_http_bare (libh2o, the cheapest per request that there is here) or nginx. "busy" tells
which of the two was the limit: the rate is the client's where the endpoint's core is not full. On HTTP/1.1 both are, as the kernel's
work for a connection is the same on both sides; the client's processor time per request decides there. Pairs of runs alternate, and the
median ratio counts: on a shared machine a single figure means little. Needs wrk, h2load, and nginx or bench_http_bare (-DPENSTOCK_TESTS=ON).
"""
import argparse
import json
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURATION = """
worker_processes 1; daemon off; pid {0}/pid; error_log {0}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
 client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
 server {{ listen 127.0.0.1:{1}; location / {{ return 200 "hello\\n"; }} }}
 server {{ listen 127.0.0.1:{2} http2; location / {{ return 200 "hello\\n"; }} }} }}
"""


CLIENT_CORE, SERVER_CORE = "0", "1"


def timed(command, environment=None):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["taskset", "-c", CLIENT_CORE, *map(str, command)], capture_output=True, text=True, env=dict(os.environ, **(environment or {})))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(tool, seconds, url, *arguments, environment=None):
    # The rate is of the measured window; the CPU is of the whole process, start included.
    out, cpu = timed([tool, url, "--duration", f"{seconds}s", "--warm-up", "0s", "--quiet", "--json", "-", *arguments], environment)
    report = json.loads(out)
    assert report["errors"] == 0, report["errors_by_kind"]
    return report["rate"], cpu / report["requests"] * 1e6


def theirs(command, pattern, seconds):
    out, cpu = timed(command)
    rate = float(re.search(pattern, out)[1])
    return rate, cpu / (rate * seconds) * 1e6


def process_cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Endpoint:
    """Two addresses, for HTTP/1.1 and h2c, in one single-threaded process."""

    def __init__(self, kind, binary, port, folder):
        if kind == "nginx":
            conf = pathlib.Path(folder, "nginx.conf")
            conf.write_text(CONFIGURATION.format(folder, port, port + 1))
            command, self.ports = ["nginx", "-c", conf], (port, port + 1)
        else:
            command, self.ports = [binary, port, "6"], (port, port)
        self.process = subprocess.Popen(["taskset", "-c", SERVER_CORE, *map(str, command)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.worker = int(children[0]) if children else pid

    def busy(self, run):
        """What `run` returned, and the share of its core that the endpoint used meanwhile."""
        cpu_s, start = process_cpu_s(self.worker), time.monotonic()
        rate, us = run()
        return rate, us, (process_cpu_s(self.worker) - cpu_s) / (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", choices=["h2o", "nginx"], default="h2o")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--port", type=int, default=28180)
    options = parser.parse_args()
    tool, n = options.bin / "penstock-load", options.seconds
    closed = ["--concurrency", "32"], ["--http2", "--concurrency", "128", "--connections", "4", "--connections-max", "4"]
    with tempfile.TemporaryDirectory() as folder:
        endpoint = Endpoint(options.endpoint, options.bin / "bench_http_bare", options.port, folder)
        one, two = (f"http://127.0.0.1:{port}/x" for port in endpoint.ports)
        contests = {
            "HTTP/1.1, 32 connections": (
                ("wrk", lambda: theirs(["wrk", "-t1", "-c32", f"-d{n}s", one], r"Requests/sec:\s+([\d.]+)", n)),
                ("penstock-load, io_uring", lambda: ours(tool, n, one, *closed[0])),
                ("penstock-load, epoll", lambda: ours(tool, n, one, *closed[0], environment={"PENSTOCK_IO": "epoll"})),
            ),
            "h2c, 4 connections of 32 streams": (
                ("h2load", lambda: theirs(["h2load", "-t1", "-c4", "-m32", f"-D{n}", two], r"finished in [\d.]+s, ([\d.]+) req/s", n)),
                ("penstock-load, io_uring", lambda: ours(tool, n, two, *closed[1])),
                ("penstock-load, epoll", lambda: ours(tool, n, two, *closed[1], environment={"PENSTOCK_IO": "epoll"})),
            ),
        }
        try:
            for title, contest in contests.items():
                rounds = [[endpoint.busy(run) for _, run in contest] for _ in range(options.pairs)]
                print(f"{title}, endpoint {options.endpoint}")
                for i, (name, _) in enumerate(contest):
                    rate, us, busy = (statistics.median(r[i][k] for r in rounds) for k in range(3))
                    ratio = statistics.median(r[i][0] / r[0][0] for r in rounds)
                    print(f"  {name:<24} {rate:9.0f}/s {ratio:5.2f}x  {us:5.2f} us of CPU each, its core {rate * us / 1e4:3.0f}%, the endpoint's {busy:4.0%}")
        finally:
            endpoint.process.send_signal(signal.SIGTERM)
            endpoint.process.wait()


if __name__ == "__main__":
    main()
