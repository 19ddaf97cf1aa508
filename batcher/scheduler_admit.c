/* Admission: may a request's jobs wait for a device? */
#include <stdio.h>

#include "batcher/scheduler_state.h"
#include "models/start/deferred_buckets.h"

/* Who serves this model now: the first healthy device that has it, and others like it; else the
 * CPU. */
static int serving_device(const scheduler *s, const model *m, int *workers)
{
    const executor *e = &s->executor;
    int serving = executor_cpu(e);
    *workers = 0;
    for (int d = 0; d < executor_cpu(e) && !model_is_exact(m); d++) {
        bool has_program = m->bucket_count > 0 && deferred_buckets_program(m, 0, d) != NULL;
        if (!has_program || !health_is_good(&e->health, d) || health_is_draining(&e->health, d))
            continue;
        if (*workers == 0)
            serving = d;
        *workers += device_depth(e->devices[d]);
    }
    if (*workers == 0)
        *workers = device_depth(e->devices[serving]);
    return serving;
}

/* The client is told what is expected, what else is the reason where that alone is none, and
 * whether the load is to blame at all. */
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
                       "the deadline cannot be %s: %.3f ms are left, and a response is expected "
                       "in %.3f ms (%.3f ms in the queue, %.3f ms on the device)%s; alone it would "
                       "be %s",
                       is_sure ? "met" : "promised", left, (double)(wait_ns + e->run_ns) / 1e6,
                       (double)wait_ns / 1e6, (double)e->run_ns / 1e6, reason,
                       admission_is_late_alone(e, now_ns, deadline_ns) ? "late, too" : "in time");
}

static hold_limits limits_of(const scheduler *s, const model *m, uint32_t tenant)
{
    int64_t rows_max = m->batching.queue_rows_max;
    return (hold_limits){rows_max, admission_share(&s->admission, (int)tenant, rows_max)};
}

static status refuse_full(const scheduler *s, const model *m, int64_t rows,
                          uint64_t *retry_after_ns)
{
    int workers;
    serving_device(s, m, &workers);
    *retry_after_ns = admission_drain_ns(&s->admission, m, workers);
    return status_fail(STATUS_RESOURCE_EXHAUSTED,
                       "the queue of model \"%s\" is full: %lld rows, which will have begun in "
                       "%.3f s",
                       m->name, (long long)rows, (double)*retry_after_ns / 1e9);
}

/* Acquires the job's hold, or says what rejects it. `*is_late`: its deadline can probably not be
 * met, and the caller decides. */
static status admit_one(scheduler *s, job *j, uint64_t now_ns, admission_estimate *e, bool *is_late,
                        uint64_t *retry_after_ns)
{
    const model *m = j->model;
    if (j->tenant >= (uint32_t)s->admission.tenant_count)
        j->tenant = 0;
    int64_t rows_max = m->batching.queue_rows_max, rows_before;
    hold_limits limits = limits_of(s, m, j->tenant);
    if (j->rows > rows_max)
        return status_fail(STATUS_TOO_LARGE, "%lld rows in one request: the limit is %lld",
                           (long long)j->rows, (long long)rows_max);
    int workers, serving = serving_device(s, m, &workers);
    admission_estimate_job(&s->admission, m, m->latency, serving, workers, job_tenant_class(j),
                           j->rows, j->length, now_ns, e);
    j->backlog_ns = e->backlog_ns;
    *is_late = admission_is_hopeless(e, now_ns, j->deadline_ns);
    if (hold_acquire(&s->admission.backlog, &j->hold, m, job_tenant_class(j), j->rows, e->cost_ns,
                     limits, &rows_before))
        return STATUS_OK;
    return refuse_full(s, m, rows_before, retry_after_ns);
}

status scheduler_has_room(const scheduler *s, const model *m, uint32_t tenant,
                          uint64_t *retry_after_ns)
{
    int64_t rows;
    tenant = tenant < (uint32_t)s->admission.tenant_count ? tenant : 0;
    if (hold_would_fit(&s->admission.backlog, m, (int)tenant, 1, limits_of(s, m, tenant), &rows))
        return STATUS_OK;
    return refuse_full(s, m, rows, retry_after_ns);
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
