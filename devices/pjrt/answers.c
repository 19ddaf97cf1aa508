#include "devices/pjrt/answers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/xorshift.h"
#include "devices/pjrt/program.h"
#include "devices/pjrt/protocol/protocol.h"
#include "devices/pjrt/ranges.h"

#define SEQUENCES_MAX 256 /* compared; a row of the bucket holds one, of a packed one up to two */

typedef struct sequence {
    int64_t row, start, length;
} sequence;

/* A bucket with inputs, and its results in FP32. */
typedef struct reference {
    const device_model *model; /* NULL: none yet */
    device_bucket bucket;      /* as it is run: few enough rows */
    arena memory;
    tensor inputs[PJRT_SLOT_TENSORS_MAX], outputs[PJRT_SLOT_TENSORS_MAX];
    int input_count, output_count;
    sequence sequences[SEQUENCES_MAX];
    int sequence_count;
} reference;

struct pjrt_answers {
    pjrt_session session;
    reference reference; /* of the bucket that was compared last */
};

status pjrt_answers_create(const pjrt_plugin *plugin, pjrt_answers **out)
{
    pjrt_answers *a = calloc(1, sizeof *a);
    assert(a != NULL);
    status s = pjrt_session_open(plugin, &a->session);
    if (s) {
        free(a);
        return s;
    }
    *out = a;
    return STATUS_OK;
}

void pjrt_answers_destroy(pjrt_answers *a)
{
    if (a == NULL)
        return;
    arena_dispose(&a->reference.memory);
    pjrt_session_close(&a->session);
    free(a);
}

/* --- running a program --- */

typedef struct loaded {
    pjrt_loaded_executable *executable;
    pjrt_buffer **arguments;
    int argument_count;
} loaded;

static void unload(const pjrt_session *s, loaded *l)
{
    for (int i = 0; i < l->argument_count; i++)
        if (l->arguments[i] != NULL)
            pjrt_session_free_buffer(s, l->arguments[i]);
    free(l->arguments);
    if (l->executable != NULL)
        pjrt_session_release(s, l->executable);
}

static status upload(const pjrt_session *s, const stablehlo_argument *argument,
                     const tensor *inputs, pjrt_buffer **out)
{
    arena memory = {0};
    tensor data;
    status failure = STATUS_OK;
    if (argument->input >= 0)
        data = inputs[argument->input];
    else
        failure = stablehlo_argument_data(argument, &memory, &data);
    pjrt_event *done = NULL;
    if (!failure)
        failure = pjrt_session_upload(s, 0, &data, out, &done);
    if (!failure)
        failure = pjrt_session_await(s, done, "uploading");
    arena_dispose(&memory);
    return failure;
}

static status load(const pjrt_session *s, const stablehlo_program *program, const tensor *inputs,
                   loaded *out)
{
    *out = (loaded){.argument_count = program->argument_count};
    out->arguments = calloc((size_t)program->argument_count + 1, sizeof(pjrt_buffer *));
    assert(out->arguments != NULL);
    status failure = pjrt_session_compile(s, 0, program->text, program->bytes, &out->executable);
    for (int i = 0; !failure && i < program->argument_count; i++)
        failure = upload(s, &program->arguments[i], inputs, &out->arguments[i]);
    return failure;
}

static status download(const pjrt_session *s, pjrt_buffer *from, const tensor *to)
{
    pjrt_event *done = NULL;
    status failure = pjrt_session_download(s, from, to, &done);
    return failure ? failure : pjrt_session_await(s, done, "downloading");
}

static status execute(const pjrt_session *s, const loaded *l, int output_count, tensor *outputs)
{
    pjrt_buffer *results[PJRT_SLOT_TENSORS_MAX];
    pjrt_event *done = NULL;
    status failure =
        pjrt_session_execute(s, 0, l->executable, l->arguments, l->argument_count, results, &done);
    if (failure)
        return failure;
    failure = pjrt_session_await(s, done, "executing");
    for (int i = 0; i < output_count; i++) {
        if (!failure)
            failure = download(s, results[i], &outputs[i]);
        pjrt_session_free_buffer(s, results[i]);
    }
    return failure;
}

static status run(const pjrt_session *s, const stablehlo_program *program, const tensor *inputs,
                  tensor *outputs)
{
    loaded l;
    status failure = load(s, program, inputs, &l);
    if (!failure)
        failure = execute(s, &l, program->output_count, outputs);
    unload(s, &l);
    return failure;
}

/* --- what runs --- */

static status allocate(arena *memory, const graph_value *v, tensor *out)
{
    int64_t dims[TENSOR_RANK_MAX];
    for (int k = 0; k < v->shape.rank; k++)
        dims[k] = v->shape.dims[k].constant;
    if (tensor_allocate(out, memory, v->dtype, v->shape.rank, dims))
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to compare results");
    memset(out->data, 0, tensor_bytes(out));
    return STATUS_OK;
}

