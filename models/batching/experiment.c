#include "models/batching/experiment.h"

#include <assert.h>
#include <math.h>

#include "models/batching/probe.h"
#include "models/batching/row_copy.h"
#include "models/start/start_budget.h"

#define TOLERANCE_UNIT 1e-5
#define TOLERANCE_OTHER 1e-3

/* How inputs are made from the random ones of probe_make_inputs(), which lie between -1 and 1. */
typedef enum input_kind {
    INPUT_UNIT,
    INPUT_ZEROS,
    INPUT_CONSTANT,
    INPUT_TINY,     /* a thousandth */
    INPUT_LARGE,    /* a thousand times; the highest ids */
    INPUT_OUTLIERS, /* some elements a thousand times */
    INPUT_NEGATIVE,
    INPUT_POSITIVE,
} input_kind;

/* A row and the rows beside it. */
typedef struct pairing {
    input_kind row, others;
    const char *words;
} pairing;

/* The first pairing of each list must run; a model may reject the inputs of others. */
static const pairing usual[] = {
    {INPUT_UNIT, INPUT_UNIT, "rows between -1 and 1"},
    {INPUT_UNIT, INPUT_LARGE, "a row between -1 and 1 beside large rows"},
};
static const pairing thorough[] = {
    {INPUT_UNIT, INPUT_UNIT, "rows between -1 and 1"},
    {INPUT_UNIT, INPUT_LARGE, "a row between -1 and 1 beside large rows"},
    {INPUT_TINY, INPUT_LARGE, "a tiny row beside large rows"},
    {INPUT_LARGE, INPUT_TINY, "a large row beside tiny rows"},
    {INPUT_ZEROS, INPUT_LARGE, "zeros beside large rows"},
    {INPUT_UNIT, INPUT_ZEROS, "a row between -1 and 1 beside zeros"},
    {INPUT_CONSTANT, INPUT_UNIT, "a constant row"},
    {INPUT_UNIT, INPUT_OUTLIERS, "a row between -1 and 1 beside rows with outliers"},
    {INPUT_NEGATIVE, INPUT_POSITIVE, "a negative row beside positive rows"},
};
static const pairing padded[] = {
    {INPUT_UNIT, INPUT_UNIT, "rows between -1 and 1"},
    {INPUT_NEGATIVE, INPUT_NEGATIVE, "negative rows"},
    {INPUT_POSITIVE, INPUT_POSITIVE, "positive rows"},
    {INPUT_TINY, INPUT_TINY, "tiny rows"},
    {INPUT_OUTLIERS, INPUT_UNIT, "a row with outliers"},
};

static double change_float(input_kind kind, double x, int64_t at)
{
    switch (kind) {
    case INPUT_UNIT:
        return x;
    case INPUT_ZEROS:
        return 0;
    case INPUT_CONSTANT:
        return 0.5;
    case INPUT_TINY:
        return x / 1000;
    case INPUT_LARGE:
        return x * 1000;
    case INPUT_OUTLIERS:
        return at % 7 == 3 ? x * 1000 : x;
    case INPUT_NEGATIVE:
        return -0.6 + 0.4 * x;
    case INPUT_POSITIVE:
        return 0.6 + 0.4 * x;
    }
    return x;
}

/* Token ids stay within what the model accepts: [0, limit). */
static int64_t change_id(input_kind kind, int64_t id, int64_t limit, int64_t at)
{
    switch (kind) {
    case INPUT_ZEROS:
        return 0;
    case INPUT_CONSTANT:
        return limit / 2;
    case INPUT_TINY:
        return id % (limit < 4 ? limit : 4);
    case INPUT_LARGE:
        return limit - 1 - id % (limit < 4 ? limit : 4);
    case INPUT_OUTLIERS:
        return at % 7 == 3 ? limit - 1 : id;
    default:
        return id;
    }
}

static void change(const model *m, int input, input_kind kind, tensor *t)
{
    const model_tensor *declared = &m->inputs[input];
    if (kind == INPUT_UNIT || declared->is_mask || t->dtype == DTYPE_BYTES)
        return;
    bool is_id = declared->id_limit > 0, is_float = dtype_is_float(t->dtype);
    bool is_byte = t->dtype == DTYPE_U8 || t->dtype == DTYPE_I8;
    /* Other integers may be lengths or indices: nobody knows their limits. */
    if (!is_id && !is_float && !is_byte)
        return;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        double x = tensor_get_number(t, i);
        tensor_set_number(t, i,
                          is_float ? change_float(kind, x, i)
                          : is_id  ? (double)change_id(kind, (int64_t)x, declared->id_limit, i)
                                   : (double)change_id(kind, (int64_t)x, 128, i));
    }
}

