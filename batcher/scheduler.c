#include "batcher/scheduler.h"

#include <assert.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "batcher/scheduler_internal.h"

static status start_workers(scheduler *s)
{
    int n = 0;
    for (int d = 0; d < s->device_count; d++)
        for (int k = 0; k < s->devices[d]->slots; k++, n++) {
            worker *l = &s->workers[n];
            l->scheduler = s;
            l->device_index = d;
            l->number = k;
        }
    for (int i = 0; i < n; i++) {
        worker *l = &s->workers[i];
        const char *kind = s->devices[l->device_index]->kind;
        if (l->device_index == scheduler_cpu(s))
            break;
        l->first_peer = i;
        if (i > 0 && strcmp(kind, s->devices[s->workers[i - 1].device_index]->kind) == 0)
            l->first_peer = s->workers[i - 1].first_peer;
        for (int k = l->first_peer; k <= i; k++)
            s->workers[k].peers = i - l->first_peer + 1;
    }
    s->workers_alive = s->worker_count;
    for (int i = 0; i < s->worker_count; i++) {
        if (pthread_create(&s->workers[i].thread, NULL, worker_main, &s->workers[i]) != 0) {
            pthread_mutex_lock(&s->mutex);
            s->workers_alive -= s->worker_count - i;
            pthread_mutex_unlock(&s->mutex);
            return status_fail(STATUS_RESOURCE_EXHAUSTED, "cannot start a thread");
        }
        s->workers[i].is_started = true;
    }
    return STATUS_OK;
}

status scheduler_create(const scheduler_options *options, device *const *devices, int device_count,
                        scheduler **out)
{
    assert(device_count > 0);
    scheduler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the scheduler");
    s->options = *options;
    s->devices = devices;
    s->device_count = device_count;
    pthread_mutex_init(&s->mutex, NULL);
    mailbox_init(&s->inbox);
    for (int i = 0; i < device_count; i++) {
        assert(devices[i]->slots > 0);
        s->worker_count += devices[i]->slots;
    }
    int tenants = options->tenant_count > 0 ? options->tenant_count : 1;
    dispatch_init(&s->dispatch, device_count, tenants, options->tenant_weights);
    admission_init(&s->admission, tenants, options->tenant_weights);
    s->health = calloc((size_t)device_count, sizeof *s->health);
    s->workers = calloc((size_t)s->worker_count, sizeof *s->workers);
    if (s->health == NULL || s->workers == NULL) {
        scheduler_destroy(s);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d workers", s->worker_count);
    }
    /* A device that is still starting is asked before it gets its first batch. */
    for (int i = 0; i < device_count - 1; i++)
        atomic_store(&s->health[i].has_failed, true);
    status failure = start_workers(s);
    if (failure) {
        scheduler_destroy(s);
        return failure;
    }
    *out = s;
    return STATUS_OK;
}

/* The worker to try as number `i`: devices of one kind take turns, so that equal ones get equal
 * work; kinds keep their order, and so do the CPU's workers, whose caches are warm. */
static int in_turn(const scheduler *s, int i, uint32_t turn)
{
    const worker *l = &s->workers[i];
    if (l->peers == 0)
        return i;
    return l->first_peer + (int)(((uint32_t)(i - l->first_peer) + turn) % (uint32_t)l->peers);
}

