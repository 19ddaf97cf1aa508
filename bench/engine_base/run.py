"""BERT-base's shape beside OpenVINO INT8 (NNCF), both in int8, in paired rounds: OpenVINO gets the sequences sorted by length in
batches of 8 (an oracle), Penstock as they come. Each engine has seen every shape before it is timed.

    run.py PENSTOCK_BINARY DIR [--rounds N] [--threads N]        DIR from make.py; needs openvino, numpy
"""
import argparse, json, os, statistics, subprocess, time

import numpy as np
import openvino


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('penstock')
    parser.add_argument('folder')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--seconds', type=float, default=2)
    args = parser.parse_args()
    random = np.random.default_rng(1)
    lengths = np.clip(np.exp(random.normal(3.2, 0.8, 96)).astype(int), 4, 128)  # like sentences: median 24, p95 about 90
    rows = [random.integers(4, 4000, n).tolist() for n in lengths]
    file = f'{args.folder}/rows.jsonl'
    with open(file, 'w') as out:
        out.writelines(json.dumps(row) + '\n' for row in rows)
    batches = []
    ordered = sorted(rows, key=len)
    for i in range(0, len(ordered), 8):
        group = ordered[i:i + 8]
        ids, mask = np.zeros((len(group), len(group[-1])), np.int64), np.zeros((len(group), len(group[-1])), np.int64)
        for k, row in enumerate(group):
            ids[k, :len(row)], mask[k, :len(row)] = row, 1
        batches.append({'input_ids': ids, 'attention_mask': mask, 'token_type_ids': np.zeros_like(ids)})
    request = openvino.Core().compile_model(f'{args.folder}/bert_base_nncf.xml', 'CPU', {
        'INFERENCE_NUM_THREADS': args.threads, 'PERFORMANCE_HINT': 'LATENCY'}).create_infer_request()
    for batch in batches:
        request.infer(batch)
    ratios, tokens = [], sum(map(len, rows))
    for _ in range(args.rounds):
        start, passes = time.perf_counter(), 0
        while passes == 0 or time.perf_counter() - start < args.seconds:
            for batch in batches:
                request.infer(batch)
            passes += 1
        theirs = passes * tokens / (time.perf_counter() - start)
        ours = json.loads(subprocess.run(
            [args.penstock, 'bench', '--model', f'{args.folder}/model', '--precision', 'int8', '--sequences', file, '--threads',
             str(args.threads), '--seconds', str(args.seconds), '--cache', f'{args.folder}/cache', '--json'],
            check=True, capture_output=True, text=True).stdout)
        ratios.append(ours['real_tokens_per_s'] / theirs)
        print(f"Penstock {ours['real_tokens_per_s']:.0f} real tokens/s ({ours['peak_fraction']:.0%} of the peak), OpenVINO INT8 sorted "
              f"{theirs:.0f}: {ratios[-1]:.2f}x; {ours['explanation'].split(';')[1].strip()}", flush=True)
    print(f'median {statistics.median(ratios):.2f}x')


main()
