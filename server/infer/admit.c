#include "server/infer/admit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "models/planner.h"

/* By its key, or by its name, which is only a claim: it counts when no key says otherwise. */
static status find_tenant(request *r)
{
    const server_options *o = request_service(r)->options;
    r->tenant = r->identity != NULL ? r->identity->tenant : 0;
    if (r->tenant > 0 || o->tenant_count == 0 || o->tenant_header == NULL)
        return STATUS_OK;
    request_text name = request_header(r, o->tenant_header);
    if (name.data == NULL)
        return STATUS_OK;
    if (request_has_twice(r, o->tenant_header))
        return status_fail(STATUS_INVALID_ARGUMENT, "the header %s is there twice",
                           o->tenant_header);
    r->tenant = tenant_find(o, name.data, name.bytes);
    return STATUS_OK;
}

/* A peer that resets its streams leaves jobs behind that nobody waits for, and could make the
 * server work for nothing (CVE-2023-44487): over the ceiling, its connection is closed. */
static status check_connection(request *r, uint64_t *retry_after_ns)
{
    request_connection *c = r->connection;
    service *s = request_service(r);
    int jobs_max = s->options->limits.connection_jobs_max;
    if (c->jobs + r->infer.job_count <= jobs_max)
        return STATUS_OK;
    if (c->jobs > 2 * c->requests)
        c->transport->close(c);
    r->sample.reason = RECORD_CONNECTION_LIMIT;
    *retry_after_ns = scheduler_drain_ns(s->work, r->infer.model);
    return status_fail(STATUS_RESOURCE_EXHAUSTED,
                       "the limit of %d requests of one connection is reached: %d run, which will "
                       "have begun in %.3f s",
                       jobs_max, c->jobs, (double)*retry_after_ns / 1e9);
}

static status refuse_over_quota(request *r, const server_tenant *t, uint64_t wait_ns,
                                uint64_t *retry_after_ns)
{
    r->sample.reason = RECORD_QUOTA;
    *retry_after_ns = wait_ns;
    return status_fail(STATUS_RESOURCE_EXHAUSTED,
                       "tenant \"%s\" is over its quota: there is room again in %.3f s", t->name,
                       (double)wait_ns / 1e9);
}

static status check_quota(request *r, uint64_t now_ns, uint64_t *retry_after_ns)
{
    service *s = request_service(r);
    const server_tenant *t = server_tenant_of(s->options, r->tenant);
    if (t->requests_per_s == 0 && t->tokens_per_s == 0)
        return STATUS_OK;
    double tokens = 0;
    for (int i = 0; i < r->infer.job_count; i++) {
        const job *j = r->infer.jobs[i];
        tokens += (double)j->rows * (double)(j->length > 0 ? j->length : 1);
    }
    uint64_t wait_ns = tenant_acquire(t, &s->quotas[r->tenant], tokens, now_ns);
    return wait_ns == 0 ? STATUS_OK : refuse_over_quota(r, t, wait_ns, retry_after_ns);
}

static void count_rows(request *r)
{
    struct length_histogram *lengths = r->infer.model->lengths;
    for (int i = 0; i < r->infer.job_count; i++) {
        const job *j = r->infer.jobs[i];
        r->sample.rows += j->rows;
        r->sample.tokens += j->length > 0 ? j->rows * j->length : 0;
        if (lengths != NULL)
            length_histogram_add(lengths, j->length, (uint64_t)j->rows);
    }
}

status admit_before_parsing(request *r, const model *m, uint64_t *retry_after_ns)
{
    service *s = request_service(r);
    *retry_after_ns = 0;
    status failure = find_tenant(r);
    if (failure)
        return failure;
    const server_tenant *t = server_tenant_of(s->options, r->tenant);
    uint64_t wait_ns = tenant_wait(t, &s->quotas[r->tenant], r->life.since_ns[LIFE_RECEIVED]);
    if (wait_ns > 0)
        return refuse_over_quota(r, t, wait_ns, retry_after_ns);
    return scheduler_has_room(s->work, m, (uint32_t)r->tenant, retry_after_ns);
}

status admit_request(request *r, uint64_t *retry_after_ns)
{
    infer_request *q = &r->infer;
    uint64_t now_ns = r->life.since_ns[LIFE_PARSED];
    *retry_after_ns = 0;
    status failure = check_connection(r, retry_after_ns);
    if (failure)
        return failure;
    failure = check_quota(r, now_ns, retry_after_ns);
    if (failure)
        return failure;
    for (int i = 0; i < q->job_count; i++) {
        q->jobs[i]->deadline_ns = r->deadline_ns;
        q->jobs[i]->priority = q->priority;
        q->jobs[i]->tenant = (uint32_t)r->tenant;
    }
    failure =
        scheduler_admit(request_service(r)->work, q->jobs, q->job_count, now_ns, retry_after_ns);
    if (failure)
        return failure;
    count_rows(r);
    now_ns = clock_now_ns();
    stage_stamp(r->sample.stage_ns, STAGE_ADMIT, now_ns);
    request_advance(r, LIFE_ADMIT, now_ns);
    return STATUS_OK;
}
