"""A Penstock server as the tests start it, a plain HTTP client, and models made on the spot."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("PENSTOCK_BINARY", ROOT / "build/release/bin/penstock"))
# The same program; a preloaded library may take the place of its allocator, which is shared.
PRELOADABLE = BINARY.with_name("penstock_preloadable")
# Layers of slow_model() that take tens of milliseconds for a batch. Kernels under a sanitizer take 50 times as long.
SLOW_LAYERS = 5 if BINARY.parent.parent.name in ("asan", "tsan") else 40
DIGITS = ROOT / "examples/models/digits"
# Whoever reaches the server may load and unload models.
CONTROL = ("--set", "server.repository_control=true")
# A sanitizer on a busy machine takes its time. No test expects anything to happen sooner.
START_S, STOP_S, WAIT_S = 180, 60, 180


def skip_without_binary(items):
    """The hook pytest_collection_modifyitems of suites that start the server."""
    if not BINARY.exists():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"{BINARY} is not built"))


def wait_until(condition, what, seconds=WAIT_S):
    """Asks again and again; fails with `what` when the condition does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)


def shared_models():
    """The folder of golden models: the big set beside the checkout, or the committed one."""
    shared = pathlib.Path(os.environ.get("PENSTOCK_SHARED", ROOT.parent / "shared")) / "models"
    return shared if (shared / "manifest.json").exists() else ROOT / "tests/data/golden"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class Server:
    """`penstock serve` on free ports of the loopback. A context manager: stopped by SIGTERM, which must end it with code 0."""

    def __init__(self, log, models, *flags, tls=None, delay_ms=0, listen=True, environment=None, wrap=(), binary=BINARY):
        self.log_path = pathlib.Path(log)
        self.environment = dict(os.environ, **(environment or {}))
        arguments = [*wrap, str(binary), "serve", "--log-format", "json", "--set", f"drain.delay_ms={delay_ms}"]
        for name, path in models.items():
            arguments += ["--model", f"{name}={path}"]
        if listen:
            arguments += ["--listen", "127.0.0.1:0"]
        if tls:
            arguments += ["--listen-tls", "127.0.0.1:0", "--tls-certificate", str(tls[0]), "--tls-key", str(tls[1])]
        self.arguments = arguments + list(flags)
        self.port = self.tls_port = None
        self.is_told = False

    def __enter__(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=self.environment)
        try:
            self._wait_for(self._ports_known, "ports in the log")
            self._wait_for(self.is_ready, "ready")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, kind, *_):
        code = self.stop()
        if kind is None:
            assert code == 0, f"exit code {code}\n{self.log()[-3000:]}"
            assert "Sanitizer" not in self.log() and "runtime error:" not in self.log(), self.log()[-6000:]

    def stop(self):
        self.terminate()
        try:
            return self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"not ended {STOP_S} s after SIGTERM\n{self.log()[-3000:]}")

    def terminate(self):
        """The first SIGTERM only: a second one means now."""
        if not self.is_told and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.is_told = True

    @contextlib.contextmanager
    def stopped(self):
        """It stands still inside, while the kernel takes what clients send: afterwards all of that is there at once."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def _ports_known(self):
        for scheme, port in re.findall(r"listening on (https?)://[^\"\s]*:(\d+)\b(?! for)", self.log()):
            if scheme == "https":
                self.tls_port = int(port)
            else:
                self.port = int(port)
        wants_tls = "--listen-tls" in self.arguments
        return (self.port or "--listen" not in self.arguments) and (self.tls_port or not wants_tls)

    def is_ready(self):
        try:
            return self.get("/v2/health/ready").status == 200
        except OSError:
            return False

    def _wait_for(self, condition, what):
        end = time.monotonic() + START_S
        while not condition():
            assert self.process.poll() is None, f"ended with {self.process.returncode} before {what}:\n{self.log()[-3000:]}"
            assert time.monotonic() < end, f"no {what} in {START_S} s:\n{self.log()[-3000:]}"
            time.sleep(0.05)

    def connect(self, timeout=60):
        if self.port is None:
            context = ssl._create_unverified_context()
            return http.client.HTTPSConnection("127.0.0.1", self.tls_port, timeout=timeout, context=context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, connection=None):
        own = connection or self.connect()
        try:
            own.request(method, path, body=body, headers=headers or {})
            response = own.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            if connection is None:
                own.close()

    def get(self, path, headers=None):
        """Never a text made before this call: a busy loop shares those for a second, and they have an Age."""
        while "Age" in (answer := self.request("GET", path, headers=headers)).headers:
            time.sleep(0.02)
        return answer

    def post(self, path, body, headers=None, connection=None):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        return self.request("POST", path, body, headers, connection)

    def infer(self, model, inputs, **more):
        """`inputs`: name -> numpy array. JSON both ways; returns name -> array."""
        answer = self.post(f"/v2/models/{model}/infer", dict(inputs=[json_input(n, a) for n, a in inputs.items()], **more))
        assert answer.status == 200, answer
        return {o["name"]: json_array(o) for o in answer.json()["outputs"]}

    def infer_binary(self, model, inputs, connection=None):
        body, headers = binary_request(inputs)
        answer = self.post(f"/v2/models/{model}/infer", body, headers, connection)
        assert answer.status == 200, answer
        return binary_outputs(answer)

    def raw(self, data, timeout=20, half_close=False, until_close=True):
        """Bytes on a bare socket, and all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            got = b""
            try:
                s.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused while still sending: the answer is there to be read
            if half_close:
                s.shutdown(socket.SHUT_WR)
            try:
                while part := s.recv(65536):
                    got += part
                    if not until_close and b"\r\n\r\n" in got:
                        break
            except ConnectionResetError:
                pass
            return got


