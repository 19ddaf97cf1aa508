#include "batcher/policy.h"

#include <assert.h>
#include <math.h>

/* Urgency of somebody with all the time in the world: lets throughput decide among such. */
#define URGENCY_FLOOR 0.02
/* Slack that counts as much, in batches: beyond it urgency has fallen to 1/e. */
#define URGENCY_BATCHES 1.0
/* Rows of other lists that ride along count this much: their own batch would come anyway. */
#define RIDER_SHARE 0.5

/* A batch that could run: `own` rows of the list, `riders` beside them. */
typedef struct candidate {
    int bucket;
    int64_t own, riders;
    double time_ns, budget_ns;
} candidate;

/* Rows that could fill up a batch of queue `q` without making its bucket larger. */
static int64_t company(const policy_snapshot *s, int q)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    int64_t rows = 0;
    if (m->list_rows != NULL) {
        for (int i = 0; i <= head->sequence; i++)
            rows += m->list_rows[i];
        return rows - head->rows;
    }
    for (int i = 0; i < s->queue_count; i++)
        if (i != q && s->queues[i].model == head->model && s->queues[i].sequence < head->sequence)
            rows += s->queues[i].rows;
    return rows;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Mean of floor + (1 - floor) * exp(-x) over x evenly spread from x0 to x1, 0 where x < 0. */
static double urgency_between(double x0, double x1)
{
    if (x1 < 0)
        return 0;
    if (x1 - x0 < 1e-6)
        return URGENCY_FLOOR + (1 - URGENCY_FLOOR) * exp(-x0);
    double from = x0 > 0 ? x0 : 0;
    return (URGENCY_FLOOR * (x1 - from) + (1 - URGENCY_FLOOR) * (exp(-from) - exp(-x1))) /
           (x1 - x0);
}

/* Mean urgency of the first `rows` of a list when their batch takes `time_ns`. Deadlines are taken
 * as evenly spread around their mean. */
static double urgency(const policy_snapshot *s, const policy_queue *q, int64_t rows, double time_ns,
                      double scale_ns)
{
    double sum = 0, end_ns = (double)s->now_ns + time_ns;
    double timed = (double)q->timed_rows / (double)q->rows;
    if (q->timed_rows > 0) {
        double first = (double)q->deadline_ns;
        double mean = q->mean_deadline_ns > q->deadline_ns ? (double)q->mean_deadline_ns : first;
        double last = first + 2 * (mean - first) * (double)rows / (double)q->rows;
        sum += timed * urgency_between((first - end_ns) / scale_ns, (last - end_ns) / scale_ns);
    }
    if (timed < 1) {
        double x = ((double)q->due_ns - end_ns) / scale_ns;
        sum += (1 - timed) * (URGENCY_FLOOR + (1 - URGENCY_FLOOR) * exp(x > 0 ? -x : 0));
    }
    return sum;
}

static double bucket_ns(const policy_model *m, int bucket)
{
    return m->latency ? (double)latency_bucket_ns(m->latency, m->device_index, bucket) : 0;
}

/* Ragged: rows of this list until the fixed cost is paid off. */
static bool ragged_candidate(const policy_snapshot *s, int q, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    latency_fit f = m->latency ? latency_fit_of(m->latency, m->device_index) : (latency_fit){0};
    int64_t rows_max = bucket_rows_max(m->table, m->table->sequence_count - 1);
    double length = (double)m->table->sequences[head->sequence];
    length = length > 0 ? length : 1;
    double row_ns = f.token_ns * length + f.square_ns * length * length;
    *out = (candidate){.own = least(head->rows, rows_max),
                       .bucket = bucket_choose(m->table, m->table->sequence_count - 1, rows_max)};
    if (!(row_ns > 0)) {
        out->riders = least(company(s, q), rows_max - out->own);
        return false;
    }
    out->budget_ns = f.fixed_ns * (1 / POLICY_FIXED_SHARE - 1);
    if (m->time_max_ns > 0 && out->budget_ns > (double)m->time_max_ns - f.fixed_ns)
        out->budget_ns = (double)m->time_max_ns - f.fixed_ns;
    if (out->budget_ns < row_ns)
        out->budget_ns = row_ns;
    double fits = out->budget_ns / row_ns;
    if ((double)out->own > fits)
        out->own = (int64_t)fits;
    out->riders = least(company(s, q), rows_max - out->own);
    out->time_ns = f.fixed_ns + row_ns * (double)out->own;
    return true;
}

