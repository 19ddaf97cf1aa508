#include "batcher/policy.h"

#include <assert.h>
#include <math.h>

/* Urgency of somebody with all the time in the world: lets throughput decide among such. */
#define URGENCY_FLOOR 0.05
/* Slack, in batches, at which urgency has fallen to 1/e. */
#define URGENCY_BATCHES 3.0

/* Times vary: whoever is to be in time starts by so much of the batch's time earlier. */
#define TIME_MARGIN 0.15

/* A batch that could run: `own` rows of the list, `riders` beside them. */
typedef struct candidate {
    int bucket;
    int64_t own, riders;
    double time_ns, budget_ns;
    const bucket_packed *packed; /* NULL: one sequence a row */
    double tokens;               /* packed: that it would hold */
    double worth;                /* packed: as worth_of() has it */
    double rows;                 /* packed: members of all lists, each of which earns */
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
        double last = first + 2 * (mean - first), share = (double)rows / (double)q->rows;
        /* Who would be late is left out, and others of the list take those places. */
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
        double x = ((double)q->due_ns - end_ns) / scale_ns;
        sum += (1 - timed) * (URGENCY_FLOOR + (1 - URGENCY_FLOOR) * exp(x > 0 ? -x : 0));
    }
    return sum;
}

/* So many executions make the fit worth asking. */
#define GUESS_OBSERVATIONS 16

/* Of a bucket never run yet: what the fitted cost says. 0: nobody knows. */
static double bucket_ns(const policy_model *m, int bucket, int64_t rows, int64_t length)
{
    if (m->latency == NULL)
        return 0;
    double ns = (double)latency_bucket_ns(m->latency, m->device_index, bucket);
    if (ns > 0 || latency_observations(m->latency, m->device_index) < GUESS_OBSERVATIONS)
        return ns;
    double l = length > 0 ? (double)length : 1, r = (double)rows;
    return latency_cost_ns(latency_fit_of(m->latency, m->device_index), r * l, r * l * l);
}

/* Ragged: rows of this list until the fixed cost is paid off. */
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
        out->riders = least(company(s, q), rows_max - out->own);
        return false;
    }
    out->budget_ns = f.fixed_ns * (1 / POLICY_FIXED_SHARE - 1);
    double backlog_ns = row_ns * (double)m->rows_queued / (double)(s->lanes > 1 ? s->lanes : 1);
    double lot_ns = sqrt(f.fixed_ns * backlog_ns);
    if (out->budget_ns < lot_ns)
        out->budget_ns = lot_ns;
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

/* Riders earn nothing here: they are welcome, but a batch that lives off them would be cheaper as a
 * batch of their own, in their own shorter bucket. In packed rows nobody rides: all lists share
 * them. */
static double index_of(const policy_snapshot *s, int q, const candidate *c, double scale_ns)
{
    double rows = c->packed != NULL ? c->rows : (double)c->own;
    return urgency(s, &s->queues[q], c->own, c->time_ns, scale_ns) * rows / c->time_ns;
}

/* Latest start, from now, that keeps the most urgent member of the list in time. */
static double start_of(const policy_snapshot *s, const policy_queue *q, double time_ns)
{
    if (q->timed_rows == 0 || q->deadline_ns == UINT64_MAX)
        return 1e300;
    return (double)q->deadline_ns - (double)s->now_ns - time_ns * (1 + TIME_MARGIN);
}

/* Part of packed rows that sequences take, when there are more than enough of them. */
#define PACKED_FILL 0.95

/* What a shape costs by all that was measured. A bucket's own
 * average says more of that bucket and errs more, since few batches make it. */
static double shape_cost_ns(const policy_model *m, int bucket, double rows, double length)
{
    latency_fit f = latency_fit_of(m->latency, m->device_index);
    if (latency_is_known(f) &&
        latency_observations(m->latency, m->device_index) >= GUESS_OBSERVATIONS)
        return latency_cost_ns(f, rows * length, rows * length * length);
    return (double)latency_bucket_ns(m->latency, m->device_index, bucket);
}

/* For comparing padded with packed: real tokens for each nanosecond, or for each position where
 * positions are to be saved. */
static double worth_of(const policy_model *m, int bucket, double tokens, double rows, double length)
{
    return tokens / (m->saves_positions ? rows * length : shape_cost_ns(m, bucket, rows, length));
}

/* Rows that wait in the lists [from, to), and their positions. */
static double waiting(const policy_model *m, int from, int to, double *tokens)
{
    double rows = 0;
    *tokens = 0;
    for (int i = from; i < to; i++) {
        rows += (double)m->list_rows[i];
        *tokens += (double)m->list_tokens[i];
    }
    return rows;
}

