#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "devices/accuracy.h"
#include "devices/cpu/encoder/internal.h"

/* The accuracy check. The encoder runs on a few sequences, those of the model's warm-up file if it
 * has one, in FP32 and in the precision asked for. Where the results differ by more than the
 * precision allows, linear layers get a more precise format, the most sensitive first, until they
 * agree. */

#define GENERATED_LENGTH_MAX 64 /* of samples of a model without warm-up data */
#define SAMPLE_LENGTH_MAX 256   /* tokens; longer samples are cut */
#define RANKING_SAMPLES 2       /* for the order in which linear layers get a more precise format */
#define REPORT_BYTES_MAX 4096

static device_accuracy required_accuracy(const cpu_encoder *e)
{
    return device_accuracy_required(e->options.precision, e->options.samples != NULL);
}

/* The samples as inputs, and what a run needs. */
typedef struct trial {
    arena memory;
    device_samples generated;      /* where the model has none of its own */
    const device_samples *samples; /* these, or the model's */
    int count;
    tensor inputs[DEVICE_SAMPLES_MAX][64];
    device_segment segments[DEVICE_SAMPLES_MAX];
    size_t output_count;
    size_t widths[DEVICE_SAMPLES_MAX][ENCODER_OUTPUTS_MAX]; /* elements */
    void *workspace;
    size_t length;
    cpu_encoder_layout *layout;
    float *tops; /* as in cpu_encoder_runner, of the reference on the samples */
} trial;

/* From the source: `e` may not be packed yet. */
static size_t output_width(const cpu_encoder *e, int o)
{
    const encoder_output *output = &e->source.outputs[o];
    for (int i = output->head_count - 1; i >= 0; i--) {
        const encoder_linear *l = &output->head[i].linear;
        if (l->weight)
            return (size_t)l->weight->dims[l->is_transposed ? 0 : 1];
    }
    return (size_t)e->source.hidden * (size_t)(1 + output->also_count);
}

/* The outputs of one run: [sample][output]. */
static tensor *allocate_outputs(const cpu_encoder *e, trial *t)
{
    tensor *all =
        arena_allocate_zeroed(&t->memory, (size_t)t->count * ENCODER_OUTPUTS_MAX, sizeof *all);
    for (int i = 0; all && i < t->count; i++)
        for (int o = 0; o < e->source.output_count; o++) {
            bool is_hidden = e->source.outputs[o].pooling == ENCODER_POOLING_NONE;
            int64_t rows = is_hidden ? t->segments[i].length : 1;
            int64_t dims[2] = {rows, (int64_t)output_width(e, o)};
            t->widths[i][o] = (size_t)(dims[0] * dims[1]);
            if (tensor_allocate(&all[i * ENCODER_OUTPUTS_MAX + o], &t->memory, DTYPE_F32, 2, dims))
                return NULL;
        }
    return all;
}

static int64_t sample_length(const trial *t, int i)
{
    int64_t longest = (int64_t)t->length, length = t->samples->samples[i].length;
    return length < longest ? length : longest;
}

static status check_ids(const cpu_encoder *e, const device_sample *sample)
{
    int64_t limit = e->source.word_table->dims[0];
    for (int64_t i = 0; i < sample->length; i++)
        if (sample->ids[i] >= limit)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "warm_up, line %d: token id %lld; the model has %lld", sample->line,
                               (long long)sample->ids[i], (long long)limit);
    return STATUS_OK;
}

