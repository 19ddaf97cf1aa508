#include "devices/cpu/ops/split.h"

#include <assert.h>

#include "devices/cpu/tensor_loops/walk.h"
#include "devices/cpu/threads/thread_pool.h"

/* Helpers cost about 1 us when they are awake. Shorter loops than SMALL_NS_MIN run alone; shorter
 * ones than SPLIT_NS_MIN, too, unless loops come one upon the other. Shorter ones than WAKE_NS_MIN
 * wake no helpers, with the same exception: then as many are kept awake as are worth it. */
#define SMALL_NS_MIN 6000
#define SPLIT_NS_MIN 20000
#define WAKE_NS_MIN 60000

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

/* At most `useful`. */
static int helpers_to_wake(const cpu_team *t, double ns, int useful, bool is_dense)
{
    if (ns >= WAKE_NS_MIN)
        return useful;
    int worth = (int)(ns / SMALL_NS_MIN);
    worth = worth < useful ? worth : useful;
    return is_dense ? worth - thread_pool_awake_helpers(t->pool) : 0;
}

void cpu_split(const cpu_call *c, double ns, cpu_part part, const void *context, size_t units)
{
    const cpu_team *t = c->team;
    bool is_alone = !t || units < 2 || ns < SMALL_NS_MIN || units > THREAD_POOL_UNITS_MAX ||
                    thread_pool_was_delayed(t->pool, t->caller);
    bool is_dense = !is_alone && thread_pool_note_loop(t->pool, t->caller, (uint64_t)ns);
    is_alone = is_alone || (ns < SPLIT_NS_MIN && !is_dense);
    for (size_t i = 0; is_alone && i < units; i++)
        part(context, c->parts, i);
    if (is_alone)
        return;
    size_t useful = units < (size_t)t->threads ? units : (size_t)t->threads;
    thread_pool_call_helpers(t->pool, t->caller, helpers_to_wake(t, ns, (int)useful - 1, is_dense));
    split s = {c, part, context};
    thread_pool_run(t->pool, t->caller, run_unit, &s, units);
}

size_t cpu_split_items(const cpu_call *c, size_t total, size_t most, size_t step)
{
    if (most == 0)
        return 1;
    size_t threads = cpu_split_threads(c), units = (total + most - 1) / most;
    units = (units + threads - 1) / threads * threads;
    size_t items = units ? (total + units - 1) / units : 1;
    items = (items + step - 1) / step * step;
    items = items < most ? items : most;
    return items > 0 ? items : 1;
}

typedef struct rows_run {
    const cpu_call *call;
    cpu_rows_part part;
    size_t rows, items;
} rows_run;

static void run_rows(const void *context, void *memory, size_t unit)
{
    const rows_run *r = context;
    size_t first = unit * r->items, left = r->rows - first;
    r->part(r->call, memory, first, left < r->items ? left : r->items);
}

void cpu_split_rows(const cpu_call *c, double ns, cpu_rows_part part, size_t rows)
{
    if (rows == 0)
        return;
    rows_run r = {c, part, rows, ns < SPLIT_NS_MIN ? rows : cpu_split_items(c, rows, rows, 1)};
    cpu_split(c, ns, run_rows, &r, (rows + r.items - 1) / r.items);
}

#define COPY_BYTES_PER_NS 4

typedef struct copy_run {
    const kernels *kernels;
    size_t element_bytes;
    int rank, axis;
    const int64_t *dims, *from_strides, *to_strides;
    const char *from;
    char *to;
    int64_t items;
} copy_run;

static void copy_piece(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const copy_run *r = context;
    int64_t dims[TENSOR_RANK_MAX], first = (int64_t)unit * r->items;
    for (int i = 0; i < r->rank; i++)
        dims[i] = r->dims[i];
    dims[r->axis] = dims[r->axis] - first < r->items ? dims[r->axis] - first : r->items;
    int64_t from = first * r->from_strides[r->axis], to = first * r->to_strides[r->axis];
    cpu_copy_strided(r->kernels, r->element_bytes, r->rank, dims,
                     r->from + from * (int64_t)r->element_bytes, r->from_strides,
                     r->to + to * (int64_t)r->element_bytes, r->to_strides);
}

void cpu_split_copy(const cpu_call *c, size_t element_bytes, int rank, const int64_t *dims,
                    const void *from, const int64_t *from_strides, void *to,
                    const int64_t *to_strides)
{
    copy_run r = {c->kernels, element_bytes, rank, 0, dims, from_strides, to_strides, from, to, 1};
    double bytes = (double)element_bytes;
    for (int i = 0; i < rank; i++) {
        bytes *= (double)dims[i];
        r.axis = i + 1 < rank && dims[i] > dims[r.axis] ? i : r.axis;
    }
    double ns = bytes / COPY_BYTES_PER_NS;
    if (ns < SPLIT_NS_MIN || !c->team || dims[r.axis] < 2) {
        cpu_copy_strided(c->kernels, element_bytes, rank, dims, from, from_strides, to, to_strides);
        return;
    }
    size_t count = (size_t)dims[r.axis];
    r.items = (int64_t)cpu_split_items(c, count, count, 1);
    cpu_split(c, ns, copy_piece, &r, (count + (size_t)r.items - 1) / (size_t)r.items);
}
