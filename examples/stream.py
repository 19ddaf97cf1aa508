"""State between requests: sends a signal in parts, and with each part the state that the last response returned."""
import json
import math
import urllib.request

URL = "http://127.0.0.1:8080/v2/models/loudness/infer"


def infer(samples, state):
    inputs = [
        {"name": "samples", "shape": [1, len(samples)], "datatype": "FP32", "data": samples},
        {"name": "state", "shape": [1, len(state)], "datatype": "FP32", "data": state},
    ]
    request = urllib.request.Request(URL, json.dumps({"inputs": inputs}).encode())
    with urllib.request.urlopen(request) as response:
        return {output["name"]: output["data"] for output in json.load(response)["outputs"]}


state = [0.0, 0.0]
for part in range(3):
    samples = [0.5 * math.sin(0.2 * t) for t in range(400 * part, 400 * part + 400)] if part < 2 else [0.0] * 800
    answer = infer(samples, state)
    state = answer["next_state"]
    print(f"part {part}: loudness so far {answer['loudness'][0]:.3f}, of {state[1]:.0f} samples")