DATATYPES = {
    "BOOL": numpy.bool_, "UINT8": numpy.uint8, "UINT16": numpy.uint16, "UINT32": numpy.uint32, "UINT64": numpy.uint64,
    "INT8": numpy.int8, "INT16": numpy.int16, "INT32": numpy.int32, "INT64": numpy.int64,
    "FP16": numpy.float16, "FP32": numpy.float32, "FP64": numpy.float64,
}  # fmt: skip
WITH_STRINGS = DATATYPES | {"BYTES": object}
NAMES = {numpy.dtype(v): k for k, v in WITH_STRINGS.items()}


def json_input(name, array):
    return dict(name=name, shape=list(array.shape), datatype=NAMES[array.dtype], data=array.reshape(-1).tolist())


def json_array(output):
    return numpy.array(output["data"], WITH_STRINGS[output["datatype"]]).reshape(output["shape"])


def binary_request(inputs, outputs=None):
    """Body and headers with every tensor binary, both ways."""
    blobs = [a.tobytes() for a in inputs.values()]
    envelope = dict(
        inputs=[
            dict(name=n, shape=list(a.shape), datatype=NAMES[a.dtype], parameters=dict(binary_data_size=a.nbytes))
            for n, a in inputs.items()
        ],
        parameters=dict(binary_data_output=True),
    )
    if outputs is not None:
        envelope["outputs"] = outputs
    text = json.dumps(envelope).encode()
    return text + b"".join(blobs), {"Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"}


def binary_outputs(answer):
    length = answer.headers["Inference-Header-Content-Length"]
    assert answer.headers["Content-Type"] == "application/octet-stream"
    at, found = int(length), {}
    for output in json.loads(answer.body[:at])["outputs"]:
        size = output["parameters"]["binary_data_size"]
        found[output["name"]] = numpy.frombuffer(answer.body[at : at + size], DATATYPES[output["datatype"]]).reshape(output["shape"])
        at += size
    assert at == len(answer.body)
    return found


def save_model(folder, name, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = folder / name / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    onnx.save(model, path)
    return folder / name


def identity_model(folder, onnx_type, name):
    """[batch, width] in, the same out."""
    value = lambda n: helper.make_tensor_value_info(n, onnx_type, ["batch", "width"])
    return save_model(folder, name, [helper.make_node("Identity", ["in"], ["out"])], [value("in")], [value("out")])


def slow_model(folder, name="slow", width=1024, layers=SLOW_LAYERS):
    """About a million multiplications a row and layer: tens of milliseconds for a batch of 16."""
    weight = (numpy.eye(width) * 0.5).astype(numpy.float32)
    nodes = [helper.make_node("MatMul", [f"h{i}" if i else "in", "weight"], [f"h{i + 1}" if i + 1 < layers else "out"]) for i in range(layers)]
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", width])
    return save_model(folder, name, nodes, [value("in")], [value("out")], [numpy_helper.from_array(weight, "weight")])


def make_certificate(folder, name):
    """A self-signed certificate and its key; skips where there is no openssl program."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl program")
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-out", paths[0], "-keyout", paths[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return paths


def at_once(calls, workers=16):
    """Runs functions in threads; returns their results in order, raises the first exception."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return [f.result() for f in [pool.submit(c) for c in calls]]
