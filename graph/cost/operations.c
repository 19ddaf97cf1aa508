#include "graph/cost/operations.h"

#include <math.h>
#include <string.h>

#include "graph/shapes/infer.h"

/* Of one element, where a kernel sorts or evaluates polynomials. */
#define SORT_OPERATIONS 64
#define TREE_OPERATIONS 64
#define COUPLE_STEPS 100
#define CURVE_OPERATIONS 16

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Product of dims[from ..]. */
static int64_t product_from(const tensor *t, int from)
{
    int64_t product = 1;
    for (int i = from; i < t->rank; i++)
        product = times(product, t->dims[i]);
    return product;
}

static int64_t most_inputs(const graph_node *node, const tensor *const *in)
{
    int64_t most = 0;
    for (int i = 0; i < node->input_count; i++)
        if (in[i] != NULL && tensor_count(in[i]) > most)
            most = tensor_count(in[i]);
    return most;
}

static int64_t most_outputs(const graph_node *node, const tensor *out)
{
    int64_t most = 0;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != GRAPH_NO_VALUE && tensor_count(&out[i]) > most)
            most = tensor_count(&out[i]);
    return most;
}

/* Each output is a sum over the inner dim of `a`. */
static int64_t of_matmul(const tensor *a, int64_t outputs)
{
    return times(2, times(outputs, a->rank > 0 ? a->dims[a->rank - 1] : 1));
}

static int64_t of_gemm(const graph_node *node, const tensor *a, int64_t outputs)
{
    bool is_transposed = graph_attribute_int(node, "transA", 0) != 0;
    return times(2, times(outputs, a->dims[is_transposed ? 0 : 1]));
}

/* Each output is a sum over one filter of `weights` [channels out, channels in, taps...]. */
static int64_t of_convolution(const tensor *weights, int64_t outputs)
{
    return times(2, times(outputs, product_from(weights, 1)));
}

/* Each step multiplies the input and the state of a row by one matrix per direction. */
static int64_t of_recurrent(const tensor *const *in)
{
    int64_t rows = times(in[0]->dims[0], in[0]->dims[1]);
    int64_t w = product_from(in[1], 0), r = product_from(in[2], 0);
    return times(2, times(rows, w > INT64_MAX - r ? INT64_MAX : w + r));
}

/* One matrix multiplication up to 2048, then mixed radix (devices/cpu/signal). */
static int64_t of_fourier(const graph_node *node, const tensor *const *in, int64_t outputs)
{
    graph_fourier f;
    if (graph_read_fourier(node, in, &f))
        return outputs;
    if (f.length <= 2048)
        return times(2, times(outputs, f.bins_in * f.parts_in));
    int64_t factors = 0, left = f.length;
    for (int64_t p = 2; p * p <= left; p++)
        for (; left % p == 0; left /= p)
            factors += p;
    return times(8, times(outputs, factors + left));
}

static int64_t of_pool(const graph_node *node, const tensor *x, int64_t outputs)
{
    const graph_attribute *kernel = graph_find_attribute(node, "kernel_shape");
    int64_t taps = 1;
    for (int i = 0; kernel != NULL && i < (int)kernel->count && 2 + i < x->rank; i++)
        taps = times(taps, least(kernel->ints[i], x->dims[2 + i])); /* the others are padding */
    return times(outputs, taps);
}

/* Input elements that one output element of an axis is made of. */
static double resize_taps(const graph_node *node, double scale)
{
    const char *mode = graph_attribute_string(node, "mode", "nearest");
    if (mode[0] == 'n')
        return 1;
    bool is_antialiased = graph_attribute_int(node, "antialias", 0) != 0;
    return 2 + 2 * ceil(2 / (is_antialiased && scale < 1 ? scale : 1));
}

static int64_t of_resize(const graph_node *node, const tensor *const *in, const tensor *out)
{
    const tensor *x = in[0], *scales = node->input_count > 2 ? in[2] : NULL;
    const graph_attribute *axes = graph_find_attribute(node, "axes");
    bool has_scales = scales != NULL && scales->data != NULL && tensor_count(scales) > 0;
    int listed = axes != NULL ? (int)axes->count : x->rank;
    double taps = 1;
    for (int i = 0; i < listed; i++) {
        int64_t axis = axes == NULL        ? i
                       : axes->ints[i] < 0 ? axes->ints[i] + x->rank
                                           : axes->ints[i];
        double in_size = (double)x->dims[axis], out_size = (double)out->dims[axis];
        double scale = has_scales && i < tensor_count(scales)
                           ? tensor_get_number(scales, i)
                           : fmax(out_size - 0.5, 0.5) / fmax(in_size, 1);
        if (has_scales || in_size != out_size)
            taps *= resize_taps(node, scale);
    }
    double operations = 2 * taps * (double)tensor_count(out);
    return operations < 0x1p62 ? (int64_t)operations : INT64_MAX;
}

