import os
import pathlib
import sys

import pytest

# These tests are about the server, not about how well XLA optimises: its quick way of compiling, for every process they start.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/http"))

import serving  # noqa: E402

serving.START_S = 600  # programs are compiled


def find_plugin():
    """The CPU plugin of the PyPI package xla-cpu-pjrt, in this environment or where PENSTOCK_PJRT_PLUGIN says."""
    if "PENSTOCK_PJRT_PLUGIN" in os.environ:
        return pathlib.Path(os.environ["PENSTOCK_PJRT_PLUGIN"])
    for folder in sys.path:
        path = pathlib.Path(folder) / "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
        if path.exists():
            return path
    return None


PLUGIN = find_plugin()
LIBRARIES = serving.BINARY.resolve().parent.parent / "lib"
FAULT = LIBRARIES / "penstock_fault_pjrt.so"
NO_PLUGIN = LIBRARIES / "penstock_not_a_plugin.so"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A compile cache for what is not about compiling: each program is compiled once, by the first suite that needs it
    (tools/run_suites.py names one folder for all)."""
    return os.environ.get("PENSTOCK_TEST_COMPILED") or str(tmp_path_factory.mktemp("compiled"))


def pytest_collection_modifyitems(items):
    reason = None
    if not serving.BINARY.exists():
        reason = f"{serving.BINARY} is not built"
    elif PLUGIN is None or not PLUGIN.exists():
        reason = "no PJRT plugin: the PyPI package xla-cpu-pjrt is not installed"
    elif not FAULT.exists():
        reason = f"{FAULT} is not built"
    for item in items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
