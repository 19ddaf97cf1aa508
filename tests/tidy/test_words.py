"""The field's words (docs/glossary.md): names that this project has given up do not come back."""
import re

from tree import C_FILES, FILES, code, name, report, room, text

# a name in code -> the word for it. Matched against whole identifiers.
OLD_NAMES = {
    r".*keepsake.*": "replay record",
    r".*condemn.*": "close for abuse, mark failed",
    r"crew|crew_.*|.*_crew|.*_crew_.*": "thread pool",
    r".*saver.*": "deadline-feasible batch",
    r".*stranger.*": "other requests in the batch",
    r"look|look_(?!at_|before_).*|.*_look": "recognise, recogniser",
    r".*poisoned.*": "invalid",
    r"fate|.*_fate|fate_.*": "outcome",
    r".*findings.*": "batching probe result",
    r"door|.*_door|door_.*": "admission control",
    r"riders?|.*_riders?": "backfill",
    r"owed|.*_owed": "fair-share credit",
    r"lots?|lot_.*|.*_lot": "batch sized by cost",
    r"(job|arena|buffer|device|slot)\w*_(take|give)": "acquire, release",
    r"bill|bill_.*|.*_bill": "cost attribution",
}
# Lanes of a vector register keep their name, where vectors are.
OLD_NAMES_OUTSIDE_KERNELS = {r"lanes?|lane_.*|.*_lanes?|.*_lane_.*": "worker, execution slot"}
HAS_VECTORS = ("kernels/", "devices/cpu/", "tests/kernels/", "tests/unit/kernels/", "bench/engine")


def test_old_names_stay_away():
    wrong = []
    for path in C_FILES:
        names = set(re.findall(r"[A-Za-z_]\w*", code(path))) | {path.stem}
        tables = [OLD_NAMES] if name(path).startswith(HAS_VECTORS) else [OLD_NAMES, OLD_NAMES_OUTSIDE_KERNELS]
        for table in tables:
            for pattern, word in table.items():
                wrong += [f"{name(path)}: {n} -> {word}" for n in sorted(names) if re.fullmatch(pattern, n)]
    report(wrong)


# Spelt in pieces, or this file would hold them itself. A reader of the repository does not have these.
ABSENT = [word + ".md" for word in ("DESIGN", "FACTS", "PROTO" + "COL", "WORDS", "CONVENTIONS")] + ["DESIGN, dec" + "ision", "../shared" + "/prototypes"]


def test_no_document_outside_the_repository_is_named():
    wrong = []
    for path in FILES:
        if path.suffix in (".c", ".h", ".py", ".md", ".txt", ".inc", ".html", ".sh", ".json", ".yaml", "") and path.stat().st_size < 2_000_000:
            if name(path) == "tests/tidy/test_words.py":
                continue
            for i, line in enumerate(text(path).splitlines(), 1):
                wrong += [f"{name(path)}:{i} names {word}" for word in ABSENT if word in line]
                if re.search(r"\b(DESIGN|FACTS|CONVENTIONS)\b[^_(]", line) and path.suffix in (".c", ".h", ".py", ".md", ".txt"):
                    wrong.append(f"{name(path)}:{i}: {line.strip()[:80]}")
                if "../shared" in line and room(path) not in ("tests", "bench", "docs"):
                    wrong.append(f"{name(path)}:{i}: only tests and bench name shared data")
    report(wrong)
