#include "batcher/job/hold.h"

#include <assert.h>

static void add_cost(backlog *b, const hold *h, int64_t cost_ns)
{
    atomic_fetch_add_explicit(&b->model_ns[h->model_index % BACKLOG_MODELS], cost_ns,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&b->tenant_ns[h->whose.tenant], cost_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&b->class_ns[h->whose.tenant][h->whose.class], cost_ns,
                              memory_order_relaxed);
}

bool hold_acquire(backlog *b, hold *h, const model *m, tenant_class whose, int64_t rows,
                  uint64_t cost_ns, int64_t rows_max, int64_t *rows_before)
{
    assert(h->rows == 0 && h->cost_ns == 0 && rows > 0);
    assert(m->index >= 0 && m->index < MODEL_INDEX_MAX);
    assert(whose.tenant >= 0 && whose.tenant < FAIR_TENANTS_MAX);
    assert(whose.class >= 0 && whose.class < FAIR_CLASSES);
    _Atomic int64_t *waiting = &b->rows[m->index];
    *rows_before = atomic_fetch_add_explicit(waiting, rows, memory_order_relaxed);
    if (*rows_before + rows > rows_max) {
        atomic_fetch_sub_explicit(waiting, rows, memory_order_relaxed);
        return false;
    }
    *h = (hold){.rows = rows, .cost_ns = cost_ns, .model_index = m->index, .whose = whose};
    atomic_store_explicit(&b->model_weights[m->index % BACKLOG_MODELS],
                          m->weight > 0 ? (uint32_t)m->weight : 1, memory_order_relaxed);
    add_cost(b, h, (int64_t)cost_ns);
    return true;
}

uint64_t hold_release(backlog *b, hold *h, int64_t rows)
{
    assert(rows > 0 && rows <= h->rows);
    uint64_t part = (uint64_t)rows, whole = (uint64_t)h->rows;
    /* cost * part / whole, without the product that might overflow. */
    uint64_t cost_ns = h->cost_ns / whole * part + h->cost_ns % whole * part / whole;
    int64_t before =
        atomic_fetch_sub_explicit(&b->rows[h->model_index], rows, memory_order_relaxed);
    assert(before >= rows);
    add_cost(b, h, -(int64_t)cost_ns);
    h->rows -= rows;
    h->cost_ns -= cost_ns;
    assert(h->rows > 0 || h->cost_ns == 0);
    return cost_ns;
}

int64_t backlog_rows(const backlog *b, const model *m)
{
    return atomic_load_explicit(&b->rows[m->index], memory_order_relaxed);
}
