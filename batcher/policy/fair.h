#ifndef BATCHER_POLICY_FAIR_H
#define BATCHER_POLICY_FAIR_H

#include <stdbool.h>
#include <stdint.h>

/* Which tenant, and which of its priority classes, leads the next batch: weighted fair queueing by
 * the device time they received.
 *
 * Each account has a virtual time that goes up by device time / weight when it is served; of the
 * accounts with waiting rows the one with the lowest virtual time is next, as in Linux's completely
 * fair scheduler. Time is added when work is served, not when it arrives, so rejected and overdue
 * work costs its tenant nothing. An account that was idle continues where it left off, or where the
 * latest leader stood if that is later: idleness saves up nothing. But a tenant starts
 * FAIR_CREDIT_NS before that: without this credit, one that uses less than its share would wait for
 * the others after each of its own longer requests. Belongs to the worker that holds the
 * scheduler's mutex. */

#define FAIR_TENANTS_MAX 64
#define FAIR_CREDIT_NS UINT64_C(25000000) /* device time that an idle tenant saves up at most */
#define FAIR_CLASSES 4 /* 0 is the highest; lower ones than the last count as the last */

typedef struct fair_account {
    uint64_t virtual_ns; /* device time received / weight, in finer steps */
    uint32_t weight;
    int64_t rows; /* waiting */
} fair_account;

typedef struct fair {
    int tenant_count;
    fair_account tenants[FAIR_TENANTS_MAX];
    fair_account classes[FAIR_TENANTS_MAX][FAIR_CLASSES];
    uint64_t floor_ns, class_floor_ns[FAIR_TENANTS_MAX]; /* of the latest leader */
} fair;

typedef struct tenant_class {
    int tenant, class; /* tenant -1: none */
} tenant_class;

/* A set of tenants' classes, to pass over. Zeroed is empty. */
typedef struct fair_set {
    uint8_t classes[FAIR_TENANTS_MAX]; /* bits */
} fair_set;

/* Share of a class against the other classes of its tenant: 64, 16, 4, 1. */
uint32_t fair_class_weight(int class);
static inline int fair_class(int priority)
{
    return priority < 0 ? 0 : priority < FAIR_CLASSES ? priority : FAIR_CLASSES - 1;
}

/* `weights` (1 or more each) by tenant; NULL: all equal. */
void fair_init(fair *f, int tenant_count, const uint32_t *weights);

/* Rows began (+) or ceased (-) to wait. */
void fair_add_rows(fair *f, tenant_class whose, int64_t rows);
/* `whose` leads a batch: newcomers start where it stands now. Before its service is added. */
void fair_lead(fair *f, tenant_class whose);
/* `served_ns` of device time went to `whose`; negative: so much of what was added did not. */
void fair_add_service(fair *f, tenant_class whose, int64_t served_ns);

/* The class with waiting rows that is furthest behind its fair share, without those in `passed`;
 * tenant -1: there is none. */
tenant_class fair_next(const fair *f, const fair_set *passed);
static inline void fair_pass(fair_set *set, tenant_class whose)
{
    set->classes[whose.tenant] |= (uint8_t)(1u << whose.class);
}

#endif
