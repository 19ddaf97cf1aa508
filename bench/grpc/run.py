#!/usr/bin/env python3
"""CPU per gRPC call of penstock with an identity model beside a bare nghttp2 server that sends the message back, and
beside Triton's gRPC front end.

Paired runs in turn, in another order each time, the same client (h2load), a ModelInfer call with a tensor of 1 KiB.
Prints one JSON object with the medians in microseconds, of all threads and processes of a server, what penstock adds,
and calls per second. --triton names a Python with nvidia-pytriton, which runs triton.py.
Usage: run.py PENSTOCK BARE [--triton PYTHON] [--requests N] [--pairs N] [--clients N]
"""
import json, os, pathlib, platform, signal, statistics, struct, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "http"))
from run import cpu_seconds, field, free_port, identity_model, in_turn, make_parser


def call_body():
    """inference.ModelInferRequest with its frame head."""
    tensor = field(1, b"x") + field(2, b"FP32") + field(3, b"\x01\x80\x02")  # [1, 256]
    message = field(1, b"identity") + field(5, tensor) + field(7, struct.pack("<256f", *range(256)))
    return struct.pack(">BI", 0, len(message)) + message


def family(pid):
    """The process and its descendants."""
    found = [pid]
    for task in os.listdir("/proc/%d/task" % pid):
        for child in open("/proc/%d/task/%s/children" % (pid, task)).read().split():
            found += family(int(child))
    return found


def cpu_of(pid):
    return sum(cpu_seconds(p) for p in family(pid))


def load(port, body, requests, options):
    """False: not all calls succeeded."""
    command = ["h2load", "-n", str(requests), "-c", str(options.clients), "-m", str(options.streams), "-d", body,
               "-H", "content-type: application/grpc", "-H", "te: trailers"]
    out = subprocess.run(command + ["http://127.0.0.1:%d/inference.GRPCInferenceService/ModelInfer" % port],
                         capture_output=True, text=True).stdout
    return " %d succeeded" % requests in out


def is_served(port, body):
    """h2load counts the codes of HTTP only, and a call that fails has 200, too."""
    command = ["curl", "-s", "--http2-prior-knowledge", "-D", "-", "-o", "/dev/null", "--data-binary", "@" + body,
               "-H", "content-type: application/grpc", "-H", "te: trailers",
               "http://127.0.0.1:%d/inference.GRPCInferenceService/ModelInfer" % port]
    return "grpc-status: 0" in subprocess.run(command, capture_output=True, text=True).stdout


def wait(name, port, body, options):
    for _ in range(120):
        if is_served(port, body) and load(port, body, 200, options):
            return
        time.sleep(1)
    sys.exit("%s does not answer" % name)


def measure(servers, ports, requests, body, options):
    spent, rate = {name: [] for name in servers}, {name: [] for name in servers}
    for name in in_turn(servers, options.pairs):
        before, started = cpu_of(servers[name].pid), time.monotonic()
        if not load(ports[name], body, requests[name], options):
            sys.exit("calls of %s failed" % name)
        if not is_served(ports[name], body):
            sys.exit("%s has stopped to serve" % name)
        rate[name].append(requests[name] / (time.monotonic() - started))
        spent[name].append((cpu_of(servers[name].pid) - before) / requests[name] * 1e6)
    return spent, rate


def main():
    parser = make_parser()
    parser.add_argument("--triton", help="a Python with nvidia-pytriton")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="penstock-bench-")
    model, body = folder + "/identity.onnx", folder + "/body"
    pathlib.Path(model).write_bytes(identity_model())
    pathlib.Path(body).write_bytes(call_body())
    ports = {name: free_port() for name in ("bare", "penstock", "triton")}
    commands = {"bare": [options.bare, str(ports["bare"])],
                "penstock": [options.penstock, "serve", "--model", "identity=" + model, "--listen", "127.0.0.1:0",
                             "--grpc", "127.0.0.1:%d" % ports["penstock"]]}
    if options.triton:
        commands["triton"] = [options.triton, str(HERE / "triton.py"), str(ports["triton"])]
    servers = {name: subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for name, command in commands.items()}
    result = {"machine": platform.machine(), "cpus": os.cpu_count(), "requests": options.requests, "pairs": options.pairs}
    requests = {name: options.requests // (20 if name == "triton" else 1) for name in servers}
    try:
        for name in servers:
            wait(name, ports[name], body, options)
        spent, rate = measure(servers, ports, requests, body, options)
    finally:
        for server in servers.values():
            server.send_signal(signal.SIGTERM)
    for name in servers:
        result |= {name + "_us": round(statistics.median(spent[name]), 2), name + "_per_s": round(statistics.median(rate[name]))}
    result["added_us"] = round(statistics.median(p - b for b, p in zip(spent["bare"], spent["penstock"])), 2)
    if options.triton:
        result["calls_per_core_beside_triton"] = round(statistics.median(t / p for t, p in zip(spent["triton"], spent["penstock"])), 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