static double index_of(const policy_snapshot *s, int q, const candidate *c, double scale_ns)
{
    double u = urgency(s, &s->queues[q], c->own, c->time_ns, scale_ns);
    double riders =
        c->budget_ns > 0 ? 0 : (double)c->riders; /* ragged: riders cost their own time */
    return u * ((double)c->own + RIDER_SHARE * riders) / c->time_ns;
}

/* The batch of a static-shape device with the best index. False: some time is not known. */
static bool padded_candidate(const policy_snapshot *s, int q, double scale_ns, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    const bucket_table *t = m->table;
    int64_t others = company(s, q);
    double best = -1;
    bool is_known = true;
    int sequence = head->sequence;
    /* A longer sequence only where the right one has nothing ready. */
    while (sequence < t->sequence_count && bucket_choose(t, sequence, 1) >= 0 &&
           bucket_choose(t, sequence, 1) == bucket_choose(t, sequence + 1, 1))
        sequence++;
    for (int b = 0; b < t->batch_count; b++) {
        int bucket = t->index[sequence * MODEL_AXIS_MAX + b];
        if (bucket < 0)
            continue;
        candidate c = {.bucket = bucket,
                       .own = least(head->rows, t->batches[b]),
                       .time_ns = bucket_ns(m, bucket)};
        c.riders = least(others, t->batches[b] - c.own);
        is_known &= c.time_ns > 0;
        bool is_too_long = m->time_max_ns > 0 && c.time_ns > (double)m->time_max_ns;
        if (best >= 0 && is_too_long)
            break;
        double index = c.time_ns > 0 ? index_of(s, q, &c, scale_ns) : 0;
        if (index > best) {
            best = index;
            *out = c;
        }
        if (t->batches[b] >= head->rows + others)
            break;
    }
    return is_known && best >= 0;
}

static bool exact_candidate(const policy_snapshot *s, int q, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    *out = (candidate){.bucket = -1,
                       .own = m->is_alone ? head->head_rows : least(head->rows, m->rows_max)};
    latency_fit f = m->latency ? latency_fit_of(m->latency, m->device_index) : (latency_fit){0};
    double length = head->head_length > 0 ? (double)head->head_length : 1;
    out->time_ns =
        latency_cost_ns(f, (double)out->own * length, (double)out->own * length * length);
    return out->time_ns > 0;
}

static bool find_candidate(const policy_snapshot *s, int q, double scale_ns, candidate *out)
{
    const policy_model *m = &s->models[s->queues[q].model];
    return m->is_exact           ? exact_candidate(s, q, out)
           : m->table->is_ragged ? ragged_candidate(s, q, out)
                                 : padded_candidate(s, q, scale_ns, out);
}

/* Without measurements: as many rows as there are, in the smallest bucket that holds them. */
static void blind_candidate(const policy_snapshot *s, int q, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    if (m->is_exact || m->table->is_ragged) {
        find_candidate(s, q, 1, out);
        return;
    }
    out->own = least(head->rows, bucket_rows_max(m->table, head->sequence));
    out->bucket = bucket_choose(m->table, head->sequence, out->own);
    assert(out->bucket >= 0);
    int64_t room = 0;
    for (int i = 0; i < m->table->sequence_count; i++)
        for (int b = 0; b < m->table->batch_count; b++)
            if (m->table->index[i * MODEL_AXIS_MAX + b] == out->bucket)
                room = m->table->batches[b] - out->own;
    out->riders = least(company(s, q), room);
    out->time_ns = bucket_ns(m, out->bucket);
    out->budget_ns = 0;
}