void scheduler_wake(scheduler *s, int from, int except)
{
    uint32_t turn = from == 0 ? atomic_fetch_add_explicit(&s->turn, 1, memory_order_relaxed) : 0;
    for (int i = from; i < s->worker_count; i++) {
        worker *l = &s->workers[in_turn(s, i, turn)];
        if (l->device_index == except)
            continue;
        /* A read-modify-write even where the worker is awake: it orders this thread's post before
         * the worker's last look at the box (worker.c, sleep_until). */
        if (atomic_exchange(&l->is_sleeping, 0)) {
            syscall(SYS_futex, &l->is_sleeping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
            return;
        }
    }
}

/* Who serves this model now: the first healthy device that has it, and its like; else the CPU. */
static int serving_device(scheduler *s, const model *m, int *workers)
{
    int serving = scheduler_cpu(s);
    *workers = 0;
    for (int d = 0; d < scheduler_cpu(s) && !model_is_exact(m); d++) {
        bool has_program = m->bucket_count > 0 && m->buckets[0].programs[d] != NULL;
        if (!has_program || atomic_load_explicit(&s->health[d].has_failed, memory_order_relaxed))
            continue;
        if (*workers == 0)
            serving = d;
        *workers += s->devices[d]->slots;
    }
    if (*workers == 0)
        *workers = s->devices[serving]->slots;
    return serving;
}

/* The client is told what is expected; where that is no reason, what is; and whether the load is
 * one at all. */
static status refuse_late(const admission_estimate *e, uint64_t now_ns, uint64_t deadline_ns)
{
    double left = deadline_ns > now_ns ? (double)(deadline_ns - now_ns) / 1e6 : 0;
    uint64_t wait_ns = admission_expected_wait_ns(e);
    bool is_sure = admission_is_sure(e, now_ns, deadline_ns);
    char reason[64] = "";
    if (!is_sure)
        snprintf(reason, sizeof reason, ", and under this load up to %.3f ms",
                 (double)(e->wait_ns + e->run_ns) / 1e6);
    return status_fail(STATUS_DEADLINE_EXCEEDED,
                       "the deadline cannot be %s: %.3f ms are left, and an answer is expected "
                       "in %.3f ms (%.3f ms in the queue, %.3f ms on the device)%s; alone it would "
                       "be %s",
                       is_sure ? "met" : "promised", left, (double)(wait_ns + e->run_ns) / 1e6,
                       (double)wait_ns / 1e6, (double)e->run_ns / 1e6, reason,
                       admission_is_late_alone(e, now_ns, deadline_ns) ? "late, too" : "in time");
}

/* Acquires the job's hold. What refuses it is said here, but for the deadline: `*is_late`. */
static status admit_one(scheduler *s, job *j, uint64_t now_ns, admission_estimate *e, bool *is_late,
                        uint64_t *retry_after_ns)
{
    const model *m = j->model;
    if (j->tenant >= (uint32_t)s->admission.tenant_count)
        j->tenant = 0;
    int64_t rows_max = m->batching.queue_rows_max, rows_before;
    if (j->rows > rows_max)
        return status_fail(STATUS_TOO_LARGE, "%lld rows in one request: the limit is %lld",
                           (long long)j->rows, (long long)rows_max);
    int workers, serving = serving_device(s, m, &workers);
    admission_estimate_job(&s->admission, m, m->latency, serving, workers, job_tenant_class(j),
                           j->rows, j->length, now_ns, e);
    j->backlog_ns = e->backlog_ns;
    *is_late = admission_is_hopeless(e, now_ns, j->deadline_ns);
    if (hold_acquire(&s->admission.backlog, &j->hold, m, job_tenant_class(j), j->rows, e->cost_ns,
                     rows_max, &rows_before))
        return STATUS_OK;
    *retry_after_ns = admission_drain_ns(&s->admission, m, workers);
    return status_fail(STATUS_RESOURCE_EXHAUSTED,
                       "the queue of model \"%s\" is full: %lld rows, which will have begun in "
                       "%.3f s",
                       m->name, (long long)rows_before, (double)*retry_after_ns / 1e9);
}

status scheduler_admit(scheduler *s, job *const *jobs, int count, uint64_t now_ns,
                       uint64_t *retry_after_ns)
{
    admission_estimate late;
    int held = 0, first_late = -1;
    status failure = STATUS_OK;
    while (held < count && !failure) {
        admission_estimate e;
        bool is_late = false;
        failure = admit_one(s, jobs[held], now_ns, &e, &is_late, retry_after_ns);
        if (failure)
            break;
        if (is_late && first_late < 0) {
            first_late = held;
            late = e;
        }
        held++;
    }
    if (!failure && first_late >= 0)
        failure = refuse_late(&late, now_ns, jobs[first_late]->deadline_ns);
    for (int i = 0; i < held && failure; i++)
        hold_release(&s->admission.backlog, &jobs[i]->hold, jobs[i]->hold.rows);
    return failure;
}

uint64_t scheduler_drain_ns(scheduler *s, const model *m)
{
    int workers;
    serving_device(s, m, &workers);
    return admission_drain_ns(&s->admission, m, workers);
}

int64_t scheduler_queued_rows(const scheduler *s, const model *m)
{
    return backlog_rows(&s->admission.backlog, m);
}

void scheduler_submit(scheduler *s, job *j)
{
    assert(j->model != NULL && j->on_done != NULL);
    assert(j->hold.rows == j->rows && j->stage_ns[STAGE_ADMIT] > 0);
    /* A box that held something has woken somebody who has not emptied it yet. */
    if (mailbox_post(&s->inbox, &j->node))
        scheduler_wake(s, 0, -1);
}

void scheduler_nudge(scheduler *s)
{
    atomic_store(&s->sweep_wanted, true);
    scheduler_wake(s, 0, -1);
}

void scheduler_return(scheduler *s, job *chain, status result, uint64_t now_ns)
{
    for (job *j = chain, *next; j != NULL; j = next) {
        next = j->next;
        j->next = NULL;
        if (result == STATUS_DEADLINE_EXCEEDED && !atomic_load(&j->is_cancelled))
            admission_learn_end(&s->admission, j, false, now_ns);
        status own = atomic_load(&j->is_cancelled) ? STATUS_CANCELLED : result;
        if (own == STATUS_CANCELLED)
            status_fail(own, "the request was cancelled while it waited");
        else if (own == STATUS_DEADLINE_EXCEEDED && now_ns < j->deadline_ns)
            status_fail(own,
                        "the deadline cannot be met: %.3f ms are left and a batch takes longer",
                        (double)(j->deadline_ns - now_ns) / 1e6);
        else if (own == STATUS_DEADLINE_EXCEEDED)
            status_fail(own, "the deadline passed while the request waited");
        else if (own == STATUS_UNAVAILABLE)
            status_fail(own, "no device could run model \"%s\"", j->model->name);
        else
            status_fail(own,
                        "%lld rows of %lld positions fit no batch of model \"%s\": its limits are "
                        "%lld and %lld",
                        (long long)j->rows, (long long)j->length, j->model->name,
                        (long long)j->model->batching.batch_max,
                        (long long)j->model->batching.sequence_max);
        int64_t rows = j->rows - j->row_next;
        assert(rows == j->hold.rows);
        hold_release(&s->admission.backlog, &j->hold, rows);
        if (job_finish_rows(j, rows, own)) {
            j->stage_ns[STAGE_QUEUE] = now_ns;
            j->on_done(j);
        }
    }
}

int scheduler_describe(scheduler *s, scheduler_worker_status *out, int capacity)
{
    for (int i = 0; i < s->worker_count && i < capacity; i++) {
        worker *l = &s->workers[i];
        uint64_t computed = atomic_load_explicit(&l->computed_tokens, memory_order_relaxed);
        uint64_t real = atomic_load_explicit(&l->real_tokens, memory_order_relaxed);
        out[i] = (scheduler_worker_status){
            .device = s->devices[l->device_index],
            .batches = atomic_load_explicit(&l->batches, memory_order_relaxed),
            .rows = atomic_load_explicit(&l->rows, memory_order_relaxed),
            .busy_ns = atomic_load_explicit(&l->busy_ns, memory_order_relaxed),
            .padded_tokens = computed > real ? computed - real : 0,
            .real_tokens = real,
            .failures = atomic_load_explicit(&l->failures, memory_order_relaxed),
        };
        for (int k = 0; k < MODEL_FALLBACK_COUNT; k++)
            out[i].fallbacks[k] = atomic_load_explicit(&l->fallbacks[k], memory_order_relaxed);
    }
    return s->worker_count;
}

uint64_t scheduler_tenant_ns(const scheduler *s, int tenant)
{
    assert(tenant >= 0 && tenant < FAIR_TENANTS_MAX);
    return atomic_load_explicit(&s->tenant_ns[tenant], memory_order_relaxed);
}

void scheduler_destroy(scheduler *s)
{
    if (s == NULL)
        return;
    atomic_store(&s->is_stopping, true);
    /* Each call wakes another one: who was woken does not sleep again. */
    for (int i = 0; s->workers != NULL && i < s->worker_count; i++)
        scheduler_wake(s, 0, -1);
    for (int i = 0; s->workers != NULL && i < s->worker_count; i++) {
        worker *l = &s->workers[i];
        if (!l->is_started)
            continue;
        pthread_join(l->thread, NULL);
        staging_dispose(&l->staging);
        arena_dispose(&l->views);
    }
    dispatch_dispose(&s->dispatch);
    assert(mailbox_is_empty(&s->inbox));
    free(s->workers);
    free(s->health);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}
