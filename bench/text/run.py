"""Tokens per second of one thread: ours and the `tokenizers` package's, by tokenizer and language.

    cmake --build build/release --target bench_text
    .venv/bin/python bench/text/run.py --text ../shared/text --tokenizers ../shared/tokenizers .cache/minilm

Both get the same lines, all of a language in one batch. Processor time of the fastest of several rounds counts; rounds of the two alternate. The package is called with encode_batch_fast(), which computes no offsets, and with encode_batch(), which does; ours always
computes them.
"""
import argparse
import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "build/release/bin/bench_text"


def lines_of(path):
    with path.open(newline="") as rows:
        return [" ".join(sentence.split()) for row in csv.reader(rows) for sentence in row[:2]]


def ours(folder, file, rounds):
    out = subprocess.run([BINARY, folder, file, str(rounds)], capture_output=True, text=True, check=True).stdout.split()
    return int(out[0]), float(out[1])


def theirs(encode, lines):
    begin = time.process_time()
    result = encode(lines)
    return sum(len(e) for e in result), time.process_time() - begin


def measure(folder, tokenizer, lines, rounds):
    best = {"ours": 1e9, "fast": 1e9, "offsets": 1e9}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        for _ in range(rounds):
            mine, took = ours(folder, file.name, 3)
            best["ours"] = min(best["ours"], took)
            for name, encode in (("fast", tokenizer.encode_batch_fast), ("offsets", tokenizer.encode_batch)):
                count, took = theirs(encode, lines)
                best[name] = min(best[name], took)
            assert mine == count, (mine, count)
    return mine, best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizers", type=pathlib.Path, nargs="+", required=True, help="folders: with tokenizer.json, or with several *.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--languages", nargs="*")
    options = parser.parse_args()
    files = [f for d in options.tokenizers for f in ([d / "tokenizer.json"] if (d / "tokenizer.json").exists() else sorted(d.glob("*.json")))]
    print("| tokenizer | text | tokens | ours, Mtokens/s | package, fast | package, offsets | ratio to fast | ratio to offsets |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for file in files:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "tokenizer.json").symlink_to(file.resolve())
            name = file.parent.name if file.name == "tokenizer.json" else file.stem
            for path in sorted(options.text.glob("*.csv")):
                language = path.stem.split("-")[1]
                if options.languages and language not in options.languages:
                    continue
                count, best = measure(folder, tokenizer, lines_of(path), options.rounds)
                rate = {key: count / took / 1e6 for key, took in best.items()}
                print(f"| {name} | {language} | {count} | {rate['ours']:.2f} | {rate['fast']:.2f} | {rate['offsets']:.2f} "
                      f"| {rate['ours'] / rate['fast']:.1f} | {rate['ours'] / rate['offsets']:.1f} |")  # fmt: skip
                sys.stdout.flush()


main()
