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

static bool fits(int64_t rows, hold_limits limits, int64_t before, int64_t own_before)
{
    bool has_shares = limits.tenant_max != limits.model_max;
    return before + rows <= limits.model_max ||
           (has_shares && (own_before == 0 || own_before + rows <= limits.tenant_max));
}

bool hold_would_fit(const backlog *b, const model *m, int tenant, int64_t rows, hold_limits limits,
                    int64_t *rows_before)
{
    *rows_before = backlog_rows(b, m);
    int64_t own = atomic_load_explicit(&b->tenant_rows[m->index][tenant], memory_order_relaxed);
    return fits(rows, limits, *rows_before, own);
}

static void drop_rows(backlog *b, const hold *h, int64_t rows)
{
    int64_t before =
        atomic_fetch_sub_explicit(&b->rows[h->model_index], rows, memory_order_relaxed);
    assert(before >= rows);
    if (!h->is_of_tenant)
        return;
    before = atomic_fetch_sub_explicit(&b->tenant_rows[h->model_index][h->whose.tenant], rows,
                                       memory_order_relaxed);
    assert(before >= rows);
}

bool hold_acquire(backlog *b, hold *h, const model *m, tenant_class whose, int64_t rows,
                  uint64_t cost_ns, hold_limits limits, int64_t *rows_before)
{
    assert(h->rows == 0 && h->cost_ns == 0 && rows > 0);
    assert(m->index >= 0 && m->index < MODEL_INDEX_MAX);
    assert(whose.tenant >= 0 && whose.tenant < FAIR_TENANTS_MAX);
    assert(whose.class >= 0 && whose.class < FAIR_CLASSES);
    bool has_shares = limits.tenant_max != limits.model_max;
    int64_t own_before = 0;
    *rows_before = atomic_fetch_add_explicit(&b->rows[m->index], rows, memory_order_relaxed);
    if (has_shares)
        own_before = atomic_fetch_add_explicit(&b->tenant_rows[m->index][whose.tenant], rows,
                                               memory_order_relaxed);
    *h = (hold){.rows = rows,
                .cost_ns = cost_ns,
                .model_index = m->index,
                .is_of_tenant = has_shares,
                .whose = whose};
    if (!fits(rows, limits, *rows_before, own_before)) {
        drop_rows(b, h, rows);
        *h = (hold){0};
        return false;
    }
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
    drop_rows(b, h, rows);
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
