#include "batcher/policy/candidate.h"

#include <assert.h>
#include <math.h>

/* Urgency of a request with plenty of slack: among such, throughput decides. */
#define URGENCY_FLOOR 0.05

/* Rows that could fill up a batch of queue `q` without making its bucket larger. */
static int64_t backfill_rows(const policy_snapshot *s, int q)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    int64_t rows = 0;
    if (m->bucket_queue_rows != NULL) {
        for (int i = 0; i <= head->sequence; i++)
            rows += m->bucket_queue_rows[i];
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

/* Mean urgency of the first `rows` of a queue when their batch takes `time_ns`. Deadlines are taken
 * as evenly spread around their mean. */
static double urgency(const policy_snapshot *s, const policy_queue *q, int64_t rows, double time_ns,
                      double scale_ns)
{
    double sum = 0, end_ns = (double)s->now_ns + time_ns;
    double timed = (double)q->timed_rows / (double)q->rows;
    if (q->timed_rows > 0) {
        double first = (double)q->deadline_ns;
        double mean = q->mean_deadline_ns > q->deadline_ns ? (double)q->mean_deadline_ns : first;
        double last = first + 2 * (mean - first), share = (double)rows / (double)q->rows;
        /* Requests that would be late are left out, and later ones take their places. */
        double in_time = end_ns <= first  ? 1
                         : end_ns >= last ? 0
                                          : (last - end_ns) / (last - first);
        double from = end_ns > first ? end_ns : first;
        double taken = in_time < share ? in_time : share;
        double to = from + taken * (last - first);
        sum += timed * taken / share *
               urgency_between((from - end_ns) / scale_ns, (to - end_ns) / scale_ns);
    }
    if (timed < 1) {
        double x = ((double)q->implied_deadline_ns - end_ns) / scale_ns;
        sum += (1 - timed) * (URGENCY_FLOOR + (1 - URGENCY_FLOOR) * exp(x > 0 ? -x : 0));
    }
    return sum;
}

double candidate_bucket_ns(const policy_model *m, int bucket, int64_t rows, int64_t length)
{
    if (m->latency == NULL)
        return 0;
    double ns = (double)latency_bucket_ns(m->latency, m->device_index, bucket);
    if (ns > 0 || latency_observations(m->latency, m->device_index) < CANDIDATE_GUESS_OBSERVATIONS)
        return ns;
    double l = length > 0 ? (double)length : 1, r = (double)rows;
    return latency_cost_ns(latency_fit_of(m->latency, m->device_index), r * l, r * l * l);
}

/* Ragged: rows of this queue until the batch is as long as its cost justifies. */
static bool ragged_candidate(const policy_snapshot *s, int q, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    latency_fit f = m->latency ? latency_fit_of(m->latency, m->device_index) : (latency_fit){0};
    /* Buckets do not bound a ragged program: it cuts whatever it gets into chunks. */
    int64_t bucket_rows = bucket_rows_max(m->table, m->table->sequence_count - 1);
    int64_t rows_max = m->rows_max > bucket_rows ? m->rows_max : bucket_rows;
    double length = (double)m->table->sequences[head->sequence];
    length = length > 0 ? length : 1;
    double row_ns = f.token_ns * length + f.square_ns * length * length;
    *out =
        (candidate){.own = least(head->rows, rows_max),
                    .bucket = bucket_choose(m->table, m->table->sequence_count - 1, bucket_rows)};
    if (!(row_ns > 0)) {
        out->backfill = least(backfill_rows(s, q), rows_max - out->own);
        return false;
    }
    out->budget_ns = f.fixed_ns * (1 / POLICY_FIXED_SHARE - 1);
    double backlog_ns = row_ns * (double)m->rows_queued / (double)(s->workers > 1 ? s->workers : 1);
    double by_cost_ns = sqrt(f.fixed_ns * backlog_ns);
    if (out->budget_ns < by_cost_ns)
        out->budget_ns = by_cost_ns;
    if (m->time_max_ns > 0 && out->budget_ns > (double)m->time_max_ns - f.fixed_ns)
        out->budget_ns = (double)m->time_max_ns - f.fixed_ns;
    if (out->budget_ns < row_ns)
        out->budget_ns = row_ns;
    double fits = out->budget_ns / row_ns;
    if ((double)out->own > fits)
        out->own = (int64_t)fits;
    out->backfill = least(backfill_rows(s, q), rows_max - out->own);
    out->time_ns = f.fixed_ns + row_ns * (double)out->own;
    return true;
}

/* Backfill earns nothing here: it is welcome, but a batch that lives off it would be cheaper as a
 * batch of its own, in its own shorter bucket. Packed rows have no backfill: all bucket queues
 * share them. */
double candidate_index(const policy_snapshot *s, int q, const candidate *c, double scale_ns)
{
    double rows = c->packed != NULL ? c->rows : (double)c->own;
    return urgency(s, &s->queues[q], c->own, c->time_ns, scale_ns) * rows / c->time_ns;
}

double candidate_start_ns(const policy_snapshot *s, const policy_queue *q, double time_ns)
{
    if (q->timed_rows == 0 || q->deadline_ns == UINT64_MAX)
        return 1e300;
    return (double)q->deadline_ns - (double)s->now_ns - time_ns * (1 + CANDIDATE_TIME_MARGIN);
}

/* The batch of a static-shape device with the best index; and, as `feasible`, the best of those
 * that meet the deadline of the most urgent member. False: some time is not known. */
static bool padded_candidate(const policy_snapshot *s, int q, double scale_ns, candidate *out,
                             candidate *feasible)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    const bucket_table *t = m->table;
    int64_t others = backfill_rows(s, q);
    double best = -1, best_feasible = -1;
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
                       .shape = {t->batches[b], t->sequences[sequence]},
                       .own = least(head->rows, t->batches[b]),
                       .time_ns =
                           candidate_bucket_ns(m, bucket, t->batches[b], t->sequences[sequence])};
        c.backfill = least(others, t->batches[b] - c.own);
        is_known &= c.time_ns > 0;
        bool is_too_long = m->time_max_ns > 0 && c.time_ns > (double)m->time_max_ns;
        if (best >= 0 && is_too_long)
            break;
        double index = c.time_ns > 0 ? candidate_index(s, q, &c, scale_ns) : 0;
        if (index > best) {
            best = index;
            *out = c;
        }
        if (index > best_feasible && candidate_start_ns(s, head, c.time_ns) >= 0) {
            best_feasible = index;
            *feasible = c;
        }
        if (t->batches[b] >= head->rows + others)
            break;
    }
    if (best_feasible < 0)
        *feasible = *out;
    if (is_known && best >= 0)
        candidate_prefer_packed(s, q, out, feasible);
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

bool candidate_find(const policy_snapshot *s, int q, double scale_ns, candidate *out,
                    candidate *feasible)
{
    const policy_model *m = &s->models[s->queues[q].model];
    if (!m->is_exact && !m->table->is_ragged)
        return padded_candidate(s, q, scale_ns, out, feasible);
    bool is_known = m->is_exact ? exact_candidate(s, q, out) : ragged_candidate(s, q, out);
    *feasible = *out;
    return is_known;
}

void candidate_guess(const policy_snapshot *s, int q, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    const bucket_table *t = m->table;
    if (m->is_exact || t->is_ragged) {
        candidate feasible;
        candidate_find(s, q, 1, out, &feasible);
        return;
    }
    int64_t own = least(head->rows, bucket_rows_max(t, head->sequence));
    int cell = bucket_choose_cell(t, head->sequence, own);
    assert(cell >= 0);
    int64_t rows = t->batches[cell % MODEL_AXIS_MAX];
    *out = (candidate){.bucket = t->index[cell],
                       .own = own,
                       .backfill = least(backfill_rows(s, q), rows - own),
                       .time_ns = candidate_bucket_ns(m, t->index[cell], rows,
                                                      t->sequences[cell / MODEL_AXIS_MAX])};
}
