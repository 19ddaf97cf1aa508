#include <assert.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/gemm_f32.h"
#include "kernels/gemm_scaled.h"
#include "kernels/quantise.h"
#include "kernels/rows.h"

/* A chunk of sequences through embeddings and layers. Each step is split into units: rows, columns
 * of a GEMM, heads of a sequence. One worker computes all of them in one call, or the thread pool
 * shares them; the bits are the same (second invariant of kernels/README.md). */

#define SPLIT_ROWS 8     /* rows of a unit of row-wise steps */
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
    return (p->tokens + SPLIT_ROWS - 1) / SPLIT_ROWS;
}

/* Units [first, first + count) of `size` items each, of `total`: the items. */
static size_t items(size_t first, size_t count, size_t size, size_t total, size_t *begin)
{
    size_t end = (first + count) * size;
    *begin = first * size;
    return (end < total ? end : total) - *begin;
}

static size_t element_bytes(cpu_encoder_format format)
{
    return format == CPU_ENCODER_U8S8 ? 1 : 2;
}

/* Quantises rows of x for `l`. `low` and `high`: the ranges of the rows when known, or NULL. */
static void quantise(cpu_encoder_pass *p, const cpu_encoder_linear *l, const float *x, void *a,
                     const float *low, const float *high, size_t row, size_t rows)
{
    const kernels *k = p->e->options.kernels;
    const cpu_encoder_scratch *s = &p->scratch;
    x += row * l->k;
    a = (char *)a + row * l->k * element_bytes(l->format);
    if (l->format == CPU_ENCODER_U8S8)
        k->quantise_u8(&(quantise_u8){.rows = rows,
                                      .width = l->k,
                                      .x = x,
                                      .x_stride = l->k,
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
                                        .x_stride = l->k,
                                        .low = low ? low + row : NULL,
                                        .high = high ? high + row : NULL,
                                        .out = a,
                                        .out_stride = l->k,
                                        .scale = s->a_scale + row});
    else if (l->format == CPU_ENCODER_BF16)
        k->convert_f32_bf16(x, a, rows * l->k);
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

/* x = norm(result of the last linear layer + x), quantised for the next one. Before the first
 * layer: norm(x). */
static void step_norm(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const kernels *k = p->e->options.kernels;
    const encoder *s = &p->e->source;
    const encoder_norm *norm = &s->embedding_norm;
    if (p->layer)
        norm = p->linear == ENCODER_ATTENTION_OUTPUT ? &s->layers[p->layer_index].attention_norm
                                                     : &s->layers[p->layer_index].output_norm;
    const float *added =
        p->linear == ENCODER_ATTENTION_OUTPUT ? p->scratch.projected : p->scratch.down;
    const cpu_encoder_linear *next = next_linear(p);
    size_t width = (size_t)s->hidden, begin;
    size_t rows = items(first, count, SPLIT_ROWS, p->tokens, &begin);
    for (size_t row = begin; row < begin + rows; row += SPLIT_ROWS) {
        size_t some = begin + rows - row < SPLIT_ROWS ? begin + rows - row : SPLIT_ROWS;
        float *x = p->scratch.x + row * width;
        const float *sum = added + row * width;
        layer_norm_f32 rows_norm = {.rows = some,
                                    .width = width,
                                    .x = p->layer ? sum : x,
                                    .x_stride = width,
                                    .residual = p->layer ? x : NULL,
                                    .residual_stride = width,
                                    .gamma = norm->scale ? norm->scale->data : NULL,
                                    .beta = norm->bias ? norm->bias->data : NULL,
                                    .epsilon = norm->epsilon,
                                    .out = x,
                                    .out_stride = width};
        if (norm->scale && next && next->format == CPU_ENCODER_U8S8) {
            k->layer_norm_quantise(&(layer_norm_quantise){
                .norm = rows_norm,
                .out = (uint8_t *)p->scratch.a + row * width,
                .out_stride = width,
                .scale = p->scratch.a_scale + row,
                .zero = next->is_asymmetric ? p->scratch.a_zero + row : NULL});
            continue;
        }
        if (norm->scale)
            k->layer_norm_f32(&rows_norm);
        else if (p->layer)
            k->add_f32(x, 1, sum, 1, x, some * width);
        if (next)
            quantise(p, next, p->scratch.x, p->scratch.a, NULL, NULL, row, some);
    }
}

static kernels_activation activation_of(encoder_activation a)
{
    static const kernels_activation to[] = {[ENCODER_GELU] = KERNELS_GELU,
                                            [ENCODER_GELU_TANH] = KERNELS_GELU_TANH,
                                            [ENCODER_RELU] = KERNELS_RELU,
                                            [ENCODER_SILU] = KERNELS_SILU};
    return to[a];
}

/* Columns [n, n + columns) of a linear layer, for all rows. */
static void multiply(const cpu_encoder_pass *p, const cpu_encoder_linear *l, const void *a,
                     size_t n, size_t columns, float *c, kernels_activation activation, float *low,
                     float *high)
{
    const kernels *k = p->e->options.kernels;
    const cpu_encoder_scratch *s = &p->scratch;
    if (l->format == CPU_ENCODER_F32) {
        k->gemm_f32(
            &(gemm_f32){.m = p->tokens,
                        .n = columns,
                        .k = l->k,
                        .a = a,
                        .a_stride = l->k,
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
 * multiply. Elsewhere step_quantise_up finds them, once a row instead of once a panel, with the
 * same result. */
static bool gemm_finds_ranges(const cpu_encoder_pass *p)
{
    return !p->is_split && p->e->options.kernels->level >= KERNELS_AMX &&
           p->layer->linears[ENCODER_UP].format != CPU_ENCODER_F32;
}

static void step_multiply(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const cpu_encoder_linear *l = &p->layer->linears[p->linear];
    const cpu_encoder_scratch *s = &p->scratch;
    const float *x[] = {s->x, s->attended, s->x, s->up};
    float *c[] = {s->qkv, s->projected, s->up, s->down};
    const void *a = p->linear == ENCODER_DOWN ? s->a_up : s->a;
    kernels_activation activation = KERNELS_IDENTITY;
    bool has_ranges = p->linear == ENCODER_UP && gemm_finds_ranges(p);
    if (p->linear == ENCODER_UP)
        activation = activation_of(p->e->source.layers[p->layer_index].activation);
    size_t n, columns = items(first, count, SPLIT_COLUMNS, l->n, &n);
    if (l->format == CPU_ENCODER_F32)
        a = x[p->linear];
    multiply(p, l, a, n, columns, c[p->linear], activation, has_ranges ? s->low : NULL,
             has_ranges ? s->high : NULL);
}

static void run_multiply(cpu_encoder_pass *p, int linear)
{
    p->linear = linear;
    size_t n = p->layer->linears[linear].n;
    if (linear == ENCODER_UP && gemm_finds_ranges(p)) {
        memset(p->scratch.low, 0, p->tokens * sizeof(float));
        memset(p->scratch.high, 0, p->tokens * sizeof(float));
    }
    run_step(p, step_multiply, (n + SPLIT_COLUMNS - 1) / SPLIT_COLUMNS);
}

/* A unit is one head of one sequence. */
static void step_attention(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    const cpu_encoder *e = p->e;
    const encoder *s = &e->source;
    cpu_encoder_scratch own = p->scratch;
    if (worker != p->worker)
        cpu_encoder_find_scratch(e, p->runner, worker, &own);
    size_t hidden = (size_t)s->hidden, heads = (size_t)s->heads, size = (size_t)s->head_dim;
    while (count > 0) {
        size_t sequence = first / heads, head = first % heads;
        size_t many = heads - head < count ? heads - head : count, sequences = 1;
        if (head == 0 && many == heads) { /* whole sequences at once */
            sequences = count / heads;
            many = heads;
        }
        const float *qkv = p->scratch.qkv + head * size;
        attention_f32 a = {.offsets = p->scratch.offsets + sequence,
                           .sequences = sequences,
                           .heads = many,
                           .head_size = size,
                           .q = qkv,
                           .k = qkv + hidden,
                           .v = qkv + 2 * hidden,
                           .qkv_stride = 3 * hidden,
                           .scale = s->attention_scale,
                           .mask = p->has_mask ? p->scratch.mask : NULL,
                           .out = p->scratch.attended + head * size,
                           .out_stride = hidden,
                           .workspace = own.attention};
        if (e->relative_bias) {
            a.bias_head_stride = (ptrdiff_t)(2 * e->length_max - 1);
            a.bias_row_stride = -1;
            a.bias = e->relative_bias + (ptrdiff_t)head * a.bias_head_stride +
                     (ptrdiff_t)(e->length_max - 1);
        }
        e->options.kernels->attention_f32(&a);
        first += many * sequences;
        count -= many * sequences;
    }
}

/* Quantises for the linear layers that no norm precedes. */
static void step_quantise_attended(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    size_t begin, rows = items(first, count, SPLIT_ROWS, p->tokens, &begin);
    quantise(p, &p->layer->linears[ENCODER_ATTENTION_OUTPUT], p->scratch.attended, p->scratch.a,
             NULL, NULL, begin, rows);
}

static void step_quantise_up(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const cpu_encoder_linear *l = &p->layer->linears[ENCODER_DOWN];
    const cpu_encoder_scratch *s = &p->scratch;
    size_t begin, rows = items(first, count, SPLIT_ROWS, p->tokens, &begin);
    bool has_ranges = gemm_finds_ranges(p);
    quantise(p, l, s->up, s->a_up, has_ranges ? s->low : NULL, has_ranges ? s->high : NULL, begin,
             rows);
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
        quantise(p, next, p->scratch.x, p->scratch.a, NULL, NULL, begin, rows);
}

static void step_embed(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    const encoder *s = &p->e->source;
    const tensor *tables[] = {s->word_table, s->position_table, s->token_type_table};
    size_t begin, rows = items(first, count, SPLIT_ROWS, p->tokens, &begin);
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
        run_step(p, step_attention, p->sequence_count * (size_t)s->heads);
        if (p->layer->linears[ENCODER_ATTENTION_OUTPUT].format != CPU_ENCODER_F32)
            run_step(p, step_quantise_attended, row_units(p));
        run_multiply(p, ENCODER_ATTENTION_OUTPUT);
        run_step(p, step_norm, row_units(p));
        run_multiply(p, ENCODER_UP);
        if (p->layer->linears[ENCODER_DOWN].format != CPU_ENCODER_F32)
            run_step(p, step_quantise_up, row_units(p));
        run_multiply(p, ENCODER_DOWN);
        run_step(p, step_norm, row_units(p));
    }
}

static void *place(char *memory, size_t *offset, size_t bytes)
{
    void *at = memory ? memory + *offset : NULL;
    *offset += cpu_encoder_align(bytes);
    return at;
}

static size_t lay_out(const cpu_encoder *e, size_t tokens, size_t length, void *memory,
                      cpu_encoder_scratch *out)
{
    const encoder *s = &e->source;
    size_t hidden = (size_t)s->hidden, wide = (size_t)s->intermediate, offset = 0;
    size_t pooled = e->head_width_max > hidden ? e->head_width_max : hidden;
    size_t f = sizeof(float);
    out->x = place(memory, &offset, tokens * hidden * f);
    out->qkv = place(memory, &offset, tokens * (wide > 3 * hidden ? wide : 3 * hidden) * f);
    out->projected = out->up = out->qkv;
    out->attended = out->down = place(memory, &offset, tokens * hidden * f);
    out->a = place(memory, &offset, tokens * hidden * sizeof(int16_t));
    out->a_up = place(memory, &offset, tokens * wide * sizeof(int16_t));
    out->a_scale = place(memory, &offset, tokens * f);
    out->a_zero = place(memory, &offset, tokens * sizeof(int32_t));
    out->low = place(memory, &offset, tokens * f);
    out->high = place(memory, &offset, tokens * f);
    for (int i = 0; i < 2; i++)
        out->pooled[i] = place(memory, &offset, tokens * pooled * f);
    for (int i = 0; i < 3; i++)
        out->ids[i] = place(memory, &offset, tokens * sizeof(int64_t));
    out->mask = place(memory, &offset, tokens);
    out->offsets = place(memory, &offset, (tokens + 1) * sizeof(int32_t));
    out->attention =
        place(memory, &offset, attention_f32_workspace_bytes(length, (size_t)s->head_dim));
    return offset;
}

static size_t tokens_for(size_t length)
{
    return length > CPU_ENCODER_CHUNK_TOKENS_MAX ? length : CPU_ENCODER_CHUNK_TOKENS_MAX;
}

size_t cpu_encoder_workspace_bytes(const cpu_encoder *e, size_t length)
{
    cpu_encoder_scratch ignored;
    return lay_out(e, tokens_for(length), length, NULL, &ignored);
}

void cpu_encoder_find_scratch(const cpu_encoder *e, const cpu_encoder_runner *r, int worker,
                              cpu_encoder_scratch *out)
{
    size_t length = r->workspace_length;
    lay_out(e, tokens_for(length), length, r->workspaces[worker], out);
}