/* Runs the candidate, or waits for company where the model asks for that and slack allows. */
static policy_decision settle(const policy_snapshot *s, int q, const candidate *c)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    policy_decision d = {.action = POLICY_RUN,
                         .queue = q,
                         .bucket = c->bucket,
                         .rows = c->own,
                         .fill_rows = c->riders,
                         .budget_ns = c->budget_ns,
                         .expected_ns = (uint64_t)c->time_ns};
    if (c->own > 1)
        d.late_ns = s->now_ns + d.expected_ns;
    if (m->queue_delay_ns == 0 || s->is_flushing)
        return d;
    int64_t rows_max = m->is_exact ? (m->is_alone ? c->own : m->rows_max)
                                   : bucket_rows_max(m->table, head->sequence);
    /* The device is idle, or it would not ask: waiting costs only the waiters. */
    uint64_t until_ns = head->oldest_ns + m->queue_delay_ns;
    if (c->own + c->riders >= rows_max || until_ns <= s->now_ns)
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

/* Is another model that could run too far behind this one? */
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

/* Mean time of the candidates: how soon a list may come again, in units of its own. */
static double time_scale(const policy_snapshot *s, bool *is_known)
{
    double sum = 0;
    int count = 0;
    *is_known = true;
    for (int i = 0; i < s->queue_count; i++) {
        candidate c;
        if (!is_runnable(s, i))
            continue;
        *is_known &= find_candidate(s, i, 1e9, &c) && c.time_ns > 0;
        sum += c.time_ns;
        count++;
    }
    double mean = count > 0 ? sum / count : 1;
    return URGENCY_BATCHES * (mean > 1 ? mean : 1) / (s->lanes > 1 ? s->lanes : 1);
}

/* The best index, without the queues in `passed`; -1: there is none. */
static int choose(const policy_snapshot *s, double scale_ns, const bool *passed, candidate *out)
{
    double best = -1;
    int chosen = -1;
    for (int i = 0; i < s->queue_count; i++) {
        candidate c;
        if (passed[i] || !is_runnable(s, i) || is_ahead(s, &s->models[s->queues[i].model]) ||
            !find_candidate(s, i, scale_ns, &c))
            continue;
        double index = index_of(s, i, &c, scale_ns);
        if (index > best ||
            (index == best && s->queues[i].oldest_ns < s->queues[chosen].oldest_ns)) {
            best = index;
            chosen = i;
            *out = c;
        }
    }
    return chosen;
}

/* The oldest head: without measurements, and for who is long overdue. */
static int choose_oldest(const policy_snapshot *s, const bool *passed, bool is_aged)
{
    int oldest = -1;
    for (int i = 0; i < s->queue_count; i++) {
        const policy_queue *q = &s->queues[i];
        if (passed[i] || !is_runnable(s, i) || (is_aged && q->due_ns > s->now_ns))
            continue;
        uint64_t age = is_aged ? q->due_ns : q->oldest_ns;
        if (oldest < 0 || age < (is_aged ? s->queues[oldest].due_ns : s->queues[oldest].oldest_ns))
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
    double scale_ns = time_scale(s, &is_known);
    for (;;) {
        candidate c;
        int q = s->is_aged_first ? choose_oldest(s, passed, true) : -1;
        if (q < 0 && is_known)
            q = choose(s, scale_ns, passed, &c);
        else if (q < 0)
            q = choose_oldest(s, passed, false);
        else if (is_known)
            is_known = find_candidate(s, q, scale_ns, &c);
        if (q < 0)
            return;
        if (!is_known)
            blind_candidate(s, q, &c);
        policy_decision d = settle(s, q, &c);
        if (d.action == POLICY_RUN) {
            *out = d;
            return;
        }
        /* One that waits for company does not hold up the others. */
        if (out->action != POLICY_WAIT || d.until_ns < out->until_ns)
            *out = d;
        passed[q] = true;
    }
}