/* How far x is from y: 0 where both are the same, NaN and infinities too. */
static double difference_of(double x, double y)
{
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

/* The largest difference between row `row` of `batch` and the one row of `alone`, as a fraction of
 * the range of the output's finite elements. Never NaN. */
static double largest_difference(const model *m, const tensor *batch, int64_t row,
                                 const tensor *alone, int64_t length, arena *a)
{
    double worst = 0;
    for (int i = 0; i < m->output_count; i++) {
        tensor got = alone[i];
        got.data = arena_allocate_aligned(a, tensor_bytes(&got) + 1, 64);
        if (got.data == NULL)
            return INFINITY;
        if (got.dtype == DTYPE_BYTES)
            continue;
        row_copy(&got, 0, &batch[i], row, &m->outputs[i], length, NULL);
        double low = INFINITY, high = -INFINITY, apart = 0, range = 0;
        for (int64_t k = 0; k < tensor_count(&got); k++) {
            double x = tensor_get_number(&got, k), y = tensor_get_number(&alone[i], k);
            apart = fmax(apart, difference_of(x, y));
            if (!isfinite(y))
                continue;
            low = fmin(low, y);
            high = fmax(high, y);
            range = fmax(high - low, fmax(fabs(high), fabs(low)));
        }
        if (apart > 0)
            worst = fmax(worst, range > 0 ? apart / range : INFINITY);
    }
    return worst;
}

static void copy_row(const model *m, const tensor *to, int64_t to_row, const tensor *from,
                     int64_t from_row, int64_t length)
{
    for (int i = 0; i < m->input_count; i++) {
        tensor_string pad = {0};
        tensor element = {.dtype = to[i].dtype, .data = &pad};
        if (to[i].dtype != DTYPE_BYTES)
            tensor_set_number(&element, 0, m->inputs[i].is_mask ? 0 : m->inputs[i].pad_value);
        row_copy(&to[i], to_row, &from[i], from_row, &m->inputs[i], length, &pad);
    }
}

/* The programs of one experiment. */
typedef struct programs {
    device *cpu;
    device_program *alone, *batch;
} programs;

static status compile(const model *m, const experiment *what, programs *p)
{
    p->cpu = m->devices[m->device_count - 1];
    status s = p->cpu->interface->compile(p->cpu, &m->on_device, (device_bucket){1, what->length},
                                          &p->alone);
    if (s)
        return s;
    return p->cpu->interface->compile(p->cpu, &m->on_device,
                                      (device_bucket){what->rows, what->batch_length}, &p->batch);
}

static void release(programs *p)
{
    if (p->alone)
        p->cpu->interface->release(p->cpu, p->alone);
    if (p->batch)
        p->cpu->interface->release(p->cpu, p->batch);
}

static status run(const model *m, const programs *p, device_program *program, arena *a,
                  const tensor *inputs, tensor *outputs)
{
    status s = probe_make_outputs(m, program->bucket, a, outputs);
    return s ? s : probe_execute(m, p->cpu, program, inputs, outputs);
}

static status make_inputs(const model *m, device_bucket shape, uint64_t seed, input_kind kind,
                          arena *a, tensor *inputs)
{
    status s = probe_make_inputs(m, shape, seed, a, inputs);
    for (int i = 0; i < m->input_count && !s; i++)
        change(m, i, kind, &inputs[i]);
    return s;
}

static status compare(const model *m, const experiment *what, const programs *p,
                      const pairing *pair, uint64_t seed, double *difference)
{
    arena a = {0};
    tensor alone[MODEL_TENSORS_MAX], alone_out[MODEL_TENSORS_MAX];
    tensor batch[MODEL_TENSORS_MAX], batch_out[MODEL_TENSORS_MAX];
    int64_t row = what->rows / 2;
    status s = make_inputs(m, p->alone->bucket, seed, pair->row, &a, alone);
    if (!s)
        s = run(m, p, p->alone, &a, alone, alone_out);
    if (!s)
        s = make_inputs(m, p->batch->bucket, seed + 7, pair->others, &a, batch);
    if (!s) {
        copy_row(m, batch, row, alone, 0, what->length);
        s = run(m, p, p->batch, &a, batch, batch_out);
    }
    if (!s)
        *difference = largest_difference(m, batch_out, row, alone_out, what->length, &a);
    arena_dispose(&a);
    return s;
}

/* The pairings of an experiment. */
static const pairing *choose(const experiment *what, size_t *count)
{
    bool is_padded = what->batch_length > what->length;
    if (!what->is_thorough) {
        *count = sizeof usual / sizeof usual[0];
        return usual;
    }
    *count = is_padded ? sizeof padded / sizeof padded[0] : sizeof thorough / sizeof thorough[0];
    return is_padded ? padded : thorough;
}

status experiment_run(const model *m, const experiment *what, experiment_result *out)
{
    assert(what->rows >= 1 && what->batch_length >= what->length);
    size_t count;
    const pairing *pairs = choose(what, &count);
    programs p = {0};
    *out = (experiment_result){.is_same = true, .inputs = pairs[0].words};
    status s = compile(m, what, &p);
    if (!s && what->is_optional) {
        int64_t operations = 0;
        for (size_t i = 0; i < count; i++)
            operations = graph_cost_add(
                operations, graph_cost_add(p.alone->cost.operations, p.batch->cost.operations));
        out->is_skipped = !start_budget_allows(m->start, operations);
    }
    if (out->is_skipped)
        count = 0;
    for (size_t i = 0; i < count && !s && out->is_same; i++) {
        double difference = 0;
        s = compare(m, what, &p, &pairs[i], i + 1, &difference);
        if (s && i > 0 && !cancel_is_end(s)) {
            s = STATUS_OK;
            continue;
        }
        bool is_unit = pairs[i].row == INPUT_UNIT;
        out->is_same = !s && difference <= (is_unit ? TOLERANCE_UNIT : TOLERANCE_OTHER);
        if (difference > out->difference) {
            out->difference = difference;
            out->inputs = pairs[i].words;
        }
    }
    release(&p);
    if (s)
        *out = (experiment_result){.difference = INFINITY, .inputs = pairs[0].words};
    return s;
}
