#include "models/loading/warm_up.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "models/batching/packed_buckets.h"
#include "models/batching/probe.h"
#include "models/latency.h"
#include "models/start/deferred_buckets.h"
#include "models/start/late_programs.h"
#include "models/start/start_budget.h"
#include "models/whole/whole.h"

/* A compiler uses at least one core for each program; more at once only cost memory. */
#define THREADS_MAX 4
#define DEVICES_MAX 256
#define RAGGED_LENGTH 128 /* tokens of the longer of the two ragged rows that are run */
/* A device that fails during warm-up is asked again after its restart. */
#define TRIES_MAX 3
#define LOG_EVERY_NS UINT64_C(2000000000)

typedef struct warming {
    model *m;
    void (*report)(void *context, const char *text);
    void *context;
    pthread_mutex_t mutex; /* guards what follows, and is held during report() */
    int begun;             /* buckets */
    uint64_t logged_ns;
    atomic_bool is_refused[DEVICES_MAX]; /* the device cannot run this model at all */
    atomic_bool is_full[DEVICES_MAX]; /* it has no memory for all of the model: it runs nothing */
    /* Where model->fits: no device had memory for the bucket when it was compiled. */
    atomic_bool is_short[MODEL_BUCKETS_MAX];
    status failure; /* the first that ends the load */
    char error[STATUS_MESSAGE_BYTES_MAX];
    /* Programs of the devices before the CPU, by bucket and device: compiled or loaded before any
     * is executed, and held until all have run. NULL: there is no such device. */
    device_program **held;
} warming;

/* A ragged program is the same for every bucket, its memory is touched when it is compiled, and the
 * probe has run its longest row. So only the shortest row and one of at most RAGGED_LENGTH tokens
 * are run: their times seed the estimates of the others. */
static bool must_execute(const model *m, const model_bucket *b, const device_program *program)
{
    if (program->layout != DEVICE_RAGGED)
        return true;
    int64_t medium = m->buckets[0].shape.sequence;
    for (int i = 0; i < m->sequence_bucket_count; i++)
        if (m->sequence_buckets[i] <= RAGGED_LENGTH && m->sequence_buckets[i] > medium)
            medium = m->sequence_buckets[i];
    return b->shape.batch == m->buckets[0].shape.batch &&
           (b->shape.sequence == m->buckets[0].shape.sequence || b->shape.sequence == medium);
}

static const device_model *model_of_bucket(const model *m, const model_bucket *b)
{
    return b->sequences > 0 ? &m->on_packed : &m->on_device;
}

/* Executes twice, and seeds the latency table with the second time: the first execution paid for
 * page faults and cold caches. Once, or not at all, where the start has not that much left. */
static status execute(const model *m, const model_bucket *b, int device_index,
                      device_program *program, const tensor *inputs, tensor *outputs)
{
    int64_t length = b->shape.sequence > 0 ? b->shape.sequence : 1;
    latency_work done = {b->shape.batch, b->shape.batch * length, b->shape.batch * length * length};
    uint64_t start_ns = 0, end_ns = 0;
    for (int i = 0; i < 2 && start_budget_allows_execution(m->start, program->cost.operations);
         i++) {
        uint64_t now_ns = clock_now_ns();
        status failure = probe_execute(m, m->devices[device_index], program, inputs, outputs);
        if (failure && i == 0)
            return failure;
        if (failure)
            break;
        start_ns = now_ns;
        end_ns = clock_now_ns();
    }
    if (m->latency != NULL && end_ns > 0)
        latency_observe(m->latency, device_index, (int)(b - m->buckets), done, end_ns - start_ns,
                        end_ns);
    return STATUS_OK;
}

static void count_program(const model *m, model_compile_phase phase, device_origin origin)
{
    if (origin == DEVICE_MADE)
        atomic_fetch_add_explicit(&m->counters->compiles[phase], 1, memory_order_relaxed);
    else if (origin == DEVICE_FROM_CACHE)
        atomic_fetch_add_explicit(&m->counters->cache_loads, 1, memory_order_relaxed);
}