static status prepare(const cpu_encoder *e, trial *t)
{
    const encoder *source = &e->source;
    const graph *g = e->options.graph;
    const device_samples *own = e->options.samples;
    status s = STATUS_OK;
    *t = (trial){.length = own ? SAMPLE_LENGTH_MAX : GENERATED_LENGTH_MAX, .samples = own};
    if (t->length > e->length_max)
        t->length = e->length_max;
    if (own == NULL) {
        s = device_samples_generate(source->word_table->dims[0], (int64_t)t->length, &t->memory,
                                    &t->generated);
        t->samples = &t->generated;
    }
    if (s)
        return s;
    t->count = t->samples->count;
    for (int i = 0; i < t->count; i++) {
        int64_t length = sample_length(t, i);
        t->segments[i] = (device_segment){.rows = 1, .length = length, .inputs = t->inputs[i]};
        for (int k = 0; k < g->input_count; k++) {
            const int64_t dims[2] = {1, length};
            if (tensor_allocate(&t->inputs[i][k], &t->memory, DTYPE_I64, 2, dims))
                return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the accuracy check");
            int64_t *data = t->inputs[i][k].data;
            if (k == source->ids_input) {
                memcpy(data, t->samples->samples[i].ids, (size_t)length * sizeof *data);
                s = check_ids(e, &t->samples->samples[i]);
            }
            for (int64_t p = 0; p < length && k == source->mask_input; p++)
                data[p] = 1;
            if (s)
                return s;
        }
    }
    size_t bytes = cpu_encoder_workspace_bytes(e, t->length);
    t->workspace = aligned_alloc(64, bytes);
    t->layout = malloc(sizeof *t->layout);
    t->tops = calloc(2 * (size_t)source->layer_count * (size_t)source->hidden + 1, sizeof(float));
    if (!t->workspace || !t->layout || !t->tops)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the accuracy check");
    memset(t->workspace, 0, bytes);
    return STATUS_OK;
}

static void dispose(trial *t)
{
    arena_dispose(&t->memory);
    free(t->workspace);
    free(t->layout);
    free(t->tops);
}

/* `tops`: or NULL. */
static status run_with(const cpu_encoder *e, trial *t, tensor *outputs, float *tops)
{
    double operations;
    status s = cancel_check(e->options.cancel);
    if (s)
        return s;
    for (int i = 0; i < t->count; i++)
        t->segments[i].outputs = &outputs[i * ENCODER_OUTPUTS_MAX];
    kernels_prepare_thread();
    cpu_encoder_runner r = {.workspaces = &t->workspace,
                            .workspace_length = t->length,
                            .layout = t->layout,
                            .tops = tops};
    return cpu_encoder_run(e, &r, 0, t->segments, t->count, &operations);
}

static status run(const cpu_encoder *e, trial *t, tensor *outputs)
{
    return run_with(e, t, outputs, NULL);
}

static device_accuracy compare(const cpu_encoder *e, const trial *t, const tensor *reference,
                               const tensor *outputs)
{
    device_accuracy worst = {1, 1};
    for (int o = 0; o < e->source.output_count; o++) {
        device_comparison c = {0};
        for (int i = 0; i < t->count; i++) {
            int at = i * ENCODER_OUTPUTS_MAX + o;
            device_comparison_add(&c, reference[at].data, outputs[at].data, t->widths[i][o]);
        }
        device_accuracy here = device_comparison_read(&c, output_width(e, o));
        worst = device_accuracy_worse(worst, here);
    }
    return worst;
}

typedef struct ranked_linear {
    int index; /* layer * ENCODER_LINEARS + linear */
    double sensitivity;
} ranked_linear;

static int more_sensitive_first(const void *a, const void *b)
{
    const ranked_linear *x = a, *y = b;
    if (x->sensitivity != y->sensitivity)
        return x->sensitivity > y->sensitivity ? -1 : 1;
    return x->index - y->index;
}

/* How far each linear layer alone, in its intended format, moves the results from FP32; the most
 * sensitive first. On few samples: only their order matters. */
