"""The CPU engine beside ONNX Runtime and OpenVINO: paired runs on sentences of /usr/share/common-licenses.

usage: compare.py PENSTOCK_BINARY MINILM_FOLDER PEER_MODELS [--threads N] [--rounds N] [--without-amx] [--markdown FILE]

PEER_MODELS holds minilm_int8.onnx (ONNX Runtime dynamic INT8), minilm_nncf.xml (OpenVINO NNCF INT8) and, if there,
minilm_fp32.onnx. Each round measures every engine once, in turn, so that a neighbour on the machine slows all alike;
the table shows the median over rounds. Besides tokens a second it shows tokens a second of processor time, which
is the steadier figure on a machine that others use. --without-amx caps every engine at AVX-512 VNNI (oneDNN, which
OpenVINO and ONNX Runtime may use, by its environment variable). run.sh makes the environment and calls this.
"""
import argparse, glob, json, os, platform, random, re, statistics, subprocess, sys, tempfile, time

import numpy as np
import onnxruntime
import openvino
from tokenizers import Tokenizer

ALONE = (16, 64, 128)


def sentences(count=504, seed=1):
    """Sentences and paragraphs of the licences on every Debian machine: mean about 38 tokens, p50 22-30, p95 128."""
    files = sorted(f for f in glob.glob('/usr/share/common-licenses/*') if not os.path.islink(f))
    text = '\n\n'.join(open(f, errors='replace').read() for f in files)
    paragraphs = [' '.join(p.split()) for p in text.split('\n\n')]
    pieces = {s for p in paragraphs for s in re.split(r'(?<=[.;:])\s+', p) if 4 <= len(s.split())}
    pieces |= {p for p in paragraphs[::9] if len(p.split()) > 30}
    pieces = sorted(pieces)
    random.Random(seed).shuffle(pieces)
    return pieces[:count]


def pad(rows):
    shape = (len(rows), max(map(len, rows)))
    tokens, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for i, row in enumerate(rows):
        tokens[i, :len(row)], mask[i, :len(row)] = row, 1
    return dict(input_ids=tokens, attention_mask=mask, token_type_ids=np.zeros(shape, np.int64))


def peers(folder, threads):
    def ort(path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options)
        return lambda inputs: session.run(None, inputs)

    def ov(path, **hints):
        settings = {'INFERENCE_NUM_THREADS': threads, 'PERFORMANCE_HINT': 'LATENCY', **hints}
        request = openvino.Core().compile_model(path, 'CPU', settings).create_infer_request()
        return lambda inputs: request.infer(inputs)

    found = {'ONNX Runtime INT8': ort(f'{folder}/minilm_int8.onnx'),
             'OpenVINO INT8': ov(f'{folder}/minilm_nncf.xml')}
    fp32 = f'{folder}/minilm_fp32.onnx'
    if os.path.exists(fp32):
        found['ONNX Runtime FP32'] = ort(fp32)
        found['OpenVINO FP32'] = ov(fp32, INFERENCE_PRECISION_HINT='f32')
        found['OpenVINO BF16'] = ov(fp32, INFERENCE_PRECISION_HINT='bf16')
    return found


def seconds_of(run, batches):
    """Wall and processor seconds of one pass."""
    wall, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        run(batch)
    return time.perf_counter() - wall, time.process_time() - cpu


