#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io/cores.h"
#include "base/large_memory.h"
#include "base/log.h"
#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/encoder/encoder.h"
#include "devices/cpu/evaluate.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/plan/plan.h"
#include "devices/cpu/run_memory.h"
#include "devices/cpu/shape_plans.h"
#include "devices/cpu/threads/thread_pool.h"
#include "devices/device.h"

/* The CPU as a device. A recognised encoder is packed once and runs ragged at any shape: its
 * programs are handles. Any other model gets a plan for each bucket. A slot is a caller of the
 * thread pool, and each worker of the pool has a workspace. */

#define SLOTS_MAX 1024
#define REASON_BYTES 400
/* Up to so much is made in compile, for every slot; more when a slot first needs it. */
#define SMALL_WORKSPACE_BYTES ((size_t)1 << 20)
/* Of sizes that requests choose: what a slot keeps for the next one, and what need not be counted.
 */
#define KEPT_WORKSPACE_BYTES ((size_t)16 << 20)

/* What the programs of one model share, as long as one of them lives. */
typedef struct cpu_model {
    struct cpu_model *next;
    const graph *graph;
    device_precision precision;
    cpu_weights *weights;
    int programs;
    pthread_mutex_t lock; /* held while the encoder is recognised and packed */
    bool is_examined;
    cpu_encoder *encoder;      /* NULL: the model is none that we recognise, and then: */
    char reason[REASON_BYTES]; /* why not */
} cpu_model;

typedef struct cpu_device {
    device base;
    const kernels *kernels;
    char *cache_folder;
    pthread_mutex_t lock; /* of `models` */
    cpu_model *models;
    thread_pool *threads;
    pthread_mutex_t grow_lock; /* held while workspaces grow */
    void **workspaces;         /* by worker; changed under the worker's lock */
    _Atomic size_t *workspace_bytes;
    run_counter runs;
    cpu_dynamic_memory *dynamic_memory; /* by slot */
    cpu_encoder_layout *layouts;        /* by slot */
    _Atomic uint64_t compiles, cache_hits, executions, failures, busy_ns;
    /* Of encoders: the time their operations would take at the peak, and the time slots took. */
    _Atomic uint64_t ideal_ns, encoder_ns;
} cpu_device;

typedef struct cpu_program {
    device_program base;
    graph *specialised;
    cpu_plan *plan; /* NULL: the model's encoder, or the layout is DEVICE_WHOLE, and then: */
    cpu_shape_plans *shapes; /* NULL: `dynamic` */
    cpu_dynamic *dynamic;
    cpu_model *model;
} cpu_program;

