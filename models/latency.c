#include "models/latency.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each observation multiplies the weight of the older ones by this: an average over about 500. */
#define FADE 0.998

latency *latency_create(device *const *devices, int device_count)
{
    latency *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->device_count = device_count;
    l->kind_of_device = calloc((size_t)device_count, sizeof *l->kind_of_device);
    l->kinds = calloc((size_t)device_count, sizeof *l->kinds);
    if (l->kind_of_device == NULL || l->kinds == NULL) {
        free(l->kind_of_device);
        free(l->kinds);
        free(l);
        return NULL;
    }
    for (int d = 0; d < device_count; d++) {
        const char *kind = devices[d]->kind ? devices[d]->kind : "";
        int k = 0;
        while (k < l->kind_count && strcmp(l->kinds[k].name, kind) != 0)
            k++;
        if (k == l->kind_count) {
            l->kinds[k].name = kind;
            pthread_mutex_init(&l->kinds[k].mutex, NULL);
            l->kind_count++;
        }
        l->kind_of_device[d] = k;
    }
    return l;
}

void latency_destroy(latency *l)
{
    if (l == NULL)
        return;
    for (int i = 0; i < l->kind_count; i++)
        pthread_mutex_destroy(&l->kinds[i].mutex);
    free(l->kind_of_device);
    free(l->kinds);
    free(l);
}

static latency_kind *kind_of(const latency *l, int device_index)
{
    assert(device_index >= 0 && device_index < l->device_count);
    return &l->kinds[l->kind_of_device[device_index]];
}

static void put_double(_Atomic uint64_t *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    atomic_store_explicit(to, bits, memory_order_relaxed);
}

static double get_double(const _Atomic uint64_t *from)
{
    uint64_t bits = atomic_load_explicit(from, memory_order_relaxed);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Solves the normal equations over the terms in `used`; false when they are singular. */
static bool solve(const latency_kind *k, const bool used[3], double x[3])
{
    double a[3][4];
    int index[3], n = 0;
    for (int i = 0; i < 3; i++) {
        x[i] = 0;
        if (used[i])
            index[n++] = i;
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            a[i][j] = k->sums[index[i]][index[j]];
        a[i][i] *= 1 + 1e-9; /* a little ridge: with a single shape the system is singular */
        a[i][n] = k->targets[index[i]];
    }
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int r = i + 1; r < n; r++)
            if (fabs(a[r][i]) > fabs(a[pivot][i]))
                pivot = r;
        if (fabs(a[pivot][i]) < 1e-300)
            return false;
        for (int c = 0; c <= n; c++) {
            double t = a[i][c];
            a[i][c] = a[pivot][c];
            a[pivot][c] = t;
        }
        for (int r = i + 1; r < n; r++) {
            double f = a[r][i] / a[i][i];
            for (int c = i; c <= n; c++)
                a[r][c] -= f * a[i][c];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        double v = a[i][n];
        for (int c = i + 1; c < n; c++)
            v -= a[i][c] * x[index[c]];
        x[index[i]] = v / a[i][i];
    }
    return true;
}

/* Costs are not negative: a term that comes out negative is left out and the rest fitted again. */
static void fit(latency_kind *k)
{
    bool used[3] = {true, true, true};
    double x[3];
    for (int round = 0; round < 3; round++) {
        if (!solve(k, used, x))
            return;
        int worst = -1;
        for (int i = 0; i < 3; i++)
            if (used[i] && !(x[i] >= 0) && (worst < 0 || x[i] < x[worst]))
                worst = i;
        if (worst < 0)
            break;
        used[worst] = false;
        x[worst] = 0;
    }
    for (int i = 0; i < 3; i++)
        if (!(x[i] >= 0) || !isfinite(x[i]))
            return;
    put_double(&k->fixed_bits, x[0]);
    put_double(&k->token_bits, x[1]);
    put_double(&k->square_bits, x[2]);
}

void latency_observe(latency *l, int device_index, int bucket, latency_work work, uint64_t took_ns,
                     uint64_t now_ns)
{
    latency_kind *k = kind_of(l, device_index);
    assert(bucket < LATENCY_BUCKETS_MAX);
    if (took_ns == 0)
        took_ns = 1;
    if (bucket >= 0) {
        _Atomic uint64_t *cell = &k->bucket_ns[bucket];
        uint64_t old = atomic_load_explicit(cell, memory_order_relaxed), fresh = took_ns;
        if (old != 0) {
            int64_t step = (int64_t)took_ns - (int64_t)old, most = (int64_t)old;
            step = step > most ? most : step; /* a stall counts as twice the usual at most */
            fresh = (uint64_t)((int64_t)old + step / 8);
        }
        atomic_store_explicit(cell, fresh ? fresh : 1, memory_order_relaxed);
    }
    uint64_t seen = atomic_fetch_add_explicit(&k->observations, 1, memory_order_relaxed);
    atomic_store_explicit(&k->observed_ns, now_ns, memory_order_relaxed);
    if (pthread_mutex_trylock(&k->mutex) != 0)
        return;
    double took = (double)took_ns;
    latency_fit now = latency_fit_of(l, device_index);
    double expected = latency_cost_ns(now, (double)work.tokens, (double)work.squares);
    if (seen > 64 && expected > 0 && took > 3 * expected)
        took = 3 * expected;
    /* Errors relative to the time itself: small batches count as much as large ones. */
    double x[3] = {1 / took, (double)work.tokens / took, (double)work.squares / took};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            k->sums[i][j] = k->sums[i][j] * FADE + x[i] * x[j];
        k->targets[i] = k->targets[i] * FADE + x[i];
    }
    if (seen < 64 || seen % 16 == 0)
        fit(k);
    pthread_mutex_unlock(&k->mutex);
}

uint64_t latency_bucket_ns(const latency *l, int device_index, int bucket)
{
    assert(bucket >= 0 && bucket < LATENCY_BUCKETS_MAX);
    return atomic_load_explicit(&kind_of(l, device_index)->bucket_ns[bucket], memory_order_relaxed);
}

latency_fit latency_fit_of(const latency *l, int device_index)
{
    const latency_kind *k = kind_of(l, device_index);
    return (latency_fit){.fixed_ns = get_double(&k->fixed_bits),
                         .token_ns = get_double(&k->token_bits),
                         .square_ns = get_double(&k->square_bits)};
}

uint64_t latency_observed_ns(const latency *l, int device_index)
{
    return atomic_load_explicit(&kind_of(l, device_index)->observed_ns, memory_order_relaxed);
}

uint64_t latency_observations(const latency *l, int device_index)
{
    return atomic_load_explicit(&kind_of(l, device_index)->observations, memory_order_relaxed);
}
