"""/openapi.json: valid, every route with its method and right, and a server that does as it says."""
import pathlib
import re
import subprocess
import sys

import pytest

import serving

PAGE = (serving.ROOT / "docs/security.md").read_text()
ROUTES = re.findall(r"^\| `(GET|POST|DELETE) (/[^`]*)` \| (\w+) \|$", PAGE, re.M)
METHODS = {"get", "post", "delete"}


@pytest.fixture(scope="module")
def document(server):
    answer = server.get("/openapi.json")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    return answer.json()


def test_valid(document):
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document)
    assert document["openapi"].startswith("3.1.")


def template(path):
    return re.sub(r"\bR\b", "{region}", re.sub(r"(?<=/)M(?=[/:]|$)", "{model}", path))


def test_every_route_and_its_right(document):
    """Those of docs/security.md, which a test compares with the table of routes."""
    told = {(verb.upper(), path): o for path, item in document["paths"].items() for verb, o in item.items()}
    for verb, path, right in ROUTES:
        operation = told.get((verb, template(path)))
        assert operation, (verb, template(path))
        assert operation["description"] == f"Right: {'none' if right == 'open' else right}"
        assert (operation["security"] == []) == (right == "open")
    assert len({o["operationId"] for o in told.values()}) == len(told)
    for (_, path), operation in told.items():
        assert [p["name"] for p in operation["parameters"]] == re.findall(r"\{(\w+)\}", path)
        assert "200" in operation["responses"] and "404" in operation["responses"]


def test_every_operation_is_a_route(server, document):
    for path, item in document["paths"].items():
        for verb in METHODS - set(item):
            answer = server.request(verb.upper(), re.sub(r"\{\w+\}", "1", path))
            is_off = any(o["description"] in ("Right: admin", "Right: shared_memory") for o in item.values())  # without keys
            assert answer.status == (403 if is_off and answer.status == 403 else 405), (verb, path, answer)


def test_schemathesis_finds_nothing(tmp_path):
    pytest.importorskip("schemathesis")
    program = pathlib.Path(sys.executable).parent / "schemathesis"
    with serving.Server(tmp_path / "log", {"digits": serving.DIGITS}) as s:
        url = f"http://127.0.0.1:{s.port}/openapi.json"
        run = subprocess.run([program, "run", url, "--phases", "coverage,fuzzing", "-n", "5", "--seed", "1", "--continue-on-failure"], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stdout[-6000:]
