#include "batcher/execute/health.h"

#include <stdlib.h>

#include "devices/health.h"

status health_init(health *h, device *const *devices, int device_count)
{
    *h = (health){.devices = devices, .device_count = device_count};
    h->of = calloc((size_t)device_count, sizeof *h->of);
    if (h->of == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d devices", device_count);
    for (int i = 0; i < device_count - 1; i++)
        atomic_store(&h->of[i].has_failed, true);
    return STATUS_OK;
}

void health_dispose(health *h)
{
    free(h->of);
    *h = (health){0};
}

static void ask(health *h, int device_index, uint32_t changes)
{
    health_state *of = &h->of[device_index];
    device *d = h->devices[device_index];
    /* Before asking: a change during the call makes us ask once more. */
    atomic_store_explicit(&of->asked_changes, changes, memory_order_relaxed);
    atomic_store_explicit(&of->is_asked, true, memory_order_relaxed);
    device_status state = {0};
    d->interface->describe(d, &state);
    atomic_store_explicit(&of->has_failed, state.state != DEVICE_HEALTHY, memory_order_relaxed);
}

void health_refresh(health *h, uint64_t now_ns)
{
    for (int i = 0; i < h->device_count; i++) {
        health_state *of = &h->of[i];
        if (!atomic_load_explicit(&of->has_failed, memory_order_relaxed) ||
            now_ns < atomic_load_explicit(&of->rests_until_ns, memory_order_relaxed))
            continue;
        uint32_t changes = device_health_changes();
        if (!atomic_load_explicit(&of->is_asked, memory_order_relaxed) ||
            atomic_load_explicit(&of->asked_changes, memory_order_relaxed) != changes)
            ask(h, i, changes);
    }
}

bool health_confirm(health *h, int device_index)
{
    if (health_is_good(h, device_index))
        ask(h, device_index, device_health_changes());
    return health_is_good(h, device_index);
}

void health_report_failure(health *h, int device_index, uint64_t now_ns)
{
    health_state *of = &h->of[device_index];
    atomic_store_explicit(&of->rests_until_ns, now_ns + HEALTH_REST_NS, memory_order_relaxed);
    atomic_store_explicit(&of->is_asked, false, memory_order_relaxed);
    atomic_store_explicit(&of->has_failed, true, memory_order_relaxed);
}

uint64_t health_rests_until_ns(const health *h, uint64_t now_ns)
{
    uint64_t until_ns = UINT64_MAX;
    for (int i = 0; i < h->device_count; i++) {
        uint64_t own_ns = atomic_load_explicit(&h->of[i].rests_until_ns, memory_order_relaxed);
        if (!health_is_good(h, i) && own_ns > now_ns && own_ns < until_ns)
            until_ns = own_ns;
    }
    return until_ns;
}
