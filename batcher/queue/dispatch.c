#include "batcher/queue/dispatch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Estimates that no batch has checked for so long reject no request: the next batch will tell. */
#define STALE_NS UINT64_C(2000000000)

void dispatch_init(dispatch *d, int device_count, int tenant_count, const uint32_t *weights)
{
    memset(d, 0, sizeof *d);
    d->device_count = device_count;
    fair_init(&d->fair, tenant_count, weights);
}

void dispatch_dispose(dispatch *d)
{
    for (int i = 0; i < d->queue_count; i++)
        model_queue_destroy(d->queues[i]);
    free(d->seen_queues);
    memset(d, 0, sizeof *d);
}

model_queue *dispatch_queue(dispatch *d, const model *m)
{
    assert(m->index >= 0 && m->index < MODEL_INDEX_MAX);
    model_queue **slot = &d->queues[m->index];
    if (*slot != NULL && ((*slot)->model != m || (*slot)->serial != m->serial)) {
        /* The index was another model's, which is gone: no job of it can be left. */
        model_queue_destroy(*slot);
        *slot = NULL;
    }
    if (*slot != NULL)
        return *slot;
    model_queue *q = model_queue_create(m, d->device_count, &d->fair);
    if (q == NULL)
        return NULL;
    if (m->index >= d->queue_count) {
        size_t capacity = (size_t)(m->index + 1) * MODEL_AXIS_MAX;
        policy_queue *seen = realloc(d->seen_queues, capacity * sizeof *seen);
        if (seen == NULL) {
            model_queue_destroy(q);
            return NULL;
        }
        d->seen_queues = seen;
        d->seen_capacity = (int)capacity;
        d->queue_count = m->index + 1;
    }
    *slot = q;
    return q;
}

/* A model that was idle starts where the others are: it has saved up no device time. */
static void level(dispatch *d, model_queue *q)
{
    uint64_t floor_ns = UINT64_MAX;
    for (int i = 0; i < d->queue_count; i++)
        if (d->queues[i] != NULL && d->queues[i]->rows > 0 && d->queues[i]->virtual_ns < floor_ns)
            floor_ns = d->queues[i]->virtual_ns;
    if (floor_ns != UINT64_MAX && q->virtual_ns < floor_ns)
        q->virtual_ns = floor_ns;
}

bool dispatch_push(dispatch *d, model_queue *q, job *j)
{
    if (q->rows == 0)
        level(d, q);
    return model_queue_push(q, j);
}

static bool is_quiet(const dispatch *d, int tenant)
{
    return d->fair.tenants[tenant].rows <= DISPATCH_QUIET_ROWS;
}

static bool is_shared(const dispatch *d, uint64_t now_ns)
{
    int tenants = 0;
    for (int t = 0; t < d->fair.tenant_count; t++)
        tenants += d->served_ns[t] != 0 && d->served_ns[t] + DISPATCH_SHARING_NS > now_ns;
    return tenants > 1;
}

/* How long a batch of that model may take; 0: no bound. A batch cannot be interrupted, so one with
 * a long queue of long rows would make quiet tenants wait for its full batches. */
static uint64_t time_max_ns(const dispatch *d, const model_queue *q, const dispatch_request *r)
{
    uint64_t most_ns = atomic_load_explicit(&q->slo.bound_ns, memory_order_relaxed);
    if (!is_shared(d, r->now_ns))
        return most_ns;
    double fixed_ns = latency_fit_of(q->latency, r->device_index).fixed_ns;
    double times = DISPATCH_SHARED_BATCH * (q->tables[r->device_index].is_ragged ? 1 : 2);
    uint64_t share_ns = (uint64_t)(fixed_ns * times);
    return share_ns > 0 && (most_ns == 0 || share_ns < most_ns) ? share_ns : most_ns;
}

static void see_model(dispatch *d, int i, const dispatch_request *r)
{
    model_queue *q = d->queues[i];
    const model_batching *b = &q->model->batching;
    model_queue_refresh(q);
    d->seen_models[i] = (policy_model){
        .table = &q->tables[r->device_index],
        .latency = q->latency,
        .device_index = r->device_index,
        .bucket_queue_rows = q->bucket_queue_rows,
        .bucket_queue_tokens = q->bucket_queue_tokens,
        .virtual_ns = q->virtual_ns,
        .queue_delay_ns = b->queue_delay_ns,
        .time_max_ns = time_max_ns(d, q, r),
        .rows_max = b->batch_max,
        .is_exact = model_is_exact(q->model),
        .is_alone = !b->can_batch,
        .is_eligible = d->is_eligible[i],
        .saves_tokens = q->model->packing == MODEL_PACKING_ALWAYS,
        .rows_queued = q->rows,
    };
}

