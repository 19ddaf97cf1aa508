#ifndef BATCHER_QUEUE_BILL_H
#define BATCHER_QUEUE_BILL_H

#include "batcher/queue/queue.h"

/* Who pays for a batch: the flows of its members, each by the positions it brings. They are charged
 * the expected time when the batch begins, so that the next decision knows of it, and the
 * difference to the measured time when it is over (dispatch_settle). */

#define BILL_SHARES_MAX (FAIR_TENANTS_MAX * FAIR_CLASSES)

typedef struct bill_share {
    tenant_class flow;
    int64_t positions;
} bill_share;

typedef struct bill {
    bill_share shares[BILL_SHARES_MAX];
    int count;         /* 0: settled */
    int64_t positions; /* of all shares; at least 1 each */
    /* Of the model, which may be gone when the bill is settled. */
    int model_index, model_weight;
    uint64_t model_serial;
    uint64_t charged_ns;
} bill;

/* Of a batch that nobody has been charged for yet. At least one member, all of one model. */
void bill_make(bill *b, const batch_member *members, int count);

/* What share `i` pays of `time_ns`. */
static inline int64_t bill_part_ns(const bill *b, int i, uint64_t time_ns)
{
    return (int64_t)((double)time_ns * (double)b->shares[i].positions / (double)b->positions);
}

#endif
