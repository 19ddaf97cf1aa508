#!/usr/bin/env python3
"""Load capacity: penstock-load beside wrk (HTTP/1.1) and h2load (h2c), one thread each, on the same trivial nginx endpoint.

    flock /tmp/bench.lock python3 bench/load/capacity.py [--pairs 5] [--seconds 3]

Pairs of runs alternate, and the median ratio counts: on a shared machine a single figure means little. Needs nginx, wrk, h2load.
CPU per request is that of the client process: where the server is the limit, it tells more than the rate.
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


def timed(command, environment=None):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=dict(os.environ, **(environment or {})))
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


def theirs(command, pattern):
    out, cpu = timed(command)
    rate = float(re.search(pattern, out)[1])
    return rate, cpu / (rate * float(command[command.index("-d" if "-d" in command else "-D") + 1].rstrip("s"))) * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--tool", default=ROOT / "build/release/bin/penstock-load")
    parser.add_argument("--port", type=int, default=28180)
    options = parser.parse_args()
    n, one, two = options.seconds, f"http://127.0.0.1:{options.port}/x", f"http://127.0.0.1:{options.port + 1}/x"
    closed = ["--concurrency", "32"], ["--http2", "--concurrency", "128", "--connections", "4", "--connections-max", "4"]
    contests = {
        "HTTP/1.1, 32 connections, wrk": (
            lambda: theirs(["wrk", "-t1", "-c32", "-d", f"{n}s", one], r"Requests/sec:\s+([\d.]+)"),
            lambda e=None: ours(options.tool, n, one, *closed[0], environment=e),
        ),
        "h2c, 4 connections of 32 streams, h2load": (
            lambda: theirs(["h2load", "-t1", "-c4", "-m32", "-D", str(n), two], r"finished in [\d.]+s, ([\d.]+) req/s"),
            lambda e=None: ours(options.tool, n, two, *closed[1], environment=e),
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        conf = pathlib.Path(folder, "nginx.conf")
        conf.write_text(CONFIGURATION.format(folder, options.port, options.port + 1))
        server = subprocess.Popen(["nginx", "-c", conf], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        try:
            for name, (other, mine) in contests.items():
                runs = []
                for _ in range(options.pairs):
                    runs.append((other(), mine(), mine({"PENSTOCK_IO": "epoll"})))
                (a, u, e) = ([run[i] for run in runs] for i in range(3))
                median = lambda values: statistics.median(values)
                print(name)
                for label, list_of in (("other", a), ("penstock-load io_uring", u), ("penstock-load epoll", e)):
                    ratio = median([x[0] / y[0] for x, y in zip(list_of, a)])
                    print(f"  {label:<24} {median([r for r, _ in list_of]):9.0f}/s  {median([c for _, c in list_of]):6.2f} us CPU each  {ratio:5.2f}x")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


if __name__ == "__main__":
    main()
