#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "devices/cpu/encoder/internal.h"
#include "kernels/gemm_f32.h"
#include "kernels/gemm_scaled.h"

/* The image: the packed weights, column scales and bias of every linear layer, one after another,
 * 64-byte aligned; once for layers that share them (ALBERT). Its layout follows from the encoder
 * and the plan alone. */

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

const char *cpu_encoder_format_name(cpu_encoder_format format)
{
    static const char *const names[CPU_ENCODER_FORMAT_COUNT] = {"fp32", "bf16 as 11-bit integers",
                                                                "bf16", "int8"};
    assert((unsigned)format < CPU_ENCODER_FORMAT_COUNT);
    return names[format];
}

static size_t weights_bytes(cpu_encoder_format format, size_t k, size_t n)
{
    switch (format) {
    case CPU_ENCODER_U8S8:
        return gemm_u8s8_packed_bytes(k, n);
    case CPU_ENCODER_S16:
    case CPU_ENCODER_BF16:
        return gemm_s16_packed_bytes(k, n);
    default:
        return gemm_f32_packed_count(k, n) * sizeof(float);
    }
}

static bool has_scales(cpu_encoder_format format)
{
    return format == CPU_ENCODER_U8S8 || format == CPU_ENCODER_S16;
}

static size_t place(cpu_encoder_linear *l, void *image, size_t offset)
{
    char *base = image;
    l->weights = base ? base + offset : NULL;
    offset += cpu_encoder_align(weights_bytes(l->format, l->k, l->n));
    l->bias = base ? (float *)(void *)(base + offset) : NULL;
    offset += cpu_encoder_align(l->n * sizeof(float));
    l->scales = NULL;
    if (has_scales(l->format)) {
        l->scales = base ? (float *)(void *)(base + offset) : NULL;
        offset += cpu_encoder_align(l->n * sizeof(float));
    }
    return offset;
}

/* What int8 has beside its weights: factors where a norm gives x, whose channels differ in range;
 * outliers where they are, which is before the stream of residuals. */
static size_t place_corrections(cpu_encoder_linear *l, int linear, void *image, size_t offset)
{
    char *base = image;
    if (l->format != CPU_ENCODER_U8S8)
        return offset;
    if (linear == ENCODER_QKV || linear == ENCODER_UP) {
        l->factors = base ? (float *)(void *)(base + offset) : NULL;
        return offset + cpu_encoder_align(l->k * sizeof(float));
    }
    if (linear != ENCODER_DOWN)
        return offset;
    l->outliers = base ? (cpu_encoder_outlier *)(void *)(base + offset) : NULL;
    return offset + cpu_encoder_align(CPU_ENCODER_OUTLIERS * sizeof(cpu_encoder_outlier));
}

static size_t width_of(const encoder_linear *l)
{
    return (size_t)l->weight->dims[l->is_transposed ? 0 : 1];
}

static size_t depth_of(const encoder_linear *l)
{
    return (size_t)l->weight->dims[l->is_transposed ? 1 : 0];
}

static const void *data_of(const tensor *t)
{
    return t ? t->data : NULL;
}

static bool is_same(const encoder_linear *a, const encoder_linear *b)
{
    return data_of(a->weight) == data_of(b->weight) && data_of(a->bias) == data_of(b->bias) &&
           a->is_transposed == b->is_transposed;
}

/* Whether a linear layer of two layers has the same weights: not equal ones, but the same memory.
 */
static bool has_same_weights(const encoder_layer *a, const encoder_layer *b, int linear)
{
    switch (linear) {
    case ENCODER_QKV:
        return is_same(&a->query, &b->query) && is_same(&a->key, &b->key) &&
               is_same(&a->value, &b->value);
    case ENCODER_ATTENTION_OUTPUT:
        return is_same(&a->attention_output, &b->attention_output);
    case ENCODER_UP:
        return is_same(&a->gate, &b->gate) && is_same(&a->up, &b->up);
    default:
        return is_same(&a->down, &b->down);
    }
}

/* The first layer whose linear layer has the same weights in the same format: it is packed for all
 * of them. `layer` itself where there is none before it. */
static int packed_with(const cpu_encoder *e, int layer, int linear)
{
    const encoder_layer *layers = e->source.layers;
    int first = 0;
    while (first < layer && (e->plan[first * ENCODER_LINEARS + linear] !=
                                 e->plan[layer * ENCODER_LINEARS + linear] ||
                             !has_same_weights(&layers[first], &layers[layer], linear)))
        first++;
    return first;
}