static double mean_length(const policy_model *m, int from, int to)
{
    double tokens, rows = waiting(m, from, to, &tokens);
    return rows > 0 ? tokens / rows : 0;
}

/* Positions of real tokens in a padded batch of list `list`. */
static double padded_tokens(const policy_model *m, int list, const candidate *c)
{
    return (double)c->own * mean_length(m, list, list + 1) +
           (double)c->riders * mean_length(m, 0, list);
}

/* Of what is worth the same the larger batch: its fixed cost is shared by more. */
static bool is_better_packed(const candidate *c, const candidate *than)
{
    double positions = (double)(c->packed->rows * c->packed->length);
    if (c->worth > than->worth * (1 + 1e-9))
        return true;
    return c->worth >= than->worth * (1 - 1e-9) &&
           positions > (double)(than->packed->rows * than->packed->length);
}

/* The packed bucket that is worth most, of all lists that its rows can hold. False: there is none.
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
        c.time_ns = bucket_ns(m, p->index, p->rows, p->length);
        bool is_too_long = m->time_max_ns > 0 && c.time_ns > (double)m->time_max_ns;
        if (t->sequences[head->sequence] > p->length || !(c.time_ns > 0) || is_too_long)
            continue;
        double tokens, room = PACKED_FILL * (double)(p->rows * p->length);
        int lists = bucket_find_sequence(t, p->length) + 1;
        double rows = waiting(m, 0, lists, &tokens);
        c.tokens = fmin(fmin(tokens, room), (double)p->sequences * tokens / rows);
        c.rows = c.tokens * rows / tokens;
        c.own = least(head->rows, (int64_t)fmax(c.tokens / own_length, 1));
        c.riders = (int64_t)fmax(c.rows - (double)c.own, 0);
        c.worth = worth_of(m, p->index, c.tokens, (double)p->rows, (double)p->length);
        if (!is_found || is_better_packed(&c, out))
            *out = c;
        is_found = true;
    }
    return is_found;
}

/* Of a padded bucket in the table. */
static void find_shape(const bucket_table *t, int bucket, double *rows, double *length)
{
    for (int s = 0; s < t->sequence_count; s++)
        for (int b = 0; b < t->batch_count; b++)
            if (t->index[s * MODEL_AXIS_MAX + b] == bucket) {
                *rows = (double)t->batches[b];
                *length = (double)t->sequences[s];
            }
}

/* Packed rows in place of the padded batch, where they are worth more and the most urgent member is
 * not late for it. */
static void prefer_packed(const policy_snapshot *s, int q, candidate *out, candidate *saver)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    candidate c;
    if (m->list_tokens == NULL || !packed_candidate(s, q, &c))
        return;
    double rows = 0, length = 0;
    find_shape(m->table, out->bucket, &rows, &length);
    double tokens = padded_tokens(m, head->sequence, out);
    if (c.worth <= worth_of(m, out->bucket, tokens, rows, length))
        return;
    bool is_in_time = start_of(s, head, c.time_ns) >= 0;
    if (is_in_time || start_of(s, head, saver->time_ns) < 0)
        *out = c;
    if (is_in_time)
        *saver = c;
}

/* The batch of a static-shape device with the best index; and, as `saver`, the best of those short
 * enough for the most urgent member. False: some time is not known. */
static bool padded_candidate(const policy_snapshot *s, int q, double scale_ns, candidate *out,
                             candidate *saver)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    const bucket_table *t = m->table;
    int64_t others = company(s, q);
    double best = -1, best_saver = -1;
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
                       .time_ns = bucket_ns(m, bucket, t->batches[b], t->sequences[sequence])};
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
        if (index > best_saver && start_of(s, head, c.time_ns) >= 0) {
            best_saver = index;
            *saver = c;
        }
        if (t->batches[b] >= head->rows + others)
            break;
    }
    if (best_saver < 0)
        *saver = *out;
    if (is_known && best >= 0)
        prefer_packed(s, q, out, saver);
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

static bool find_candidate(const policy_snapshot *s, int q, double scale_ns, candidate *out,
                           candidate *saver)
{
    const policy_model *m = &s->models[s->queues[q].model];
    if (!m->is_exact && !m->table->is_ragged)
        return padded_candidate(s, q, scale_ns, out, saver);
    bool is_known = m->is_exact ? exact_candidate(s, q, out) : ragged_candidate(s, q, out);
    *saver = *out;
    return is_known;
}

/* Without measurements: as many rows as there are, in the smallest bucket that holds them. */
static void blind_candidate(const policy_snapshot *s, int q, candidate *out)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    if (m->is_exact || m->table->is_ragged) {
        candidate saver;
        find_candidate(s, q, 1, out, &saver);
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
    out->time_ns = bucket_ns(m, out->bucket, out->own + room, m->table->sequences[head->sequence]);
    out->budget_ns = 0;
    out->packed = NULL;
}

