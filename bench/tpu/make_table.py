#!/usr/bin/env python3
"""Makes ../tpu.md from the lines of `penstock compile --json`.

    for t in v4:2x2x1 v5e:1x1 v5p:2x2x1 v6e:1x1; do for p in bf16 int8; do
        penstock compile --model minilm=DIR --target tpu:$t --precision $p --batch 1,8,32 --sequence 32,128 \\
            --cache CACHE --plugin libtpu.so --json; done; done >compiled.jsonl
    bench/tpu/make_table.py compiled.jsonl >bench/tpu.md

Ends with code 1 when a target has fewer than six buckets, or an int8 program a dense layer without s8 operands.
"""
import json
import sys

HEAD = """# MiniLM-L6 compiled for four generations of TPU, on a machine without one

`penstock compile` with libtpu 0.0.52 (PyPI), sentence-transformers/all-MiniLM-L6-v2, {count} programs,
compiled on a machine without a TPU (2 cores of an Intel Emerald-Rapids class, shared with other work: the compile
seconds are upper bounds). Written by [tpu/make_table.py](tpu/make_table.py) from
[tpu/compiled.jsonl](tpu/compiled.jsonl).

**Nothing here was measured on a TPU.** Cycles are the compiler's estimates (the sum of `estimated_cycles` in the
optimized HLO), turned into time by the clock of the tensor core (1.05 GHz v4, 1.5 GHz v5e, 1.75 GHz v5p and v6e).
Transfers, launch and queues are not in them. MFU is against the published peak of the precision (bf16: 275, 197, 459,
918 TFLOP/s; int8: 275, 394, 918, 1836 TOP/s). v4 and v5p targets are a host of 2x2x1 chips; the program runs on one of
them. Tokens are those of the bucket, padding included.
"""

FOOT = """
`s8 of dense` is the number of matrix multiplications with two 8-bit operands in the optimized program, of the model's
dense layers. The other ones are attention scores and values, which are bf16 in both precisions.

What the figures say: MiniLM is small (384 wide), so at these buckets the time goes to what lies between the matrix
multiplications, and quantising the activations of each token adds to that. The compiler expects bf16 to be faster than
int8 for this model on each generation. int8 pays for wide layers: on v5e the compiler expects 1.99x at 4096 x 4096 x
4096 and 1.06x at 4096 x 384 x 1536. Serve MiniLM in bf16 on TPUs.

\\* without instructions whose estimate is the largest 64-bit number: the true cycles are higher, tokens/s and MFU lower
than shown.
"""


def main():
    rows = [json.loads(line) for path in sys.argv[1:] for line in open(path)]
    print(HEAD.format(count=len(rows)), end="")
    is_good = True
    for target in sorted({r["target"] for r in rows}):
        for precision in sorted({r["precision"] for r in rows}):
            mine = [r for r in rows if (r["target"], r["precision"]) == (target, precision)]
            is_good &= len(mine) >= 6
            print(f"\n## {target}, {precision}\n")
            print("| batch | length | compile s | code MiB | entry MiB | est. cycles | est. tokens/s | est. MFU | s8 of dense |")
            print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
            for r in sorted(mine, key=lambda r: (r["sequence"], r["batch"])):
                if precision == "int8":
                    is_good &= r["products_s8"] == r["dense_layers"] > 0
                star = "\\*" if r["unestimated_instructions"] else ""
                print(
                    f"| {r['batch']} | {r['sequence']} | {r['compile_seconds']:.1f} | {r['code_bytes'] / 2**20:.1f} |"
                    f" {r['program_bytes'] / 2**20:.1f} | {r['estimated_cycles']:,}{star} | {r['estimated_tokens_per_s']:,.0f}{star} |"
                    f" {100 * (r['estimated_mfu'] or 0):.1f}%{star} | {r['products_s8']} of {r['dense_layers']} |"
                )
    print(FOOT, end="")
    return 0 if is_good and rows else 1


if __name__ == "__main__":
    sys.exit(main())