size_t cpu_encoder_lay_out(cpu_encoder *e, void *image)
{
    const encoder *s = &e->source;
    size_t offset = 0, hidden = (size_t)s->hidden, wide = (size_t)s->intermediate;
    const size_t shapes[ENCODER_LINEARS][2] = {{hidden, cpu_encoder_qkv_width(s)},
                                               {cpu_encoder_attended_width(s), hidden},
                                               {hidden, cpu_encoder_up_width(s)},
                                               {wide, hidden}};
    for (int i = 0; i < s->layer_count; i++) {
        for (int p = 0; p < ENCODER_LINEARS; p++) {
            cpu_encoder_linear *l = &e->layers[i].linears[p];
            int first = packed_with(e, i, p);
            if (first < i) {
                *l = e->layers[first].linears[p];
                continue;
            }
            *l = (cpu_encoder_linear){
                .format = e->plan[i * ENCODER_LINEARS + p], .k = shapes[p][0], .n = shapes[p][1]};
            /* The range of a row lies to one side of zero: GELU's results are mostly positive, and
             * the few large channels of a layer norm seldom come in both signs. Half of a symmetric
             * range would be unused. The results of attention are balanced. */
            l->is_asymmetric = p != ENCODER_ATTENTION_OUTPUT && l->format == CPU_ENCODER_U8S8;
            offset = place(l, image, offset);
            offset = place_corrections(l, p, image, offset);
        }
    }
    const encoder_linear *projection = &s->embedding_projection;
    if (projection->weight) {
        e->embedding_projection = (cpu_encoder_linear){
            .format = CPU_ENCODER_F32, .k = depth_of(projection), .n = width_of(projection)};
        offset = place(&e->embedding_projection, image, offset);
    }
    for (int o = 0; o < s->output_count; o++) {
        for (int h = 0; h < s->outputs[o].head_count; h++) {
            cpu_encoder_linear *l = &e->heads[o][h];
            const encoder_linear *from = &s->outputs[o].head[h].linear;
            *l = (cpu_encoder_linear){.k = 0};
            if (!from->weight)
                continue;
            *l = (cpu_encoder_linear){
                .format = CPU_ENCODER_F32, .k = depth_of(from), .n = width_of(from)};
            offset = place(l, image, offset);
        }
    }
    return offset;
}

/* Weights of some linears side by side, as [n][k]. */
static void gather(const encoder_linear *const *parts, int count, size_t k, float *out)
{
    for (int i = 0; i < count; i++) {
        const encoder_linear *part = parts[i];
        const float *w = part->weight->data;
        size_t n = width_of(part);
        assert(depth_of(part) == k && part->weight->dtype == DTYPE_F32);
        if (part->is_transposed) {
            memcpy(out, w, n * k * sizeof *out);
        } else {
            for (size_t r = 0; r < k; r++)
                for (size_t c = 0; c < n; c++)
                    out[c * k + r] = w[r * n + c];
        }
        out += n * k;
    }
}

static void fill_bias(const encoder_linear *const *parts, int count, float *out)
{
    for (int i = 0; i < count; i++) {
        size_t n = width_of(parts[i]);
        if (parts[i]->bias)
            memcpy(out, parts[i]->bias->data, n * sizeof *out);
        else
            memset(out, 0, n * sizeof *out);
        out += n;
    }
}

/* Column scales so that the largest weight of a column becomes `limit`. */
static float column_scale(const float *w, size_t k, float limit)
{
    float top = 0;
    for (size_t i = 0; i < k; i++) {
        float x = fabsf(w[i]);
        top = x > top ? x : top;
    }
    return top / limit;
}

static int32_t rounded(float x)
{
    /* Adding 1.5 * 2^23 leaves the nearest integer (ties to even) in the low bits. */
    float shifted = x + 12582912.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return bits - 0x4b400000;
}

