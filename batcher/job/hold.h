#ifndef BATCHER_JOB_HOLD_H
#define BATCHER_JOB_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "batcher/policy/fair.h"
#include "models/model.h"

/* What waits, counted in one place.
 *
 * An admitted job holds its rows, under the ceilings of its model and of its tenant there, and the
 * device time that they are expected to take. Its hold is acquired once, on admission, and released
 * once: row by row as the rows are taken into batches, or what is left of it when the job is
 * dropped. The backlog is the sum of all holds.
 *
 * A backlog is counters only: any thread changes and reads them without a lock. A hold belongs to
 * the owner of its job. */

#define BACKLOG_MODELS 16 /* models with more distinct indexes share counters of device time */

typedef struct backlog {
    _Atomic int64_t rows[MODEL_INDEX_MAX]; /* by model->index; 0 again before an index is reused,
                                              because a waiting job has a reference to its model */
    _Atomic int64_t tenant_rows[MODEL_INDEX_MAX][FAIR_TENANTS_MAX]; /* where tenants have shares */
    _Atomic int64_t model_ns[BACKLOG_MODELS];
    _Atomic uint32_t model_weights[BACKLOG_MODELS];
    _Atomic int64_t tenant_ns[FAIR_TENANTS_MAX];
    _Atomic int64_t class_ns[FAIR_TENANTS_MAX][FAIR_CLASSES];
} backlog;

/* Zeroed: nothing is held. */
typedef struct hold {
    int64_t rows;     /* that still wait */
    uint64_t cost_ns; /* device time that these rows are expected to take */
    int model_index;
    bool is_of_tenant; /* counted in tenant_rows, too */
    tenant_class whose;
} hold;

/* Rows that may wait for a model: `model_max` in all. While that many wait, or more, a tenant may
 * have `tenant_max` nevertheless, or one job of any size. So the queue that one tenant fills is not
 * full for the others, and one that is alone may have all of it. */
typedef struct hold_limits {
    int64_t model_max, tenant_max; /* equal: tenants have no shares, and none are counted */
} hold_limits;

/* Adds `rows` of model `m`, at least one, to the backlog. False, and nothing changes, when they are
 * over the limits. `*rows_before` is how many waited for the model, in either case. The hold must
 * be empty. */
bool hold_acquire(backlog *b, hold *h, const model *m, tenant_class whose, int64_t rows,
                  uint64_t cost_ns, hold_limits limits, int64_t *rows_before) MUST_CHECK;

/* Whether `rows` more would fit the limits now; nothing is held. */
bool hold_would_fit(const backlog *b, const model *m, int tenant, int64_t rows, hold_limits limits,
                    int64_t *rows_before);

/* `rows` of the hold, at least one and at most all, wait no longer. Returns their part of the cost:
 * the parts of one hold sum to its whole cost. */
uint64_t hold_release(backlog *b, hold *h, int64_t rows);

/* Rows that wait for the model. */
int64_t backlog_rows(const backlog *b, const model *m);

#endif
