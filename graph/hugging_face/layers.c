#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "graph/hugging_face/hugging_face.h"

void hf_lack_memory(hf_builder *b)
{
    graph_lack_memory(b->g);
    if (b->failed == STATUS_OK)
        b->failed = graph_check_memory(b->g);
}

const char *hf_text(hf_builder *b, const char *text)
{
    if (text == NULL)
        hf_lack_memory(b);
    return text != NULL ? text : "";
}

const char *hf_name(hf_builder *b, const char *format, ...)
{
    char name[300];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return hf_text(b, arena_format(&b->g->memory, "%s%s", b->weights->prefix, name));
}

const char *hf_root_name(hf_builder *b, const char *name)
{
    return hf_text(b, arena_format(&b->g->memory, "%s%s", b->weights->root, name));
}

static const char *below(hf_builder *b, const char *name, const char *leaf)
{
    return hf_text(b, arena_format(&b->g->memory, "%s.%s", name, leaf));
}

bool hf_has(const hf_builder *b, const char *name)
{
    char full[400];
    snprintf(full, sizeof full, "%s.weight", name);
    return hf_weights_find(b->weights, full) != NULL;
}

void hf_check_axis(hf_builder *b, const char *name, int axis, const char *key, int64_t expected)
{
    const safetensors_entry *e = hf_weights_find(b->weights, name);
    if (b->failed || expected == 0 || e == NULL || e->value.rank != 2 ||
        e->value.dims[axis] == expected)
        return;
    char text[TENSOR_SHAPE_TEXT_BYTES];
    b->failed = status_fail(STATUS_CORRUPT, "config.json: %s is %lld, but tensor '%s' is %s", key,
                            (long long)expected, name,
                            tensor_shape_text(text, e->value.rank, e->value.dims));
}

void hf_check_layer_count(hf_builder *b, const char *key, const char *format)
{
    int64_t layers = b->config->layers;
    for (int64_t i = 1; i <= layers && b->failed == STATUS_OK; i++) {
        char name[200];
        const char *at = strstr(format, "%lld");
        snprintf(name, sizeof name, "%.*s%lld%s", (int)(at - format), format, (long long)i, at + 4);
        const char *full = hf_name(b, "%s", name);
        if (b->failed)
            return;
        bool is_there = hf_weights_find(b->weights, full) != NULL;
        if (i == layers && is_there)
            log_warning("graph", "config.json: %s is %lld; the weights have more layers, not used",
                        key, (long long)layers);
        if (i < layers && !is_there)
            b->failed = status_fail(STATUS_CORRUPT,
                                    "config.json: %s is %lld, but the weights have no tensor '%s'",
                                    key, (long long)layers, full);
    }
}

/* What is returned after a failure: the graph is destroyed. */
static const tensor nothing = {.dtype = DTYPE_F32};

static bool load(hf_builder *b, const char *name, int64_t rows, int64_t columns, bool is_matrix,
                 tensor *out)
{
    if (b->failed == STATUS_OK)
        b->failed = hf_weights_load(b->weights, b->g, name, rows, columns, is_matrix, out);
    return b->failed == STATUS_OK;
}

static const tensor *add_constant(hf_builder *b, const char *name, const tensor *t)
{
    graph_value_index v = graph_add_constant(b->g, name, t); /* moves b->g->values */
    if (b->failed == STATUS_OK)
        b->failed = graph_check_memory(b->g);
    return b->g->values[v].constant;
}

static const tensor *add_tensor(hf_builder *b, const char *name, int64_t rows, int64_t columns,
                                bool is_matrix)
{
    tensor t;
    return load(b, name, rows, columns, is_matrix, &t) ? add_constant(b, name, &t) : &nothing;
}

const tensor *hf_table(hf_builder *b, const char *name, int64_t rows, int64_t columns)
{
    return add_tensor(b, name, rows, columns, false);
}

encoder_linear hf_linear(hf_builder *b, const char *name, int64_t out, int64_t in)
{
    encoder_linear l = {.is_transposed = true};
    const char *bias = below(b, name, "bias");
    l.weight = add_tensor(b, below(b, name, "weight"), out, in, true);
    if (b->failed == STATUS_OK && hf_weights_find(b->weights, bias) != NULL)
        l.bias = add_tensor(b, bias, l.weight->dims[0], 0, false);
    return l;
}

static const tensor *load_new(hf_builder *b, const char *name, int64_t rows, int64_t columns,
                              bool is_matrix)
{
    tensor *t = arena_allocate(&b->g->memory, sizeof *t);
    if (t == NULL) {
        hf_lack_memory(b);
        return &nothing;
    }
    *t = nothing;
    (void)load(b, name, rows, columns, is_matrix, t);
    return t;
}

encoder_linear hf_fused(hf_builder *b, const char *name, int64_t out, int64_t in)
{
    const char *bias = below(b, name, "bias");
    encoder_linear l = {.is_transposed = true,
                        .weight = load_new(b, below(b, name, "weight"), out, in, true)};
    if (b->failed == STATUS_OK && hf_weights_find(b->weights, bias) != NULL)
        l.bias = load_new(b, bias, l.weight->dims[0], 0, false);
    return l;
}

static const tensor *slice(hf_builder *b, const tensor *whole, const char *name, int64_t first,
                           int64_t count)
{
    int64_t width = whole->rank == 2 ? whole->dims[1] : 1;
    tensor part = *whole;
    part.dims[0] = count;
    part.data = (float *)whole->data + first * width;
    return add_constant(b, name, &part);
}

