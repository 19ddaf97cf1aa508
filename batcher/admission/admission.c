#include "batcher/admission/admission.h"

#include <assert.h>
#include <string.h>

#include "models/start/deferred_buckets.h"

/* After so long without a measurement an estimate rejects no request: some batch has to measure. */
#define STALE_NS UINT64_C(2000000000)

/* A limit rises by this part of itself in a second while jobs that came near it are in time, and is
 * cut by this part. Their ratio is how often per second a job is admitted in vain; the rise says
 * how soon a device that is back gets its load. */
#define RISE_PER_S 0.10
#define RISE_NS_MAX UINT64_C(100000000) /* at most, by one job: silence proves nothing */
#define CUT 0.20
#define NEAR 0.7
#define SCALE_BATCHES 32 /* the scale is a moving mean over so many */
#define LIMIT_MAX 64.0
#define LIMIT_MIN 0.02

void admission_init(admission *a, int tenant_count, const uint32_t *weights)
{
    assert(tenant_count > 0 && tenant_count <= FAIR_TENANTS_MAX);
    a->tenant_count = tenant_count;
    a->weight_sum = 0;
    for (int t = 0; t < tenant_count; t++)
        a->weight_sum += a->weights[t] = weights && weights[t] ? weights[t] : 1;
    atomic_store(&a->scale, ADMISSION_ONE);
}

int64_t admission_share(const admission *a, int tenant, int64_t rows_max)
{
    assert(tenant >= 0 && tenant < a->tenant_count);
    return (int64_t)((uint64_t)rows_max * a->weights[tenant] / a->weight_sum);
}

/* Least time per row in any bucket that holds the length, and the time of one row alone. */
static bool padded_cost(const model *m, const latency *l, int device_index, int64_t length,
                        double *row_ns, double *alone_ns)
{
    int64_t sequence = -1;
    *row_ns = *alone_ns = 0;
    for (int i = 0; i < m->bucket_count; i++) {
        const model_bucket *b = &m->buckets[i];
        if (b->sequences > 0 || b->shape.sequence < length ||
            deferred_buckets_program(m, i, device_index) == NULL)
            continue;
        if (sequence >= 0 && b->shape.sequence != sequence)
            break;
        double ns = (double)latency_bucket_ns(l, device_index, i);
        if (ns == 0)
            return false;
        if (sequence < 0)
            *alone_ns = *row_ns = ns / (double)b->shape.batch;
        if (sequence < 0)
            *alone_ns = ns;
        sequence = b->shape.sequence;
        if (ns / (double)b->shape.batch < *row_ns)
            *row_ns = ns / (double)b->shape.batch;
    }
    return sequence >= 0;
}

static bool is_ragged(const model *m, int device_index)
{
    return m->bucket_count > 0 && m->buckets[0].programs != NULL &&
           m->buckets[0].programs[device_index] != NULL &&
           m->buckets[0].programs[device_index]->layout == DEVICE_RAGGED;
}

static bool cost(const model *m, const latency *l, int device_index, int64_t rows, int64_t length,
                 admission_estimate *out)
{
    double row_ns, alone_ns;
    if (!model_is_exact(m) && !is_ragged(m, device_index)) {
        if (!padded_cost(m, l, device_index, length, &row_ns, &alone_ns))
            return false;
    } else {
        latency_fit f = latency_fit_of(l, device_index);
        double tokens = length > 0 ? (double)length : 1;
        row_ns = f.token_ns * tokens + f.square_ns * tokens * tokens;
        alone_ns = row_ns + f.fixed_ns;
        row_ns += model_is_exact(m) ? f.fixed_ns / (double)rows : row_ns * POLICY_FIXED_SHARE;
    }
    out->cost_ns = (uint64_t)(row_ns * (double)rows);
    out->run_ns = (uint64_t)alone_ns;
    if (rows > 1 && out->cost_ns > out->run_ns)
        out->run_ns = out->cost_ns;
    return alone_ns > 0;
}

static int64_t read_counter(const _Atomic int64_t *counter)
{
    int64_t v = atomic_load_explicit(counter, memory_order_relaxed);
    return v > 0 ? v : 0;
}

/* Device time of work that is done before the class's own backlog is. */
static double ahead_ns(const admission *a, tenant_class whose)
{
    double own = (double)read_counter(&a->backlog.class_ns[whose.tenant][whose.class]);
    double weight = fair_class_weight(whose.class), all = own;
    for (int c = 0; c < FAIR_CLASSES; c++) {
        if (c == whose.class)
            continue;
        double other = (double)read_counter(&a->backlog.class_ns[whose.tenant][c]);
        double share = own * fair_class_weight(c) / weight;
        all += other < share ? other : share;
    }
    double of_tenant = all;
    for (int t = 0; t < a->tenant_count; t++) {
        if (t == whose.tenant)
            continue;
        double other = (double)read_counter(&a->backlog.tenant_ns[t]);
        double share = of_tenant * a->weights[t] / a->weights[whose.tenant];
        all += other < share ? other : share;
    }
    return all;
}

/* The same by models: work of other models comes first only as far as their weights let it. */
static double ahead_of_model_ns(const admission *a, const model *m)
{
    int own_cell = m->index % ADMISSION_MODELS;
    double own = (double)read_counter(&a->backlog.model_ns[own_cell]), all = own;
    double weight = m->weight > 0 ? m->weight : 1;
    for (int i = 0; i < ADMISSION_MODELS; i++) {
        if (i == own_cell)
            continue;
        double other = (double)read_counter(&a->backlog.model_ns[i]);
        double share =
            own * atomic_load_explicit(&a->backlog.model_weights[i], memory_order_relaxed) / weight;
        all += other < share ? other : share;
    }
    return all;
}

