#include "batcher/queue/bill.h"

#include <assert.h>

static bill_share *share_of(bill *b, tenant_class flow)
{
    /* Members come flow by flow: the latest share is the likely one. */
    for (int i = b->count - 1; i >= 0; i--)
        if (b->shares[i].flow.tenant == flow.tenant && b->shares[i].flow.class == flow.class)
            return &b->shares[i];
    assert(b->count < BILL_SHARES_MAX);
    b->shares[b->count] = (bill_share){.flow = flow};
    return &b->shares[b->count++];
}

void bill_make(bill *b, const batch_member *members, int count)
{
    assert(count > 0);
    b->count = 0;
    b->positions = 0;
    b->charged_ns = 0;
    const model *m = members[0].job->model;
    b->model_index = m->index;
    b->model_serial = m->serial;
    b->model_weight = m->weight > 0 ? m->weight : 1;
    for (int i = 0; i < count; i++) {
        int64_t positions = member_positions(&members[i]);
        share_of(b, job_tenant_class(members[i].job))->positions += positions;
        b->positions += positions;
    }
}