/* Operators that only count, or that share the memory of their input. */
static bool is_free(graph_op op)
{
    switch (op) {
    case GRAPH_OP_SHAPE:
    case GRAPH_OP_SIZE:
    case GRAPH_OP_IDENTITY:
    case GRAPH_OP_RESHAPE:
    case GRAPH_OP_FLATTEN:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
    case GRAPH_OP_IF:
        return true;
    default:
        return false;
    }
}

/* Operators that read only what they write, however large the input is. */
static bool is_selection(graph_op op)
{
    switch (op) {
    case GRAPH_OP_GATHER:
    case GRAPH_OP_GATHER_ELEMENTS:
    case GRAPH_OP_GATHER_ND:
    case GRAPH_OP_SLICE:
    case GRAPH_OP_SPLIT:
        return true;
    default:
        return false;
    }
}

static int64_t of_elements(const graph_node *node, const tensor *const *in, int64_t outputs)
{
    if (is_free(node->op))
        return 0;
    int64_t inputs = is_selection(node->op) ? 0 : most_inputs(node, in);
    return inputs > outputs ? inputs : outputs;
}

int64_t graph_operations(const graph_node *node, const tensor *const *in, const tensor *out)
{
    int64_t outputs = most_outputs(node, out);
    switch (node->op) {
    case GRAPH_OP_MATMUL:
    case GRAPH_OP_MATMUL_INTEGER:
    case GRAPH_OP_QLINEAR_MATMUL:
        return of_matmul(in[0], outputs);
    case GRAPH_OP_GEMM:
        return of_gemm(node, in[0], outputs);
    case GRAPH_OP_CONV:
    case GRAPH_OP_CONV_INTEGER:
        return of_convolution(in[1], outputs);
    case GRAPH_OP_QLINEAR_CONV:
        return of_convolution(in[3], outputs);
    case GRAPH_OP_CONV_TRANSPOSE: /* each input element is spread over one filter */
        return of_convolution(in[1], tensor_count(in[0]));
    case GRAPH_OP_EINSUM:
        return times(2, times(node->input_count, graph_einsum_volume(node, in)));
    case GRAPH_OP_DEFORM_CONV:
        return times(2, of_convolution(in[1], outputs));
    case GRAPH_OP_NON_MAX_SUPPRESSION: /* compares each with each */
        return times(tensor_count(in[1]), in[1]->dims[2]);
    case GRAPH_OP_ROI_ALIGN: {
        int64_t samples = graph_attribute_int(node, "sampling_ratio", 0);
        return times(times(outputs, CURVE_OPERATIONS),
                     samples > 0 ? samples * samples : times(in[0]->dims[2], in[0]->dims[3]));
    }
    case GRAPH_OP_DFT:
    case GRAPH_OP_STFT:
        return of_fourier(node, in, outputs);
    case GRAPH_OP_GRU:
    case GRAPH_OP_LSTM:
    case GRAPH_OP_RNN:
    case GRAPH_OP_ROUNDED_LSTM:
        return of_recurrent(in);
    case GRAPH_OP_SQUARED_DISTANCE:
        return times(times(2, outputs), in[0]->dims[1]);
    case GRAPH_OP_COUPLE: /* steps over all pairs */
        return times(times(outputs, graph_attribute_int(node, "classes", 1)), COUPLE_STEPS);
    case GRAPH_OP_TREES: /* steps from root to leaf */
        return times(times(in[0]->dims[0], tensor_count(in[5])), TREE_OPERATIONS);
    case GRAPH_OP_AVERAGE_POOL:
    case GRAPH_OP_LP_POOL:
    case GRAPH_OP_MAX_POOL:
        return of_pool(node, in[0], outputs);
    case GRAPH_OP_LRN:
        return times(2, times(outputs, least(graph_attribute_int(node, "size", 1),
                                             in[0]->rank > 1 ? in[0]->dims[1] : 1)));
    case GRAPH_OP_DET:
        return times(tensor_count(in[0]), in[0]->dims[in[0]->rank - 1]);
    case GRAPH_OP_RESIZE:
    case GRAPH_OP_UPSAMPLE:
        return of_resize(node, in, out);
    case GRAPH_OP_GRID_SAMPLE:
        return times(outputs, CURVE_OPERATIONS);
    case GRAPH_OP_TOP_K:
    case GRAPH_OP_UNIQUE:
        return times(tensor_count(in[0]), SORT_OPERATIONS);
    default:
        return of_elements(node, in, outputs);
    }
}
