#include <assert.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/gemm_f32.h"
#include "kernels/gemm_scaled.h"
#include "kernels/quantise.h"
#include "kernels/rows.h"

/* A chunk of sequences through embeddings and layers. Each step is split into units: rows, columns
 * of a GEMM, heads of a sequence. One worker computes all of them in one call, or the thread pool
 * shares them; the bits are the same (second invariant of kernels/README.md). */

#define SPLIT_COLUMNS 64 /* columns of a unit of a GEMM: a panel of any format */

typedef void (*step_work)(cpu_encoder_pass *p, int worker, size_t first, size_t count);

typedef struct step {
    cpu_encoder_pass *pass;
    step_work work;
} step;

static void run_unit(void *context, int worker, size_t unit)
{
    const step *s = context;
    s->work(s->pass, worker, unit, 1);
}

static void run_step(cpu_encoder_pass *p, step_work work, size_t units)
{
    step s = {p, work};
    if (p->is_split && units > 1)
        thread_pool_run(p->runner->threads, p->runner->caller, run_unit, &s, units);
    else
        work(p, p->worker, 0, units);
}

static size_t row_units(const cpu_encoder_pass *p)
{
    return (p->tokens + CPU_ENCODER_SPLIT_ROWS - 1) / CPU_ENCODER_SPLIT_ROWS;
}

static size_t element_bytes(cpu_encoder_format format)
{
    return format == CPU_ENCODER_U8S8 ? 1 : 2;
}

/* Quantises rows of x for `l`. `low` and `high`: the ranges of the rows when known, or NULL. */
static void quantise(cpu_encoder_pass *p, const cpu_encoder_linear *l, const float *x,
                     size_t x_stride, void *a, const float *low, const float *high, size_t row,
                     size_t rows)
{
    const kernels *k = p->e->options.kernels;
    const cpu_encoder_scratch *s = &p->scratch;
    x += row * x_stride;
    a = (char *)a + row * l->k * element_bytes(l->format);
    if (l->format == CPU_ENCODER_U8S8)
        k->quantise_u8(&(quantise_u8){.rows = rows,
                                      .width = l->k,
                                      .x = x,
                                      .x_stride = x_stride,
                                      .factors = l->factors,
                                      .low = low ? low + row : NULL,
                                      .high = high ? high + row : NULL,
                                      .out = a,
                                      .out_stride = l->k,
                                      .scale = s->a_scale + row,
                                      .zero = l->is_asymmetric ? s->a_zero + row : NULL});
    else if (l->format == CPU_ENCODER_S16)
        k->quantise_s16(&(quantise_s16){.rows = rows,
                                        .width = l->k,
                                        .x = x,
                                        .x_stride = x_stride,
                                        .low = low ? low + row : NULL,
                                        .high = high ? high + row : NULL,
                                        .out = a,
                                        .out_stride = l->k,
                                        .scale = s->a_scale + row});
    else if (l->format == CPU_ENCODER_BF16 && x_stride == l->k)
        k->convert_f32_bf16(x, a, rows * l->k);
    else if (l->format == CPU_ENCODER_BF16)
        for (size_t r = 0; r < rows; r++)
            k->convert_f32_bf16(x + r * x_stride, (uint16_t *)a + r * l->k, l->k);
}

/* The linear layer after the norm that step_norm computes; NULL after the last layer. */
static const cpu_encoder_linear *next_linear(const cpu_encoder_pass *p)
{
    const cpu_encoder_layer *layer = p->layer;
    if (!layer)
        return p->e->source.layer_count > 0 ? &p->e->layers[0].linears[ENCODER_QKV] : NULL;
    if (p->linear == ENCODER_ATTENTION_OUTPUT)
        return &layer->linears[ENCODER_UP];
    return p->layer_index + 1 < p->e->source.layer_count ? &layer[1].linears[ENCODER_QKV] : NULL;
}

/* The norm that follows the last linear layer, or the embeddings; before a layer or after it. */
static const encoder_norm *norm_after(const cpu_encoder_pass *p)
{
    const encoder *s = &p->e->source;
    const encoder_layer *l = &s->layers[p->layer ? p->layer_index : 0];
    bool is_last = p->layer && p->layer_index + 1 == s->layer_count;
    if (!p->layer)
        return s->is_pre_norm ? &l->attention_norm : &s->embedding_norm;
    if (p->linear == ENCODER_ATTENTION_OUTPUT)
        return s->is_pre_norm ? &l->output_norm : &l->attention_norm;
    if (!s->is_pre_norm)
        return &l->output_norm;
    return is_last ? &s->final_norm : &l[1].attention_norm;
}

