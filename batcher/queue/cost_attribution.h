#ifndef BATCHER_QUEUE_COST_ATTRIBUTION_H
#define BATCHER_QUEUE_COST_ATTRIBUTION_H

#include "batcher/queue/queue.h"

/* To whom the device time of a batch is attributed: to the (tenant, priority class) of each member,
 * by the tokens it brings. The expected time is attributed when the batch begins, so that the next
 * decision knows of it, and the difference to the measured time when it is over (dispatch_settle).
 */

#define COST_SHARES_MAX (FAIR_TENANTS_MAX * FAIR_CLASSES)

typedef struct cost_share {
    tenant_class whose;
    int64_t tokens;
} cost_share;

typedef struct cost_attribution {
    cost_share shares[COST_SHARES_MAX];
    int count;      /* 0: settled */
    int64_t tokens; /* of all shares; at least 1 each */
    /* Of the model, which may be gone when the batch is settled. */
    int model_index, model_weight;
    uint64_t model_serial;
    uint64_t attributed_ns; /* so far */
} cost_attribution;

/* Of a batch of which nothing is attributed yet. At least one member, all of one model. */
void cost_attribution_init(cost_attribution *c, const batch_member *members, int count);

/* Share `i` of `time_ns`. */
static inline int64_t cost_attribution_part_ns(const cost_attribution *c, int i, uint64_t time_ns)
{
    return (int64_t)((double)time_ns * (double)c->shares[i].tokens / (double)c->tokens);
}

#endif