static uint64_t mean_deadline_ns(const job_heap *h)
{
    return h->count > 0 ? h->deadline_sum_us / (uint64_t)h->count * 1024 : 0;
}

static void see_bucket_queue(const bucket_queue *from, int sequence, policy_queue *to)
{
    const job_heap *timed = &from->timed, *untimed = &from->untimed;
    const job *head = NULL;
    to->deadline_ns = to->implied_deadline_ns = UINT64_MAX;
    if (untimed->count > 0) {
        head = untimed->entries[0].job;
        to->implied_deadline_ns = untimed->entries[0].deadline_ns;
    }
    if (timed->count > 0) {
        if (head == NULL || timed->entries[0].deadline_ns <= to->implied_deadline_ns)
            head = timed->entries[0].job;
        to->deadline_ns = timed->entries[0].deadline_ns;
    }
    to->sequence = sequence;
    to->jobs = timed->count + untimed->count;
    to->rows = timed->rows + untimed->rows;
    to->timed_rows = timed->rows;
    to->mean_deadline_ns = mean_deadline_ns(timed);
    to->oldest_ns = head->stage_ns[STAGE_ADMIT];
    to->head_rows = head->rows - head->row_next;
    to->head_length = head->length;
}

/* What the policy sees when that tenant's class leads. */
static void see_tenant_class(dispatch *d, const dispatch_request *r, tenant_class whose,
                             policy_snapshot *out)
{
    int count = 0;
    for (int i = 0; i < d->queue_count; i++) {
        const model_queue *q = d->queues[i];
        const tenant_class_queue *own = q ? q->queues[whose.tenant][whose.class] : NULL;
        if (own == NULL || own->rows == 0)
            continue;
        see_model(d, i, r);
        for (int k = 0; k < q->bucket_queue_count; k++) {
            if (own->buckets[k].timed.count + own->buckets[k].untimed.count == 0)
                continue;
            assert(count < d->seen_capacity);
            d->seen_queues[count] = (policy_queue){.model = i};
            see_bucket_queue(&own->buckets[k], k, &d->seen_queues[count++]);
        }
    }
    *out = (policy_snapshot){
        .now_ns = r->now_ns,
        .queues = d->seen_queues,
        .queue_count = count,
        .models = d->seen_models,
        .model_count = d->queue_count,
        .workers = r->workers,
        .is_flushing = r->devices->is_stopping,
        .is_aged_first = d->batches % DISPATCH_AGED_TURN == DISPATCH_AGED_TURN - 1,
    };
}

/* Takes members from the bucket queues of one sequence until the batch has `wanted` rows: first of
 * the tenant's class that leads, then backfill from the others, largest fair-share credit first. */
static void take_sequence(dispatch *d, model_queue *q, tenant_class lead, int lead_sequence,
                          int sequence, queue_take *t, int64_t wanted)
{
    fair_set passed = {0};
    tenant_class whose = lead;
    const double budget_ns = t->budget_ns;
    while (whose.tenant >= 0 && t->rows < wanted && q->bucket_queue_rows[sequence] > 0) {
        int64_t had = t->rows;
        bool is_lead = whose.tenant == lead.tenant && whose.class == lead.class;
        bool is_busy = whose.tenant != lead.tenant && !is_quiet(d, whose.tenant);
        t->budget_ns = is_busy && t->busy_budget_ns < budget_ns ? t->busy_budget_ns : budget_ns;
        t->rows = wanted - had;
        t->is_backfill = sequence != lead_sequence || !is_lead;
        t->rows = had + model_queue_take(q, whose, sequence, t);
        fair_pass(&passed, whose);
        whose = fair_next(&d->fair, &passed);
    }
    t->budget_ns = budget_ns;
}

/* From all bucket queues whose sequences the rows can hold: the leading one's share, then the long
 * sequences first. */
