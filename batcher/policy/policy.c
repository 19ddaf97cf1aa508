#include "batcher/policy/policy.h"

#include <assert.h>

#include "batcher/policy/candidate.h"

/* Runs the candidate, or waits for more requests where the model has a batching delay and slack
 * allows it. */
static policy_decision settle(const policy_snapshot *s, int q, const candidate *c)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    policy_decision d = {.action = POLICY_RUN,
                         .queue = q,
                         .bucket = c->bucket,
                         .packed = c->packed,
                         .rows = c->own,
                         .backfill_rows = c->backfill,
                         .budget_ns = c->budget_ns,
                         .expected_ns = (uint64_t)c->time_ns};
    if (c->own > 1)
        d.late_ns = s->now_ns + (uint64_t)(c->time_ns * (1 + CANDIDATE_TIME_MARGIN / 2));
    if (m->queue_delay_ns == 0 || s->is_flushing)
        return d;
    int64_t rows_max = m->is_exact ? (m->is_alone ? c->own : m->rows_max)
                                   : bucket_rows_max(m->table, head->sequence);
    /* The device is idle, or it would not ask: waiting delays only those who wait. */
    uint64_t until_ns = head->oldest_ns + m->queue_delay_ns;
    if (c->own + c->backfill >= rows_max || until_ns <= s->now_ns)
        return d;
    uint64_t end_ns = until_ns + 2 * d.expected_ns;
    if (head->deadline_ns < end_ns) {
        if (head->deadline_ns <= s->now_ns + 2 * d.expected_ns || d.expected_ns == 0)
            return d;
        until_ns = head->deadline_ns - 2 * d.expected_ns;
    }
    return (policy_decision){.action = POLICY_WAIT, .until_ns = until_ns, .queue = q};
}

static bool is_runnable(const policy_snapshot *s, int q)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    assert(head->rows > 0);
    return m->is_eligible && (m->is_exact || bucket_rows_max(m->table, head->sequence) > 0);
}

/* Is a model that could run too far behind this one? */
static bool is_ahead(const policy_snapshot *s, const policy_model *m)
{
    for (int i = 0; i < s->queue_count; i++) {
        const policy_model *other = &s->models[s->queues[i].model];
        if (other != m && other->virtual_ns + POLICY_MODEL_LAG_NS < m->virtual_ns &&
            is_runnable(s, i))
            return true;
    }
    return false;
}

/* A bucket queue with the batch that it would run now. */
typedef struct option {
    int queue;
    candidate batch, feasible;
    double index;
    double start_ns; /* latest, of `feasible`; far off without a deadline */
    double order_ns; /* the same, or by the implied deadline of those without one */
} option;

/* So many rounds of all bucket queues must fit into the least slack for taking turns. */
#define ROUNDS 1.0

/* Bucket queues that are compared with each other; where there are more, only their indexes count.
 */
#define OPTIONS_MAX 256

/* The unit of urgency: the mean time of one batch of each bucket queue says how soon another batch
 * can begin. False: some time is not known. */
static bool time_scale(const policy_snapshot *s, double *scale_ns)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < s->queue_count; i++) {
        const policy_queue *q = &s->queues[i];
        const policy_model *m = &s->models[q->model];
        if (!is_runnable(s, i))
            continue;
        candidate c = {.time_ns = 0};
        if (m->is_exact || m->table->is_ragged) {
            candidate feasible;
            if (!candidate_find(s, i, 1, &c, &feasible))
                return false;
        } else {
            c.time_ns = candidate_bucket_ns(m, bucket_choose(m->table, q->sequence, q->rows),
                                            q->rows, m->table->sequences[q->sequence]);
        }
        if (!(c.time_ns > 0))
            return false;
        sum += c.time_ns;
        count++;
    }
    *scale_ns =
        count > 0 ? CANDIDATE_URGENCY_BATCHES * sum / count / (s->workers > 1 ? s->workers : 1) : 1;
    return true;
}

/* Orders the options by latest start and looks ahead at the slack each has left when they run in
 * that order.
 *
 * - While one batch of every bucket queue takes less than the least slack there is time for all:
 *   the first of the order goes. Bucket queues then come round in turn, and grow in between.
 * - Else the option with the best index goes that makes no request late which would be in time
 *   otherwise: going first delays those before it in the order. The first of the order delays none.
 * - Where even that order cannot meet all deadlines the index alone decides: cheap ones first. */