/* Runs the candidate, or waits for company where the model asks for that and slack allows. */
static policy_decision settle(const policy_snapshot *s, int q, const candidate *c)
{
    const policy_queue *head = &s->queues[q];
    const policy_model *m = &s->models[head->model];
    policy_decision d = {.action = POLICY_RUN,
                         .queue = q,
                         .bucket = c->bucket,
                         .packed = c->packed,
                         .rows = c->own,
                         .fill_rows = c->riders,
                         .budget_ns = c->budget_ns,
                         .expected_ns = (uint64_t)c->time_ns};
    if (c->own > 1)
        d.late_ns = s->now_ns + (uint64_t)(c->time_ns * (1 + TIME_MARGIN / 2));
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

/* A list with the batch it would run now. */
typedef struct option {
    int queue;
    candidate batch, saver;
    double index;
    double start_ns; /* of the saver; far off without a deadline */
    double order_ns; /* the same, or when those without a deadline are due */
} option;

/* So many rounds of all lists must fit into the least slack for taking turns. */
#define ROUNDS 1.0

/* Lists looked at together; where there are more, only their indexes count. */
#define OPTIONS_MAX 256

/* Mean time of one batch of each list: how soon another one comes, in units of the lists' own.
 * False: some time is not known. */
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
            candidate saver;
            if (!find_candidate(s, i, 1, &c, &saver))
                return false;
        } else {
            c.time_ns = bucket_ns(m, bucket_choose(m->table, q->sequence, q->rows), q->rows,
                                  m->table->sequences[q->sequence]);
        }
        if (!(c.time_ns > 0))
            return false;
        sum += c.time_ns;
        count++;
    }
    *scale_ns = count > 0 ? URGENCY_BATCHES * sum / count / (s->lanes > 1 ? s->lanes : 1) : 1;
    return true;
}

/* Orders the options by latest start and looks ahead: run in that order, list i has `slack` left.
 *
 * - While one batch of every list takes less than anybody's slack, there is time for all: the first
 *   of the order goes. Lists then come round in turn, and grow until they are asked again.
 * - Else the option with the best index that makes nobody late who would be in time otherwise:
 * going first delays those before it in the order. The first of the order delays nobody.
 * - Where even that order cannot save all, the index alone decides: cheap ones first. */
static int choose_protecting(option *options, int count, int lanes)
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
        double slack_ns = options[i].start_ns - before_ns / lanes;
        protected_ns[i] = least_ns;
        least_ns = slack_ns < least_ns ? slack_ns : least_ns;
        before_ns += options[i].saver.time_ns;
    }
    bool can_save_all = least_ns >= 0;
    bool has_time = least_ns >= before_ns / lanes * ROUNDS;
    int best = 0;
    for (int i = 1; i < count && !has_time; i++) {
        if (can_save_all && protected_ns[i] < options[i].saver.time_ns)
            continue;
        if (options[i].index > options[best].index)
            best = i;
    }
    if (can_save_all)
        options[best].batch = options[best].saver;
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
            !find_candidate(s, i, scale_ns, &o.batch, &o.saver))
            continue;
        o.index = index_of(s, i, &o.batch, scale_ns);
        o.start_ns = start_of(s, q, o.saver.time_ns);
        if (o.start_ns <
            0) /* in time without the margin; or lost, and then no reason to lose more */
            o.start_ns = o.start_ns >= -TIME_MARGIN * o.saver.time_ns ? 0 : 1e300;
        o.order_ns = o.start_ns;
        if (q->timed_rows < q->rows) {
            double due_ns = (double)q->due_ns - (double)s->now_ns - o.saver.time_ns;
            o.order_ns = due_ns < o.order_ns ? due_ns : o.order_ns;
        }
        if (o.index > best.index ||
            (o.index == best.index && q->oldest_ns < s->queues[best.queue].oldest_ns))
            best = o;
        fits &= count < OPTIONS_MAX;
        if (fits)
            options[count++] = o;
    }
    if (count > 1 && fits)
        best = options[choose_protecting(options, count, s->lanes > 1 ? s->lanes : 1)];
    *out = best.batch;
    return best.queue;
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
    double scale_ns = 1;
    is_known = time_scale(s, &scale_ns);
    for (;;) {
        candidate c, saver;
        int q = s->is_aged_first ? choose_oldest(s, passed, true) : -1;
        if (q >= 0 && is_known)
            is_known = find_candidate(s, q, scale_ns, &c, &saver);
        else if (q < 0 && is_known)
            is_known = (q = choose(s, scale_ns, passed, &c)) >= 0;
        if (q < 0)
            q = choose_oldest(s, passed, false);
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
