"""What text in costs a server beside ids in: the same sentences at 64 connections, in turns, over TensorFlow Serving's route.

    .venv/bin/python bench/text/server.py --model .cache/minilm --text ../shared/text/stsb-en-dev.csv
"""
import argparse
import csv
import json
import pathlib
import socket
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PENSTOCK, LOAD = ROOT / "build/release/bin/penstock", ROOT / "build/release/bin/penstock-load"


def processor_seconds(pid):
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def write_bodies(folder, model, path):
    texts = [text for row in csv.reader(open(path, newline="")) for text in row[:2]]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    made = subprocess.run([PENSTOCK, "tokenize", "--model", model, "--json"], input=lines.encode(), capture_output=True, check=True).stdout.splitlines()
    ids = [json.loads(line)["ids"] for line in made]
    tokens = lambda i: {"input_ids": i, "attention_mask": [1] * len(i), "token_type_ids": [0] * len(i)}
    (folder / "text").write_text("".join(json.dumps({"instances": [text]}) + "\n" for text in texts))
    (folder / "ids").write_text("".join(json.dumps({"instances": [tokens(i)]}) + "\n" for i in ids))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    write_bodies(folder, options.model, options.text)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = "http://127.0.0.1:%d" % s.getsockname()[1]
    server = subprocess.Popen([PENSTOCK, "serve", "--model", f"m={options.model}", "--precision", "int8", "--listen", url[7:], "--cache", folder], stderr=subprocess.DEVNULL)
    while server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/v2/health/ready", timeout=5)
            break
        except OSError:
            time.sleep(0.2)
    total = {"ids": [0, 0, 0], "text": [0, 0, 0]}
    for turn in range(options.rounds):
        for kind in ("ids", "text") if turn % 2 else ("text", "ids"):
            before = processor_seconds(server.pid)
            command = [LOAD, url, "--model", "m", "--format", "tensorflow", "--data", folder / kind, "--concurrency", "64", "--duration", "4s", "--json", "-"]
            result = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            for i, value in enumerate((result["requests"], processor_seconds(server.pid) - before, result["rate"])):
                total[kind][i] += value
    server.terminate()
    for kind, (requests, seconds, rate) in total.items():
        print(f"{kind}: {rate / options.rounds:.0f} requests/s, {1e6 * seconds / requests:.0f} us of processor time each (the warm-up of the load is in it)")
    print(f"text beside ids: {total['text'][2] / total['ids'][2]:.3f} of the throughput, {total['text'][1] / total['text'][0] / (total['ids'][1] / total['ids'][0]):.3f} of the processor time")


if __name__ == "__main__":
    main()
