#include "batcher/scheduler.h"

#include <assert.h>
#include <stdlib.h>

#include "batcher/scheduler_state.h"
#include "devices/health.h"

/* What waits for a failed device may be the CPU's now, whose workers do not know yet. */
static void on_device_failed(void *context, int device_index)
{
    scheduler *s = context;
    sleepers_wake_one(&s->sleepers, 0, device_index);
}

static status init_executor(scheduler *s, const scheduler_options *options, device *const *devices,
                            int device_count)
{
    executor *e = &s->executor;
    e->devices = devices;
    e->device_count = device_count;
    e->fallback = options->fallback;
    e->admission = &s->admission;
    e->is_stopping = &s->is_stopping;
    e->on_device_failed = on_device_failed;
    e->context = s;
    return health_init(&e->health, devices, device_count);
}

/* All workers, none of them started. */
static status create_workers(scheduler *s)
{
    int device_count = s->executor.device_count;
    for (int i = 0; i < device_count; i++) {
        assert(s->executor.devices[i]->slots > 0);
        s->worker_count += s->executor.devices[i]->slots;
    }
    s->workers = calloc((size_t)s->worker_count, sizeof *s->workers);
    if (s->workers == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d workers", s->worker_count);
    int n = 0;
    for (int d = 0; d < device_count; d++)
        for (int k = 0; k < s->executor.devices[d]->slots; k++, n++) {
            worker_thread *t = &s->workers[n];
            t->scheduler = s;
            t->index = n;
            t->worker.executor = &s->executor;
            t->worker.device_index = d;
            t->worker.number = k;
            t->is_healthy = calloc((size_t)device_count, sizeof *t->is_healthy);
            t->is_draining = calloc((size_t)device_count, sizeof *t->is_draining);
            if (t->is_healthy == NULL || t->is_draining == NULL)
                return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d devices", device_count);
        }
    return STATUS_OK;
}

/* Of one device. */
static status start_workers(scheduler *s, int device_index)
{
    for (int i = 0; i < s->worker_count; i++) {
        worker_thread *t = &s->workers[i];
        if (t->worker.device_index != device_index)
            continue;
        pthread_mutex_lock(&s->mutex);
        bool is_stopping = atomic_load(&s->is_stopping);
        s->workers_alive += !is_stopping;
        pthread_mutex_unlock(&s->mutex);
        if (is_stopping)
            return status_fail(STATUS_UNAVAILABLE, "the scheduler stops");
        if (pthread_create(&t->thread, NULL, worker_thread_main, t) != 0) {
            pthread_mutex_lock(&s->mutex);
            s->workers_alive--;
            pthread_mutex_unlock(&s->mutex);
            return status_fail(STATUS_RESOURCE_EXHAUSTED, "cannot start a thread");
        }
        t->is_started = true;
        if (device_index != executor_cpu(&s->executor))
            atomic_fetch_add(&s->other_workers, 1);
    }
    return STATUS_OK;
}

/* Absent devices have no workers yet. */
static status start_present(scheduler *s)
{
    status failure = STATUS_OK;
    for (int d = 0; d < s->executor.device_count && !failure; d++)
        if (!device_is_absent(s->executor.devices[d]))
            failure = start_workers(s, d);
    return failure;
}

status scheduler_join_devices(scheduler *s, int first, int count)
{
    assert(first >= 0 && count > 0 && first + count < s->executor.device_count);
    sleepers_join(&s->sleepers, first, count);
    status failure = STATUS_OK;
    for (int d = first; d < first + count && !failure; d++)
        failure = start_workers(s, d);
    return failure;
}

void scheduler_drain_device(scheduler *s, int device_index, bool is_draining)
{
    assert(device_index >= 0 && device_index < executor_cpu(&s->executor));
    atomic_store(&s->executor.health.of[device_index].is_draining, is_draining);
    /* What waits may now be another worker's: each of them looks. */
    atomic_fetch_add(&s->left, 1);
    for (int i = 0; i < s->sleepers.count; i++)
        sleepers_wake_one(&s->sleepers, 0, -1);
}

bool scheduler_is_draining(const scheduler *s, int device_index)
{
    return health_is_draining(&s->executor.health, device_index);
}

status scheduler_create(const scheduler_options *options, device *const *devices, int device_count,
                        scheduler **out)
{
    assert(device_count > 0);
    scheduler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the scheduler");
    pthread_mutex_init(&s->mutex, NULL);
    mailbox_init(&s->inbox);
    int tenants = options->tenant_count > 0 ? options->tenant_count : 1;
    dispatch_init(&s->dispatch, device_count, tenants, options->tenant_weights);
    admission_init(&s->admission, tenants, options->tenant_weights);
    status failure = init_executor(s, options, devices, device_count);
    if (!failure)
        failure = sleepers_init(&s->sleepers, devices, device_count);
    if (!failure)
        failure = create_workers(s);
    if (!failure)
        failure = start_present(s);
    if (failure) {
        scheduler_destroy(s);
        return failure;
    }
    *out = s;
    return STATUS_OK;
}

void scheduler_submit(scheduler *s, job *j)
{
    assert(j->model != NULL && j->on_done != NULL);
    assert(j->hold.rows == j->rows && j->stage_ns[STAGE_ADMIT] > 0);
    /* If the mailbox was not empty, a worker was woken for it and will take this job too. */
    if (mailbox_post(&s->inbox, &j->node))
        sleepers_wake_one(&s->sleepers, 0, -1);
}

void scheduler_nudge(scheduler *s)
{
    atomic_store(&s->sweep_wanted, true);
    sleepers_wake_one(&s->sleepers, 0, -1);
}

uint64_t scheduler_tenant_ns(const scheduler *s, int tenant)
{
    assert(tenant >= 0 && tenant < FAIR_TENANTS_MAX);
    return atomic_load_explicit(&s->executor.tenant_ns[tenant], memory_order_relaxed);
}

static void stop_workers(scheduler *s)
{
    atomic_store(&s->is_stopping, true);
    sleepers_wake_all(&s->sleepers); /* who is awake does not sleep again */
    device_health_changed();         /* ends the waits for failed devices */
    for (int i = 0; s->workers != NULL && i < s->worker_count; i++) {
        worker_thread *t = &s->workers[i];
        if (t->is_started)
            pthread_join(t->thread, NULL);
        staging_dispose(&t->worker.staging);
        arena_dispose(&t->worker.views);
        free(t->is_healthy);
        free(t->is_draining);
    }
}

void scheduler_destroy(scheduler *s)
{
    if (s == NULL)
        return;
    stop_workers(s);
    dispatch_dispose(&s->dispatch);
    assert(mailbox_is_empty(&s->inbox));
    free(s->workers);
    sleepers_dispose(&s->sleepers);
    health_dispose(&s->executor.health);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}
