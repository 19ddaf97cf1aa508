"""The tree as the tidy tests see it: its files, its folders from the bottom up, and what a file includes."""
import functools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = [ROOT / f for f in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()]
FILES = [f for f in FILES if f.is_file()]

# Every folder of the product that holds C, from the bottom up: a folder includes its own files and those of folders before it, as far as
# ROOMS allows the room. So there is no circle of folders.
FOLDERS = """
    base base/identity base/io base/text
    text/unicode text/aligned text/pattern text/normalize text/split text/vocabulary text/model text/decode text/process text/load text
    kernels kernels/scalar kernels/x86/vector kernels/x86/gemm kernels/x86 kernels/x86/lines kernels/x86/bytes
    graph graph/shapes graph/cost graph/specialise graph/independence graph/quantise graph/encoder graph/hugging_face graph/stored graph/onnx graph/onnx/rewrite graph/stablehlo
    devices devices/cpu/threads devices/cpu/tensor_loops devices/cpu/cache devices/cpu/ops devices/cpu/ops/convolution devices/cpu/ops/integer devices/cpu/elementwise devices/cpu/fused devices/cpu/recurrent devices/cpu/signal devices/cpu/classical devices/cpu/plan devices/cpu/dynamic devices/cpu/encoder devices/cpu
    devices/pjrt/protocol devices/pjrt/schedule devices/pjrt/plugin devices/pjrt/host devices/pjrt/supervisor devices/pjrt
    models models/manifest models/start models/text models/batching models/whole models/loading models/repository
    batcher/policy batcher/job batcher/admission batcher/queue batcher/execute batcher
    server/options server/budget server/protocol/text server/protocol server/access server/protocol/rows server/protocol/language server/protocol/grpc server/telemetry server/offload server/watchdog server/service server/request server/call
    server/connection
    server/http2/session server/http2 server/http1/overrides server/http1 server/http server/infer server/routes/grpc server/routes/metrics server/routes server
    config
    cli/inspect cli
    loadtest/wire loadtest/workload loadtest/report loadtest/run loadtest
""".split()

# room: what it may include beside itself
ROOMS = {
    "base": "",
    "text": "base",
    "kernels": "base",
    "graph": "base",
    "devices": "base kernels graph",
    "models": "base text graph devices",
    "batcher": "base text devices models",
    "server": "base text models batcher",
    # config fills the option structs of the rooms beneath it.
    "config": "base text models batcher server",
    "cli": "base text graph devices models batcher server config",
    "loadtest": "base",
}
ROOMS = {room: set(others.split()) for room, others in ROOMS.items()}


def name(path):
    return path.relative_to(ROOT).as_posix()


def room(path):
    return path.relative_to(ROOT).parts[0]


def folder(path):
    return name(path.parent)


C_FILES = [f for f in FILES if f.suffix in (".c", ".h") and room(f) in (*ROOMS, "tests", "bench", "tools")]
ROOM_FILES = [f for f in C_FILES if room(f) in ROOMS]
HEADERS = [f for f in ROOM_FILES if f.suffix == ".h"]


@functools.lru_cache(None)
def text(path):
    return path.read_text(errors="replace")


def includes(path):
    """What it includes: `<header>` or `"header"`, with the first quote only, such as `"base/log.h`."""
    return re.findall(r'^\s*#\s*include\s+([<"][^>"]+)[>"]', text(path), re.M)


def included_files(path):
    """Its includes that are files of the tree."""
    return [ROOT / i[1:] for i in includes(path) if i[0] == '"' and (ROOT / i[1:]).is_file()]


def circles(graph):
    """Sets of more than one node that reach each other (Tarjan's strongly connected components)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in list(graph):
        if node not in number:
            visit(node)
    return found


def code(path):
    """Its text without comments and without what stands in strings."""
    kept = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text(path), flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', kept)


def report(wrong):
    assert not wrong, "\n" + "\n".join(wrong)