/* Rows from x to out, quantised for `next` (or NULL) too. `residual` is added before; or NULL. */
static void norm_rows(cpu_encoder_pass *p, const encoder_norm *norm, const cpu_encoder_linear *next,
                      size_t row, size_t rows, const float *x, const float *residual, float *out)
{
    const kernels *k = p->e->options.kernels;
    size_t width = (size_t)p->e->source.hidden;
    layer_norm_f32 n = {.rows = rows,
                        .width = width,
                        .x = x,
                        .x_stride = width,
                        .residual = residual,
                        .residual_stride = width,
                        .gamma = norm->scale ? norm->scale->data : NULL,
                        .beta = norm->bias ? norm->bias->data : NULL,
                        .epsilon = norm->epsilon,
                        .out = out,
                        .out_stride = width};
    bool is_plain = norm->scale && !norm->is_rms;
    if (is_plain && next && next->format == CPU_ENCODER_U8S8) {
        k->layer_norm_quantise(
            &(layer_norm_quantise){.norm = n,
                                   .factors = next->factors,
                                   .out = (uint8_t *)p->scratch.a + row * width,
                                   .out_stride = width,
                                   .scale = p->scratch.a_scale + row,
                                   .zero = next->is_asymmetric ? p->scratch.a_zero + row : NULL});
        return;
    }
    if (is_plain) {
        k->layer_norm_f32(&n);
    } else {
        if (residual)
            k->add_f32(residual, 1, x, 1, out, rows * width);
        else if (out != x)
            memcpy(out, x, rows * width * sizeof *out);
        if (norm->scale)
            cpu_encoder_rms_norm(k, norm, rows, width, out, out, width);
    }
    if (next)
        quantise(p, next, out - row * width, width, p->scratch.a, NULL, NULL, row, rows);
}

/* What int8 leaves out of the weights of ENCODER_DOWN, added to its result. */
static void add_outliers(const cpu_encoder_pass *p, size_t row, size_t rows)
{
    const cpu_encoder_linear *l = &p->layer->linears[ENCODER_DOWN];
    size_t x_stride = p->layer->linears[ENCODER_UP].n;
    const float *x = p->scratch.up + row * x_stride;
    float *y = p->scratch.down + row * l->n;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < CPU_ENCODER_OUTLIERS; i++) {
            const cpu_encoder_outlier *o = &l->outliers[i];
            y[r * l->n + o->n] += x[r * x_stride + o->k] * o->weight;
        }
}

/* After a linear layer: x = norm(its result + x), quantised for the next one. Before the first
 * layer: norm(x). Where norms come before the layers, x is the sum, and the next layer reads the
 * norm of it. */
static void step_norm(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const encoder *s = &p->e->source;
    const encoder_norm *norm = norm_after(p);
    const float *added =
        p->linear == ENCODER_ATTENTION_OUTPUT ? p->scratch.projected : p->scratch.down;
    const cpu_encoder_linear *next = next_linear(p);
    size_t width = (size_t)s->hidden, begin;
    size_t rows = cpu_encoder_items(first, count, CPU_ENCODER_SPLIT_ROWS, p->tokens, &begin);
    for (size_t row = begin; row < begin + rows; row += CPU_ENCODER_SPLIT_ROWS) {
        size_t some = begin + rows - row < CPU_ENCODER_SPLIT_ROWS ? begin + rows - row
                                                                  : CPU_ENCODER_SPLIT_ROWS;
        float *x = p->scratch.x + row * width;
        const float *sum = added + row * width;
        if (p->layer && p->layer->linears[p->linear].outliers)
            add_outliers(p, row, some);
        if (!s->is_pre_norm) {
            norm_rows(p, norm, next, row, some, p->layer ? sum : x, p->layer ? x : NULL, x);
            continue;
        }
        if (p->layer)
            p->e->options.kernels->add_f32(x, 1, sum, 1, x, some * width);
        else
            norm_rows(p, &s->embedding_norm, NULL, row, some, x, NULL, x);
        norm_rows(p, norm, next, row, some, x, NULL, next ? p->scratch.normed + row * width : x);
    }
}