static status rank_linears(const cpu_encoder *e, const cpu_encoder *reference, trial *t,
                           const tensor *expected, tensor *outputs, ranked_linear *ranked)
{
    cpu_encoder mixed;
    int count = e->source.layer_count * ENCODER_LINEARS, samples = t->count;
    status s = cpu_encoder_view(reference, &mixed);
    if (s)
        return s;
    t->count = samples < RANKING_SAMPLES ? samples : RANKING_SAMPLES;
    for (int i = 0; !s && i < count; i++) {
        cpu_encoder_linear *at = &mixed.layers[i / ENCODER_LINEARS].linears[i % ENCODER_LINEARS];
        cpu_encoder_linear kept = *at;
        *at = e->layers[i / ENCODER_LINEARS].linears[i % ENCODER_LINEARS];
        s = run(&mixed, t, outputs);
        ranked[i] = (ranked_linear){i, 1 - compare(e, t, expected, outputs).mean};
        *at = kept;
    }
    t->count = samples;
    cpu_encoder_release_view(&mixed);
    qsort(ranked, (size_t)count, sizeof *ranked, more_sensitive_first);
    return s;
}

/* Whether the results are as accurate as required with the first `raised` of `ranked` in FP32. */
static status try_raised(cpu_encoder *mixed, const cpu_encoder *e, const cpu_encoder *reference,
                         trial *t, const tensor *expected, tensor *outputs,
                         const ranked_linear *ranked, int raised, bool *is_enough)
{
    for (int i = 0; i < e->source.layer_count * ENCODER_LINEARS; i++) {
        int layer = ranked[i].index / ENCODER_LINEARS, linear = ranked[i].index % ENCODER_LINEARS;
        mixed->layers[layer].linears[linear] =
            (i < raised ? reference : e)->layers[layer].linears[linear];
    }
    status s = run(mixed, t, outputs);
    if (!s)
        *is_enough =
            device_accuracy_is_reached(compare(e, t, expected, outputs), required_accuracy(e));
    return s;
}

/* Sets e->plan: as few linear layers as reach the required accuracy get the format `closer`, the
 * most sensitive first. Their number is doubled until it is enough, then bisected. */
static status raise_precision(cpu_encoder *e, const cpu_encoder *reference, trial *t,
                              const tensor *expected, tensor *outputs, cpu_encoder_format closer)
{
    int count = e->source.layer_count * ENCODER_LINEARS, too_few = 0, enough = 1;
    ranked_linear *ranked = calloc((size_t)count + 1, sizeof *ranked);
    cpu_encoder mixed = {0};
    status s = ranked ? cpu_encoder_view(e, &mixed)
                      : status_fail(STATUS_OUT_OF_MEMORY, "no memory for the accuracy check");
    if (s) {
        free(ranked);
        return s;
    }
    s = rank_linears(e, reference, t, expected, outputs, ranked);
    for (bool is_enough = false; !s && enough < count && !is_enough;) {
        s = try_raised(&mixed, e, reference, t, expected, outputs, ranked, enough, &is_enough);
        if (!is_enough) {
            too_few = enough;
            enough = 2 * enough < count ? 2 * enough : count;
        }
    }
    while (!s && enough - too_few > 1) {
        int middle = too_few + (enough - too_few) / 2;
        bool is_enough = false;
        s = try_raised(&mixed, e, reference, t, expected, outputs, ranked, middle, &is_enough);
        *(is_enough ? &enough : &too_few) = middle;
    }
    for (int i = 0; !s && i < enough; i++)
        e->plan[ranked[i].index] = closer;
    cpu_encoder_release_view(&mixed);
    free(ranked);
    return s;
}