encoder_linear hf_linear_rows(hf_builder *b, const encoder_linear *whole, const char *name,
                              int64_t first, int64_t count)
{
    encoder_linear l = {.is_transposed = true, .weight = &nothing};
    if (b->failed)
        return l;
    l.weight = slice(b, whole->weight, below(b, name, "weight"), first, count);
    if (whole->bias != NULL)
        l.bias = slice(b, whole->bias, below(b, name, "bias"), first, count);
    return l;
}

encoder_norm hf_norm(hf_builder *b, const char *name, int64_t width)
{
    encoder_norm n = {.epsilon = (float)b->config->epsilon};
    const char *bias = below(b, name, "bias"), *beta = below(b, name, "beta");
    n.scale = add_tensor(b, below(b, name, "weight"), width, 0, false);
    if (hf_weights_find(b->weights, bias) != NULL || hf_weights_find(b->weights, beta) != NULL)
        n.bias = add_tensor(b, bias, width, 0, false);
    return n;
}

int64_t hf_width(const encoder_linear *l)
{
    return l->weight->rank == 2 ? l->weight->dims[0] : 0;
}

/* transformers/activations.py, ACT2FN: its variants of GELU by tanh differ only in rounding. */
static const struct {
    const char *name;
    encoder_activation code;
} activations[] = {
    {"gelu", ENCODER_GELU},
    {"gelu_python", ENCODER_GELU},
    {"gelu_new", ENCODER_GELU_TANH},
    {"gelu_fast", ENCODER_GELU_TANH},
    {"gelu_accurate", ENCODER_GELU_TANH},
    {"gelu_pytorch_tanh", ENCODER_GELU_TANH},
    {"gelu_python_tanh", ENCODER_GELU_TANH},
    {"quick_gelu", ENCODER_QUICK_GELU},
    {"silu", ENCODER_SILU},
    {"swish", ENCODER_SILU},
    {"linear", ENCODER_IDENTITY},
    {"relu", ENCODER_RELU},
    {"tanh", ENCODER_TANH},
    {"sigmoid", ENCODER_SIGMOID},
    {"mish", ENCODER_MISH},
};

encoder_activation hf_activation(hf_builder *b, const char *key, const char *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++)
        if (strcmp(activations[i].name, name) == 0)
            return activations[i].code;
    if (b->failed == STATUS_OK)
        b->failed = status_fail(STATUS_UNSUPPORTED,
                                "config.json: %s '%s' is not supported; supported: gelu, "
                                "gelu_new, gelu_fast, gelu_pytorch_tanh, quick_gelu, silu, relu, "
                                "tanh, sigmoid, mish, linear",
                                key, name);
    return ENCODER_IDENTITY;
}

encoder_head_activation hf_head_activation(hf_builder *b, const char *key, const char *name)
{
    switch (hf_activation(b, key, name)) {
    case ENCODER_GELU:
        return ENCODER_HEAD_GELU;
    case ENCODER_GELU_TANH:
        return ENCODER_HEAD_GELU_TANH;
    case ENCODER_SILU:
        return ENCODER_HEAD_SILU;
    case ENCODER_RELU:
        return ENCODER_HEAD_RELU;
    case ENCODER_TANH:
        return ENCODER_HEAD_TANH;
    case ENCODER_SIGMOID:
        return ENCODER_HEAD_SIGMOID;
    case ENCODER_IDENTITY:
        return ENCODER_HEAD_NONE;
    case ENCODER_QUICK_GELU:
    case ENCODER_MISH:
        break;
    }
    if (b->failed == STATUS_OK)
        b->failed = status_fail(STATUS_UNSUPPORTED,
                                "config.json: %s '%s' is not supported; supported: gelu, "
                                "gelu_new, silu, relu, tanh, sigmoid, linear",
                                key, name);
    return ENCODER_HEAD_NONE;
}

const encoder_rotary *hf_make_rotary(hf_builder *b, const hf_rotary *rotary, int64_t dims)
{
    encoder_rotary *r = arena_allocate(&b->g->memory, sizeof *r);
    float *frequencies =
        arena_allocate(&b->g->memory, (size_t)(dims / 2 + 1) * sizeof *frequencies);
    if (r == NULL || frequencies == NULL) {
        hf_lack_memory(b);
        return NULL;
    }
    if (dims % 2 != 0 && b->failed == STATUS_OK)
        b->failed =
            status_fail(STATUS_CORRUPT,
                        "config.json: rotary positions turn pairs of numbers; by head_dim, or "
                        "the hidden size and num_attention_heads, heads have %lld",
                        (long long)dims);
    /* The exponents and results are binary32, as in the code that trained these models. */
    float base = (float)(rotary->theta * rotary->ntk);
    for (int64_t i = 0; i < dims / 2; i++) {
        float exponent = (float)(2 * i) / (float)dims;
        frequencies[i] = 1 / powf(base, exponent);
        if (rotary->ntk != 1) /* kexue.fm/archives/9706, equation 6 */
            frequencies[i] /= powf((float)rotary->ntk, 2 / (float)dims);
        frequencies[i] /= (float)rotary->factor;
    }
    *r = (encoder_rotary){.dims = dims, .frequencies = frequencies};
    return r;
}
