#ifndef SERVER_SERVICE_TENANT_H
#define SERVER_SERVICE_TENANT_H

#include <stdatomic.h>

#include "server/options/options.h"

/* Whose request it is, and how much of that is admitted. A tenant is named by a key
 * (server/access/), or, when it has none in the configuration, by name in the tenant header. Number
 * 0 is everybody else: the default tenant.
 *
 * Quotas are token buckets that hold one second's worth, kept as a theoretical arrival time (the
 * generic cell rate algorithm of ITU-T I.371): one atomic word, exact about when there is room
 * again. */
typedef struct tenant_quota {
    _Atomic uint64_t requests_ns, tokens_ns; /* when the bucket is full again */
} tenant_quota;

/* The tenant without a key of that name (not terminated), or 0. */
int tenant_find(const server_options *o, const char *name, size_t bytes);

/* 0: there may be room for a request. Else there is none for any, and there will be after so many
 * nanoseconds. Takes nothing. Any thread. */
uint64_t tenant_wait(const server_tenant *t, const tenant_quota *q, uint64_t now_ns);

/* Takes one request of `tokens` tokens from the quotas. Returns 0 when there was room, else
 * after how many nanoseconds there is, having taken nothing. A request larger than the bucket goes
 * when the bucket is full. Any thread. */
uint64_t tenant_acquire(const server_tenant *t, tenant_quota *q, double tokens, uint64_t now_ns);

#endif