static void take_packed(dispatch *d, model_queue *q, tenant_class lead, int lead_sequence,
                        const policy_decision *decision, queue_take *t, pack_place *places)
{
    const bucket_packed *p = decision->packed;
    pack_open(&d->pack, p->length, (int)p->rows, (int)p->sequences);
    t->pack = &d->pack;
    t->places = places;
    take_sequence(d, q, lead, lead_sequence, lead_sequence, t, decision->rows);
    for (int i = q->bucket_queue_count - 1; i >= 0 && t->count > 0; i--)
        if (q->axes.sequences[i] <= p->length)
            take_sequence(d, q, lead, lead_sequence, i, t, p->sequences);
}

static void take(dispatch *d, const dispatch_request *r, tenant_class lead,
                 const policy_decision *decision, int sequence, dispatch_batch *out)
{
    model_queue *q = out->queue;
    queue_take t = {.length = -1,
                    .until_ns = decision->late_ns,
                    .budget_ns = decision->budget_ns > 0 ? decision->budget_ns : 1e300,
                    .busy_budget_ns = 1e300,
                    .fit = latency_fit_of(q->latency, r->device_index),
                    .members = out->members,
                    .capacity = out->capacity};
    int64_t wanted = decision->rows + decision->backfill_rows;
    if (decision->budget_ns > 0 && is_quiet(d, lead.tenant))
        t.busy_budget_ns = t.fit.fixed_ns * DISPATCH_SHARED_BACKFILL;
    if (decision->bucket < 0) {
        /* The head may have been dropped since: its length is that of the job that is first now. */
        job *head = model_queue_head(q, lead, sequence, &t.dead);
        if (head != NULL && !q->model->batching.can_batch) {
            t.rows = INT64_MAX;
            t.is_whole = true;
            t.capacity = 1;
            t.rows = model_queue_take(q, lead, sequence, &t);
        } else if (head != NULL) {
            t.length = head->length;
            take_sequence(d, q, lead, sequence, sequence, &t, wanted);
        }
    } else if (decision->packed != NULL) {
        take_packed(d, q, lead, sequence, decision, &t, out->places);
    } else {
        take_sequence(d, q, lead, sequence, sequence, &t, wanted);
        for (int i = sequence - 1; i >= 0 && t.rows < wanted && t.count > 0; i--)
            take_sequence(d, q, lead, sequence, i, &t, wanted);
    }
    out->count = t.count;
    out->rows = t.rows;
    /* Where no bucket fixes the time, the members that were taken do. */
    bool is_bucket = decision->bucket >= 0 && !q->tables[r->device_index].is_ragged;
    out->expected_ns = decision->expected_ns;
    if (!is_bucket && latency_is_known(t.fit))
        out->expected_ns = (uint64_t)(t.fit.fixed_ns + t.cost_ns);
    for (job *j = t.overdue, *next; j != NULL; j = next) {
        next = j->next;
        j->next = out->overdue;
        out->overdue = j;
    }
    for (job *j = t.dead, *next; j != NULL; j = next) {
        next = j->next;
        j->next = out->dead;
        out->dead = j;
    }
}

/* Makes what is attributed `time_ns` in all. */
static void attribute(dispatch *d, cost_attribution *c, uint64_t time_ns)
{
    for (int i = 0; i < c->count; i++) {
        int64_t before_ns = cost_attribution_part_ns(c, i, c->attributed_ns);
        int64_t after_ns = cost_attribution_part_ns(c, i, time_ns);
        fair_add_service(&d->fair, c->shares[i].whose, after_ns - before_ns);
    }
    model_queue *q = c->model_index < d->queue_count ? d->queues[c->model_index] : NULL;
    uint64_t weight = (uint64_t)c->model_weight;
    if (q != NULL && q->serial == c->model_serial)
        q->virtual_ns += time_ns / weight - c->attributed_ns / weight;
    c->attributed_ns = time_ns;
}

void dispatch_settle(dispatch *d, cost_attribution *c, uint64_t took_ns)
{
    if (c->count > 0)
        attribute(d, c, took_ns);
    c->count = 0;
}

/* Attributes the expected time at once: else workers that decide before this batch is over would
 * not know of it. */
