#include "batcher/policy/placement.h"

#include <assert.h>

static bool is_draining(const placement_devices *d, int device_index)
{
    return d->is_draining != NULL && d->is_draining[device_index];
}

static bool is_usable(const placement_devices *d, int device_index)
{
    return d->fallback == FALLBACK_NEVER || d->is_healthy[device_index];
}

/* Is there a device other than the CPU that would run this model? `draining`: one that drains
 * counts, too. */
static bool has_other_device(const placement_devices *d, const placement_model *m, bool draining)
{
    for (int i = 0; i < d->count && !m->is_exact; i++)
        if (i != d->cpu && m->tables[i].has_any && is_usable(d, i) &&
            (draining || !is_draining(d, i)))
            return true;
    return false;
}

/* Time of a batch of `rows` on that device; 0: not known. */
static uint64_t batch_ns(const placement_model *m, int device_index, int sequence, int64_t rows)
{
    const bucket_table *t = &m->tables[device_index];
    int bucket = bucket_choose(t, sequence, rows);
    if (bucket < 0)
        return 0;
    if (!t->is_ragged)
        return latency_bucket_ns(m->latency, device_index, bucket);
    double length = (double)t->sequences[sequence], n = (double)rows;
    return (uint64_t)latency_cost_ns(latency_fit_of(m->latency, device_index), n * length,
                                     n * length * length);
}

/* All rows of one sequence bucket: would the CPU be done with them before a device that is busy? */
static bool is_sooner_than(const placement_devices *d, const placement_model *m, int device_index,
                           int sequence)
{
    int64_t rows = m->rows[sequence];
    int64_t rows_max = bucket_rows_max(&m->tables[device_index], sequence);
    uint64_t cpu_ns = batch_ns(m, d->cpu, sequence, rows);
    uint64_t device_ns = batch_ns(m, device_index, sequence, rows);
    if (rows_max == 0 || device_ns == 0 || cpu_ns == 0)
        return true; /* not measured: any free device is better than waiting */
    /* The batch in flight, then those that wait, then its own. */
    uint64_t batches = (uint64_t)((rows + rows_max - 1) / rows_max);
    uint64_t ahead = batches / (uint64_t)d->other_workers + 1;
    return cpu_ns <= device_ns * (1 + ahead);
}

static bool is_cpu_sooner(const placement_devices *d, const placement_model *m)
{
    if (d->has_idle_worker)
        return false;
    assert(d->other_workers > 0);
    for (int sequence = 0; sequence < m->sequence_count; sequence++)
        for (int i = 0; i < d->count && m->rows[sequence] > 0; i++)
            if (i != d->cpu && !is_sooner_than(d, m, i, sequence))
                return false;
    return true;
}

bool placement_is_eligible(const placement_devices *d, const placement_model *m, int device_index)
{
    assert(device_index >= 0 && device_index < d->count);
    bool has_program = m->tables[device_index].has_any;
    bool is_cpu = device_index == d->cpu, has_other = has_other_device(d, m, false);
    /* While all of its devices drain and the CPU must not help, they go on. */
    if (!has_other && (m->is_device_only || d->fallback == FALLBACK_NEVER) &&
        has_other_device(d, m, true))
        return has_program && !is_cpu && is_usable(d, device_index);
    /* No CPU can run it: while none of its devices is healthy, their workers keep the work. */
    if (m->is_device_only && (is_cpu || !has_other))
        return has_program;
    if (!is_cpu)
        return !m->is_exact && has_program &&
               (d->is_stopping || (is_usable(d, device_index) && !is_draining(d, device_index)));
    return !has_other || (d->fallback == FALLBACK_WHEN_SOONER && is_cpu_sooner(d, m));
}
