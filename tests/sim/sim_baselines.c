/* What others do, with the same buckets and devices as Penstock, padded to the longest member. */
#include <math.h>
#include <stdlib.h>

#include "tests/sim/sim.h"

static int model_of(const sim_config *c, const sim_request *r)
{
    return c->streams[r->stream].model;
}

/* The oldest request's model, first come first served: those of other models wait. */
static int fifo(const sim_config *c, const sim_request *pending, int count, int64_t most,
                int *taken)
{
    int n = 0;
    for (int i = 0; i < count && n < most; i++)
        if (model_of(c, &pending[i]) == model_of(c, &pending[0]))
            taken[n++] = i;
    return n;
}

static int window(const sim_config *c, const sim_request *pending, int count, uint64_t now_ns,
                  int *taken, uint64_t *until_ns)
{
    int n = fifo(c, pending, count, c->batch_max, taken);
    uint64_t closes_ns = pending[0].arrival_ns + c->delay_ns;
    if (n == c->batch_max || closes_ns <= now_ns)
        return n;
    *until_ns = closes_ns;
    return 0;
}

static int preferred(const sim_config *c, const sim_request *pending, int count, uint64_t now_ns,
                     int *taken, uint64_t *until_ns)
{
    int n = fifo(c, pending, count, c->batch_max, taken);
    int64_t size = c->batch_max;
    while (size > n)
        size /= 2; /* preferred: batch_max, half, quarter */
    if (size >= c->batch_max / 4)
        return (int)size;
    uint64_t closes_ns = pending[0].arrival_ns + c->delay_ns;
    if (closes_ns <= now_ns)
        return n;
    *until_ns = closes_ns;
    return 0;
}

static const sim_request *sorted; /* of the comparison below: one thread */

static int by_deadline(const void *a, const void *b)
{
    const sim_request *x = &sorted[*(const int *)a], *y = &sorted[*(const int *)b];
    if (x->deadline_ns != y->deadline_ns)
        return x->deadline_ns < y->deadline_ns ? -1 : 1;
    return *(const int *)a - *(const int *)b;
}

static int by_length(const void *a, const void *b)
{
    const sim_request *x = &sorted[*(const int *)a], *y = &sorted[*(const int *)b];
    if (x->length != y->length)
        return x->length - y->length;
    return by_deadline(a, b);
}

#define ORDER_MAX 65536
static int order[ORDER_MAX];

static int earliest_deadline(const sim_config *c, const sim_request *pending, int count, int *taken)
{
    if (count > ORDER_MAX)
        count = ORDER_MAX;
    for (int i = 0; i < count; i++)
        order[i] = i;
    sorted = pending;
    qsort(order, (size_t)count, sizeof *order, by_deadline);
    int n = 0;
    for (int i = 0; i < count && n < c->batch_max; i++)
        if (model_of(c, &pending[order[i]]) == model_of(c, &pending[order[0]]))
            taken[n++] = order[i];
    return n;
}

/* Every run of requests in the order of length, every batch size: the one that earns most. */
static int oracle(const sim_config *c, const sim_request *pending, int count, uint64_t now_ns,
                  int *taken)
{
    static double earned[ORDER_MAX];
    int best_first = -1, best_rows = 0;
    double best = -1;
    if (count > ORDER_MAX)
        count = ORDER_MAX;
    sorted = pending;
    for (int m = 0; m < c->model_count; m++) {
        int n = 0;
        for (int i = 0; i < count; i++)
            if (model_of(c, &pending[i]) == m)
                order[n++] = i;
        qsort(order, (size_t)n, sizeof *order, by_length);
        for (int b = 0; b < SIM_BATCHES; b++) {
            int64_t rows = sim_batches[b];
            double mean_ns = sim_time_ns(&c->models[m], 8, 64, NULL) / c->device_count;
            for (int i = 0; i < n; i++) {
                /* Its own urgency when this is its batch: its bucket's time. */
                const sim_request *r = &pending[order[i]];
                double time_ns = sim_time_ns(&c->models[m], rows, r->length, NULL);
                double slack = r->deadline_ns == UINT64_MAX
                                   ? 1e9
                                   : (double)r->deadline_ns - (double)now_ns - time_ns;
                earned[i] = slack < 0 ? 0 : 0.02 + exp(-slack / mean_ns);
                int first = i - (int)rows + 1 > 0 ? i - (int)rows + 1 : 0;
                double sum = 0;
                for (int k = first; k <= i; k++)
                    sum += earned[k];
                if (sum / time_ns > best) {
                    best = sum / time_ns;
                    best_first = first;
                    best_rows = i - first + 1;
                    for (int k = 0; k < best_rows; k++)
                        taken[k] = order[first + k];
                }
            }
        }
    }
    return best_first < 0 ? 0 : best_rows;
}

int sim_baseline_next(const sim_config *c, const sim_request *pending, int pending_count,
                      uint64_t now_ns, int *taken, uint64_t *until_ns)
{
    *until_ns = UINT64_MAX;
    switch (c->scheduler) {
    case SIM_WINDOW:
        return window(c, pending, pending_count, now_ns, taken, until_ns);
    case SIM_PREFERRED:
        return preferred(c, pending, pending_count, now_ns, taken, until_ns);
    case SIM_EDF:
        return earliest_deadline(c, pending, pending_count, taken);
    default:
        return oracle(c, pending, pending_count, now_ns, taken);
    }
}

static int by_number(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

double sim_sorted_bound(const sim_config *c)
{
    int32_t *lengths = malloc((size_t)c->requests * sizeof *lengths);
    sim_trace trace;
    sim_request r;
    double total_ns = 0;
    if (lengths == NULL)
        return 0;
    for (int m = 0; m < c->model_count; m++) {
        int64_t n = 0;
        sim_trace_init(&trace, c);
        while (sim_trace_next(&trace, &r))
            if (model_of(c, &r) == m)
                lengths[n++] = r.length;
        qsort(lengths, (size_t)n, sizeof *lengths, by_number);
        for (int64_t i = 0; i < n; i += SIM_BATCH_MAX) {
            int64_t rows = n - i < SIM_BATCH_MAX ? n - i : SIM_BATCH_MAX;
            total_ns += sim_time_ns(&c->models[m], rows, lengths[i + rows - 1], NULL);
        }
    }
    free(lengths);
    return (double)c->requests * c->device_count / total_ns * 1e9;
}
