#include "batcher/policy/candidate.h"

#include <math.h>

/* Part of packed rows that sequences take, when there are more than enough of them. */
#define PACKED_FILL 0.95

/* What a shape costs by all that was measured. A bucket's own average says more of that bucket and
 * errs more, since few batches make it. */
static double shape_cost_ns(const policy_model *m, int bucket, double rows, double length)
{
    latency_fit f = latency_fit_of(m->latency, m->device_index);
    if (latency_is_known(f) &&
        latency_observations(m->latency, m->device_index) >= CANDIDATE_GUESS_OBSERVATIONS)
        return latency_cost_ns(f, rows * length, rows * length * length);
    return (double)latency_bucket_ns(m->latency, m->device_index, bucket);
}

/* For comparing padded with packed: real tokens for each nanosecond, or for each computed token
 * where padding is to be saved. */
static double worth_of(const policy_model *m, int bucket, double tokens, double rows, double length)
{
    return tokens / (m->saves_tokens ? rows * length : shape_cost_ns(m, bucket, rows, length));
}

/* Rows that wait in the bucket queues [from, to), and their tokens. */
static double waiting(const policy_model *m, int from, int to, double *tokens)
{
    double rows = 0;
    *tokens = 0;
    for (int i = from; i < to; i++) {
        rows += (double)m->bucket_queue_rows[i];
        *tokens += (double)m->bucket_queue_tokens[i];
    }
    return rows;
}

static double mean_length(const policy_model *m, int from, int to)
{
    double tokens, rows = waiting(m, from, to, &tokens);
    return rows > 0 ? tokens / rows : 0;
}

/* Real tokens in a padded batch that the bucket queue `sequence` leads. */
static double padded_tokens(const policy_model *m, int sequence, const candidate *c)
{
    return (double)c->own * mean_length(m, sequence, sequence + 1) +
           (double)c->backfill * mean_length(m, 0, sequence);
}

/* Of batches worth the same the larger one: more requests share its fixed cost. */
static bool is_better_packed(const candidate *c, const candidate *than)
{
    double tokens = (double)(c->packed->rows * c->packed->length);
    if (c->worth > than->worth * (1 + 1e-9))
        return true;
    return c->worth >= than->worth * (1 - 1e-9) &&
           tokens > (double)(than->packed->rows * than->packed->length);
}

/* The packed bucket that is worth most, of all bucket queues that its rows can hold. False: there
 * is none.
 */
static bool packed_candidate(const policy_snapshot *s, int q, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    const bucket_table *t = m->table;
    double own_length = mean_length(m, head->sequence, head->sequence + 1);
    bool is_found = false;
    for (int i = 0; i < t->packed_count; i++) {
        const bucket_packed *p = &t->packed[i];
        candidate c = {.bucket = p->index, .packed = p};
        c.time_ns = candidate_bucket_ns(m, p->index, p->rows, p->length);
        bool is_too_long = m->time_max_ns > 0 && c.time_ns > (double)m->time_max_ns;
        if (t->sequences[head->sequence] > p->length || !(c.time_ns > 0) || is_too_long)
            continue;
        double tokens, room = PACKED_FILL * (double)(p->rows * p->length);
        int queues = bucket_find_sequence(t, p->length) + 1;
        double rows = waiting(m, 0, queues, &tokens);
        c.tokens = fmin(fmin(tokens, room), (double)p->sequences * tokens / rows);
        c.rows = c.tokens * rows / tokens;
        c.own = (int64_t)fmin((double)head->rows, fmax(c.tokens / own_length, 1));
        c.backfill = (int64_t)fmax(c.rows - (double)c.own, 0);
        c.worth = worth_of(m, p->index, c.tokens, (double)p->rows, (double)p->length);
        if (!is_found || is_better_packed(&c, out))
            *out = c;
        is_found = true;
    }
    return is_found;
}

void candidate_prefer_packed(const policy_snapshot *s, int q, candidate *out, candidate *feasible)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    candidate c;
    if (m->bucket_queue_tokens == NULL || !packed_candidate(s, q, &c))
        return;
    double rows = (double)out->shape.batch, length = (double)out->shape.sequence;
    double tokens = padded_tokens(m, head->sequence, out);
    if (c.worth <= worth_of(m, out->bucket, tokens, rows, length))
        return;
    bool is_in_time = candidate_start_ns(s, head, c.time_ns) >= 0;
    if (is_in_time || candidate_start_ns(s, head, feasible->time_ns) < 0)
        *out = c;
    if (is_in_time)
        *feasible = c;
}