/* The activation as part of a GEMM; KERNELS_IDENTITY where step_activate computes it. */
static kernels_activation activation_of(const cpu_encoder_pass *p)
{
    static const kernels_activation to[] = {
        [ENCODER_GELU] = KERNELS_GELU,           [ENCODER_GELU_TANH] = KERNELS_GELU_TANH,
        [ENCODER_RELU] = KERNELS_RELU,           [ENCODER_SILU] = KERNELS_SILU,
        [ENCODER_QUICK_GELU] = KERNELS_IDENTITY, [ENCODER_TANH] = KERNELS_TANH,
        [ENCODER_SIGMOID] = KERNELS_SIGMOID,     [ENCODER_MISH] = KERNELS_IDENTITY,
        [ENCODER_IDENTITY] = KERNELS_IDENTITY};
    const encoder *s = &p->e->source;
    return cpu_encoder_is_gated(s) ? KERNELS_IDENTITY : to[s->layers[p->layer_index].activation];
}

/* Whether a step of its own follows the GEMM of ENCODER_UP. */
static bool has_activation_step(const cpu_encoder_pass *p)
{
    encoder_activation a = p->e->source.layers[p->layer_index].activation;
    return cpu_encoder_is_gated(&p->e->source) || a == ENCODER_QUICK_GELU || a == ENCODER_MISH;
}

/* Columns [n, n + columns) of a linear layer, for all rows; `a_stride`: of floats, otherwise rows
 * follow each other. */
static void multiply(const cpu_encoder_pass *p, const cpu_encoder_linear *l, const void *a,
                     size_t a_stride, size_t n, size_t columns, float *c,
                     kernels_activation activation, float *low, float *high)
{
    const kernels *k = p->e->options.kernels;
    const cpu_encoder_scratch *s = &p->scratch;
    if (l->format == CPU_ENCODER_F32) {
        k->gemm_f32(
            &(gemm_f32){.m = p->tokens,
                        .n = columns,
                        .k = l->k,
                        .a = a,
                        .a_stride = a_stride,
                        .b = (const float *)l->weights + gemm_f32_packed_offset(l->k, n),
                        .c = c + n,
                        .c_stride = l->n,
                        .epilogue = {.scale = 1, .bias = l->bias + n, .activation = activation}});
        return;
    }
    gemm_scaled_epilogue epilogue = {.row_scale = l->scales ? s->a_scale : NULL,
                                     .column_scale = l->scales ? l->scales + n : NULL,
                                     .bias = l->bias + n,
                                     .activation = activation,
                                     .row_low = low,
                                     .row_high = high};
    size_t panel = n / GEMM_SCALED_PANEL_COLUMNS;
    if (l->format == CPU_ENCODER_U8S8)
        k->gemm_u8s8(
            &(gemm_u8s8){.m = p->tokens,
                         .n = columns,
                         .k = l->k,
                         .a = a,
                         .a_stride = l->k,
                         .a_zero = l->is_asymmetric ? s->a_zero : NULL,
                         .b = (const char *)l->weights + panel * gemm_u8s8_panel_bytes(l->k),
                         .output = GEMM_F32,
                         .c = c + n,
                         .c_stride = l->n,
                         .epilogue = epilogue});
    else if (l->format == CPU_ENCODER_S16)
        k->gemm_s16(&(gemm_s16){.m = p->tokens,
                                .n = columns,
                                .k = l->k,
                                .a = a,
                                .a_stride = l->k,
                                .b = (const char *)l->weights + panel * gemm_s16_panel_bytes(l->k),
                                .output = GEMM_F32,
                                .c = c + n,
                                .c_stride = l->n,
                                .epilogue = epilogue});
    else
        k->gemm_bf16(
            &(gemm_bf16){.m = p->tokens,
                         .n = columns,
                         .k = l->k,
                         .a = a,
                         .a_stride = l->k,
                         .b = (const char *)l->weights + panel * gemm_s16_panel_bytes(l->k),
                         .output = GEMM_F32,
                         .c = c + n,
                         .c_stride = l->n,
                         .epilogue = epilogue});
}

/* Does the GEMM of ENCODER_UP find the ranges of the rows that ENCODER_DOWN needs? Only when one
 * worker computes whole rows, and only with AMX, where the vector units have time while tiles
 * multiply. Elsewhere step_activate finds them, once a row instead of once a panel, with the
 * same result. */