static cpu_model *create_model(const graph *g, device_precision precision)
{
    cpu_model *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->graph = g;
    m->precision = precision;
    m->weights = cpu_weights_create(g);
    if (!m->weights) {
        free(m);
        return NULL;
    }
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static cpu_model *acquire_model(cpu_device *d, const graph *g, device_precision precision)
{
    pthread_mutex_lock(&d->lock);
    cpu_model *m = d->models;
    while (m && (m->graph != g || m->precision != precision))
        m = m->next;
    if (!m && (m = create_model(g, precision))) {
        m->next = d->models;
        d->models = m;
    }
    if (m)
        m->programs++;
    pthread_mutex_unlock(&d->lock);
    return m;
}

static void release_model(cpu_device *d, cpu_model *m)
{
    pthread_mutex_lock(&d->lock);
    bool is_last = --m->programs == 0;
    if (is_last) {
        cpu_model **at = &d->models;
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
    }
    pthread_mutex_unlock(&d->lock);
    if (is_last) {
        cpu_weights_release(m->weights);
        cpu_encoder_destroy(m->encoder);
        pthread_mutex_destroy(&m->lock);
        free(m);
    }
}

/* The samples decide the accuracy check, and so the packed weights. */
static uint64_t key_of(const device_model *model)
{
    return model->model_key == 0 || !model->samples ? model->model_key
                                                    : model->model_key ^ model->samples->hash;
}

/* Once per model: recognises an encoder and packs it. */
static status examine_model(cpu_device *d, cpu_model *m, const device_model *model)
{
    pthread_mutex_lock(&m->lock);
    status s = STATUS_OK;
    encoder found;
    if (m->is_examined)
        goto done;
    s = encoder_recognise(m->graph, model->budget, cpu_evaluate_node, &found);
    /* It does not accept the short rows of the recogniser's experiments: it is no encoder. */
    bool takes_long_rows_only = s == STATUS_INVALID_ARGUMENT;
    if (!s) {
        cpu_encoder_options options = {.kernels = d->kernels,
                                       .peaks = kernels_peaks_of(d->kernels),
                                       .precision = m->precision,
                                       .cache_folder = d->cache_folder,
                                       .model_key = key_of(model),
                                       .samples = model->samples,
                                       .graph = m->graph,
                                       .cancel = model->budget ? model->budget->cancel : NULL};
        s = cpu_encoder_create(&found, &options, &m->encoder);
    }
    /* The plan of a model that costs too much names the node and the bucket. */
    if (s == STATUS_UNSUPPORTED || s == STATUS_TOO_LARGE || takes_long_rows_only) {
        snprintf(m->reason, sizeof m->reason, "%s", status_message());
        s = STATUS_OK;
    }
    if (!s && m->encoder) {
        log_info("devices", "%s: %s", model->name, m->encoder->report);
        if (m->encoder->is_from_cache)
            atomic_fetch_add_explicit(&d->cache_hits, 1, memory_order_relaxed);
    }
    m->is_examined = !s;
done:
    pthread_mutex_unlock(&m->lock);
    return s;
}

/* Zeroed. */
static void *allocate_workspace(size_t bytes)
{
    void *memory = large_memory_allocate(bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

/* Makes the workspaces of workers first to end - 1 at least `bytes` large, and writes to them, so
 * that no later execution allocates or faults pages in. */
static status grow_workspaces(cpu_device *d, int first, int end, size_t bytes)
{
    status s = STATUS_OK;
    pthread_mutex_lock(&d->grow_lock);
    for (int i = first; !s && i < end; i++) {
        if (atomic_load_explicit(&d->workspace_bytes[i], memory_order_relaxed) >= bytes)
            continue;
        void *larger = allocate_workspace(bytes);
        if (!larger) {
            s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a workspace of %zu bytes", bytes);
            break;
        }
        thread_pool_lock_worker(d->threads, i);
        void *old = d->workspaces[i];
        d->workspaces[i] = larger;
        atomic_store_explicit(&d->workspace_bytes[i], bytes, memory_order_relaxed);
        thread_pool_unlock_worker(d->threads, i);
        free(old);
    }
    pthread_mutex_unlock(&d->grow_lock);
    return s;
}

static void cpu_release(device *base, device_program *program)
{
    cpu_program *p = (cpu_program *)program;
    if (!p)
        return;
    cpu_plan_destroy(p->plan);
    cpu_shape_plans_destroy(p->shapes);
    cpu_dynamic_destroy(p->dynamic);
    graph_destroy(p->specialised);
    if (p->model)
        release_model((cpu_device *)base, p->model);
    free(p);
}

static status compile_encoder(cpu_device *d, cpu_program *p)
{
    const cpu_encoder *e = p->model->encoder;
    int64_t length = p->base.bucket.sequence;
    if (length < 1 || (size_t)length > e->length_max)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "rows of %lld tokens; the model takes up to %zu", (long long)length,
                           e->length_max);
    p->base.layout = DEVICE_RAGGED;
    p->base.cost.operations =
        (int64_t)((double)p->base.bucket.batch * cpu_encoder_operations(e, (double)length));
    return grow_workspaces(d, 0, thread_pool_workers(d->threads),
                           cpu_encoder_workspace_bytes(e, (size_t)length));
}

/* Prepares no program that would cost more than the model may. */
static status check_cost(const graph *specialised, const device_model *model, device_bucket bucket,
                         graph_spent *cost)
{
    status s = graph_cost_measure(specialised, model->budget, cost);
    if (s != STATUS_TOO_LARGE)
        return s;
    return bucket.sequence > 0 ? status_prefix(s, "batches of %lld rows of %lld tokens",
                                               (long long)bucket.batch, (long long)bucket.sequence)
                               : status_prefix(s, "batches of %lld rows", (long long)bucket.batch);
}

static void use_cache(const cpu_device *d, const cpu_model *m, const device_model *model)
{
    cpu_weights_use_cache(m->weights, d->kernels, d->cache_folder, model->model_key);
}

static status compile_plan(cpu_device *d, cpu_program *p, const device_model *model)
{
    const graph *g = p->model->graph;
    device_bucket bucket = p->base.bucket;
    use_cache(d, p->model, model);
    tensor *inputs = calloc((size_t)g->input_count + 1, sizeof *inputs);
    if (!inputs)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program");
    status s = graph_bind(g, bucket.batch, bucket.sequence, inputs);
    if (!s)
        s = graph_specialise(g, &(graph_binding){inputs, model->budget}, cpu_evaluate_node,
                             &p->specialised);
    free(inputs);
    if (!s)
        s = check_cost(p->specialised, model, bucket, &p->base.cost);
    if (!s)
        s = cpu_plan_create_for(p->specialised, d->kernels, p->model->weights, d->base.slots,
                                &p->plan);
    if (!s && cpu_plan_workspace_bytes(p->plan) <= SMALL_WORKSPACE_BYTES)
        s = grow_workspaces(d, 0, d->base.slots, cpu_plan_workspace_bytes(p->plan));
    return s;
}

/* Where requests choose sizes: no more than there is for all of them. */
static graph_budget budget_of_runs(const cpu_device *d, const device_model *model)
{
    graph_budget budget = model->budget ? *model->budget : graph_budget_default;
    budget.activation_bytes_max = run_counter_bytes_max(&d->runs, budget.activation_bytes_max);
    return budget;
}

/* Nothing is made beforehand: shapes are known when a request is there. */
static status compile_whole(const cpu_device *d, cpu_program *p, const device_model *model)
{
    p->base.layout = DEVICE_WHOLE;
    use_cache(d, p->model, model);
    if (!p->model->graph->is_dynamic) {
        graph_budget of_runs = budget_of_runs(d, model);
        p->shapes = cpu_shape_plans_create(p->model->graph, d->kernels, p->model->weights, &of_runs,
                                           d->base.slots);
        return p->shapes ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program");
    }
    const graph_budget of_runs = budget_of_runs(d, model);
    return cpu_dynamic_create(&(cpu_dynamic_options){.graph = p->model->graph,
                                                     .kernels = d->kernels,
                                                     .weights = p->model->weights,
                                                     .budget = &of_runs,
                                                     .threads = d->base.slots,
                                                     .evaluate = cpu_evaluate_node},
                              &p->dynamic);
}

static status run_dynamic(cpu_device *d, const cpu_program *p, int slot, const cpu_team *team,
                          const device_batch *batch)
{
    assert(batch->results);
    cpu_dynamic_memory *memory = &d->dynamic_memory[slot];
    status s = cpu_dynamic_run(
        p->dynamic, batch->inputs, batch->outputs, batch->results,
        &(cpu_dynamic_caller){.memory = memory, .team = team, .cancel = batch->cancel});
    cpu_dynamic_memory_trim(memory, KEPT_WORKSPACE_BYTES);
    return s;
}

static status cpu_compile(device *base, const device_model *model, device_bucket bucket,
                          device_program **out)
{
    cpu_device *d = (cpu_device *)base;
    if (model->exported != NULL)
        return status_fail(STATUS_UNSUPPORTED, "the CPU does not run StableHLO programs");
    cpu_program *p = calloc(1, sizeof *p);
    status s;
    if (!p || !(p->model = acquire_model(d, model->graph, model->precision))) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a program");
        goto fail;
    }
    p->base = (device_program){.layout = DEVICE_PADDED, .bucket = bucket};
    if (model->is_whole || model->graph->is_dynamic)
        s = compile_whole(d, p, model);
    else if (!(s = examine_model(d, p->model, model)))
        s = p->model->encoder ? compile_encoder(d, p) : compile_plan(d, p, model);
    if (s)
        goto fail;
    if (p->model->encoder != NULL && p->model->encoder->is_from_cache)
        p->base.origin = DEVICE_FROM_CACHE;
    else
        atomic_fetch_add_explicit(&d->compiles, 1, memory_order_relaxed);
    *out = &p->base;
    return STATUS_OK;
fail:
    if (p)
        cpu_release(base, &p->base);
    return s;
}

static status run_encoder(cpu_device *d, const cpu_program *p, int slot, int idle_cores,
                          const device_batch *batch)
{
    const cpu_encoder *e = p->model->encoder;
    double operations = 0;
    uint64_t start_ns = clock_now_ns();
    cpu_encoder_runner runner = {.threads = d->threads,
                                 .caller = slot,
                                 .workspaces = d->workspaces,
                                 .workspace_length = (size_t)p->base.bucket.sequence,
                                 .layout = &d->layouts[slot]};
    status s =
        cpu_encoder_run(e, &runner, idle_cores, batch->segments, batch->segment_count, &operations);
    atomic_fetch_add_explicit(&d->encoder_ns, clock_now_ns() - start_ns, memory_order_relaxed);
    if (e->peak > 0)
        atomic_fetch_add_explicit(&d->ideal_ns, (uint64_t)(operations / e->peak * 1e9),
                                  memory_order_relaxed);
    return s;
}

/* A large workspace grows when the slot's first batch needs it: slots, buckets and shapes that
 * nobody uses take no memory. By the thread that holds the slot, outside begin and end: nothing
 * runs on it. */
static status reserve_workspace(cpu_device *d, const cpu_plan *plan, int slot)
{
    size_t bytes = cpu_plan_workspace_bytes(plan);
    if (atomic_load_explicit(&d->workspace_bytes[slot], memory_order_relaxed) >= bytes)
        return STATUS_OK;
    return grow_workspaces(d, slot, slot + 1, bytes);
}

/* Large workspaces are the run's own, and are given back with it: slots keep what many requests
 * need. STATUS_OUT_OF_MEMORY: there is no room now. */
static status reserve_run(cpu_device *d, const cpu_shape_plan *shape, int slot,
                          const cancel_token *cancel, run_memory *m)
{
    size_t bytes = cpu_plan_workspace_bytes(shape->plan);
    bool is_own = bytes > KEPT_WORKSPACE_BYTES &&
                  bytes > atomic_load_explicit(&d->workspace_bytes[slot], memory_order_relaxed);
    size_t counted = (is_own ? bytes : 0) + cpu_shape_plan_output_bytes(shape);
    status s =
        counted > KEPT_WORKSPACE_BYTES ? run_memory_count(m, &d->runs, counted, cancel) : STATUS_OK;
    if (s)
        return s;
    return is_own ? run_memory_allocate(m, bytes) : reserve_workspace(d, shape->plan, slot);
}

/* The plan for the shapes of that batch, and its outputs. */
static status find_shape(cpu_device *d, const cpu_program *p, int slot, const device_batch *batch,
                         cpu_shape_plan **out, run_memory *m)
{
    bool is_new;
    status s = cpu_shape_plans_acquire(p->shapes, batch->inputs, out, &is_new);
    if (s)
        return s;
    if (is_new)
        atomic_fetch_add_explicit(&d->compiles, 1, memory_order_relaxed);
    s = reserve_run(d, *out, slot, batch->cancel, m);
    if (!s)
        s = cpu_shape_plan_allocate(*out, batch->outputs, batch->results);
    if (s) {
        run_memory_free(m, &d->runs);
        cpu_shape_plans_release(p->shapes, *out);
        *out = NULL;
    }
    return s;
}

static status cpu_execute(device *base, device_program *program, int slot,
                          const device_batch *batch)
{
    cpu_device *d = (cpu_device *)base;
    const cpu_program *p = (const cpu_program *)program;
    assert(slot >= 0 && slot < base->slots);
    uint64_t start_ns = clock_now_ns();
    cpu_shape_plan *shape = NULL;
    run_memory own = {0};
    kernels_prepare_thread();
    status s = p->shapes ? find_shape(d, p, slot, batch, &shape, &own) : STATUS_OK;
    const cpu_plan *plan = shape ? shape->plan : p->plan;
    if (!s && p->plan)
        s = reserve_workspace(d, plan, slot);
    if (!s) {
        int idle_cores = thread_pool_begin(d->threads, slot);
        const cpu_team team = {d->threads, slot, d->base.slots, idle_cores + 1};
        if (plan)
            s = cpu_plan_run_with(plan, batch->inputs, batch->outputs,
                                  own.workspace ? own.workspace : d->workspaces[slot],
                                  idle_cores > 0 ? &team : NULL, batch->cancel);
        else if (p->base.layout == DEVICE_WHOLE)
            s = run_dynamic(d, p, slot, idle_cores > 0 ? &team : NULL, batch);
        else
            s = run_encoder(d, p, slot, idle_cores, batch);
        thread_pool_end(d->threads, slot);
    }
    run_memory_free(&own, &d->runs);
    if (shape)
        cpu_shape_plans_release(p->shapes, shape);
    atomic_fetch_add_explicit(&d->executions, 1, memory_order_relaxed);
    if (s)
        atomic_fetch_add_explicit(&d->failures, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&d->busy_ns, clock_now_ns() - start_ns, memory_order_relaxed);
    return s;
}

static void cpu_describe(device *base, device_status *out)
{
    cpu_device *d = (cpu_device *)base;
    *out = (device_status){
        .state = DEVICE_HEALTHY,
        .compiles = atomic_load_explicit(&d->compiles, memory_order_relaxed),
        .cache_hits = atomic_load_explicit(&d->cache_hits, memory_order_relaxed),
        .executions = atomic_load_explicit(&d->executions, memory_order_relaxed),
        .failures = atomic_load_explicit(&d->failures, memory_order_relaxed),
        .busy_ns = atomic_load_explicit(&d->busy_ns, memory_order_relaxed),
    };
    uint64_t cores_ns = atomic_load_explicit(&d->encoder_ns, memory_order_relaxed) +
                        thread_pool_helper_ns(d->threads);
    double ideal_ns = (double)atomic_load_explicit(&d->ideal_ns, memory_order_relaxed);
    out->peak_seconds = ideal_ns / 1e9;
    if (cores_ns > 0)
        out->utilisation_of_peak = ideal_ns / (double)cores_ns;
    snprintf(out->detail, sizeof out->detail, "%d slots, kernels up to %s", base->slots,
             kernels_level_name(d->kernels->level));
}

/* Whether an input may hold token ids, [batch, length]. */
static bool takes_tokens(const graph *g)
{
    for (int i = 0; i < g->input_count; i++) {
        const graph_value *v = &g->values[g->inputs[i]];
        if (dtype_is_integer(v->dtype) && v->shape.rank == 2)
            return true;
    }
    return false;
}

/* Whether layers run in int8, which the model's own quantisation asks for. */
static bool has_int8_layers(const cpu_plan *plan)
{
    cpu_plan_facts facts;
    cpu_plan_describe(plan, &facts);
    return facts.quantised_layer_count > 0;
}

static void cpu_explain(device *base, const device_program *program, char *text, size_t bytes)
{
    (void)base;
    const cpu_program *p = (const cpu_program *)program;
    bool is_asked = takes_tokens(p->model->graph) && /* whether it is an encoder */
                    strstr(p->model->reason, ENCODER_WITHOUT_NORM) == NULL;
    if (p->shapes)
        snprintf(text, bytes, "runs as a plan per shape, in fp32; the last %d shapes are kept",
                 CPU_SHAPE_PLANS_MAX);
    else if (p->base.layout == DEVICE_WHOLE)
        snprintf(text, bytes,
                 "runs node by node where shapes depend on values, else as plans, in fp32");
    else if (!p->plan)
        snprintf(text, bytes, "%s", p->model->encoder->report);
    else
        snprintf(text, bytes, "runs as a plan, in fp32%s%s%s%s%s",
                 has_int8_layers(p->plan) ? " and int8" : "",
                 p->model->precision == DEVICE_FP32 ? "" : " instead of ",
                 p->model->precision == DEVICE_FP32 ? ""
                                                    : device_precision_names[p->model->precision],
                 is_asked ? "; not as an encoder: " : "", is_asked ? p->model->reason : "");
}

static void cpu_keep(device *base, const device_program *program)
{
    (void)base;
    cpu_weights_keep(((const cpu_program *)program)->model->weights);
}

static void cpu_destroy(device *base)
{
    cpu_device *d = (cpu_device *)base;
    assert(!d->models); /* programs are released before their device */
    int workers = d->threads ? thread_pool_workers(d->threads) : 0;
    thread_pool_destroy(d->threads);
    for (int i = 0; d->workspaces && i < workers; i++)
        free(d->workspaces[i]);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->grow_lock);
    run_counter_dispose(&d->runs);
    for (int i = 0; d->dynamic_memory && i < d->base.slots; i++)
        cpu_dynamic_memory_trim(&d->dynamic_memory[i], 0);
    free(d->dynamic_memory);
    free(d->workspaces);
    free(d->workspace_bytes);
    free(d->layouts);
    free(d->cache_folder);
    free(d);
}

