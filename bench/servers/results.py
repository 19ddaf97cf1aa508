"""What was measured: results.json holds a row for each (machine, server), a new one replaces the old; from it RESULTS.md and pictures are written."""
import json
import os
import pathlib
import re

import pictures

HERE = pathlib.Path(__file__).resolve().parent
STORE = HERE / "results.json"
RESULTS = HERE.parent / "RESULTS.md"
OURS = "penstock-int8"

COLUMNS = (
    "| server | engine | 1 connection: req/s, p50/p99 ms | 16 | 64 | max req/s at p99 <= 50 ms | open loop at 50/70/90% of its own: p99 ms "
    "| real tokens/s at 64 | cosine to FP32, mean/least | PSS MiB | CPUs at 64 | ready s | measured |\n|" + "---|" * 13 + "\n"
)

# name, figure of a row (None: none), better of two, format, target of the ratio and its sense
CONTESTS = (
    ("highest rate with p99 <= 50 ms, req/s", lambda r: r["max_rate"] or None, max, ".0f", 4, "at least"),
    ("rate at 64 connections, req/s", lambda r: r["closed"]["64"]["rate"], max, ".0f", 2.8, "at least"),
    ("p50 at 1 connection, ms", lambda r: r["closed"]["1"]["p50"], min, ".2f", 0.4, "at most"),
)


def machine():
    """What makes two measurements comparable: processor, its vector units, cores, memory, system."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    flags = set(re.search(r"^flags\s*: (.*)$", info, re.M)[1].split()) if "flags" in info else set()
    known = (("amx_int8", "AMX"), ("avx512_vnni", "AVX-512 VNNI"), ("avx_vnni", "AVX-VNNI"), ("avx2", "AVX2"))
    units = [text for flag, text in known if flag in flags][:2]
    model = re.search(r"^model name\s*: (.*)$", info, re.M)
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = ".".join(os.uname().release.split(".")[:2])
    kind = "virtual cores" if "hypervisor" in flags else "cores"
    return f"{os.cpu_count()} {kind} of {model[1] if model else os.uname().machine} ({', '.join(units)}), {gib:.0f} GiB, Linux {kernel}"


def slug(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read():
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def add(name, row):
    everything = read()
    everything.setdefault(machine(), {})[name] = row
    new = STORE.with_suffix(".new")
    new.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
    new.rename(STORE)
    write()


def table(rows):
    def cell(run):
        return f"{run['rate']:.0f}, {run['p50']:.1f}/{run['p99']:.0f}" + (f" ({run['errors']} errors)" if run["errors"] else "")

    text = COLUMNS
    for r in rows:
        best = f"{r['max_rate']:.0f}" if r["max_rate"] else "none"
        shares = "/".join(f"{run['p99']:.0f}" + ("!" if run["errors"] else "") for run in r["open"].values())
        cells = [
            r["label"], r["engine"], cell(r["closed"]["1"]), cell(r["closed"]["16"]), cell(r["closed"]["64"]), best, shares,
            f"{r['tokens_s'] / 1000:.1f}k", f"{r['cosine'][0]:.4f}/{r['cosine'][1]:.3f}", r["pss_mib"], f"{r['server_cpus']:.2f}", f"{r['ready_s']:.1f}", r["date"],
        ]  # fmt: skip
        text += "| " + " | ".join(map(str, cells)) + " |\n"
    return text


def ratios(rows):
    """Penstock INT8 beside the best peer of each figure."""
    peers = [row for name, row in rows.items() if not name.startswith("penstock")]
    if OURS not in rows or not peers:
        return ""
    text = "| | Penstock INT8 | best peer | ratio | target | |\n|---|---|---|---|---|---|\n"
    for title, figure, better, form, target, sense in CONTESTS:
        able = [peer for peer in peers if figure(peer) is not None]
        ours = figure(rows[OURS])
        if not able or ours is None:
            text += f"| {title} | {ours or 'none'} | {'none' if not able else ''} | | {sense} {target}x | |\n"
            continue
        best = better(able, key=figure)
        ratio = ours / figure(best)
        held = ratio >= target if sense == "at least" else ratio <= target
        text += f"| {title} | {ours:{form}} | {figure(best):{form}} ({best['label']}) | {ratio:.2f}x | {sense} {target}x | {'held' if held else 'MISSED'} |\n"
    return text + "\n"


def breakdown(row):
    """Where the time goes in Penstock INT8: Server-Timing beside what the client saw."""
    runs = [("1 connection", row["closed"]["1"]), ("16", row["closed"]["16"]), ("64", row["closed"]["64"]), ("highest rate within 50 ms", row["at_max"])]
    runs = [(title, run) for title, run in runs if "stages" in run]
    if not runs:
        return ""
    text = "Penstock INT8, ms of a request, p50/p99 (closed loop, and open loop at the highest rate):\n\n"
    text += "| | " + " | ".join(title for title, _ in runs) + " |\n|" + "---|" * (len(runs) + 1) + "\n"
    text += "| seen by the client | " + " | ".join(f"{run['p50']:.2f}/{run['p99']:.1f}" for _, run in runs) + " |\n"
    stages = runs[0][1]["stages"]
    for stage in ("server", *(s for s in stages if s not in ("server", "total"))):
        shown = "of it in the server" if stage == "server" else stage
        text += f"| {shown} | " + " | ".join(f"{run['stages'][stage]['p50']:.2f}/{run['stages'][stage]['p99']:.1f}" for _, run in runs) + " |\n"
    return text + "\nThe rest is HTTP, the loopback, and the time in which both processes wait for a core.\n\n"


def write():
    text = "# Other servers, side by side\n\nWritten by `bench/servers/run.py`; [its page](servers/README.md) says what is measured and how.\nEach table names its machine.\n"
    for name, rows in read().items():
        order = sorted(rows, key=lambda n: (n.startswith("penstock"), -rows[n]["closed"]["64"]["rate"]))
        listed = [rows[n] for n in order]
        text += f"\n## MiniLM-L6, {name}\n\n{table(listed)}\n{ratios(rows)}"
        text += breakdown(rows[OURS]) if OURS in rows else ""
        for kind, draw in (("latency", pictures.latency_against_rate), ("bars", pictures.bars)):
            path = RESULTS.parent / f"servers-{slug(name)}-{kind}.svg"
            path.write_text(draw(listed, name))
            text += f"![{kind} of the servers]({path.name})\n"
        text += "\nVersions:\n\n" + "".join(f"- {v}\n" for v in dict.fromkeys(r["versions"] for r in listed))
        warned = [f"{r['label']} (p99 {r['client']['lag_p99']:.1f} ms)" for r in listed if r["client"]["warning"]]
        if warned:
            text += "\nThe load generator shares the cores and was late itself, which counts as latency: " + ", ".join(warned) + ".\n"
    RESULTS.write_text(text)