static bool gemm_finds_ranges(const cpu_encoder_pass *p)
{
    return !p->is_split && p->e->options.kernels->level >= KERNELS_AMX &&
           p->layer->linears[ENCODER_UP].format != CPU_ENCODER_F32 && !has_activation_step(p);
}

static void step_multiply(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const cpu_encoder_linear *l = &p->layer->linears[p->linear];
    const cpu_encoder_scratch *s = &p->scratch;
    const float *x[] = {s->normed, s->attended, s->normed, s->up};
    float *c[] = {s->qkv, s->projected, s->up, s->down};
    const void *a = p->linear == ENCODER_DOWN ? s->a_up : s->a;
    kernels_activation activation = KERNELS_IDENTITY;
    bool has_ranges = p->linear == ENCODER_UP && gemm_finds_ranges(p);
    if (p->linear == ENCODER_UP)
        activation = activation_of(p);
    size_t stride = p->linear == ENCODER_DOWN ? p->layer->linears[ENCODER_UP].n : l->k;
    size_t n, columns = cpu_encoder_items(first, count, SPLIT_COLUMNS, l->n, &n);
    if (l->format == CPU_ENCODER_F32)
        a = x[p->linear];
    multiply(p, l, a, stride, n, columns, c[p->linear], activation, has_ranges ? s->low : NULL,
             has_ranges ? s->high : NULL);
}

static void raise_tops(const cpu_encoder_pass *p)
{
    size_t width = (size_t)p->e->source.hidden;
    int which = 2 * p->layer_index + (p->linear == ENCODER_UP);
    float *tops = p->runner->tops + (size_t)which * width;
    for (size_t i = 0; i < p->tokens * width; i++)
        tops[i % width] = fmaxf(tops[i % width], fabsf(p->scratch.normed[i]));
}

static void run_multiply(cpu_encoder_pass *p, int linear)
{
    p->linear = linear;
    if (p->runner->tops && (linear == ENCODER_QKV || linear == ENCODER_UP))
        raise_tops(p);
    size_t n = p->layer->linears[linear].n;
    if (linear == ENCODER_UP && gemm_finds_ranges(p)) {
        memset(p->scratch.low, 0, p->tokens * sizeof(float));
        memset(p->scratch.high, 0, p->tokens * sizeof(float));
    }
    run_step(p, step_multiply, (n + SPLIT_COLUMNS - 1) / SPLIT_COLUMNS);
}

/* Quantises for the linear layers that no norm precedes. */
static void step_quantise_attended(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const cpu_encoder_linear *l = &p->layer->linears[ENCODER_ATTENTION_OUTPUT];
    size_t begin, rows = cpu_encoder_items(first, count, CPU_ENCODER_SPLIT_ROWS, p->tokens, &begin);
    quantise(p, l, p->scratch.attended, l->k, p->scratch.a, NULL, NULL, begin, rows);
}

static void activate(const kernels *k, encoder_activation kind, float *x, size_t width)
{
    static const float quick = 1.702f;
    switch (kind) {
    case ENCODER_GELU:
        k->gelu_f32(x, x, width);
        break;
    case ENCODER_GELU_TANH:
        k->gelu_tanh_f32(x, x, width);
        break;
    case ENCODER_RELU:
        k->relu_f32(x, x, width);
        break;
    case ENCODER_SILU:
        k->silu_f32(x, x, width);
        break;
    case ENCODER_QUICK_GELU: /* x * sigmoid(cx) = silu(cx) / c */
        k->mul_f32(x, 1, &quick, 0, x, width);
        k->silu_f32(x, x, width);
        k->div_f32(x, 1, &quick, 0, x, width);
        break;
    case ENCODER_TANH:
        k->tanh_f32(x, x, width);
        break;
    case ENCODER_SIGMOID:
        k->sigmoid_f32(x, x, width);
        break;
    case ENCODER_MISH:
        k->activation_f32(
            &(activation_f32){.kind = ACTIVATION_MISH, .in = x, .out = x, .count = width});
        break;
    case ENCODER_IDENTITY:
        break;
    }
}