static status warm_once(const model *m, const model_bucket *b, int device_index,
                        model_compile_phase phase, const tensor *inputs, tensor *outputs,
                        device_program **out)
{
    device *d = m->devices[device_index];
    device_program *program;
    device_model of = *model_of_bucket(m, b);
    of.serving_compiles = NULL; /* nobody waits for this one */
    status failure = d->interface->compile(d, &of, b->shape, &program);
    if (failure)
        return failure;
    count_program(m, phase, program->origin);
    if (must_execute(m, b, program))
        failure = execute(m, b, device_index, program, inputs, outputs);
    if (failure)
        d->interface->release(d, program);
    else
        *out = program;
    return failure;
}

static status warm(model *m, model_bucket *b, int device_index, const tensor *inputs,
                   tensor *outputs)
{
    status failure = STATUS_OK;
    for (int i = 0; i < TRIES_MAX; i++) {
        failure = warm_once(m, b, device_index, MODEL_COMPILE_WARM_UP, inputs, outputs,
                            &b->programs[device_index]);
        if (failure != STATUS_UNAVAILABLE || device_index == m->device_count - 1)
            break;
    }
    return failure;
}

/* A device other than the CPU may do without a program: STATUS_OK and a warning. Not when it may
 * not compile (--cache-only: STATUS_NOT_FOUND). */
static status allow_missing_program(warming *w, const model_bucket *b, int device_index,
                                    status failure)
{
    model *m = w->m;
    const char *name = m->devices[device_index]->name;
    if (device_index == m->device_count - 1 || failure == STATUS_NOT_FOUND ||
        cancel_is_end(failure))
        return failure;
    bool is_full = failure == STATUS_RESOURCE_EXHAUSTED && !m->fits;
    if (is_full) {
        atomic_store(&w->is_full[device_index], true);
        failure = STATUS_UNSUPPORTED;
    }
    if (failure == STATUS_UNSUPPORTED && !atomic_exchange(&w->is_refused[device_index], true))
        log_warning("models", "%s does not run on device %s: %s", m->name, name, status_message());
    else if (failure != STATUS_UNSUPPORTED)
        log_warning("models", "%s: bucket %lldx%lld does not run on device %s: %s", m->name,
                    (long long)b->shape.batch, (long long)b->shape.sequence, name,
                    status_message());
    return STATUS_OK;
}

/* In each packed row one sequence, as long as the row. */
static status make_packed_tensors(const model *m, const model_bucket *b, arena *a, tensor *inputs,
                                  tensor *outputs)
{
    status failure = probe_make_inputs(m, b->shape, 1, a, inputs);
    for (int i = m->input_count; i < packed_buckets_input_count(m) && !failure; i++) {
        tensor t;
        packed_buckets_describe(m, b, false, i, &t);
        failure = tensor_allocate(&inputs[i], a, t.dtype, t.rank, t.dims);
        if (!failure)
            memset(inputs[i].data, 0, tensor_bytes(&t));
    }
    for (int i = 0; i < m->output_count && !failure; i++) {
        tensor t;
        packed_buckets_describe(m, b, true, i, &t);
        failure = tensor_allocate(&outputs[i], a, t.dtype, t.rank, t.dims);
    }
    for (int row = 0; row < b->shape.batch && !failure; row++)
        packed_buckets_mark(m, inputs, row, row, 0, b->shape.sequence);
    return failure;
}

static status make_tensors(const model *m, const model_bucket *b, arena *a, tensor *inputs,
                           tensor *outputs)
{
    if (b->sequences > 0)
        return make_packed_tensors(m, b, a, inputs, outputs);
    status failure = probe_make_inputs(m, b->shape, 1, a, inputs);
    return failure ? failure : probe_make_outputs(m, b->shape, a, outputs);
}

