#include "batcher/execute/retry.h"

#include "base/clock.h"
#include "batcher/execute/execute.h"
#include "devices/health.h"

/* A batch that only devices can run waits for one so long at most, and is given to so many. */
#define DEVICE_WAIT_NS UINT64_C(30000000000)
#define DEVICE_TRIES_MAX 4

void retry_count_fallback(worker *w, model_fallback reason)
{
    w->batch.fell_back = true;
    counter_add(&w->batch.model->counters->fallbacks[reason], 1);
}

/* The first healthy device that has the model, or -1; one that drains, where there is no other.
 * Each is asked now: devices of one plugin fail together, and what is remembered of them is older.
 */
static int healthy_device(worker *w)
{
    executor *e = w->executor;
    int draining = -1;
    for (int i = 0; i < executor_cpu(e); i++) {
        if (!w->batch.queue->tables[i].has_any || !health_confirm(&e->health, i))
            continue;
        if (!health_is_draining(&e->health, i))
            return i;
        draining = i;
    }
    return draining;
}

/* Sleeps until a device that has the model is healthy; -1: none was until `until_ns`, or the
 * scheduler stops. */
static int wait_for_device(worker *w, uint64_t until_ns)
{
    health *h = &w->executor->health;
    for (;;) {
        uint32_t seen = device_health_changes();
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= until_ns || atomic_load(w->executor->is_stopping))
            return -1;
        health_refresh(h, now_ns);
        int device_index = healthy_device(w);
        if (device_index >= 0)
            return device_index;
        uint64_t rested_ns = health_rests_until_ns(h, now_ns);
        device_health_wait(seen, rested_ns < until_ns ? rested_ns : until_ns);
    }
}

/* The latest deadline of the members. */
static uint64_t latest_deadline_ns(const worker *w, int first, int count)
{
    uint64_t latest_ns = 0;
    for (int i = first; i < first + count; i++) {
        uint64_t deadline_ns = w->batch.members[i].job->deadline_ns;
        latest_ns = deadline_ns > latest_ns ? deadline_ns : latest_ns;
    }
    return latest_ns;
}

/* `changes`: device_health_changes() before the execution that failed. */
static status retry_on_devices(worker *w, int first, int count, uint32_t changes, status failure)
{
    uint64_t until_ns = clock_now_ns() + DEVICE_WAIT_NS;
    uint64_t latest_ns = latest_deadline_ns(w, first, count);
    bool is_deadline = latest_ns <= until_ns;
    until_ns = is_deadline ? latest_ns : until_ns;
    for (int tries = 1; failure == STATUS_UNAVAILABLE && tries < DEVICE_TRIES_MAX; tries++) {
        /* The device may not have noticed yet that its process has ended. */
        device_health_wait(changes, clock_now_ns() + HEALTH_REST_NS);
        int device_index = wait_for_device(w, until_ns);
        if (device_index < 0)
            break;
        changes = device_health_changes();
        failure = execute_members(w, device_index, first, count);
        if (failure == STATUS_UNAVAILABLE)
            health_report_failure(&w->executor->health, device_index, clock_now_ns());
    }
    if (failure == STATUS_UNAVAILABLE && is_deadline && clock_now_ns() >= until_ns)
        return status_fail(STATUS_DEADLINE_EXCEEDED,
                           "the deadline passed while no device could run the request");
    return failure;
}

status retry_members(worker *w, int first, int count)
{
    executor *e = w->executor;
    int cpu = executor_cpu(e);
    if (w->device_index == cpu || w->batch.is_exact)
        return execute_members(w, cpu, first, count);
    uint32_t changes = device_health_changes();
    status failure = execute_members(w, w->device_index, first, count);
    if (failure != STATUS_UNAVAILABLE)
        return failure;
    health_report_failure(&e->health, w->device_index, clock_now_ns());
    if (e->fallback == FALLBACK_NEVER)
        return failure;
    if (w->batch.model->on_device.exported != NULL)
        return retry_on_devices(w, first, count, changes, failure);
    e->on_device_failed(e->context, w->device_index);
    retry_count_fallback(w, MODEL_FALLBACK_DEVICE_FAILED);
    return execute_members(w, cpu, first, count);
}