static void begin(dispatch *d, const dispatch_batch *taken, uint64_t now_ns)
{
    cost_attribution *c = taken->attribution;
    cost_attribution_init(c, taken->members, taken->count);
    for (int i = 0; i < c->count; i++)
        d->served_ns[c->shares[i].whose.tenant] = now_ns;
    /* While nothing is measured every token costs the same. */
    uint64_t guess_ns = (uint64_t)c->tokens * 1000;
    attribute(d, c, taken->expected_ns > 0 ? taken->expected_ns : guess_ns);
}

static bool is_stale(const dispatch *d, const model_queue *q, uint64_t now_ns)
{
    for (int i = 0; i < d->device_count; i++)
        if (latency_observed_ns(q->latency, i) + STALE_NS > now_ns)
            return false;
    return true;
}

static void prepare(dispatch *d, const dispatch_request *r, dispatch_batch *out)
{
    for (int i = 0; i < d->queue_count; i++) {
        model_queue *q = d->queues[i];
        d->is_eligible[i] = false;
        if (q == NULL || q->rows == 0)
            continue;
        model_queue_drop_late(q, r->now_ns, !is_stale(d, q, r->now_ns), &out->overdue);
        placement_model m = {.tables = q->tables,
                             .latency = q->latency,
                             .rows = q->bucket_queue_rows,
                             .sequence_count = q->bucket_queue_count,
                             .is_exact = model_is_exact(q->model),
                             .is_device_only = q->model->on_device.exported != NULL};
        d->is_eligible[i] = q->rows > 0 && placement_is_eligible(r->devices, &m, r->device_index);
    }
}

void dispatch_next(dispatch *d, const dispatch_request *r, dispatch_batch *out)
{
    out->action = POLICY_NOTHING;
    out->count = 0;
    out->rows = 0;
    out->until_ns = UINT64_MAX;
    out->overdue = out->dead = NULL;
    prepare(d, r, out);
    fair_set passed = {0};
    for (tenant_class lead; (lead = fair_next(&d->fair, &passed)).tenant >= 0;) {
        policy_snapshot s;
        policy_decision decision;
        see_tenant_class(d, r, lead, &s);
        policy_decide(&s, &decision);
        if (decision.action != POLICY_RUN) {
            if (decision.action == POLICY_WAIT) {
                out->action = POLICY_WAIT;
                if (decision.until_ns < out->until_ns)
                    out->until_ns = decision.until_ns;
            }
            fair_pass(&passed, lead);
            continue;
        }
        const policy_queue *chosen = &s.queues[decision.queue];
        out->queue = d->queues[chosen->model];
        out->bucket = decision.bucket;
        out->packed = decision.packed;
        take(d, r, lead, &decision, chosen->sequence, out);
        /* A bucket queue may turn out to hold only cancelled jobs: then decide again. */
        if (out->count == 0)
            continue;
        out->action = POLICY_RUN;
        d->batches++;
        fair_lead(&d->fair, lead);
        begin(d, out, r->now_ns);
        return;
    }
}

/* Queues of so many rows in all are swept at any time. */
#define SHORT_ROWS 256

bool dispatch_sweep(dispatch *d, uint64_t now_ns, job **dead)
{
    int64_t rows = 0;
    for (int i = 0; i < d->queue_count; i++)
        rows += d->queues[i] ? d->queues[i]->rows : 0;
    if (rows > SHORT_ROWS && now_ns < d->swept_ns + DISPATCH_SWEEP_NS)
        return false;
    d->swept_ns = now_ns;
    for (int i = 0; i < d->queue_count; i++)
        if (d->queues[i] != NULL && d->queues[i]->rows > 0)
            model_queue_drop_dead(d->queues[i], dead);
    return true;
}

void dispatch_empty(dispatch *d, job **dropped)
{
    for (int i = 0; i < d->queue_count; i++)
        if (d->queues[i] != NULL)
            model_queue_empty(d->queues[i], dropped);
}

uint64_t dispatch_deadline(const dispatch *d, bool *has_rows)
{
    uint64_t deadline_ns = UINT64_MAX;
    *has_rows = false;
    for (int i = 0; i < d->queue_count; i++) {
        if (d->queues[i] == NULL || d->queues[i]->rows == 0)
            continue;
        *has_rows = true;
        uint64_t own_ns = model_queue_deadline(d->queues[i]);
        deadline_ns = own_ns < deadline_ns ? own_ns : deadline_ns;
    }
    return deadline_ns;
}
