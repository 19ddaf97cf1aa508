#include "batcher/policy/slo.h"

#include <assert.h>

uint64_t slo_next_bound(uint64_t bound_ns, uint64_t slo_ns, uint64_t longest_ns, uint64_t missed,
                        uint64_t seen)
{
    uint64_t from_ns = bound_ns > 0 && bound_ns < longest_ns ? bound_ns : longest_ns;
    if (missed * 100 > seen) {
        uint64_t least_ns = slo_ns / 4 < longest_ns ? slo_ns / 4 : longest_ns;
        uint64_t next_ns = from_ns - from_ns / 6;
        return next_ns < least_ns ? least_ns : next_ns;
    }
    if (bound_ns == 0 || missed * 200 > seen)
        return bound_ns; /* between half a per cent and one: leave it */
    uint64_t next_ns = from_ns + from_ns / 16;
    return next_ns >= longest_ns ? 0 : next_ns;
}

void slo_observe(slo_controller *c, uint64_t slo_ns, uint64_t took_ns, uint64_t longest_ns)
{
    assert(slo_ns > 0);
    if (took_ns > slo_ns)
        atomic_fetch_add_explicit(&c->missed, 1, memory_order_relaxed);
    uint64_t seen = atomic_fetch_add_explicit(&c->seen, 1, memory_order_relaxed) + 1;
    if (seen % SLO_WINDOW != 0)
        return;
    uint64_t missed = atomic_exchange_explicit(&c->missed, 0, memory_order_relaxed);
    uint64_t bound_ns = atomic_load_explicit(&c->bound_ns, memory_order_relaxed);
    atomic_store_explicit(&c->bound_ns,
                          slo_next_bound(bound_ns, slo_ns, longest_ns, missed, SLO_WINDOW),
                          memory_order_relaxed);
}