static void write_report(cpu_encoder *e, device_accuracy reached, bool is_measured)
{
    static const char *const linear_names[] = {"query, key and value", "attention output", "up",
                                               "down"};
    int count = e->source.layer_count * ENCODER_LINEARS, formats[CPU_ENCODER_FORMAT_COUNT] = {0};
    char *text = malloc(REPORT_BYTES_MAX);
    if (!text)
        return;
    for (int i = 0; i < count; i++)
        formats[e->plan[i]]++;
    int n = snprintf(text, REPORT_BYTES_MAX,
                     "an encoder of %d layers, %lld wide: runs without padding, %s;",
                     e->source.layer_count, (long long)e->source.hidden,
                     device_precision_names[e->options.precision]);
    for (int f = 0; f < CPU_ENCODER_FORMAT_COUNT && n < REPORT_BYTES_MAX; f++)
        if (formats[f] > 0)
            n += snprintf(text + n, REPORT_BYTES_MAX - (size_t)n, " %d matrices in %s", formats[f],
                          cpu_encoder_format_name((cpu_encoder_format)f));
    if (is_measured && n < REPORT_BYTES_MAX) {
        device_accuracy required = required_accuracy(e);
        n += snprintf(text + n, REPORT_BYTES_MAX - (size_t)n,
                      "; cosine to FP32 over %d %s sequences: mean %.5f, lowest %.5f "
                      "(at least %g and %g)",
                      e->options.samples ? e->options.samples->count : DEVICE_SAMPLES_GENERATED,
                      e->options.samples ? "warm-up" : "generated", reached.mean, reached.lowest,
                      required.mean, required.lowest);
    }
    for (int i = 0; i < count && n < REPORT_BYTES_MAX && formats[e->plan[0]] < count; i++)
        n += snprintf(text + n, REPORT_BYTES_MAX - (size_t)n, "%s layer %d %s: %s", i ? "," : ";",
                      i / ENCODER_LINEARS, linear_names[i % ENCODER_LINEARS],
                      cpu_encoder_format_name(e->plan[i]));
    e->report = text;
}

/* The formats that replace those of too low an accuracy, one after the other. A format between is
 * judged by FP32 in its place (try_raised), so it can still be too coarse. */
static int closer_formats(const cpu_encoder *e, cpu_encoder_format out[2])
{
    int count = 0;
    if (e->options.precision == DEVICE_INT8)
        out[count++] = kernels_choose_bf16_format(e->options.peaks) == KERNELS_BF16_AS_S16
                           ? CPU_ENCODER_S16
                           : CPU_ENCODER_BF16;
    out[count++] = CPU_ENCODER_F32;
    return count;
}

/* Packs e and compares it with the reference; packs it again with more precise formats where it
 * fails. */
static status check(cpu_encoder *e, const cpu_encoder *reference, trial *t)
{
    device_accuracy required = required_accuracy(e);
    tensor *expected = allocate_outputs(e, t), *outputs = allocate_outputs(e, t);
    if (!expected || !outputs)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the accuracy check");
    status s = run_with(reference, t, expected, t->tops);
    if (!s)
        s = cpu_encoder_pack(e, t->tops);
    if (!s)
        s = run(e, t, outputs);
    if (s)
        return s;
    device_accuracy reached = compare(e, t, expected, outputs);
    cpu_encoder_format closer[2];
    int count = closer_formats(e, closer);
    for (int i = 0; i < count && !device_accuracy_is_reached(reached, required); i++) {
        s = raise_precision(e, reference, t, expected, outputs, closer[i]);
        if (s)
            return s;
        cpu_encoder_drop_image(e);
        s = cpu_encoder_pack(e, t->tops);
        if (!s)
            s = run(e, t, outputs);
        if (s)
            return s;
        reached = compare(e, t, expected, outputs);
    }
    write_report(e, reached, true);
    return STATUS_OK;
}

status cpu_encoder_check_accuracy(cpu_encoder *e)
{
    if (e->options.precision == DEVICE_FP32) {
        status packed = cpu_encoder_pack(e, NULL);
        if (!packed)
            write_report(e, (device_accuracy){1, 1}, false);
        return packed;
    }
    cpu_encoder reference;
    trial t;
    status s = cpu_encoder_view(e, &reference);
    if (s)
        return s;
    cpu_encoder_plan_all(&reference, DEVICE_FP32);
    s = cpu_encoder_pack(&reference, NULL);
    if (!s) {
        s = prepare(e, &t);
        if (!s)
            s = check(e, &reference, &t);
        dispose(&t);
    }
    cpu_encoder_release_view(&reference);
    return s;
}