static int octave_of(int64_t length)
{
    int octave = 0;
    while (octave < ADMISSION_OCTAVES - 1 && (length >> (octave + 1)) > 0)
        octave++;
    return octave;
}

static double read_limit(const admission_limit *l)
{
    uint32_t value = atomic_load_explicit(&l->value, memory_order_relaxed);
    return (double)(value ? value : ADMISSION_FIRST) / ADMISSION_ONE;
}

void admission_learn_end(admission *a, const job *j, bool is_in_time, uint64_t now_ns)
{
    /* Against a backlog shorter than a batch, waiting is chance. */
    uint64_t batch_ns = atomic_load_explicit(&a->batch_ns, memory_order_relaxed);
    uint64_t admitted_ns = j->stage_ns[STAGE_ADMIT];
    if (j->backlog_ns == 0 || j->backlog_ns < batch_ns / 2 || j->deadline_ns == UINT64_MAX ||
        j->deadline_ns <= admitted_ns)
        return;
    tenant_class whose = job_tenant_class(j);
    admission_limit *l = &a->limits[j->model->index % ADMISSION_MODELS][whose.tenant][whose.class]
                                   [octave_of(j->length)];
    double limit = read_limit(l);
    double used = (double)j->backlog_ns / (double)(j->deadline_ns - admitted_ns);
    uint64_t changed_ns = atomic_load_explicit(&l->changed_ns, memory_order_relaxed);
    if (!is_in_time) {
        if (admitted_ns < atomic_load_explicit(&l->cut_ns, memory_order_relaxed))
            return;
        limit *= 1 - CUT;
        atomic_store_explicit(&l->cut_ns, now_ns, memory_order_relaxed);
    } else if (used > limit * NEAR) {
        uint64_t since_ns = now_ns > changed_ns ? now_ns - changed_ns : 0;
        since_ns = since_ns < RISE_NS_MAX ? since_ns : RISE_NS_MAX;
        limit += limit * RISE_PER_S * (double)since_ns / 1e9;
    } else {
        return;
    }
    limit = limit > LIMIT_MAX ? LIMIT_MAX : limit < LIMIT_MIN ? LIMIT_MIN : limit;
    atomic_store_explicit(&l->value, (uint32_t)(limit * ADMISSION_ONE), memory_order_relaxed);
    atomic_store_explicit(&l->changed_ns, now_ns, memory_order_relaxed);
}

void admission_estimate_job(const admission *a, const model *m, const latency *l, int device_index,
                            int workers, tenant_class whose, int64_t rows, int64_t length,
                            uint64_t now_ns, admission_estimate *out)
{
    *out = (admission_estimate){0};
    if (l == NULL || workers < 1 || latency_observed_ns(l, device_index) == 0 ||
        !cost(m, l, device_index, rows, length, out))
        return;
    out->is_known = latency_observed_ns(l, device_index) + STALE_NS > now_ns;
    double scale = (double)atomic_load_explicit(&a->scale, memory_order_relaxed) / ADMISSION_ONE;
    double of_class = ahead_ns(a, whose), of_model = ahead_of_model_ns(a, m);
    double wait = (of_model < of_class ? of_model : of_class) * scale / workers;
    /* All workers busy: the first of them to finish is, on average, so far away. */
    if (atomic_load_explicit(&a->busy, memory_order_relaxed) >= workers)
        wait += (double)atomic_load_explicit(&a->batch_ns, memory_order_relaxed) / (workers + 1);
    out->backlog_ns = (uint64_t)wait;
    double limit = read_limit(
        &a->limits[m->index % ADMISSION_MODELS][whose.tenant][whose.class][octave_of(length)]);
    /* Devices must not run dry: one waiting batch is no reason to reject. */
    double batch = (double)atomic_load_explicit(&a->batch_ns, memory_order_relaxed);
    out->wait_ns = (uint64_t)(limit < 1 && wait < batch ? wait : wait / limit);
}

uint64_t admission_drain_ns(const admission *a, const model *m, int workers)
{
    double scale = (double)atomic_load_explicit(&a->scale, memory_order_relaxed) / ADMISSION_ONE;
    return (uint64_t)(ahead_of_model_ns(a, m) * scale / (workers > 0 ? workers : 1));
}

void admission_learn(admission *a, uint64_t cost_ns, uint64_t took_ns)
{
    uint64_t mean = atomic_load_explicit(&a->batch_ns, memory_order_relaxed);
    atomic_store_explicit(&a->batch_ns, mean ? mean - mean / 16 + took_ns / 16 : took_ns,
                          memory_order_relaxed);
    if (cost_ns == 0)
        return;
    double ratio = (double)took_ns / (double)cost_ns;
    ratio = ratio > 16 ? 16 : ratio < 0.25 ? 0.25 : ratio;
    uint64_t old = atomic_load_explicit(&a->scale, memory_order_relaxed);
    uint32_t seen = atomic_fetch_add_explicit(&a->batches, 1, memory_order_relaxed);
    double moved = (double)old + (ratio * ADMISSION_ONE - (double)old) /
                                     (seen < SCALE_BATCHES ? seen + 2 : SCALE_BATCHES);
    atomic_store_explicit(&a->scale, (uint64_t)moved, memory_order_relaxed);
}
