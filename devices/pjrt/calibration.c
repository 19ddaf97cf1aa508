#include "devices/pjrt/calibration.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/pjrt/cpu_run.h"
#include "graph/quantise/smooth.h"

#define ROOM "devices"
#define KINDS 16 /* sets of linear layers; 0: all, by row */
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

quantise_channels *pjrt_calibration_select(const pjrt_calibration *c, unsigned linears)
{
    quantise_channels *channels = calloc((size_t)c->count + 1, sizeof *channels);
    assert(channels != NULL);
    for (int i = 0; i < c->count; i++)
        if (linears & (1u << i % ENCODER_LINEARS))
            channels[i] = c->channels[i];
    return channels;
}

void pjrt_calibration_describe(const device_model *model, char *text, size_t bytes)
{
    const device_samples *samples = pjrt_samples_of(model);
    snprintf(text, bytes, "%d %s", samples != NULL ? samples->count : DEVICE_SAMPLES_GENERATED,
             model->samples != NULL ? "warm-up"
             : samples != NULL      ? "text"
                                    : "generated");
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
    largest *= pjrt_samples_of(model) == NULL ? GENERATED_ROOM : 1;
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
    pjrt_cpu_run r;
    status s = pjrt_cpu_run_start(&r, model, &trial, &c->memory);
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
    pjrt_cpu_run_dispose(&r);
    return s;
}

/* --- accuracy --- */

static status run_imitation(pjrt_calibration *c, const device_model *model, unsigned linears,
                            device_accuracy *reached)
{
    quantise_channels *channels = pjrt_calibration_select(c, linears);
    const encoder_trial trial = {.is_by_row = linears == 0, .channels = channels};
    device_accuracy worst = {1, 1};
    arena memory = {0};
    pjrt_cpu_run r;
    status s = pjrt_cpu_run_start(&r, model, &trial, &memory);
    for (int i = 0; s == STATUS_OK && i < model->graph->output_count; i++) {
        worst =
            device_accuracy_worse(worst, pjrt_cpu_run_compare(&r, &c->reference[i], &r.outputs[i]));
    }
    if (s == STATUS_OK)
        *reached = worst;
    pjrt_cpu_run_dispose(&r);
    arena_dispose(&memory);
    free(channels);
    return s;
}

/* --- the compile cache --- */

static compile_cache_key key_of(const device_model *model)
{
    char program[120];
    const device_samples *samples = pjrt_samples_of(model);
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

/* Unless it is measured. */
static void read_cache(pjrt_calibration *c, const device_model *model, compile_cache *cache)
{
    compile_cache_entry entry;
    if (c->is_measured || cache == NULL || model->model_key == 0)
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
    return pjrt_samples_of(model) != NULL;
}

status pjrt_calibration_measure(pjrt_calibration *c, const device_model *model,
                                compile_cache *cache, unsigned linears, device_accuracy *reached)
{
    assert(linears < KINDS);
    status s = STATUS_OK;
    pthread_mutex_lock(&c->lock);
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
