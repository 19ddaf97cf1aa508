"""One stage of a request = one verb = one file = one stamp."""
import re

from tree import C_FILES, FILES, ROOM_FILES, ROOT, code, name, report, text

STAGES = re.findall(r"^\s+STAGE_([A-Z]+),", text(ROOT / "batcher/job/stage.h"), re.M)
STAGES = [s.lower() for s in STAGES if s != "COUNT"]


def test_the_stages_are_those_of_the_metrics():
    assert STAGES == "accept parse tokenize admit queue form pad place execute slice respond record".split()
    spoken = re.findall(r'"([a-z]+)"', text(ROOT / "batcher/job/stage.c"))
    assert [s for s in spoken if s in STAGES] == STAGES


def test_each_stage_is_stamped_once_in_the_file_of_its_name():
    stamps = {stage: [] for stage in STAGES}
    wrong = []
    for path in ROOM_FILES:
        if name(path) == "batcher/job/stage.h":
            continue
        for call in re.findall(r"\bstage_stamp\(([^;]*)\);", code(path)):
            stage = re.search(r"\bSTAGE_([A-Z]+)", call)
            if stage is None:
                wrong.append(f"{name(path)}: stage_stamp({call}) names no stage")
            else:
                stamps[stage[1].lower()].append(path)
    for stage, paths in stamps.items():
        if [p.name for p in paths] != [f"{stage}.c"]:
            wrong.append(f"{stage} is stamped in: {', '.join(map(name, paths)) or 'no file'}; wanted: one call, in {stage}.c")
    report(wrong)


def test_nobody_else_writes_the_time_of_a_stage():
    pattern = re.compile(r"stage_ns\[STAGE_\w+\]\s*=[^=]")
    report([f"{name(p)}: {m[0]}" for p in ROOM_FILES if name(p) != "batcher/job/stage.h" for m in [pattern.search(code(p))] if m])


def test_each_stage_has_a_test():
    """A unit test of its file, or one that asks for its time."""
    tests = [f for f in FILES if name(f).startswith("tests/") and f.suffix in (".c", ".py") and not name(f).startswith("tests/tidy/")]
    wrong = []
    for stage in STAGES:
        named = any(re.fullmatch(rf"test_{stage}\w*\.(c|py)", f.name) for f in tests)
        if not named and not any(re.search(rf'\bSTAGE_{stage.upper()}\b|"{stage}"', text(f)) for f in tests):
            wrong.append(stage)
    report(wrong)


def test_there_are_stamps():
    assert any("stage_stamp(" in code(p) for p in C_FILES)