/* Activation and gate where the GEMM does not compute them; quantised for ENCODER_DOWN. */
static void step_activate(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const kernels *k = p->e->options.kernels;
    const cpu_encoder_linear *l = &p->layer->linears[ENCODER_DOWN];
    const cpu_encoder_scratch *s = &p->scratch;
    size_t stride = p->layer->linears[ENCODER_UP].n;
    size_t begin, rows = cpu_encoder_items(first, count, CPU_ENCODER_SPLIT_ROWS, p->tokens, &begin);
    bool has_ranges = gemm_finds_ranges(p);
    for (size_t row = begin; row < begin + rows && has_activation_step(p); row++) {
        float *x = s->up + row * stride;
        activate(k, p->e->source.layers[p->layer_index].activation, x, l->k);
        if (stride > l->k)
            k->mul_f32(x, 1, x + l->k, 1, x, l->k);
    }
    if (l->format != CPU_ENCODER_F32)
        quantise(p, l, s->up, stride, s->a_up, has_ranges ? s->low : NULL,
                 has_ranges ? s->high : NULL, begin, rows);
}

/* Rows of narrow embeddings: normalised in place, projected to x, quantised for the first layer. */
static void project(cpu_encoder_pass *p, float *narrow, size_t begin, size_t rows)
{
    const kernels *k = p->e->options.kernels;
    const encoder_norm *norm = &p->e->source.embedding_norm;
    const cpu_encoder_linear *l = &p->e->embedding_projection, *next = next_linear(p);
    float *from = narrow + begin * l->k;
    if (norm->scale)
        k->layer_norm_f32(&(layer_norm_f32){.rows = rows,
                                            .width = l->k,
                                            .x = from,
                                            .x_stride = l->k,
                                            .gamma = norm->scale->data,
                                            .beta = norm->bias ? norm->bias->data : NULL,
                                            .epsilon = norm->epsilon,
                                            .out = from,
                                            .out_stride = l->k});
    cpu_encoder_apply_f32(k, l, rows, from, l->k, KERNELS_IDENTITY, p->scratch.x + begin * l->n,
                          l->n);
    if (next)
        quantise(p, next, p->scratch.x, l->n, p->scratch.a, NULL, NULL, begin, rows);
}

static void step_embed(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    const encoder *s = &p->e->source;
    const tensor *tables[] = {s->word_table, s->position_table, s->token_type_table};
    size_t begin, rows = cpu_encoder_items(first, count, CPU_ENCODER_SPLIT_ROWS, p->tokens, &begin);
    size_t width = (size_t)s->word_table->dims[1];
    /* Embeddings that are still to be projected lie where qkv will. */
    float *x = s->embedding_projection.weight ? p->scratch.qkv : p->scratch.x;
    embedding_sum_f32 sum = {
        .tokens = rows, .width = width, .out = x + begin * width, .out_stride = width};
    for (int i = 0; i < 3; i++) {
        if (!tables[i])
            continue;
        sum.tables[sum.table_count] = tables[i]->data;
        sum.ids[sum.table_count++] = p->scratch.ids[i] + begin;
    }
    p->e->options.kernels->embedding_sum_f32(&sum);
    if (s->embedding_projection.weight)
        project(p, x, begin, rows);
    else
        step_norm(p, worker, first, count);
}

void cpu_encoder_run_layers(cpu_encoder_pass *p)
{
    const encoder *s = &p->e->source;
    p->layer = NULL;
    run_step(p, step_embed, row_units(p));
    for (int i = 0; i < s->layer_count; i++) {
        /* Only between layers: the steps of a layer must agree on who finds the ranges. */
        if (p->is_split && thread_pool_was_delayed(p->runner->threads, p->runner->caller))
            p->is_split = false;
        p->layer = &p->e->layers[i];
        p->layer_index = i;
        run_multiply(p, ENCODER_QKV);
        if (s->layers[i].rotary || s->layers[i].query_norm.scale || s->layers[i].key_norm.scale)
            run_step(p, cpu_encoder_step_turn, row_units(p));
        run_step(p, cpu_encoder_step_attention, p->sequence_count * (size_t)s->heads);
        if (p->layer->linears[ENCODER_ATTENTION_OUTPUT].format != CPU_ENCODER_F32)
            run_step(p, step_quantise_attended, row_units(p));
        run_multiply(p, ENCODER_ATTENTION_OUTPUT);
        run_step(p, step_norm, row_units(p));
        run_multiply(p, ENCODER_UP);
        if (p->layer->linears[ENCODER_DOWN].format != CPU_ENCODER_F32 || has_activation_step(p))
            run_step(p, step_activate, row_units(p));
        run_multiply(p, ENCODER_DOWN);
        run_step(p, step_norm, row_units(p));
    }
}