static const device_interface cpu_interface = {
    .compile = cpu_compile,
    .release = cpu_release,
    .execute = cpu_execute,
    .describe = cpu_describe,
    .explain = cpu_explain,
    .keep = cpu_keep,
    .destroy = cpu_destroy,
};

status device_cpu_create_with(const device_cpu_options *options, device **out)
{
    int threads = options->threads;
    if (threads < 0 || threads > SLOTS_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d CPU threads; the limit is %d", threads,
                           SLOTS_MAX);
    const kernels *table;
    status s = kernels_select(options->level, &table);
    if (s)
        return s;
    cpu_device *d = calloc(1, sizeof *d);
    int slots = threads ? threads : cores_there_are();
    if (!d)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a device");
    d->base = (device){.interface = &cpu_interface, .name = "cpu", .kind = "cpu", .slots = slots};
    d->kernels = table;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->grow_lock, NULL);
    run_counter_init(&d->runs, options->memory);
    s = thread_pool_create(slots, slots, &d->threads);
    if (s)
        goto fail;
    size_t workers = (size_t)thread_pool_workers(d->threads);
    d->workspaces = calloc(workers, sizeof *d->workspaces);
    d->workspace_bytes = calloc(workers, sizeof *d->workspace_bytes);
    d->layouts = calloc((size_t)slots, sizeof *d->layouts);
    d->dynamic_memory = calloc((size_t)slots, sizeof *d->dynamic_memory);
    if (options->cache_folder)
        d->cache_folder = strdup(options->cache_folder);
    if (!d->workspaces || !d->workspace_bytes || !d->layouts || !d->dynamic_memory ||
        (options->cache_folder && !d->cache_folder)) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d slots", slots);
        goto fail;
    }
    *out = &d->base;
    return STATUS_OK;
fail:
    cpu_destroy(&d->base);
    return s;
}

status device_cpu_create(int threads, const char *level, device **out)
{
    return device_cpu_create_with(&(device_cpu_options){.threads = threads, .level = level}, out);
}
