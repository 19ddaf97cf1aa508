#include "devices/cpu/ops/split.h"

#include <assert.h>

#include "devices/cpu/threads/thread_pool.h"

#define SPLIT_NS_MIN                                                                               \
    20000                 /* shorter loops run alone: helpers cost about 1 us when they are awake */
#define WAKE_NS_MIN 60000 /* shorter ones do not wake helpers that sleep */

typedef struct split {
    const cpu_call *call;
    cpu_part part;
    const void *context;
} split;

static void run_unit(void *context, int worker, size_t unit)
{
    const split *s = context;
    const cpu_team *t = s->call->team;
    size_t own = worker == t->caller ? 0 : (size_t)(worker - t->callers) + 1;
    assert(worker == t->caller || worker >= t->callers);
    assert(own < (size_t)t->threads);
    s->part(s->context, (char *)s->call->parts + own * s->call->part_stride, unit);
}

size_t cpu_split_threads(const cpu_call *c)
{
    return c->team ? (size_t)c->team->threads : 1;
}

void cpu_split(const cpu_call *c, double ns, cpu_part part, const void *context, size_t units)
{
    const cpu_team *t = c->team;
    bool is_alone = !t || units < 2 || ns < SPLIT_NS_MIN || units > THREAD_POOL_UNITS_MAX ||
                    thread_pool_was_delayed(t->pool, t->caller);
    for (size_t i = 0; is_alone && i < units; i++)
        part(context, c->parts, i);
    if (is_alone)
        return;
    size_t useful = units < (size_t)t->threads ? units : (size_t)t->threads;
    thread_pool_call_helpers(t->pool, t->caller, ns < WAKE_NS_MIN ? 0 : (int)useful - 1);
    split s = {c, part, context};
    thread_pool_run(t->pool, t->caller, run_unit, &s, units);
}

size_t cpu_split_items(const cpu_call *c, size_t total, size_t most, size_t step)
{
    size_t threads = cpu_split_threads(c), units = (total + most - 1) / most;
    units = (units + threads - 1) / threads * threads;
    size_t items = units ? (total + units - 1) / units : 1;
    items = (items + step - 1) / step * step;
    items = items < most ? items : most;
    return items > 0 ? items : 1;
}
