#include "devices/pjrt/calibration.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/plan/plan.h"
#include "graph/encoder/packed.h"
#include "graph/quantise/smooth.h"

#define ROOM "devices"
#define LENGTH_MAX 64   /* tokens of a row; longer samples are cut */
#define TOKENS_MAX 1024 /* of all rows */
#define KINDS 16        /* sets of linear layers; 0: all, by row */
/* Changes with how channels are made of what was seen. */
#define VERSION "calibration 3"
/* SmoothQuant's: weights stand more than activations do. Found on MiniLM. */
#define ALPHA 0.7f
/* A few generated ids show less of what a model will read than text does. */
#define GENERATED_ROOM 1.25f

struct pjrt_calibration {
    pjrt_calibration *next;
    const graph *graph;
    int references;
    arena memory;
    int count; /* linear layers */
    quantise_channels *channels;
    pthread_mutex_t lock; /* of what follows, and of the data of `channels` */
    bool is_measured, has_accuracy[KINDS];
    device_accuracy accuracy[KINDS];
    float score_most;
    tensor *reference; /* outputs in FP32; NULL: not run in this process */
};

struct pjrt_calibrations {
    pthread_mutex_t lock;
    pjrt_calibration *first;
};

pjrt_calibrations *pjrt_calibrations_create(void)
{
    pjrt_calibrations *all = calloc(1, sizeof *all);
    assert(all != NULL);
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

void pjrt_calibrations_destroy(pjrt_calibrations *all)
{
    if (all == NULL)
        return;
    assert(all->first == NULL);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static tensor *make_vector(pjrt_calibration *c, int64_t width)
{
    tensor *made = arena_allocate(&c->memory, sizeof *made);
    status s = made == NULL ? STATUS_OUT_OF_MEMORY
                            : tensor_allocate(made, &c->memory, DTYPE_F32, 1, &width);
    assert(s == STATUS_OK);
    memset(made->data, 0, tensor_bytes(made));
    return made;
}

/* What a down projection reads lies on one side of 0, as activations leave it. */
static bool has_offsets(int number)
{
    return number % ENCODER_LINEARS == ENCODER_DOWN;
}

static pjrt_calibration *make(const device_model *model)
{
    const encoder *e = model->encoder;
    pjrt_calibration *c = calloc(1, sizeof *c);
    assert(c != NULL && e != NULL);
    c->graph = model->graph;
    c->count = e->layer_count * ENCODER_LINEARS;
    c->score_most = INFINITY; /* not known */
    pthread_mutex_init(&c->lock, NULL);
    c->channels = arena_allocate_zeroed(&c->memory, (size_t)c->count + 1, sizeof *c->channels);
    assert(c->channels != NULL);
    for (int i = 0; i < c->count; i++) {
        int64_t width = i % ENCODER_LINEARS == ENCODER_DOWN ? e->intermediate : e->hidden;
        c->channels[i].factors = make_vector(c, width);
        if (has_offsets(i))
            c->channels[i].offsets = make_vector(c, width);
    }
    return c;
}

pjrt_calibration *pjrt_calibration_obtain(pjrt_calibrations *all, const device_model *model)
{
    pthread_mutex_lock(&all->lock);
    pjrt_calibration *c = all->first;
    while (c != NULL && c->graph != model->graph)
        c = c->next;
    if (c == NULL) {
        c = make(model);
        c->next = all->first;
        all->first = c;
    }
    c->references++;
    pthread_mutex_unlock(&all->lock);
    return c;
}

void pjrt_calibration_release(pjrt_calibrations *all, pjrt_calibration *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    bool is_last = --c->references == 0;
    for (pjrt_calibration **at = &all->first; is_last && *at != NULL;)
        if (*at == c)
            *at = c->next;
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&all->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&c->lock);
    arena_dispose(&c->memory);
    free(c);
}

int pjrt_calibration_linears(const pjrt_calibration *c)
{
    return c->count;
}

const quantise_channels *pjrt_calibration_channels(const pjrt_calibration *c, int number)
{
    assert(number >= 0 && number < c->count);
    return &c->channels[number];
}

/* NULL: generated ones. */
static const device_samples *samples_of(const device_model *model)
{
    return model->samples != NULL ? model->samples : model->text_samples;
}

void pjrt_calibration_describe(const device_model *model, char *text, size_t bytes)
{
    const device_samples *samples = samples_of(model);
    snprintf(text, bytes, "%d %s", samples != NULL ? samples->count : DEVICE_SAMPLES_GENERATED,
             model->samples != NULL ? "warm-up"
             : samples != NULL      ? "text"
                                    : "generated");
}

/* --- running on the CPU --- */

/* One run of the encoder in some form; memory from `memory`. */
typedef struct run {
    arena memory;
    const device_model *model;
    device_samples generated;
    const device_samples *samples;
    int64_t rows, length;
    graph *graph;
    cpu_plan *plan;
    void *workspace;
    tensor *inputs, *outputs;
} run;

static void dispose(run *r)
{
    cpu_plan_destroy(r->plan);
    graph_destroy(r->graph);
    free(r->workspace);
    arena_dispose(&r->memory);
}

static status choose_rows(run *r)
{
    const encoder *e = r->model->encoder;
    int64_t limit = r->model->graph->sequence_max, longest = 1;
    int64_t most = limit > 0 && limit < LENGTH_MAX ? limit : LENGTH_MAX;
    status s = STATUS_OK;
    r->samples = samples_of(r->model);
    if (r->samples == NULL) {
        s = device_samples_generate(e->word_table->dims[0], most, &r->memory, &r->generated);
        r->samples = &r->generated;
    }
    if (s)
        return s;
    for (int i = 0; i < r->samples->count; i++)
        if (r->samples->samples[i].length > longest)
            longest = r->samples->samples[i].length;
    r->length = longest < most ? longest : most;
    r->rows = r->samples->count;
    if (r->rows * r->length > TOKENS_MAX)
        r->rows = TOKENS_MAX / r->length;
    return STATUS_OK;
}

/* Spread over the samples. */
static const device_sample *sample_of(const run *r, int64_t row)
{
    return &r->samples->samples[row * r->samples->count / r->rows];
}

/* Models that pool a mean get one text, others two as well: as pairs, in every other row. */
static bool is_pair(const encoder *e, int64_t row)
{
    bool takes_pairs = e->token_type_table != NULL && e->token_type_table->dims[0] > 1;
    for (int i = 0; i < e->output_count; i++)
        takes_pairs &= e->outputs[i].pooling != ENCODER_POOLING_MEAN;
    return takes_pairs && row % 2 == 1;
}

/* A model without a mask sees its sequences again and again instead of padding. */
static void fill_row(const run *r, int input, int64_t row, tensor *to)
{
    const encoder *e = r->model->encoder;
    const device_sample *sample = sample_of(r, row);
    for (int64_t i = 0; i < r->length; i++) {
        bool is_real = i < sample->length || e->mask_input < 0;
        int64_t id = is_real ? sample->ids[i % sample->length] : 0;
        if (id >= e->word_table->dims[0])
            id = 0;
        bool is_second = is_pair(e, row) && is_real && i >= sample->length / 2;
        int64_t number = input == e->ids_input          ? id
                         : input == e->mask_input       ? is_real
                         : input == e->token_type_input ? is_second
                                                        : 0;
        tensor_set_number(to, row * r->length + i, (double)number);
    }
}

static status fill_inputs(run *r)
{
    const graph *g = r->graph;
    r->inputs = arena_allocate_zeroed(&r->memory, (size_t)g->input_count + 1, sizeof *r->inputs);
    const int64_t dims[] = {r->rows, r->length};
    for (int i = 0; r->inputs != NULL && i < g->input_count; i++) {
        dtype type = g->values[g->inputs[i]].dtype;
        status s = tensor_allocate(&r->inputs[i], &r->memory, type, 2, dims);
        if (s)
            return s;
        for (int64_t row = 0; row < r->rows; row++)
            fill_row(r, i, row, &r->inputs[i]);
    }
    return r->inputs != NULL ? STATUS_OK
                             : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a calibration");
}

static status allocate_outputs(run *r, arena *memory)
{
    const graph *g = r->graph;
    r->outputs = arena_allocate_zeroed(memory, (size_t)g->output_count + 1, sizeof *r->outputs);
    for (int i = 0; r->outputs != NULL && i < g->output_count; i++) {
        const graph_value *v = &g->values[g->outputs[i]];
        int64_t dims[TENSOR_RANK_MAX];
        for (int d = 0; d < v->shape.rank; d++)
            dims[d] = v->shape.dims[d].constant;
        if (v->dtype != DTYPE_F32)
            return status_fail(STATUS_UNSUPPORTED, "output \"%s\" is not in f32", v->name);
        status s = tensor_allocate(&r->outputs[i], memory, v->dtype, v->shape.rank, dims);
        if (s)
            return s;
    }
    return r->outputs != NULL ? STATUS_OK
                              : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a calibration");
}

/* Runs the encoder as `trial` has it. The caller disposes of `r`; the outputs are in `memory`. */
static status start(run *r, const device_model *model, const encoder_trial *trial, arena *memory)
{
    const encoder_form form = {.trial = trial};
    const kernels *table;
    *r = (run){.model = model};
    status s = choose_rows(r);
    if (s == STATUS_OK)
        s = encoder_pad(model->encoder, model->graph, model->budget, cpu_evaluate_node, r->rows,
                        r->length, &form, &r->graph);
    if (s == STATUS_OK)
        s = kernels_select(NULL, &table);
    if (s == STATUS_OK)
        s = cpu_plan_create(r->graph, table, NULL, &r->plan);
    if (s == STATUS_OK)
        s = fill_inputs(r);
    if (s == STATUS_OK)
        s = allocate_outputs(r, memory);
    if (s)
        return s;
    size_t bytes = cpu_plan_workspace_bytes(r->plan) + CPU_PLAN_WORKSPACE_ALIGNMENT;
    r->workspace =
        aligned_alloc(CPU_PLAN_WORKSPACE_ALIGNMENT,
                      bytes / CPU_PLAN_WORKSPACE_ALIGNMENT * CPU_PLAN_WORKSPACE_ALIGNMENT);
    if (r->workspace == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a calibration");
    memset(r->workspace, 0, bytes / CPU_PLAN_WORKSPACE_ALIGNMENT * CPU_PLAN_WORKSPACE_ALIGNMENT);
    kernels_prepare_thread();
    return cpu_plan_run(r->plan, r->inputs, r->outputs, r->workspace,
                        model->budget != NULL ? model->budget->cancel : NULL);
}

/* --- channels --- */

static void raise_tops(const encoder_linear *l, float *tops)
{
    const float *w = l->weight->data;
    int64_t columns = l->weight->dims[1], count = tensor_count(l->weight);
    for (int64_t i = 0; i < count; i++) {
        int64_t k = l->is_transposed ? i % columns : i / columns;
        tops[k] = fmaxf(tops[k], fabsf(w[i]));
    }
}

/* Of the weights of one linear layer; `tops` [K] is zeroed. */
static void find_weight_tops(const encoder *e, int number, float *tops)
{
    const encoder_layer *l = &e->layers[number / ENCODER_LINEARS];
    switch (number % ENCODER_LINEARS) {
    case ENCODER_QKV:
        raise_tops(&l->query, tops);
        raise_tops(&l->key, tops);
        raise_tops(&l->value, tops);
        break;
    case ENCODER_ATTENTION_OUTPUT:
        raise_tops(&l->attention_output, tops);
        break;
    case ENCODER_UP:
        raise_tops(&l->up, tops);
        break;
    default:
        raise_tops(&l->down, tops);
    }
}

/* Half the range of each channel, and its middle: 0, unless the layer has offsets. */
static void find_halves(const float *least, const float *most, size_t width, float *halves,
                        float *middles)
{
    for (size_t k = 0; k < width; k++) {
        if (middles != NULL)
            middles[k] = (most[k] + least[k]) / 2;
        halves[k] =
            middles != NULL ? (most[k] - least[k]) / 2 : fmaxf(fabsf(least[k]), fabsf(most[k]));
    }
}

/* Channels are smoothed into the weights; then the largest number that was seen becomes 127. */
static void set_channels(pjrt_calibration *c, const device_model *model, int number,
                         const float *least, const float *most)
{
    size_t width = (size_t)c->channels[number].factors->dims[0];
    float *factors = c->channels[number].factors->data, largest = 0;
    float *offsets = has_offsets(number) ? c->channels[number].offsets->data : NULL;
    float *halves = calloc(width, sizeof *halves);
    assert(halves != NULL);
    find_halves(least, most, width, halves, offsets);
    memset(factors, 0, width * sizeof *factors);
    find_weight_tops(model->encoder, number, factors);
    quantise_smooth(halves, factors, width, ALPHA, factors);
    for (size_t k = 0; k < width; k++)
        largest = fmaxf(largest, halves[k] * factors[k]);
    largest *= samples_of(model) == NULL ? GENERATED_ROOM : 1;
    for (size_t k = 0; k < width; k++) {
        factors[k] *= largest > 0 ? 127 / largest : 1;
        if (offsets != NULL)
            offsets[k] *= factors[k];
    }
    free(halves);
}

/* Of the relative bias, at any distance. */
static float largest_bias(const encoder *e)
{
    float largest = 0;
    int64_t count = e->relative_table != NULL ? tensor_count(e->relative_table) : 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(((const float *)e->relative_table->data)[i]));
    return largest;
}

/* FP32: the outputs to compare with; the channels and the scores unless the cache had them. */
static status run_reference(pjrt_calibration *c, const device_model *model)
{
    const encoder_trial trial = {.shows_ranges = true};
    uint64_t start_ns = clock_now_ns();
    run r;
    status s = start(&r, model, &trial, &c->memory);
    int own = model->graph->output_count, scores = own + 2 * c->count;
    for (int i = 0; s == STATUS_OK && !c->is_measured && i < c->count; i++)
        set_channels(c, model, i, r.outputs[own + 2 * i].data, r.outputs[own + 2 * i + 1].data);
    if (s == STATUS_OK) {
        assert(r.graph->output_count == scores + 1);
        c->score_most = *(const float *)r.outputs[scores].data + largest_bias(model->encoder);
        log_info(ROOM, "%s: ranges and attention scores measured in %.1f s", model->name,
                 (double)(clock_now_ns() - start_ns) * 1e-9);
        c->reference = r.outputs;
        c->is_measured = true;
    }
    dispose(&r);
    return s;
}

/* --- accuracy --- */

/* Of an output [rows, ...]: padding tokens, where it has tokens, do not count. */
static device_accuracy compare(const run *r, const tensor *reference, const tensor *found)
{
    device_comparison c = {0};
    size_t of_row = (size_t)(tensor_count(found) / r->rows);
    bool has_tokens = found->rank >= 2 && found->dims[1] == r->length &&
                      (found->rank > 2 || r->model->encoder->outputs[0].is_column);
    size_t width = has_tokens ? of_row / (size_t)r->length : of_row;
    for (int64_t row = 0; row < r->rows; row++) {
        int64_t length = sample_of(r, row)->length;
        bool is_cut = has_tokens && length < r->length && r->model->encoder->mask_input >= 0;
        device_comparison_add(&c, (const float *)reference->data + (size_t)row * of_row,
                              (const float *)found->data + (size_t)row * of_row,
                              is_cut ? (size_t)length * width : of_row);
    }
    return device_comparison_read(&c, width);
}

static status run_imitation(pjrt_calibration *c, const device_model *model, unsigned linears,
                            device_accuracy *reached)
{
    quantise_channels *channels = calloc((size_t)c->count + 1, sizeof *channels);
    assert(channels != NULL);
    for (int i = 0; i < c->count; i++)
        if (linears & (1u << i % ENCODER_LINEARS))
            channels[i] = c->channels[i];
    const encoder_trial trial = {.is_by_row = linears == 0, .channels = channels};
    device_accuracy worst = {1, 1};
    arena memory = {0};
    run r;
    status s = start(&r, model, &trial, &memory);
    for (int i = 0; s == STATUS_OK && i < model->graph->output_count; i++) {
        device_accuracy here = compare(&r, &c->reference[i], &r.outputs[i]);
        worst = device_accuracy_worse(worst, here);
    }
    if (s == STATUS_OK)
        *reached = worst;
    dispose(&r);
    arena_dispose(&memory);
    free(channels);
    return s;
}

/* --- the compile cache --- */

static compile_cache_key key_of(const device_model *model)
{
    char program[120];
    const device_samples *samples = samples_of(model);
    int bytes = snprintf(program, sizeof program, VERSION " of %016llx on %016llx",
                         (unsigned long long)model->model_key,
                         (unsigned long long)(samples != NULL ? samples->hash : 0));
    return compile_cache_make_key(&(compile_cache_identity){.program = program,
                                                            .program_bytes = (size_t)bytes,
                                                            .precision = "int8",
                                                            .device_kind = "",
                                                            .compiler = "",
                                                            .options = ""});
}

/* The vectors of all linear layers, one after the other: `at` 2 * number and the next. */
static const tensor *vector_of(const pjrt_calibration *c, int at)
{
    const quantise_channels *of = &c->channels[at / 2];
    return at % 2 == 0 ? of->factors : of->offsets;
}

static size_t bytes_of_channels(const pjrt_calibration *c)
{
    size_t bytes = 0;
    for (int i = 0; i < 2 * c->count; i++)
        bytes += vector_of(c, i) != NULL ? tensor_bytes(vector_of(c, i)) : 0;
    return bytes;
}

static void copy_channels(const pjrt_calibration *c, char *data, bool is_read)
{
    for (int i = 0; i < 2 * c->count; i++) {
        const tensor *t = vector_of(c, i);
        if (t == NULL)
            continue;
        memcpy(is_read ? t->data : data, is_read ? data : t->data, tensor_bytes(t));
        data += tensor_bytes(t);
    }
}

static void read_summary(pjrt_calibration *c, const char *summary)
{
    for (const char *line = summary; line != NULL; line = strchr(line, '\n')) {
        unsigned linears;
        device_accuracy a;
        line += *line == '\n';
        (void)sscanf(line, "largest_score %f", &c->score_most);
        if (sscanf(line, "accuracy %u %lf %lf", &linears, &a.mean, &a.lowest) != 3 ||
            linears >= KINDS)
            continue;
        c->accuracy[linears] = a;
        c->has_accuracy[linears] = true;
    }
}

static void read_cache(pjrt_calibration *c, const device_model *model, compile_cache *cache)
{
    compile_cache_entry entry;
    if (cache == NULL || model->model_key == 0)
        return;
    compile_cache_key key = key_of(model);
    if (!compile_cache_has(cache, &key) || compile_cache_get(cache, &key, &entry))
        return;
    if (entry.program_bytes == bytes_of_channels(c)) {
        copy_channels(c, entry.program, true);
        read_summary(c, entry.summary);
        c->is_measured = true;
    }
    compile_cache_entry_dispose(&entry);
}

static void write_cache(const pjrt_calibration *c, const device_model *model, compile_cache *cache)
{
    char summary[240 + 60 * KINDS], on[60];
    if (cache == NULL || model->model_key == 0)
        return;
    pjrt_calibration_describe(model, on, sizeof on);
    int n = snprintf(summary, sizeof summary,
                     "calibration_of %.80s\nmodel_key %016llx\non %s\nlargest_score %.9g\n",
                     model->name, (unsigned long long)model->model_key, on, (double)c->score_most);
    for (unsigned i = 0; i < KINDS; i++)
        if (c->has_accuracy[i])
            n += snprintf(summary + n, sizeof summary - (size_t)n, "accuracy %u %.17g %.17g\n", i,
                          c->accuracy[i].mean, c->accuracy[i].lowest);
    char *data = malloc(bytes_of_channels(c) + 1);
    assert(data != NULL);
    copy_channels(c, data, false);
    compile_cache_key key = key_of(model);
    compile_cache_entry entry = {data, bytes_of_channels(c), summary, (size_t)n};
    if (compile_cache_put(cache, &key, &entry))
        log_warning(ROOM, "%s", status_message());
    free(data);
}

bool pjrt_calibration_has_samples(const device_model *model)
{
    return samples_of(model) != NULL;
}

status pjrt_calibration_measure(pjrt_calibration *c, const device_model *model,
                                compile_cache *cache, unsigned linears, device_accuracy *reached)
{
    assert(linears < KINDS);
    status s = STATUS_OK;
    pthread_mutex_lock(&c->lock);
    if (!c->is_measured)
        read_cache(c, model, cache);
    if (!c->is_measured || !c->has_accuracy[linears]) {
        if (c->reference == NULL)
            s = run_reference(c, model);
        if (s == STATUS_OK)
            s = run_imitation(c, model, linears, &c->accuracy[linears]);
        if (s == STATUS_OK) {
            c->has_accuracy[linears] = true;
            write_cache(c, model, cache);
        }
    }
    if (s == STATUS_OK)
        *reached = c->accuracy[linears];
    pthread_mutex_unlock(&c->lock);
    return s;
}

status pjrt_calibration_measure_scores(pjrt_calibration *c, const device_model *model,
                                       compile_cache *cache, float *most)
{
    status s = STATUS_OK;
    pthread_mutex_lock(&c->lock);
    if (!c->is_measured)
        read_cache(c, model, cache);
    if (!c->is_measured) {
        s = run_reference(c, model);
        if (s == STATUS_OK)
            write_cache(c, model, cache);
    }
    if (s == STATUS_OK)
        *most = c->score_most;
    pthread_mutex_unlock(&c->lock);
    return s;
}
