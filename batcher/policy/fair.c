#include "batcher/policy/fair.h"

#include <assert.h>
#include <string.h>

/* Virtual time has finer steps than device time, or large weights would round to nothing. */
#define FINER 256

uint32_t fair_class_weight(int class)
{
    assert(class >= 0 && class < FAIR_CLASSES);
    return 1u << (2 * (FAIR_CLASSES - 1 - class));
}

void fair_init(fair *f, int tenant_count, const uint32_t *weights)
{
    assert(tenant_count > 0 && tenant_count <= FAIR_TENANTS_MAX);
    memset(f, 0, sizeof *f);
    f->tenant_count = tenant_count;
    for (int t = 0; t < tenant_count; t++) {
        f->tenants[t].weight = weights && weights[t] ? weights[t] : 1;
        for (int c = 0; c < FAIR_CLASSES; c++)
            f->classes[t][c].weight = fair_class_weight(c);
    }
}

/* An account that was empty starts `credit_ns` of device time before the floor, or where it left.
 */
static void begin(fair_account *a, uint64_t floor_ns, uint64_t credit_ns)
{
    uint64_t credit = credit_ns * FINER / a->weight;
    floor_ns = floor_ns > credit ? floor_ns - credit : 0;
    if (a->rows == 0 && a->virtual_ns < floor_ns)
        a->virtual_ns = floor_ns;
}

void fair_add_rows(fair *f, tenant_class whose, int64_t rows)
{
    assert(whose.tenant >= 0 && whose.tenant < f->tenant_count);
    fair_account *t = &f->tenants[whose.tenant], *c = &f->classes[whose.tenant][whose.class];
    if (rows > 0) {
        begin(t, f->floor_ns, FAIR_CREDIT_NS);
        begin(c, f->class_floor_ns[whose.tenant], 0);
    }
    t->rows += rows;
    c->rows += rows;
    assert(t->rows >= 0 && c->rows >= 0);
}

static void raise(uint64_t *floor_ns, uint64_t virtual_ns)
{
    if (virtual_ns > *floor_ns)
        *floor_ns = virtual_ns;
}

void fair_lead(fair *f, tenant_class whose)
{
    raise(&f->floor_ns, f->tenants[whose.tenant].virtual_ns);
    raise(&f->class_floor_ns[whose.tenant], f->classes[whose.tenant][whose.class].virtual_ns);
}

static void add_service(fair_account *a, int64_t served_ns)
{
    int64_t step_ns = served_ns * FINER / a->weight;
    assert(step_ns >= 0 || (uint64_t)-step_ns <= a->virtual_ns);
    a->virtual_ns += (uint64_t)step_ns;
}

void fair_add_service(fair *f, tenant_class whose, int64_t served_ns)
{
    add_service(&f->tenants[whose.tenant], served_ns);
    add_service(&f->classes[whose.tenant][whose.class], served_ns);
}

tenant_class fair_next(const fair *f, const fair_set *passed)
{
    tenant_class best = {-1, -1};
    for (int t = 0; t < f->tenant_count; t++) {
        const fair_account *a = &f->tenants[t];
        if (a->rows == 0 ||
            (best.tenant >= 0 && a->virtual_ns >= f->tenants[best.tenant].virtual_ns))
            continue;
        int class = -1;
        for (int c = 0; c < FAIR_CLASSES; c++) {
            const fair_account *k = &f->classes[t][c];
            bool is_passed = passed && (passed->classes[t] & (1u << c));
            if (k->rows > 0 && !is_passed &&
                (class < 0 || k->virtual_ns < f->classes[t][class].virtual_ns))
                class = c;
        }
        if (class >= 0)
            best = (tenant_class){t, class};
    }
    return best;
}