def penstock(args, precision, file, seconds):
    cap = ['--cpu-level', 'avx512vnni'] if args.without_amx else []
    out = subprocess.run([args.penstock, 'bench', '--model', args.model, '--precision', precision, '--sequences', file,
                          '--threads', str(args.threads), '--seconds', str(seconds), '--json', *cap],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def write_jsonl(folder, name, rows):
    path = os.path.join(folder, name)
    with open(path, 'w') as file:
        file.writelines(json.dumps(row) + '\n' for row in rows)
    return path


def machine(threads):
    cpu = next((l.split(':')[1].strip() for l in open('/proc/cpuinfo') if l.startswith('model name')), platform.machine())
    flags = next((l for l in open('/proc/cpuinfo') if l.startswith('flags')), '')
    units = [f for f in ('avx2', 'avx_vnni', 'avx512_vnni', 'avx512_bf16', 'amx_int8') if f in flags.split()]
    return (f'{cpu}, {os.cpu_count()} cores ({" ".join(units)}), Linux {platform.release()}, load {os.getloadavg()[0]:.1f}; '
            f'{threads} threads; onnxruntime {onnxruntime.__version__}, openvino {openvino.__version__.split("-")[0]}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('penstock')
    parser.add_argument('model')
    parser.add_argument('peers')
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--without-amx', action='store_true')
    parser.add_argument('--markdown')
    args = parser.parse_args()
    if args.without_amx:
        os.environ['ONEDNN_MAX_CPU_ISA'] = 'AVX512_CORE_VNNI'

    tokenizer = Tokenizer.from_file(os.path.join(args.model, 'tokenizer.json'))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    ids = [tokenizer.encode(s).ids for s in sentences()]
    total = sum(map(len, ids))
    orders = {'one at a time': [[row] for row in ids],
              'as they came, batches of 8': [ids[i:i + 8] for i in range(0, len(ids), 8)],
              'sorted by length (an oracle), batches of 8': None}
    by_length = sorted(ids, key=len)
    orders['sorted by length (an oracle), batches of 8'] = [by_length[i:i + 8] for i in range(0, len(ids), 8)]
    chance = random.Random(5)
    alone = {n: [101] + [chance.randrange(1000, 30000) for _ in range(n - 2)] + [102] for n in ALONE}

    speed, latency = {}, {}      # (engine, order) -> [(wall, cpu)], (engine, length) -> [ms]
    with tempfile.TemporaryDirectory() as folder:
        real = write_jsonl(folder, 'real.jsonl', ids)
        files = {n: write_jsonl(folder, f'{n}.jsonl', [alone[n]]) for n in ALONE}
        engines = peers(args.peers, args.threads)
        for run in engines.values():        # once over everything: OpenVINO compiles kernels for every new shape
            for batches in orders.values():
                seconds_of(run, [pad(b) for b in batches])
        for _ in range(args.rounds):
            for name, run in engines.items():
                for order, batches in orders.items():
                    wall, cpu = seconds_of(run, [pad(b) for b in batches])
                    speed.setdefault((name, order), []).append((total / wall, total / cpu))
                for n in ALONE:
                    inputs, times = pad([alone[n]]), []
                    for _ in range(40):
                        start = time.perf_counter()
                        run(inputs)
                        times.append(1e3 * (time.perf_counter() - start))
                    latency.setdefault((name, n), []).append(statistics.median(times))
            for precision in ('int8', 'bf16', 'fp32'):
                name = f'Penstock {precision}'
                got = penstock(args, precision, real, args.seconds)
                speed.setdefault((name, 'as they came, ragged'), []).append(
                    (got['real_tokens_per_s'], got['tokens_per_cpu_s']))
                for n in ALONE:
                    got = penstock(args, precision, files[n], args.seconds / 4)
                    latency.setdefault((name, n), []).append(got['latency_ms']['p50'])

    middle = lambda values: statistics.median(values)
    lines = [f'{len(ids)} sequences, {total} tokens. {machine(args.threads)}. Median of {args.rounds} paired rounds.', '',
             '| engine | order | real tokens/s | tokens per second of CPU |', '| --- | --- | --- | --- |']
    for (name, order), values in speed.items():
        lines.append(f'| {name} | {order} | {middle([v[0] for v in values]):.0f} | {middle([v[1] for v in values]):.0f} |')
    lines += ['', '| engine, one sequence alone, median ms | ' + ' | '.join(f'{n} tokens' for n in ALONE) + ' |',
              '| --- |' + ' --- |' * len(ALONE)]
    for name in dict.fromkeys(name for name, _ in latency):
        lines.append(f'| {name} | ' + ' | '.join(f'{middle(latency[name, n]):.2f}' for n in ALONE) + ' |')

    def ratio(ours, theirs, order, index):
        """Per round, then the median: what a neighbour takes he takes from both."""
        if (theirs, order) not in speed:
            return 'not measured'
        pairs = zip(speed[ours, 'as they came, ragged'], speed[theirs, order])
        return f'{middle([a[index] / b[index] for a, b in pairs]):.2f}'

    lines += ['', '| ratio | tokens/s | per second of CPU |', '| --- | --- | --- |']
    for ours, theirs in (('int8', 'OpenVINO INT8'), ('bf16', 'OpenVINO FP32'), ('fp32', 'OpenVINO FP32')):
        for order in list(orders)[:0:-1]:
            lines.append(f'| Penstock {ours} / {theirs}, {order} | {ratio(f"Penstock {ours}", theirs, order, 0)} | '
                         f'{ratio(f"Penstock {ours}", theirs, order, 1)} |')
    text = '\n'.join(lines) + '\n'
    print(text)
    if args.markdown:
        with open(args.markdown, 'w') as file:
            file.write(text)


if __name__ == '__main__':
    sys.exit(main())
