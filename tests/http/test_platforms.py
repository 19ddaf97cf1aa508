"""What platforms that run containers ask of an image: its root in a chroot, started and asked as each of them documents it."""
import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import numpy
import pytest

import serving

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may chroot")
ZERO = json.loads((serving.ROOT / "examples/requests/zero.json").read_text())
ROW = ZERO["instances"][0]
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
DOCKERFILE = (serving.ROOT / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """What the Dockerfile copies, and the libraries of Debian that it installs."""
    told = subprocess.run(["ldd", serving.BINARY], capture_output=True, text=True, check=True).stdout
    if "libasan" in told:
        pytest.skip("the sanitizers read /proc, which this root lacks")
    root = tmp_path_factory.mktemp("root")
    root.chmod(0o755)  # the programs run as somebody else
    shutil.copytree(serving.ROOT / "examples/models", root / "usr/share/penstock/models")
    (root / "usr/local/bin").mkdir(parents=True)
    shutil.copy(serving.BINARY, root / "usr/local/bin/penstock")
    for library in re.findall(r"(/\S+) \(0x", told):
        place = root / library[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), place)
    for folder in ("tmp", "etc", "dev", "opt/ml", "mnt", "gcs/bucket"):
        (root / folder).mkdir(parents=True)
    yield root
    for container in Container.told:
        assert container.process.wait(serving.STOP_S) == 0, container.log.read_text()


def free_port():
    with contextlib.closing(__import__("socket").create_server(("127.0.0.1", 0))) as s:
        return s.getsockname()[1]


class Container:
    """ENTRYPOINT and arguments, with the environment of the Dockerfile and the platform's. Told to end at the end of its block; it drains for the
    seconds of the default beside what is tested next, and must have ended with 0 at last (see root)."""

    told = []  # to end

    def __init__(self, root, log, arguments=(), environment=None):
        image = dict(re.findall(r"^ENV (\w+)=(\S+)$", DOCKERFILE, re.M))
        self.environment = {"PATH": "/usr/local/bin", **image, **(environment or {})}
        self.port = int(next(self.environment[k] for k in ("AIP_HTTP_PORT", "SAGEMAKER_BIND_TO_PORT", "PORT") if k in self.environment))
        self.command = [*json.loads(re.search(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.M)[1]), *arguments]
        self.root, self.log = root, log

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([CHROOT, "--userspec=65532:65532", self.root, *self.command], env=dict(self.environment, PATH="/usr/sbin:/usr/bin:/usr/local/bin"), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.told.append(self)

    def ask(self, method, path, body=None, **headers):
        """Status, headers and body; 0: nobody listens yet."""
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, {k.replace("_", "-"): v for k, v in headers.items()}, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=serving.WAIT_S) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()
        except urllib.error.URLError:
            assert self.process.poll() is None, self.log.read_text()
            return 0, {}, b""

    def wait(self, path):
        serving.wait_until(lambda: self.ask("GET", path)[0] == 200, f"GET {path} is 200")


def is_zero(body):
    assert json.loads(body)["predictions"][0][0] == max(json.loads(body)["predictions"][0]), body
    return True


@contextlib.contextmanager
def folder_of_digits(place, layout):
    """The bundled model as the folder that a platform mounts: its file alone, or with versions."""
    model = next((serving.ROOT / "examples/models/digits").glob("*/model.onnx"))
    target = place if layout == "file" else place / "1" if layout == "versions" else place / "digits" / "1"
    target.mkdir(parents=True)
    shutil.copy(model, target / "model.onnx")
    try:
        yield
    finally:
        shutil.rmtree(place)


