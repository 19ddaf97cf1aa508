#include "server/service/tenant.h"

#include <string.h>

#define SECOND_NS 1e9

int tenant_find(const server_options *o, const char *name, size_t bytes)
{
    for (int i = 0; i < o->tenant_count; i++) {
        const server_tenant *t = &o->tenants[i];
        if (t->key == NULL && strlen(t->name) == bytes && memcmp(t->name, name, bytes) == 0)
            return i + 1;
    }
    return 0;
}

/* Until there is room for `cost_ns` in a bucket that is full at `full_ns`. Room: it is full again
 * within a second even so, or is full now. */
static uint64_t wait_for(uint64_t full_ns, double cost_ns, uint64_t now_ns)
{
    if (full_ns <= now_ns)
        return 0;
    double until_full = (double)(full_ns - now_ns), wait = until_full + cost_ns - SECOND_NS;
    if (wait <= 0)
        return 0;
    return 1 + (uint64_t)(wait < until_full ? wait : until_full);
}

/* Moves when the bucket is full again. */
static uint64_t acquire(_Atomic uint64_t *full_ns, double cost_ns, uint64_t now_ns)
{
    uint64_t old = atomic_load_explicit(full_ns, memory_order_relaxed);
    for (;;) {
        uint64_t wait_ns = wait_for(old, cost_ns, now_ns), base = old > now_ns ? old : now_ns;
        if (wait_ns > 0)
            return wait_ns;
        if (atomic_compare_exchange_weak_explicit(full_ns, &old, base + (uint64_t)cost_ns,
                                                  memory_order_relaxed, memory_order_relaxed))
            return 0;
    }
}

uint64_t tenant_wait(const server_tenant *t, const tenant_quota *q, uint64_t now_ns)
{
    uint64_t wait_ns = 0;
    if (t->requests_per_s > 0)
        wait_ns = wait_for(atomic_load_explicit(&q->requests_ns, memory_order_relaxed),
                           SECOND_NS / (double)t->requests_per_s, now_ns);
    if (wait_ns == 0 && t->tokens_per_s > 0)
        wait_ns = wait_for(atomic_load_explicit(&q->tokens_ns, memory_order_relaxed),
                           SECOND_NS / (double)t->tokens_per_s, now_ns);
    return wait_ns;
}

uint64_t tenant_acquire(const server_tenant *t, tenant_quota *q, double tokens, uint64_t now_ns)
{
    uint64_t wait_ns = 0;
    if (t->requests_per_s > 0)
        wait_ns = acquire(&q->requests_ns, SECOND_NS / (double)t->requests_per_s, now_ns);
    if (wait_ns > 0 || t->tokens_per_s == 0)
        return wait_ns;
    wait_ns = acquire(&q->tokens_ns, SECOND_NS * tokens / (double)t->tokens_per_s, now_ns);
    if (wait_ns > 0 && t->requests_per_s > 0)
        atomic_fetch_sub_explicit(&q->requests_ns,
                                  (uint64_t)(SECOND_NS / (double)t->requests_per_s),
                                  memory_order_relaxed);
    return wait_ns;
}