static status allocate_all(arena *memory, const graph *g, const graph_value_index *which, int count,
                           tensor *out)
{
    status s = STATUS_OK;
    for (int i = 0; !s && i < count; i++)
        s = allocate(memory, &g->values[which[i]], &out[i]);
    return s;
}

static void set_integer(tensor *t, int64_t at, int64_t value)
{
    switch (t->dtype) {
    case DTYPE_I64:
        ((int64_t *)t->data)[at] = value;
        return;
    case DTYPE_I32:
        ((int32_t *)t->data)[at] = (int32_t)value;
        return;
    case DTYPE_F32: /* masks may be numbers */
        ((float *)t->data)[at] = (float)value;
        return;
    case DTYPE_BOOL:
    case DTYPE_I8:
    case DTYPE_U8:
        ((int8_t *)t->data)[at] = (int8_t)value;
        return;
    default:
        return;
    }
}

/* Sequences of different lengths, up to the whole row; two in a packed row. */
static void lay_out(reference *r, bool is_packed)
{
    int64_t length = r->bucket.sequence > 0 ? r->bucket.sequence : 1;
    int64_t most =
        is_packed ? encoder_packing_of(r->bucket.batch, length).sequences : SEQUENCES_MAX;
    if (most > SEQUENCES_MAX)
        most = SEQUENCES_MAX;
    r->sequence_count = 0;
    for (int64_t row = 0; row < r->bucket.batch && r->sequence_count < most; row++) {
        int64_t own = length - row % 4 * length / 8;
        if (is_packed && own == length)
            own -= length / 4;
        r->sequences[r->sequence_count++] = (sequence){row, 0, own};
        if (is_packed && own < length && most - r->sequence_count >= r->bucket.batch - row)
            r->sequences[r->sequence_count++] = (sequence){row, own, length - own};
    }
}

/* What an integer input holds at token `i` of a sequence. */
typedef struct filling {
    const device_model *model;
    const device_samples *samples;
    int64_t limit; /* ids are below; 0: the input is not used as an index */
    int input;
} filling;

static int64_t value_at(const filling *f, int number, int64_t i)
{
    const device_sample *sample = &f->samples->samples[number % f->samples->count];
    if (f->input == f->model->mask_input)
        return 1;
    if (f->limit <= 2) /* token types, or no index */
        return f->limit == 2 && i % 4 == 3;
    int64_t id = sample->ids[i % sample->length];
    return id < f->limit ? id : id % f->limit;
}

static void fill_tokens(reference *r, const filling *f, tensor *t)
{
    int64_t length = t->rank >= 2 ? t->dims[1] : 1;
    for (int n = 0; n < r->sequence_count; n++)
        for (int64_t i = 0; i < r->sequences[n].length && i < length; i++)
            set_integer(t, r->sequences[n].row * length + r->sequences[n].start + i,
                        value_at(f, n, i));
}

/* The inputs that packing adds, graph/encoder/packed.h. */
static void fill_packing(reference *r)
{
    tensor *positions = &r->inputs[r->input_count - 3];
    for (int n = 0; n < r->sequence_count; n++) {
        const sequence *q = &r->sequences[n];
        int64_t at = q->row * r->bucket.sequence + q->start;
        for (int64_t i = 0; i < q->length; i++) {
            set_integer(&positions[0], at + i, i);
            set_integer(&positions[1], at + i, n + 1);
        }
        set_integer(&positions[2], n, at);
    }
}

/* Numbers between -1 and 1. */
static void fill_numbers(tensor *t, uint64_t *state)
{
    float *data = t->data;
    for (int64_t i = 0; i < tensor_count(t); i++)
        data[i] = (float)((double)(xorshift_next(state) >> 11) / 4503599627370496.0 - 1);
}

static int64_t limit_of(const pjrt_range *ranges, int count, int input)
{
    for (int i = 0; i < count; i++)
        if (ranges[i].input == input)
            return ranges[i].limit;
    return 0;
}

/* Ids below the largest limit. */
static status generate(reference *r, const pjrt_range *ranges, int count, device_samples *out)
{
    int64_t largest = 3;
    for (int i = 0; i < count; i++)
        largest = ranges[i].limit > largest ? ranges[i].limit : largest;
    return device_samples_generate(largest, r->bucket.sequence, &r->memory, out);
}

static status fill(reference *r, const graph *g)
{
    pjrt_range *ranges;
    device_samples generated;
    const device_samples *samples = r->model->samples;
    uint64_t state = 7;
    int count = pjrt_ranges_find(g, &r->memory, &ranges), own = r->model->graph->input_count;
    if (samples == NULL) {
        status s = generate(r, ranges, count, &generated);
        if (s)
            return s;
        samples = &generated;
    }
    for (int i = 0; i < own; i++) {
        tensor *t = &r->inputs[i];
        const filling f = {
            .model = r->model, .samples = samples, .limit = limit_of(ranges, count, i), .input = i};
        if (t->dtype == DTYPE_F32 && i != r->model->mask_input)
            fill_numbers(t, &state);
        else
            fill_tokens(r, &f, t);
    }
    if (r->input_count > own)
        fill_packing(r);
    return STATUS_OK;
}

