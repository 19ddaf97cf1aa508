#include "server/infer/admit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "models/planner.h"

static int tenant_of(const request *r)
{
    const server_options *o = request_service(r)->options;
    if (o->tenant_count == 0)
        return 0;
    request_text key = request_header(r, "x-api-key"), bearer = request_header(r, "authorization");
    request_text name = {NULL, 0};
    if (key.data == NULL && bearer.bytes > 7 && strncasecmp(bearer.data, "bearer ", 7) == 0)
        key = (request_text){bearer.data + 7, bearer.bytes - 7};
    if (o->tenant_header != NULL)
        name = request_header(r, o->tenant_header);
    return tenant_find(o, key.data, key.bytes, name.data, name.bytes);
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
    *retry_after_ns = scheduler_drain_ns(s->work, r->infer.model);
    return status_fail(STATUS_RESOURCE_EXHAUSTED,
                       "the limit of %d requests of one connection is reached: %d run, which will "
                       "have begun in %.3f s",
                       jobs_max, c->jobs, (double)*retry_after_ns / 1e9);
}

static status check_quota(const request *r, int tenant, uint64_t now_ns, uint64_t *retry_after_ns)
{
    service *s = request_service(r);
    if (tenant == 0)
        return STATUS_OK;
    const server_tenant *t = &s->options->tenants[tenant - 1];
    double tokens = 0;
    for (int i = 0; i < r->infer.job_count; i++) {
        const job *j = r->infer.jobs[i];
        tokens += (double)j->rows * (double)(j->length > 0 ? j->length : 1);
    }
    uint64_t wait_ns = tenant_acquire(t, &s->quotas[tenant], tokens, now_ns);
    if (wait_ns == 0)
        return STATUS_OK;
    *retry_after_ns = wait_ns;
    return status_fail(STATUS_RESOURCE_EXHAUSTED,
                       "tenant \"%s\" is over its quota: there is room again in %.3f s", t->name,
                       (double)wait_ns / 1e9);
}

static void count_rows(request *r)
{
    struct length_histogram *lengths = r->infer.model->lengths;
    for (int i = 0; i < r->infer.job_count; i++) {
        const job *j = r->infer.jobs[i];
        r->sample.rows += j->rows;
        if (lengths != NULL)
            length_histogram_add(lengths, j->length, (uint64_t)j->rows);
    }
}

status admit_request(request *r, uint64_t *retry_after_ns)
{
    infer_request *q = &r->infer;
    uint64_t now_ns = r->life.since_ns[LIFE_PARSED];
    *retry_after_ns = 0;
    status failure = check_connection(r, retry_after_ns);
    if (failure)
        return failure;
    int tenant = tenant_of(r);
    failure = check_quota(r, tenant, now_ns, retry_after_ns);
    if (failure)
        return failure;
    for (int i = 0; i < q->job_count; i++) {
        q->jobs[i]->deadline_ns = r->deadline_ns;
        q->jobs[i]->priority = q->priority;
        q->jobs[i]->tenant = (uint32_t)tenant;
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
