/* Ceilings at the door: what is let in is answered, what is not costs nothing. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "models/planner.h"
#include "server/http/edge.h"

static h2o_iovec_t header_of(const exchange *e, const char *name, size_t bytes)
{
    const h2o_headers_t *headers = &e->request->headers;
    ssize_t at = h2o_find_header_by_str(headers, name, bytes, SIZE_MAX);
    return at < 0 ? h2o_iovec_init(NULL, 0) : headers->entries[at].value;
}

static int tenant_of(const exchange *e)
{
    const server_options *o = e->connection->loop->server->options;
    if (o->tenant_count == 0)
        return 0;
    h2o_iovec_t key = header_of(e, H2O_STRLIT("x-api-key"));
    h2o_iovec_t bearer = header_of(e, H2O_STRLIT("authorization"));
    h2o_iovec_t name = {NULL, 0};
    if (key.base == NULL && bearer.len > 7 && strncasecmp(bearer.base, "bearer ", 7) == 0)
        key = h2o_iovec_init(bearer.base + 7, bearer.len - 7);
    if (o->tenant_header != NULL)
        name = header_of(e, o->tenant_header, strlen(o->tenant_header));
    return tenant_find(o, key.base, key.len, name.base, name.len);
}

/* Too much waits: the client is told when what waits now will have begun. Coming back as soon as
 * one place is free would be sooner, but then it meets all others who were told the same. */
static status refuse_full(exchange *e, const model *m, const char *what)
{
    e->retry_after_ns = scheduler_drain_ns(e->connection->loop->server->work, m);
    return status_fail(STATUS_RESOURCE_EXHAUSTED, "%s, which will have begun in %.3f s", what,
                       (double)e->retry_after_ns / 1e9);
}

static status admit_quota(exchange *e, int tenant, const infer_request *r, uint64_t now_ns)
{
    server *s = e->connection->loop->server;
    if (tenant == 0)
        return STATUS_OK;
    const server_tenant *t = &s->options->tenants[tenant - 1];
    double tokens = 0;
    for (int i = 0; i < r->job_count; i++)
        tokens +=
            (double)r->jobs[i]->rows * (double)(r->jobs[i]->length > 0 ? r->jobs[i]->length : 1);
    uint64_t wait_ns = tenant_take(t, &s->quotas[tenant], tokens, now_ns);
    if (wait_ns == 0)
        return STATUS_OK;
    e->retry_after_ns = wait_ns;
    return status_fail(STATUS_RESOURCE_EXHAUSTED,
                       "tenant \"%s\" is over its quota: there is room again in %.3f s", t->name,
                       (double)wait_ns / 1e9);
}

status admit(exchange *e, const ticket *t)
{
    connection *c = e->connection;
    scheduler *work = c->loop->server->work;
    const server_limits *limits = &c->loop->server->options->limits;
    const infer_request *r = &t->request;
    uint64_t now_ns = e->stage_ns[STAGE_PARSE];
    if (c->jobs + r->job_count > limits->connection_jobs_max) {
        /* Answers nobody waits for are how a peer makes work for nothing (CVE-2023-44487). */
        if (c->jobs > 2 * c->exchanges)
            connection_condemn(c);
        char what[128];
        snprintf(what, sizeof what, "the limit of %d requests of one connection is reached: %d run",
                 limits->connection_jobs_max, c->jobs);
        return refuse_full(e, r->model, what);
    }
    int tenant = tenant_of(e);
    status failure = admit_quota(e, tenant, r, now_ns);
    if (failure)
        return failure;
    for (int i = 0; i < r->job_count; i++) {
        r->jobs[i]->deadline_ns = t->deadline_ns;
        r->jobs[i]->priority = r->priority;
        r->jobs[i]->tenant = (uint32_t)tenant;
    }
    failure = scheduler_admit(work, r->jobs, r->job_count, now_ns, &e->retry_after_ns);
    for (int i = 0; i < r->job_count && !failure && r->model->lengths != NULL; i++)
        length_histogram_add(r->model->lengths, r->jobs[i]->length, (uint64_t)r->jobs[i]->rows);
    return failure;
}
