#include "batcher/policy.h"

#include <assert.h>

/* Rows that could fill up a batch of queue `q` without making its bucket larger. */
static int64_t company(const policy_snapshot *s, int q)
{
    const policy_queue *head = &s->queues[q];
    bool is_ragged = s->models[head->model].table->is_ragged;
    int64_t rows = 0;
    for (int i = 0; i < s->queue_count; i++)
        if (i != q && s->queues[i].model == head->model &&
            (is_ragged || s->queues[i].sequence < head->sequence))
            rows += s->queues[i].rows;
    return rows;
}

static int64_t bucket_rows(const bucket_table *t, int index)
{
    for (int i = 0; i < t->sequence_count; i++)
        for (int b = 0; b < t->batch_count; b++)
            if (t->index[i * MODEL_AXIS_MAX + b] == index)
                return t->batches[b];
    assert(!"a bucket of this table");
    return 0;
}

/* A batch around the head of queue `q`, or the time until which it should wait for company. */
static policy_decision plan(const policy_snapshot *s, int q)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    policy_decision d = {.action = POLICY_RUN, .queue = q, .bucket = -1};
    int64_t rows_max;
    if (m->is_exact) {
        rows_max = m->is_alone ? head->head_rows : m->rows_max;
        d.rows = m->is_alone || head->rows < rows_max ? head->rows : rows_max;
        if (m->is_alone)
            d.rows = head->head_rows;
    } else {
        /* A ragged program computes no padding, so its bucket is only a ceiling: take the
         * longest, and company of every length. */
        int sequence = m->table->is_ragged ? m->table->sequence_count - 1 : head->sequence;
        rows_max = bucket_rows_max(m->table, sequence);
        d.rows = head->rows < rows_max ? head->rows : rows_max;
        d.bucket = bucket_choose(m->table, sequence, m->table->is_ragged ? rows_max : d.rows);
        assert(d.bucket >= 0);
        int64_t room = bucket_rows(m->table, d.bucket) - d.rows;
        assert(room >= 0);
        int64_t others = room > 0 ? company(s, q) : 0;
        d.fill_rows = others < room ? others : room;
    }
    /* The device is idle, or it would not ask: waiting costs only the waiters. */
    uint64_t until_ns = head->oldest_ns + m->queue_delay_ns;
    if (m->queue_delay_ns > 0 && !s->is_flushing && d.rows + d.fill_rows < rows_max &&
        until_ns > s->now_ns) {
        if (head->deadline_ns < until_ns)
            until_ns = head->deadline_ns > s->now_ns ? s->now_ns : until_ns;
        if (until_ns > s->now_ns)
            d = (policy_decision){.action = POLICY_WAIT, .until_ns = until_ns, .queue = q};
    }
    return d;
}

void policy_decide(const policy_snapshot *s, policy_decision *out)
{
    *out = (policy_decision){.action = POLICY_NOTHING, .queue = -1, .bucket = -1};
    /* Oldest first, over all models and lengths: no job waits for ever, because every batch takes
     * the oldest job that its device can run, unless that one prefers to wait for company. */
    uint64_t floor_ns = 0;
    int floor_queue = -1;
    for (;;) {
        int oldest = -1;
        for (int i = 0; i < s->queue_count; i++) {
            const policy_queue *q = &s->queues[i];
            const policy_model *m = &s->models[q->model];
            assert(q->rows > 0);
            bool is_after =
                q->oldest_ns > floor_ns || (q->oldest_ns == floor_ns && i > floor_queue);
            if (!m->is_eligible || !is_after ||
                (!m->is_exact && bucket_rows_max(m->table, q->sequence) == 0))
                continue;
            if (oldest < 0 || q->oldest_ns < s->queues[oldest].oldest_ns)
                oldest = i;
        }
        if (oldest < 0)
            return;
        policy_decision d = plan(s, oldest);
        if (d.action == POLICY_RUN) {
            *out = d;
            return;
        }
        if (out->action != POLICY_WAIT || d.until_ns < out->until_ns)
            *out = d;
        floor_ns = s->queues[oldest].oldest_ns;
        floor_queue = oldest;
    }
}