def test_plain(root, tmp_path):
    """`docker run IMAGE` with PORT: Cloud Run, Heroku, Knative."""
    with Container(root, tmp_path / "log", environment={"PORT": str(free_port())}) as c:
        c.wait("/v2/health/ready")
        assert is_zero(c.ask("POST", "/v1/models/digits:predict", json.dumps(ZERO).encode())[2])
        found = subprocess.run([CHROOT, root, "/usr/local/bin/penstock", "health"], env={"PORT": str(c.port)}, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
    assert c.process.wait(serving.STOP_S) == 0
    found = subprocess.run([CHROOT, root, "/usr/local/bin/penstock", "health"], env={"PORT": str(c.port)}, capture_output=True, text=True)
    assert found.returncode == 1


@pytest.mark.parametrize("layout", ["file", "versions", "repository"])
def test_sagemaker(root, tmp_path, layout):
    """`docker run IMAGE serve`: GET /ping and POST /invocations on 8080 (here on a port that is free)."""
    with folder_of_digits(root / "opt/ml/model", layout), Container(root, tmp_path / "log", ["serve"], {"SAGEMAKER_BIND_TO_PORT": str(free_port()), "SAGEMAKER_MAX_PAYLOAD_IN_MB": "6"}) as c:
        c.wait("/ping")
        assert is_zero(c.ask("POST", "/invocations", json.dumps(ZERO).encode(), Content_Type="application/json")[2])
        assert c.ask("POST", "/invocations", b" " * (6 << 20 | 1), Content_Type="application/json")[0] == 413
        status, _, body = c.ask("POST", "/invocations", b"x", Content_Type="image/png")
        assert status == 415 and b"image/png" in body


def test_content_types(root, tmp_path):
    with folder_of_digits(root / "opt/ml/model", "file"), Container(root, tmp_path / "log", ["serve"], {"PORT": str(free_port())}) as c:
        c.wait("/ping")
        wanted = json.loads(c.ask("POST", "/invocations", json.dumps(ZERO).encode())[2])["predictions"][0]
        other = [1 - x for x in ROW]
        second = json.loads(c.ask("POST", "/invocations", json.dumps({"instances": [other]}).encode())[2])["predictions"][0]

        lines = f"{json.dumps(ROW)}\n{json.dumps(other)}\n".encode()
        for kind in ("application/jsonlines", "application/x-ndjson"):
            assert json.loads(c.ask("POST", "/invocations", lines, Content_Type=kind)[2])["predictions"] == [wanted, second]
        _, headers, body = c.ask("POST", "/invocations", lines, Content_Type="application/jsonlines", Accept="application/jsonlines")
        assert headers["Content-Type"] == "application/jsonlines" and [json.loads(line) for line in body.splitlines()] == [wanted, second]

        table = "\r\n".join(",".join(map(str, row)) for row in (ROW, other)).encode()
        _, headers, body = c.ask("POST", "/invocations", table, Content_Type="text/csv; charset=utf-8", Accept="text/csv")
        assert headers["Content-Type"] == "text/csv"
        assert [[float(x) for x in row] for row in csv.reader(io.StringIO(body.decode()))] == [wanted, second]

        image = numpy.array([ROW], numpy.float32)
        kserve = {"inputs": [serving.json_input("image", image)]}
        answer = json.loads(c.ask("POST", "/invocations", json.dumps(kserve).encode(), Content_Type="application/json")[2])
        assert answer["outputs"][0]["data"] == pytest.approx(wanted)

        body, headers = serving.binary_request({"image": image})
        size = headers["Inference-Header-Content-Length"]
        kind = "application/vnd.sagemaker-triton.binary+json;json-header-size="
        _, headers, body = c.ask("POST", "/invocations", body, Content_Type=kind + size)
        assert headers["Content-Type"].startswith(kind)
        at = int(headers["Content-Type"][len(kind) :])
        assert numpy.frombuffer(body[at:], numpy.float32) == pytest.approx(wanted) and json.loads(body[:at])["model_name"] == "model"


def test_sagemaker_endpoint_of_many_models(root, tmp_path):
    """The container API of multi-model endpoints: load, list, describe, invoke, unload."""
    with folder_of_digits(root / "opt/ml/models/a1b2/model", "file"), Container(root, tmp_path / "log", ["serve"], {"PORT": str(free_port()), "SAGEMAKER_MULTI_MODEL": "true"}) as c:
        c.wait("/ping")
        assert json.loads(c.ask("GET", "/models")[2]) == {"models": []} and c.ask("GET", "/models/a1b2")[0] == 404
        load = json.dumps({"model_name": "a1b2", "url": "/opt/ml/models/a1b2/model"}).encode()
        assert c.ask("POST", "/models", load, Content_Type="application/json")[0] == 200
        assert c.ask("POST", "/models", load, Content_Type="application/json")[0] == 409
        entry = {"modelName": "a1b2", "modelUrl": "/opt/ml/models/a1b2/model"}
        assert json.loads(c.ask("GET", "/models")[2]) == {"models": [entry]} and json.loads(c.ask("GET", "/models/a1b2")[2]) == entry
        assert is_zero(c.ask("POST", "/models/a1b2/invoke", json.dumps(ZERO).encode(), Content_Type="application/json", X_Amzn_SageMaker_Target_Model="a")[2])
        assert c.ask("POST", "/models/nobody/invoke", json.dumps(ZERO).encode())[0] == 404
        assert c.ask("DELETE", "/models/a1b2")[0] == 200 and c.ask("GET", "/models/a1b2")[0] == 404 and c.ask("DELETE", "/models/nobody")[0] == 404
        assert json.loads(c.ask("GET", "/models")[2]) == {"models": []}
        assert c.ask("POST", "/models", load, Content_Type="application/json")[0] == 200
        for bad in ({"model_name": "x"}, {"model_name": "../a", "url": "/opt/ml/models/../a"}, {"model_name": "nobody", "url": "/opt/ml/models/nobody/model"}):
            assert c.ask("POST", "/models", json.dumps(bad).encode())[0] in (400, 404)
        assert c.ask("PUT", "/models")[0] == 405 and c.ask("POST", "/models/a1b2")[1]["Allow"] == "GET, HEAD, DELETE"


def test_vertex(root, tmp_path):
    """The routes are the platform's, and the model is where it mounts its storage."""
    port = str(free_port())
    environment = {"AIP_HTTP_PORT": port, "AIP_HEALTH_ROUTE": "/v1/endpoints/7/deployedModels/9", "AIP_PREDICT_ROUTE": "/v1/endpoints/7/deployedModels/9:predict", "AIP_STORAGE_URI": "gs://bucket/digits"}
    with folder_of_digits(root / "gcs/bucket/digits", "versions"), Container(root, tmp_path / "log", [], environment) as c:
        c.wait(environment["AIP_HEALTH_ROUTE"])
        asked = json.dumps({**ZERO, "parameters": {}}).encode()
        assert is_zero(c.ask("POST", environment["AIP_PREDICT_ROUTE"], asked, Content_Type="application/json")[2])


def test_kserve(root, tmp_path):
    """The arguments of deploy/kserve.yaml; the storage initializer puts the model into /mnt/models."""
    text = (serving.ROOT / "deploy/kserve.yaml").read_text()
    arguments = [a.replace("{{.Name}}", "digits") for a in json.loads(re.search(r"args: (\[.*\])", text)[1])]
    port = free_port()
    arguments = [a.replace("8080", str(port)) for a in arguments]
    with folder_of_digits(root / "mnt/models", "file"), Container(root, tmp_path / "log", arguments, {"PORT": str(port)}) as c:
        c.wait("/v2/health/ready")
        status = json.loads(c.ask("GET", "/v1/models/digits")[2])
        assert (status["name"], status["ready"]) == ("digits", True) and status["model_version_status"]
        assert is_zero(c.ask("POST", "/v1/models/digits:predict", json.dumps(ZERO).encode())[2])


def test_a_port_that_is_none(root, tmp_path):
    run = subprocess.run([CHROOT, root, "/usr/local/bin/penstock", "serve"], env={"AIP_HTTP_PORT": "http"}, capture_output=True, text=True)
    assert run.returncode == 2 and "AIP_HTTP_PORT" in run.stderr