/* Whether the model can be ready without a bucket: where its execution costs too much for the
 * start, or needs too much memory, until traffic wants it; and where an earlier start has made and
 * run it here, until right after ready. Estimated from the smallest bucket of that length, which is
 * always made: batches use it, and warm_up_make_wanted() makes the others. Encoders have one
 * program for all. */
static deferred_state choose_state(const model *m, const model_bucket *b)
{
    const model_bucket *least = b;
    while (least > m->buckets && least[-1].shape.sequence == b->shape.sequence)
        least--;
    const device_program *program = least->programs[m->device_count - 1];
    if (m->start == NULL || b == least || program == NULL || program->layout != DEVICE_PADDED)
        return DEFERRED_NOT;
    int64_t times = (b->shape.batch + least->shape.batch - 1) / least->shape.batch, sum = 0;
    for (int64_t i = 0; i < times; i++)
        sum = graph_cost_add(sum, program->cost.operations);
    if (program->cost.bytes > START_ACTIVATION_BYTES / times || !start_budget_allows(m->start, sum))
        return DEFERRED_PENDING;
    return m->start->is_known ? DEFERRED_WANTED : DEFERRED_NOT;
}

static status defer(model *m, const model_bucket *b, deferred_state state)
{
    if (m->deferred == NULL && (m->deferred = deferred_buckets_create()) == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    atomic_store(&m->deferred->states[b - m->buckets], state);
    return STATUS_OK;
}

static status warm_bucket(warming *w, model_bucket *b, arena *a)
{
    model *m = w->m;
    tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    deferred_state state = choose_state(m, b);
    if (state != DEFERRED_NOT)
        return defer(m, b, state);
    arena_reset(a, SIZE_MAX);
    status failure = make_tensors(m, b, a, inputs, outputs);
    /* The CPU needs no packed buckets and runs no exported programs. */
    bool is_exported = m->on_device.exported != NULL, has_any = false;
    int count = b->sequences > 0 || is_exported ? m->device_count - 1 : m->device_count;
    status refusal = STATUS_UNAVAILABLE;
    char why[STATUS_MESSAGE_BYTES_MAX] = "there is no PJRT device";
    for (int d = 0; d < count && !failure; d++) {
        if (atomic_load(&w->is_refused[d]) || device_is_absent(m->devices[d]))
            continue;
        failure = warm(m, b, d, inputs, outputs);
        has_any |= !failure;
        if (failure) {
            refusal = failure;
            snprintf(why, sizeof why, "%s", status_message());
            failure = allow_missing_program(w, b, d, failure);
        }
    }
    /* No other device can run it. */
    if (is_exported && !has_any && !failure)
        failure = status_fail(refusal, "bucket %lldx%lld: %s", (long long)b->shape.batch,
                              (long long)b->shape.sequence, why);
    return failure;
}

/* Under the mutex: the first failure ends the load. */
static void note_failure(warming *w, status failure)
{
    if (w->failure)
        return;
    w->failure = failure;
    snprintf(w->error, sizeof w->error, "%s", status_message());
}

/* The next bucket, or -1. With several threads the largest comes first: it takes longest, and the
 * other threads do the small ones meanwhile. None is begun after the load was cancelled. */
static int next_bucket(warming *w, bool is_parallel)
{
    const model *m = w->m;
    int next = -1;
    status end = cancel_check(m->budget.cancel);
    pthread_mutex_lock(&w->mutex);
    if (end)
        note_failure(w, end);
    if (!w->failure && w->begun < m->bucket_count) {
        next = is_parallel ? m->bucket_count - 1 - w->begun : w->begun;
        w->begun++;
        char text[200];
        snprintf(text, sizeof text, "%s: warming bucket %d of %d", m->name, w->begun,
                 m->bucket_count);
        w->report(w->context, text);
        uint64_t now_ns = clock_now_ns();
        if (now_ns - w->logged_ns > LOG_EVERY_NS) {
            w->logged_ns = now_ns;
            log_info("models", "%s", text);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return next;
}

/* Compiles all programs before any is executed, so that compilations do not disturb the measured
 * times. What fails here is tried again, and reported, before its execution; but a device that is
 * full is told now, before it computes anything. */
static void *compile_some(void *context)
{
    warming *w = context;
    const model *m = w->m;
    int others = m->device_count - 1;
    for (int i; (i = next_bucket(w, true)) >= 0;)
        for (int d = 0; d < others; d++) {
            const model_bucket *b = &m->buckets[i];
            if (device_is_absent(m->devices[d]) || atomic_load(&w->is_refused[d]))
                continue;
            status failure = m->devices[d]->interface->compile(m->devices[d], model_of_bucket(m, b),
                                                               b->shape, &w->held[i * others + d]);
            if (failure == STATUS_RESOURCE_EXHAUSTED && m->fits)
                atomic_store(&w->is_short[i], true);
            if (failure == STATUS_RESOURCE_EXHAUSTED && !m->fits)
                failure = allow_missing_program(w, b, d, failure);
            else if (failure)
                break;
        }
    return NULL;
}

static int64_t tokens_of(const model_bucket *b)
{
    return b->shape.batch * (b->shape.sequence > 0 ? b->shape.sequence : 1);
}

/* Lets go of the largest bucket that is loaded and larger than that one. False: there is none. */
static bool release_larger(warming *w, int than)
{
    const model *m = w->m;
    int others = m->device_count - 1, largest = than;
    for (int i = 0; i < m->bucket_count; i++)
        if (w->held[i * others] != NULL &&
            tokens_of(&m->buckets[i]) > tokens_of(&m->buckets[largest]))
            largest = i;
    for (int d = 0; d < others && largest != than; d++) {
        device_program **held = &w->held[largest * others + d];
        if (*held != NULL)
            m->devices[d]->interface->release(m->devices[d], *held);
        *held = NULL;
    }
    return largest != than;
}

/* False: for want of memory. */
static bool hold_bucket(warming *w, int bucket)
{
    const model *m = w->m;
    const model_bucket *b = &m->buckets[bucket];
    int others = m->device_count - 1;
    status failure = STATUS_OK;
    for (int d = 0; d < others && !failure; d++)
        if (!device_is_absent(m->devices[d]) && w->held[bucket * others + d] == NULL)
            failure = m->devices[d]->interface->compile(m->devices[d], model_of_bucket(m, b),
                                                        b->shape, &w->held[bucket * others + d]);
    return failure != STATUS_RESOURCE_EXHAUSTED;
}

/* Several threads load buckets in any order: the smaller ones get the memory. The larger ones are
 * tried again with their execution, and reported. */
static void make_room(warming *w)
{
    for (int i = 0; i < w->m->bucket_count; i++)
        if (atomic_load(&w->is_short[i]))
            while (release_larger(w, i) && !hold_bucket(w, i))
                continue;
}

static void release_held(warming *w)
{
    int others = w->m->device_count - 1;
    for (int i = 0; w->held != NULL && i < w->m->bucket_count * others; i++)
        if (w->held[i] != NULL)
            w->m->devices[i % others]->interface->release(w->m->devices[i % others], w->held[i]);
    free(w->held);
}

static int start_threads(warming *w, void *(*body)(void *), pthread_t *threads, int count)
{
    int started = 0;
    while (started < count && pthread_create(&threads[started], NULL, body, w) == 0)
        started++;
    return started;
}

static void compile_all(warming *w)
{
    model *m = w->m;
    pthread_t threads[THREADS_MAX];
    uint64_t start_ns = clock_now_ns();
    w->held = calloc((size_t)m->bucket_count * (size_t)(m->device_count - 1), sizeof *w->held);
    if (w->held == NULL)
        return; /* each is then compiled before its execution */
    int count = start_threads(w, compile_some, threads, THREADS_MAX - 1);
    compile_some(w);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    make_room(w);
    log_info("models",
             "%s: %d programs compiled or loaded in %.0f ms; executing each on each device",
             m->name, m->bucket_count, (double)(clock_now_ns() - start_ns) / 1e6);
    w->begun = 0;
}

static void warm_buckets(warming *w, bool is_parallel)
{
    arena a = {0};
    for (int i; (i = next_bucket(w, is_parallel)) >= 0;) {
        status failure = warm_bucket(w, &w->m->buckets[i], &a);
        pthread_mutex_lock(&w->mutex);
        if (failure)
            note_failure(w, failure);
        pthread_mutex_unlock(&w->mutex);
    }
    arena_dispose(&a);
}

static void *warm_on_thread(void *context)
{
    warm_buckets(context, true);
    return NULL;
}

/* What was made before the memory of a device was found to be too small. */
static void drop_full(warming *w)
{
    model *m = w->m;
    for (int i = 0; i < m->bucket_count; i++)
        for (int d = 0; d + 1 < m->device_count && m->buckets[i].programs; d++) {
            device_program **program = &m->buckets[i].programs[d];
            if (!atomic_load(&w->is_full[d]) || *program == NULL)
                continue;
            m->devices[d]->interface->release(m->devices[d], *program);
            *program = NULL;
        }
}

static bool has_absent(const model *m)
{
    for (int d = 0; d < m->device_count; d++)
        if (device_is_absent(m->devices[d]))
            return true;
    return false;
}

status warm_up_model(model *m, void (*report)(void *context, const char *text), void *context)
{
    uint64_t start_ns = clock_now_ns();
    warming w = {.m = m, .report = report, .context = context, .logged_ns = start_ns};
    assert(m->device_count <= DEVICES_MAX);
    if (has_absent(m) && (m->late = late_programs_create(m)) == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a model");
    pthread_mutex_init(&w.mutex, NULL);
    /* Our own CPU's programs take milliseconds. */
    int wanted = m->device_count == 1 ? 1 : m->bucket_count;
    pthread_t others[THREADS_MAX];
    if (m->device_count > 1 && m->bucket_count > 0)
        compile_all(&w);
    int count = start_threads(&w, warm_on_thread, others,
                              wanted < THREADS_MAX ? wanted - 1 : THREADS_MAX - 1);
    warm_buckets(&w, wanted > 1);
    for (int i = 0; i < count; i++)
        pthread_join(others[i], NULL);
    release_held(&w);
    drop_full(&w);
    pthread_mutex_destroy(&w.mutex);
    m->warm_up_ns = clock_now_ns() - start_ns;
    if (w.failure)
        return status_fail(w.failure, "%s", w.error);
    /* From here on a compilation is counted as an error. */
    m->on_device.serving_compiles = &m->counters->compiles[MODEL_COMPILE_SERVING];
    m->on_packed.serving_compiles = m->on_device.serving_compiles;
    return STATUS_OK;
}

bool warm_up_make_wanted(const model *m)
{
    if (m->deferred != NULL && atomic_exchange(&m->deferred->wants_run, false)) {
        if (whole_run(m) != STATUS_OK)
            log_warning("models", "%s: %s", m->name, status_message());
        return true;
    }
    int bucket = deferred_buckets_next(m);
    if (bucket < 0)
        return false;
    const model_bucket *b = &m->buckets[bucket];
    tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    device_program *program = NULL;
    arena a = {0};
    uint64_t start_ns = clock_now_ns();
    status failure = make_tensors(m, b, &a, inputs, outputs);
    if (!failure)
        failure =
            warm_once(m, b, m->device_count - 1, MODEL_COMPILE_DEFERRED, inputs, outputs, &program);
    arena_dispose(&a);
    deferred_buckets_finish(m, bucket, program);
    double took_ms = (double)(clock_now_ns() - start_ns) / 1e6;
    long long rows = b->shape.batch, tokens = b->shape.sequence;
    if (failure)
        log_warning("models", "%s: bucket %lldx%lld is wanted, and cannot be made: %s", m->name,
                    rows, tokens, status_message());
    else
        log_info("models", "%s: bucket %lldx%lld: made after ready, in %.0f ms", m->name, rows,
                 tokens, took_ms);
    return true;
}

/* --- devices that came later --- */

typedef struct joining {
    const model *m;
    const cancel_token *cancel;
    int first, end;      /* devices */
    _Atomic int begun;   /* buckets */
    _Atomic int made;    /* programs */
    atomic_bool is_full; /* a device has no memory for all of the model */
} joining;

static status join_bucket(joining *j, int bucket, int device_index, arena *a)
{
    const model *m = j->m;
    const model_bucket *b = &m->buckets[bucket];
    tensor inputs[MODEL_TENSORS_MAX], outputs[MODEL_TENSORS_MAX];
    device_program *program = NULL;
    arena_reset(a, SIZE_MAX);
    status failure = make_tensors(m, b, a, inputs, outputs);
    for (int i = 0; i < TRIES_MAX && !failure && program == NULL; i++) {
        failure = warm_once(m, b, device_index, MODEL_COMPILE_JOINED, inputs, outputs, &program);
        if (failure == STATUS_UNAVAILABLE && i + 1 < TRIES_MAX)
            failure = STATUS_OK; /* its process may have ended: compile() waits for the next one */
    }
    if (!failure)
        late_programs_put(m, bucket, device_index, program);
    return failure;
}

/* The largest first. What fails is left out; the other devices serve it. */
static void *join_some(void *context)
{
    joining *j = context;
    const model *m = j->m;
    arena a = {0};
    for (int i; (i = m->bucket_count - 1 - atomic_fetch_add(&j->begun, 1)) >= 0;)
        for (int d = j->first; d < j->end && !cancel_check(j->cancel); d++) {
            if (device_is_absent(m->devices[d]) || deferred_buckets_program(m, i, d) != NULL)
                continue;
            status failure = join_bucket(j, i, d, &a);
            if (!failure) {
                atomic_fetch_add(&j->made, 1);
                continue;
            }
            if (failure == STATUS_RESOURCE_EXHAUSTED && !m->fits)
                atomic_store(&j->is_full, true);
            log_warning("models", "%s: bucket %lldx%lld does not run on device %s: %s", m->name,
                        (long long)m->buckets[i].shape.batch,
                        (long long)m->buckets[i].shape.sequence, m->devices[d]->name,
                        status_message());
        }
    arena_dispose(&a);
    return NULL;
}

void warm_up_join(const model *m, int first, int count, const cancel_token *cancel)
{
    joining j = {.m = m, .cancel = cancel, .first = first, .end = first + count};
    pthread_t threads[THREADS_MAX];
    uint64_t start_ns = clock_now_ns();
    assert(first >= 0 && j.end < m->device_count);
    if (m->late == NULL || model_is_exact(m))
        return;
    int started = 0;
    while (started < THREADS_MAX - 1 && started < m->bucket_count - 1 &&
           pthread_create(&threads[started], NULL, join_some, &j) == 0)
        started++;
    join_some(&j);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (atomic_load(&j.is_full)) {
        late_programs_drop(m, first, j.end);
        log_warning("models", "%s: too large for the devices that came later", m->name);
        return;
    }
    late_programs_publish(m);
    log_info("models", "%s: %d programs for %d devices that came later, in %.0f ms", m->name,
             atomic_load(&j.made), count, (double)(clock_now_ns() - start_ns) / 1e6);
}

void warm_up_undo(model *m)
{
    deferred_buckets_dispose(m);
    late_programs_dispose(m);
    for (int i = 0; i < m->bucket_count; i++)
        for (int d = 0; d < m->device_count && m->buckets[i].programs; d++)
            if (m->buckets[i].programs[d] != NULL) {
                m->devices[d]->interface->release(m->devices[d], m->buckets[i].programs[d]);
                m->buckets[i].programs[d] = NULL;
            }
}