/* `temporary` has room for n * k of the packed type's elements. */
static void fill_weights(const kernels *table, const cpu_encoder_linear *l, const float *w,
                         void *temporary)
{
    void *weights = (void *)(uintptr_t)l->weights;
    float *scales = (float *)(uintptr_t)l->scales;
    if (l->format == CPU_ENCODER_F32) {
        table->gemm_pack_f32(w, 1, l->k, l->k, l->n, weights);
        return;
    }
    int8_t *narrow = temporary;
    int16_t *wide = temporary;
    for (size_t n = 0; n < l->n; n++) {
        const float *column = w + n * l->k;
        if (l->format == CPU_ENCODER_BF16) {
            table->convert_f32_bf16(column, (uint16_t *)temporary + n * l->k, l->k);
            continue;
        }
        scales[n] =
            column_scale(column, l->k, l->format == CPU_ENCODER_U8S8 ? 127 : GEMM_S16_LIMIT);
        float inverse = scales[n] > 0 ? 1 / scales[n] : 0;
        for (size_t i = 0; i < l->k && l->format == CPU_ENCODER_U8S8; i++)
            narrow[n * l->k + i] = (int8_t)rounded(column[i] * inverse);
        for (size_t i = 0; i < l->k && l->format == CPU_ENCODER_S16; i++)
            wide[n * l->k + i] = (int16_t)rounded(column[i] * inverse);
    }
    if (l->format == CPU_ENCODER_U8S8)
        table->gemm_pack_u8s8(narrow, 1, l->k, l->k, l->n, weights);
    else if (l->format == CPU_ENCODER_BF16)
        table->gemm_pack_bf16(wide, 1, l->k, l->k, l->n, weights);
    else
        table->gemm_pack_s16(wide, 1, l->k, l->k, l->n, weights);
}

typedef struct packer {
    const kernels *kernels;
    const float *tops; /* as in cpu_encoder_runner, or NULL */
    float *gathered;
    void *temporary;
    float *widest; /* [hidden] */
} packer;

/* `tops`: of x's channels, or NULL. */
static status pack_linear(const packer *p, const encoder_linear *const *parts, int count,
                          const float *tops, const cpu_encoder_linear *l)
{
    status s = STATUS_OK;
    gather(parts, count, l->k, p->gathered);
    fill_bias(parts, count, (float *)(uintptr_t)l->bias);
    if (l->factors) {
        float *factors = (float *)(uintptr_t)l->factors;
        cpu_encoder_choose_factors(p->gathered, l->k, l->n, tops, factors);
        for (size_t i = 0; i < l->k * l->n; i++)
            p->gathered[i] /= factors[i % l->k];
    }
    if (l->outliers)
        s = cpu_encoder_take_outliers(p->gathered, l->k, l->n,
                                      (cpu_encoder_outlier *)(uintptr_t)l->outliers);
    if (!s)
        fill_weights(p->kernels, l, p->gathered, p->temporary);
    return s;
}

/* Of the channels of x in all layers that a linear layer is packed for; NULL: not known. */
static const float *widest_tops(const packer *p, const cpu_encoder *e, int layer, int linear)
{
    size_t hidden = (size_t)e->source.hidden;
    if (!p->tops || (linear != ENCODER_QKV && linear != ENCODER_UP))
        return NULL;
    memset(p->widest, 0, hidden * sizeof p->widest[0]);
    for (int i = layer; i < e->source.layer_count; i++) {
        const float *tops = p->tops + (2 * (size_t)i + (linear == ENCODER_UP)) * hidden;
        bool is_for_it = packed_with(e, i, linear) == layer;
        for (size_t c = 0; c < hidden && is_for_it; c++)
            p->widest[c] = fmaxf(p->widest[c], tops[c]);
    }
    return p->widest;
}

static status pack_layer(const packer *p, const cpu_encoder *e, int layer)
{
    const encoder_layer *from = &e->source.layers[layer];
    const encoder_linear *const parts[ENCODER_LINEARS][3] = {
        {&from->query, &from->key, &from->value},
        {&from->attention_output},
        {from->gate.weight ? &from->gate : &from->up, &from->up},
        {&from->down}};
    const int counts[ENCODER_LINEARS] = {3, 1, from->gate.weight ? 2 : 1, 1};
    status s = STATUS_OK;
    for (int i = 0; i < ENCODER_LINEARS && !s; i++)
        if (packed_with(e, layer, i) == layer)
            s = pack_linear(p, parts[i], counts[i], widest_tops(p, e, layer, i),
                            &e->layers[layer].linears[i]);
    return s;
}

