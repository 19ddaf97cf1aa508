#include "batcher/queue/cost_attribution.h"

#include <assert.h>

static cost_share *share_of(cost_attribution *c, tenant_class whose)
{
    /* Members come by tenant and class: the latest share is the likely one. */
    for (int i = c->count - 1; i >= 0; i--)
        if (c->shares[i].whose.tenant == whose.tenant && c->shares[i].whose.class == whose.class)
            return &c->shares[i];
    assert(c->count < COST_SHARES_MAX);
    c->shares[c->count] = (cost_share){.whose = whose};
    return &c->shares[c->count++];
}

void cost_attribution_init(cost_attribution *c, const batch_member *members, int count)
{
    assert(count > 0);
    c->count = 0;
    c->tokens = 0;
    c->attributed_ns = 0;
    const model *m = members[0].job->model;
    c->model_index = m->index;
    c->model_serial = m->serial;
    c->model_weight = m->weight > 0 ? m->weight : 1;
    for (int i = 0; i < count; i++) {
        int64_t tokens = member_tokens(&members[i]);
        share_of(c, job_tenant_class(members[i].job))->tokens += tokens;
        c->tokens += tokens;
    }
}