static int choose_protecting(option *options, int count, int workers)
{
    for (int i = 1; i < count; i++) {
        option moved = options[i];
        int k = i;
        for (; k > 0 && options[k - 1].order_ns > moved.order_ns; k--)
            options[k] = options[k - 1];
        options[k] = moved;
    }
    double before_ns = 0, least_ns = 1e300, protected_ns[OPTIONS_MAX];
    for (int i = 0; i < count; i++) {
        double slack_ns = options[i].start_ns - before_ns / workers;
        protected_ns[i] = least_ns;
        least_ns = slack_ns < least_ns ? slack_ns : least_ns;
        before_ns += options[i].feasible.time_ns;
    }
    bool can_save_all = least_ns >= 0;
    bool has_time = least_ns >= before_ns / workers * ROUNDS;
    int best = 0;
    for (int i = 1; i < count && !has_time; i++) {
        if (can_save_all && protected_ns[i] < options[i].feasible.time_ns)
            continue;
        if (options[i].index > options[best].index)
            best = i;
    }
    if (can_save_all)
        options[best].batch = options[best].feasible;
    return best;
}

/* What to run, without the queues in `passed`; -1: there is nothing. */
static int choose(const policy_snapshot *s, double scale_ns, const bool *passed, candidate *out)
{
    option options[OPTIONS_MAX], best = {.queue = -1, .index = -1};
    int count = 0;
    bool fits = true;
    for (int i = 0; i < s->queue_count; i++) {
        const policy_queue *q = &s->queues[i];
        option o = {.queue = i};
        if (passed[i] || !is_runnable(s, i) || is_ahead(s, &s->models[q->model]) ||
            !candidate_find(s, i, scale_ns, &o.batch, &o.feasible))
            continue;
        o.index = candidate_index(s, i, &o.batch, scale_ns);
        o.start_ns = candidate_start_ns(s, q, o.feasible.time_ns);
        if (o.start_ns <
            0) /* in time without the margin; or lost, which is no reason to lose more */
            o.start_ns = o.start_ns >= -CANDIDATE_TIME_MARGIN * o.feasible.time_ns ? 0 : 1e300;
        o.order_ns = o.start_ns;
        if (q->timed_rows < q->rows) {
            double implied_ns =
                (double)q->implied_deadline_ns - (double)s->now_ns - o.feasible.time_ns;
            o.order_ns = implied_ns < o.order_ns ? implied_ns : o.order_ns;
        }
        if (o.index > best.index ||
            (o.index == best.index && q->oldest_ns < s->queues[best.queue].oldest_ns))
            best = o;
        fits &= count < OPTIONS_MAX;
        if (fits)
            options[count++] = o;
    }
    if (count > 1 && fits)
        best = options[choose_protecting(options, count, s->workers > 1 ? s->workers : 1)];
    *out = best.batch;
    return best.queue;
}

/* The oldest head: while times are not known, and for jobs whose implied deadline has passed. */
static int choose_oldest(const policy_snapshot *s, const bool *passed, bool is_aged)
{
    int oldest = -1;
    for (int i = 0; i < s->queue_count; i++) {
        const policy_queue *q = &s->queues[i];
        if (passed[i] || !is_runnable(s, i) || (is_aged && q->implied_deadline_ns > s->now_ns))
            continue;
        uint64_t age = is_aged ? q->implied_deadline_ns : q->oldest_ns;
        if (oldest < 0 ||
            age < (is_aged ? s->queues[oldest].implied_deadline_ns : s->queues[oldest].oldest_ns))
            oldest = i;
    }
    return oldest;
}

#define QUEUES_MAX (MODEL_INDEX_MAX * MODEL_AXIS_MAX)

void policy_decide(const policy_snapshot *s, policy_decision *out)
{
    *out = (policy_decision){.action = POLICY_NOTHING, .queue = -1, .bucket = -1};
    bool passed[QUEUES_MAX], is_known;
    assert(s->queue_count <= QUEUES_MAX);
    for (int i = 0; i < s->queue_count; i++)
        passed[i] = false;
    double scale_ns = 1;
    is_known = time_scale(s, &scale_ns);
    for (;;) {
        candidate c, feasible;
        int q = s->is_aged_first ? choose_oldest(s, passed, true) : -1;
        if (q >= 0 && is_known)
            is_known = candidate_find(s, q, scale_ns, &c, &feasible);
        else if (q < 0 && is_known)
            is_known = (q = choose(s, scale_ns, passed, &c)) >= 0;
        if (q < 0)
            q = choose_oldest(s, passed, false);
        if (q < 0)
            return;
        if (!is_known)
            candidate_guess(s, q, &c);
        policy_decision d = settle(s, q, &c);
        if (d.action == POLICY_RUN) {
            *out = d;
            return;
        }
        /* A batching delay of one queue does not hold up the others. */
        if (out->action != POLICY_WAIT || d.until_ns < out->until_ns)
            *out = d;
        passed[q] = true;
    }
}