static size_t largest_linear(const cpu_encoder *e)
{
    size_t largest = e->embedding_projection.k * e->embedding_projection.n + 1;
    for (int i = 0; i < e->source.layer_count; i++)
        for (int p = 0; p < ENCODER_LINEARS; p++) {
            const cpu_encoder_linear *l = &e->layers[i].linears[p];
            largest = l->k * l->n > largest ? l->k * l->n : largest;
        }
    for (int o = 0; o < e->source.output_count; o++)
        for (int h = 0; h < e->source.outputs[o].head_count; h++) {
            const cpu_encoder_linear *l = &e->heads[o][h];
            largest = l->k * l->n > largest ? l->k * l->n : largest;
        }
    return largest;
}

static void free_buffers(packer *p)
{
    free(p->gathered);
    free(p->temporary);
    free(p->widest);
}

status cpu_encoder_pack(cpu_encoder *e, const float *tops)
{
    size_t bytes = cpu_encoder_lay_out(e, NULL);
    bytes = (bytes + HUGE_PAGE_BYTES) & ~(HUGE_PAGE_BYTES - 1); /* never empty */
    size_t largest = largest_linear(e);
    packer p = {.kernels = e->options.kernels,
                .tops = tops,
                .gathered = malloc(largest * sizeof(float)),
                .temporary = malloc(largest * sizeof(int16_t)),
                .widest = malloc((size_t)e->source.hidden * sizeof(float))};
    void *image = aligned_alloc(HUGE_PAGE_BYTES, bytes);
    if (!p.gathered || !p.temporary || !p.widest || !image) {
        free_buffers(&p);
        free(image);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of weights", bytes);
    }
    madvise(image, bytes, MADV_HUGEPAGE);
    memset(image, 0, bytes);
    e->image_bytes = cpu_encoder_lay_out(e, image);
    e->image = image;
    e->is_mapped = false;
    status s = STATUS_OK;
    for (int i = 0; i < e->source.layer_count && !s; i++)
        s = pack_layer(&p, e, i);
    const encoder_linear *projection = &e->source.embedding_projection;
    if (projection->weight && !s)
        s = pack_linear(&p, &projection, 1, NULL, &e->embedding_projection);
    for (int o = 0; o < e->source.output_count; o++)
        for (int h = 0; h < e->source.outputs[o].head_count && !s; h++) {
            const encoder_linear *from = &e->source.outputs[o].head[h].linear;
            if (from->weight)
                s = pack_linear(&p, &from, 1, NULL, &e->heads[o][h]);
        }
    free_buffers(&p);
    return s;
}

void cpu_encoder_drop_image(cpu_encoder *e)
{
    if (e->is_mapped)
        munmap(e->image, e->image_bytes);
    else
        free(e->image);
    e->image = NULL;
    e->is_mapped = false;
}

void cpu_encoder_plan_all(cpu_encoder *e, device_precision precision)
{
    cpu_encoder_format format = CPU_ENCODER_F32;
    double peak = e->options.peaks->f32;
    if (precision == DEVICE_INT8) {
        format = CPU_ENCODER_U8S8;
        peak = e->options.peaks->u8s8;
    } else if (precision == DEVICE_BF16) {
        bool is_s16 = kernels_choose_bf16_format(e->options.peaks) == KERNELS_BF16_AS_S16;
        format = is_s16 ? CPU_ENCODER_S16 : CPU_ENCODER_BF16;
        peak = is_s16 ? e->options.peaks->s16 : e->options.peaks->bf16;
    }
    for (int i = 0; i < e->source.layer_count * ENCODER_LINEARS; i++)
        e->plan[i] = format;
    e->peak = peak;
}

status cpu_encoder_view(const cpu_encoder *e, cpu_encoder *out)
{
    *out = *e;
    out->image = NULL;
    out->report = NULL;
    out->is_mapped = false;
    size_t count = (size_t)e->source.layer_count;
    out->plan = calloc(count * ENCODER_LINEARS + 1, sizeof *out->plan);
    out->layers = calloc(count + 1, sizeof *out->layers);
    if (!out->plan || !out->layers) {
        cpu_encoder_release_view(out);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a view of an encoder");
    }
    memcpy(out->plan, e->plan, count * ENCODER_LINEARS * sizeof *out->plan);
    memcpy(out->layers, e->layers, count * sizeof *out->layers);
    return STATUS_OK;
}

void cpu_encoder_release_view(cpu_encoder *view)
{
    cpu_encoder_drop_image(view);
    free(view->plan);
    free(view->layers);
}
