"""The programs of examples/text, against a small model that takes text."""
import importlib.util
import shutil
import subprocess
import sys

import pytest

import serving
import text_models

FOLDER = serving.ROOT / "examples/text"
NEEDS = {"openai_embeddings.py": "openai", "langchain_embeddings.py": "langchain_openai", "triton_text.py": "tritonclient.http"}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    with serving.Server(folder / "server.log", {"embed": text_models.make(folder)["embed"]}) as s:
        yield s


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_programs(text, name):
    package = NEEDS[name].split(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    assert f"{text_models.WIDTH}" in run(sys.executable, FOLDER / name, f"http://127.0.0.1:{text.port}", "embed")


def test_curl(text):
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    assert '"outputs"' in run("sh", FOLDER / "curl.sh", f"http://127.0.0.1:{text.port}", "embed")


def test_each_program_is_run():
    assert {p.name for p in FOLDER.iterdir()} == {*NEEDS, "curl.sh"}