static status emit(const reference *r, const pjrt_candidate *candidate, graph **specialised,
                   stablehlo_program *program)
{
    status s = pjrt_program_specialise(r->model, r->bucket, candidate, specialised);
    return s ? s : pjrt_program_emit(r->model, r->bucket, *specialised, candidate, program);
}

static status compute_reference(pjrt_answers *a, reference *r)
{
    const pjrt_candidate plain = {.name = "fp32", .options = {.precision = STABLEHLO_FP32}};
    graph *g = NULL;
    stablehlo_program program = {0};
    status s = emit(r, &plain, &g, &program);
    if (!s) {
        r->input_count = g->input_count;
        r->output_count = g->output_count;
        s = allocate_all(&r->memory, g, g->inputs, g->input_count, r->inputs);
    }
    if (!s)
        s = allocate_all(&r->memory, g, g->outputs, g->output_count, r->outputs);
    if (!s)
        s = fill(r, g);
    if (!s)
        s = run(&a->session, &program, r->inputs, r->outputs);
    stablehlo_program_dispose(&program);
    graph_destroy(g);
    return s;
}

/* As many rows as hold so many tokens. */
static device_bucket few_rows(device_bucket bucket)
{
    int64_t most = bucket.sequence > 0 ? PJRT_ANSWERS_TOKENS_MAX / bucket.sequence : SEQUENCES_MAX;
    if (bucket.batch > most)
        bucket.batch = most > 0 ? most : 1;
    return bucket;
}

static status refer(pjrt_answers *a, const device_model *model, device_bucket bucket)
{
    reference *r = &a->reference;
    bucket = few_rows(bucket);
    if (r->model == model && r->bucket.batch == bucket.batch &&
        r->bucket.sequence == bucket.sequence)
        return STATUS_OK;
    arena_dispose(&r->memory);
    *r = (reference){.model = model, .bucket = bucket};
    lay_out(r, model->packed_encoder != NULL);
    status s = compute_reference(a, r);
    if (s)
        r->model = NULL;
    return s;
}

/* --- comparing --- */

/* Row `n` of an output, or its tokens: `*count` numbers from the returned one on. */
static int64_t part_of(const reference *r, const tensor *t, int n, bool is_by_token, size_t *count)
{
    const sequence *q = &r->sequences[n];
    size_t all = (size_t)tensor_count(t);
    if (is_by_token) {
        size_t width = all / (size_t)(t->dims[0] * t->dims[1]);
        *count = (size_t)q->length * width;
        return (q->row * t->dims[1] + q->start) * (int64_t)width;
    }
    *count = all / (size_t)t->dims[0];
    return n * (int64_t)*count;
}

static device_accuracy compare_output(const reference *r, const tensor *wanted, const tensor *found)
{
    device_comparison c = {0};
    const float *x = wanted->data, *y = found->data;
    bool is_by_token = r->bucket.sequence > 0 && wanted->rank >= 2 &&
                       wanted->dims[0] == r->bucket.batch && wanted->dims[1] == r->bucket.sequence;
    size_t count = 0;
    for (int n = 0; n < r->sequence_count; n++) {
        int64_t at = part_of(r, wanted, n, is_by_token, &count);
        device_comparison_add(&c, x + at, y + at, count);
    }
    return device_comparison_read(&c, count);
}

status pjrt_answers_compare(pjrt_answers *a, const device_model *model, device_bucket bucket,
                            const pjrt_candidate *candidate, device_accuracy *out)
{
    const reference *r = &a->reference;
    tensor outputs[PJRT_SLOT_TENSORS_MAX];
    graph *g = NULL;
    stablehlo_program program = {0};
    arena memory = {0};
    status s = refer(a, model, bucket);
    if (!s)
        s = emit(r, candidate, &g, &program);
    if (!s)
        s = allocate_all(&memory, g, g->outputs, g->output_count, outputs);
    if (!s)
        s = run(&a->session, &program, r->inputs, outputs);
    if (!s) {
        *out = (device_accuracy){1, 1};
        for (int o = 0; o < r->output_count; o++) {
            if (outputs[o].dtype != DTYPE_F32 || outputs[o].rank < 1)
                continue;
            device_accuracy here = compare_output(r, &r->outputs[o], &outputs[o]);
            *out = device_accuracy_worse(*out, here);
        }
    }
    arena_dispose(&memory);
    stablehlo_program_dispose(&program);
    graph_destroy(g);
    return s;
}
