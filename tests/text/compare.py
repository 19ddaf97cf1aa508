"""The same texts through `penstock tokenize` and through the `tokenizers` package."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("PENSTOCK_BINARY", ROOT / "build/release/bin/penstock"))


def ours(folder, items, *flags):
    text = "".join(json.dumps(item) + "\n" for item in items)
    command = [BINARY, "tokenize", "--model", folder, "--json", "--decode", *flags]
    run = subprocess.run(command, input=text.encode(), capture_output=True, timeout=3600)
    assert not run.stderr, run.stderr.decode(errors="replace")
    return [json.loads(line) for line in run.stdout.decode().split("\n")[:-1]]


def theirs(tokenizer, item):
    try:
        e = tokenizer.encode(*item) if isinstance(item, list) else tokenizer.encode(item)
    except Exception as failure:
        return {"error": str(failure)}
    return dict(
        ids=e.ids, type_ids=e.type_ids, special_tokens_mask=e.special_tokens_mask, offsets=[list(o) for o in e.offsets],
        text=tokenizer.decode(e.ids), text_with_special=tokenizer.decode(e.ids, skip_special_tokens=False),
    )  # fmt: skip


def differences(tokenizer, folder, items, *flags, most=3):
    """What differs, as lines to read: the first few items, and how many there are."""
    found, count = [], 0
    results = ours(folder, items, *flags)
    assert len(results) == len(items)
    for item, mine in zip(items, results):
        wanted = theirs(tokenizer, item)
        if mine == wanted or ("error" in mine and "error" in wanted):
            continue
        count += 1
        if count <= most:
            found.append(f"text: {ascii(item)[:300]}")
            found += [f"  {key}\n    {ascii(mine.get(key, mine.get('error')))[:300]}\n    {ascii(value)[:300]}" for key, value in wanted.items() if mine.get(key) != value]
    return [*found, f"{count} of {len(items)} differ"] if count else []
