#!/usr/bin/env python3
"""CPU per request of penstock with an identity model beside a bare libh2o handler.

Paired runs in turn, in another order each time, the same client (h2load), a KServe request with a 1 KiB binary
tensor. Prints one JSON object with the medians in microseconds, what penstock adds, and requests per second. With
--old, another penstock is measured in the same pairs.
Usage: run.py PENSTOCK BARE [--old PENSTOCK] [--requests N] [--pairs N] [--clients N]
"""
import argparse, json, os, platform, signal, socket, statistics, struct, subprocess, sys, tempfile, time, urllib.request


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """One protobuf field: an integer, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def identity_model():
    """An ONNX file: y = Identity(x), FLOAT [batch, 256]; written by hand, so that no package is needed."""
    dims = field(1, field(2, b"batch")) + field(1, field(1, 256))
    def value(name):
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))
    node = field(1, b"x") + field(2, b"y") + field(3, b"copy") + field(4, b"Identity")
    graph = field(1, node) + field(2, b"identity") + field(11, value(b"x")) + field(12, value(b"y"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def cpu_seconds(pid):
    """Of all threads that live, from the scheduler's nanoseconds: clock ticks are too coarse."""
    folder = "/proc/%d/task" % pid
    return sum(int(open("%s/%s/schedstat" % (folder, t)).read().split()[0]) for t in os.listdir(folder)) / 1e9


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait(port, path):
    for _ in range(200):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path)) as r:
                if r.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    sys.exit("no answer on port %d" % port)


def load(port, body, head_bytes, protocol, options):
    command = ["h2load", "-n", str(options.requests), "-c", str(options.clients), "-d", body,
               "-H", "inference-header-content-length: %d" % head_bytes, "-H", "content-type: application/octet-stream"]
    command += ["--h1"] if protocol == "h1" else ["-m", str(options.streams)]
    out = subprocess.run(command + ["http://127.0.0.1:%d/v2/models/identity/infer" % port],
                         capture_output=True, text=True, check=True).stdout
    if " %d succeeded" % options.requests not in out:
        sys.exit("requests failed:\n" + out)


def make_parser():
    """What the gRPC bench takes, too."""
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    parser.add_argument("bare")
    parser.add_argument("--requests", type=int, default=60000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--streams", type=int, default=8)
    return parser


def in_turn(servers, pairs):
    """Each server once a pair, in another order each time."""
    names = list(servers)
    for pair in range(pairs):
        yield from sorted(names, key=lambda name: (names.index(name) + pair) % len(names))


def main():
    parser = make_parser()
    parser.add_argument("--old", help="another penstock to compare with")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="penstock-bench-")
    model, body = folder + "/identity.onnx", folder + "/body"
    open(model, "wb").write(identity_model())
    head = json.dumps({"inputs": [{"name": "x", "shape": [1, 256], "datatype": "FP32",
                                   "parameters": {"binary_data_size": 1024}}],
                       "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}, separators=(",", ":")).encode()
    open(body, "wb").write(head + struct.pack("<256f", *range(256)))
    binaries = {"penstock": options.penstock} | ({"old": options.old} if options.old else {})
    ports = {name: free_port() for name in ("bare", *binaries)}
    servers = {"bare": subprocess.Popen([options.bare, str(ports["bare"]), "1160"])}
    for name, binary in binaries.items():
        command = [binary, "serve", "--model", "identity=" + model, "--listen", "127.0.0.1:%d" % ports[name]]
        servers[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    result = {"machine": platform.machine(), "cpus": os.cpu_count(), "requests": options.requests, "pairs": options.pairs}
    try:
        wait(ports["bare"], "/")
        for name in binaries:
            wait(ports[name], "/v2/health/ready")
        for protocol in ("h2c", "h1"):
            spent, rate = {name: [] for name in servers}, {name: [] for name in servers}
            for name in in_turn(servers, options.pairs):
                before, started = cpu_seconds(servers[name].pid), time.monotonic()
                load(ports[name], body, len(head), protocol, options)
                rate[name].append(options.requests / (time.monotonic() - started))
                spent[name].append((cpu_seconds(servers[name].pid) - before) / options.requests * 1e6)
            result[protocol] = {"bare_us": round(statistics.median(spent["bare"]), 2)}
            for name in binaries:
                added = [p - b for b, p in zip(spent["bare"], spent[name])]
                result[protocol] |= {name + "_us": round(statistics.median(spent[name]), 2),
                                     name + "_added_us": round(statistics.median(added), 2),
                                     name + "_per_s": round(statistics.median(rate[name]))}
    finally:
        for server in servers.values():
            server.send_signal(signal.SIGKILL)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
