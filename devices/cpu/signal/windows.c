#include <math.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/block.h"

/* HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix. Constant folding runs them. */

static void store(tensor *out, int64_t at, double value)
{
    cpu_compute compute = cpu_compute_of(out->dtype);
    if (compute == CPU_COMPUTE_F32 || compute == CPU_COMPUTE_F64) {
        cpu_store(CPU_COMPUTE_F64, out->dtype, &value, out->data, at, 1, 1);
    } else {
        int64_t integer = cpu_double_to_i64(value);
        cpu_store(CPU_COMPUTE_I64, out->dtype, &integer, out->data, at, 1, 1);
    }
}

/* a - b * cos(x) + c * cos(2 * x) over one turn. */
static status run_window(const cpu_call *c)
{
    tensor *out = &c->outputs[0];
    int64_t size = out->dims[0];
    bool is_periodic = graph_attribute_int(c->node, "periodic", 1) != 0;
    double period = (double)(is_periodic ? size : size - 1), weights[3] = {0.5, 0.5, 0};
    if (c->node->op == GRAPH_OP_HAMMING_WINDOW) {
        weights[0] = 25.0 / 46;
        weights[1] = 21.0 / 46;
    } else if (c->node->op == GRAPH_OP_BLACKMAN_WINDOW) {
        weights[0] = 0.42;
        weights[2] = 0.08;
    }
    for (int64_t i = 0; i < size; i++) {
        double x = period > 0 ? 2 * M_PI * (double)i / period : M_PI;
        store(out, i, weights[0] - weights[1] * cos(x) + weights[2] * cos(2 * x));
    }
    return STATUS_OK;
}

/* Triangles whose corners are equally far apart in mel, cut to whole bins of the spectrum (onnx
 * Operators.md, MelWeightMatrix). */
static status run_mel_weight_matrix(const cpu_call *c)
{
    tensor *out = &c->outputs[0];
    int64_t mels = out->dims[1], bins = out->dims[0];
    double length = tensor_get_number(c->inputs[1], 0), rate = tensor_get_number(c->inputs[2], 0);
    double low = 2595 * log10(1 + tensor_get_number(c->inputs[3], 0) / 700);
    double high = 2595 * log10(1 + tensor_get_number(c->inputs[4], 0) / 700);
    double step = (high - low) / (double)(mels + 2);
    for (int64_t i = 0; i < mels * bins; i++)
        store(out, i, 0);
    for (int64_t m = 0; m < mels; m++) {
        int64_t corners[3];
        for (int k = 0; k < 3; k++) {
            double hertz = 700 * (pow(10, (low + (double)(m + k) * step) / 2595) - 1);
            corners[k] = cpu_double_to_i64(floor((length + 1) * hertz / rate));
            if (!(rate > 0) || corners[k] < 0 || corners[k] >= bins)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "a frequency of %g Hz; the spectrum ends at %g", hertz,
                                   rate / 2);
        }
        if (corners[1] == corners[0])
            store(out, corners[1] * mels + m, 1);
        for (int64_t i = corners[0]; corners[1] > corners[0] && i <= corners[1]; i++)
            store(out, i * mels + m, (double)(i - corners[0]) / (double)(corners[1] - corners[0]));
        for (int64_t i = corners[1]; i < corners[2]; i++)
            store(out, i * mels + m, (double)(corners[2] - i) / (double)(corners[2] - corners[1]));
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_BLACKMAN_WINDOW, NULL, run_window, 0, false},
    {GRAPH_OP_HAMMING_WINDOW, NULL, run_window, 0, false},
    {GRAPH_OP_HANN_WINDOW, NULL, run_window, 0, false},
    {GRAPH_OP_MEL_WEIGHT_MATRIX, NULL, run_mel_weight_matrix, 0, false},
};

const cpu_op_family cpu_ops_windows = {table, sizeof table / sizeof table[0]};
