"""The declarations of the C API against the wheel's header, and models against their expected outputs."""
import os
import re
import shutil
import subprocess

import pytest
import serving
from conftest import PLUGIN


def counts(text):
    found = re.findall(r"^(\d+) passed, (\d+) failed", text, re.M)
    assert found, text[-3000:]
    return [int(n) for n in found[-1]]


def test_declarations_have_the_layout_of_the_wheels_header(tmp_path):
    header = PLUGIN.parent / "include/pjrt_c_api.h"
    if not header.exists() or shutil.which("cc") is None:
        pytest.skip("no header beside the plugin, or no C compiler")
    program = tmp_path / "check_abi"
    subprocess.run(
        ["cc", "-std=gnu11", "-I", str(serving.ROOT), "-I", str(header.parent), str(serving.ROOT / "tests/abi/check_abi.c"), "-o", str(program)], check=True
    )
    done = subprocess.run([str(program)], capture_output=True, text=True)
    passed, failed = counts(done.stdout)
    assert done.returncode == 0 and failed == 0 and passed > 100, done.stdout


def test_models_give_their_expected_outputs(tmp_path):
    """The committed models; all twenty of ../shared/models with PENSTOCK_PJRT_ALL=1 (minutes of compiling)."""
    golden = serving.BINARY.with_name("pjrt_golden")
    if not golden.exists():
        pytest.skip(f"{golden} is not built")
    models = serving.shared_models() if os.environ.get("PENSTOCK_PJRT_ALL") else serving.ROOT / "tests/data/golden"
    optimised = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # here as users have it
    done = subprocess.run(
        [str(golden), str(PLUGIN), str(models), str(golden.with_name("pjrt_host"))], capture_output=True, text=True, env=optimised
    )
    passed, failed = counts(done.stdout)
    assert done.returncode == 0 and failed == 0 and passed > 0, done.stdout


def test_inspect_says_what_a_plugin_is():
    done = subprocess.run([str(serving.BINARY), "inspect", "--device", f"pjrt:{PLUGIN}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "api 0." in done.stdout and "stablehlo" in done.stdout and "pjrt:3" in done.stdout
    done = subprocess.run([str(serving.BINARY), "inspect", "--device", "pjrt:/nowhere.so"], capture_output=True, text=True)
    assert done.returncode == 1 and "/nowhere.so: cannot be read" in done.stderr
