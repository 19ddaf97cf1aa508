"""deploy/'s files of HAProxy, nginx and Envoy before three replicas, of which one at a time is restarted, killed, or has its model unloaded: no request
fails, with bodies of 60 KB, on connections that were idle meanwhile, too."""
import contextlib
import http.client
import re
import threading

import numpy
import pytest

import programs
import serving

DEPLOY = serving.ROOT / "deploy"
ARRAY = numpy.random.default_rng(1).normal(size=(30, 512)).astype(numpy.float32)  # 61 KB
REPLICA = re.compile(r"10\.0\.0\.1(\d):8080")


def haproxy(ports, port, folder):
    text = REPLICA.sub(lambda m: f"127.0.0.1:{ports[int(m[1]) - 1]}", (DEPLOY / "haproxy.cfg").read_text()).replace("bind *:80", f"bind 127.0.0.1:{port}")
    (folder / "haproxy.cfg").write_text(text)
    return [programs.find("haproxy"), "-db", "-f", folder / "haproxy.cfg"]


def nginx(ports, port, folder):
    text = REPLICA.sub(lambda m: f"127.0.0.1:{ports[int(m[1]) - 1]}", (DEPLOY / "nginx.conf").read_text()).replace("listen 80;", f"listen 127.0.0.1:{port};")
    kinds = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ access_log off; {kinds} {text} }}")
    return [programs.find("nginx"), "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]


def envoy(ports, port, folder):
    text = re.sub(r"address: replica(\d), port_value: 8080", lambda m: f"address: 127.0.0.1, port_value: {ports[int(m[1]) - 1]}", (DEPLOY / "envoy.yaml").read_text())
    (folder / "envoy.yaml").write_text(text.replace("address: 0.0.0.0, port_value: 80}", f"address: 127.0.0.1, port_value: {port}}}"))
    return [programs.find("envoy"), "-c", folder / "envoy.yaml", "--concurrency", "1", "--use-dynamic-base-id", "-l", "warning"]


class Replica:
    def __init__(self, folder, port, model):
        self.folder, self.port, self.model = folder, port, model

    def start(self):
        flags = ["--listen", f"127.0.0.1:{self.port}", "--threads", "1", *serving.CONTROL]
        self.server = serving.Server(self.folder / f"log-{self.port}", {"echo": self.model}, *flags, listen=False, delay_ms=3000)
        self.server.__enter__()

    def restart(self):
        assert self.server.stop() == 0
        self.start()

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()
        self.start()

    def unload(self):
        assert self.server.post("/v2/repository/models/echo/unload", {}).status == 200
        serving.time.sleep(1)
        assert self.server.post("/v2/repository/models/echo/load", {}).status == 200


class Load(threading.Thread):
    """Requests one after the other on a connection that is kept, until it is told to stop."""

    def __init__(self, port, pause_s=0):
        super().__init__(daemon=True)
        self.port, self.pause_s = port, pause_s
        self.is_over, self.failures, self.count = threading.Event(), [], 0
        self.body, self.headers = serving.binary_request({"in": ARRAY})

    def ask(self, connection):
        connection.request("POST", "/v2/models/echo/infer", self.body, self.headers)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or not body.endswith(ARRAY.tobytes()):
            self.failures.append((answer.status, body[:200]))
        self.count += 1

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=serving.WAIT_S)
        while not self.is_over.wait(self.pause_s):
            try:
                self.ask(connection)
            except (http.client.HTTPException, OSError) as error:
                self.failures.append((0, repr(error)))
                connection.close()


@pytest.mark.parametrize("proxy", [haproxy, nginx, envoy], ids=lambda p: p.__name__)
def test_no_request_fails(tmp_path, proxy):
    model = serving.identity_model(tmp_path, serving.TensorProto.FLOAT, "echo")
    *ports, port = programs.free_ports(4)
    command = proxy(ports, port, tmp_path)  # or it is skipped
    with contextlib.ExitStack() as stack:
        replicas = [Replica(tmp_path, p, model) for p in ports]
        for replica in replicas:
            replica.start()
            stack.callback(lambda r=replica: r.server.stop())
        stack.enter_context(programs.running(command, [port], tmp_path / "proxy.log"))
        serving.time.sleep(2)  # its first health checks
        loads = [Load(port) for _ in range(3)] + [Load(port, pause_s=3)]
        for load in loads:
            load.start()
        try:
            for replica, change in zip(replicas, (Replica.restart, Replica.kill, Replica.unload)):
                serving.time.sleep(1)
                change(replica)
                serving.time.sleep(2)
        finally:
            for load in loads:
                load.is_over.set()
            for load in loads:
                load.join(serving.WAIT_S)
        failures = [f for load in loads for f in load.failures]
        assert not failures, (len(failures), sum(load.count for load in loads), failures[:5])
        assert all(load.count > 2 for load in loads)
