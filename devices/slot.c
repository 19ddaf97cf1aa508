#include "devices/slot.h"

#include <assert.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static int usable_slots(const device *d)
{
    int depth = device_depth(d);
    assert(depth > 0 && depth <= d->slots);
    return depth < DEVICE_SLOTS_MAX ? depth : DEVICE_SLOTS_MAX;
}

static int acquire_free(device *d, int preferred)
{
    int slots = usable_slots(d);
    uint64_t all = slots == 64 ? UINT64_MAX : (UINT64_C(1) << slots) - 1;
    uint64_t in_use = atomic_load(&d->slots_in_use);
    while ((in_use & all) != all) {
        uint64_t bit = UINT64_C(1) << (preferred % slots);
        if (in_use & bit)
            bit = ~in_use & all & -(~in_use & all);
        if (atomic_compare_exchange_weak_explicit(&d->slots_in_use, &in_use, in_use | bit,
                                                  memory_order_acquire, memory_order_relaxed))
            return __builtin_ctzll(bit);
    }
    return -1;
}

int device_slot_acquire(device *d, int preferred)
{
    assert(preferred >= 0);
    int slot = acquire_free(d, preferred);
    if (slot >= 0)
        return slot;
    atomic_fetch_add(&d->slot_waiters, 1);
    for (;;) {
        uint32_t releases = atomic_load(&d->slot_releases);
        slot = acquire_free(d, preferred);
        if (slot >= 0)
            break;
        syscall(SYS_futex, &d->slot_releases, FUTEX_WAIT_PRIVATE, releases, NULL, NULL, 0);
    }
    atomic_fetch_sub(&d->slot_waiters, 1);
    return slot;
}

void device_slot_release(device *d, int slot)
{
    assert(slot >= 0 && slot < d->slots); /* of a depth that may have been more */
    uint64_t before = atomic_fetch_and(&d->slots_in_use, ~(UINT64_C(1) << slot));
    assert(before & (UINT64_C(1) << slot));
    atomic_fetch_add(&d->slot_releases, 1);
    /* Each release wakes one waiter. Two may wait for two slots: the second release wakes the
     * second. */
    if (atomic_load(&d->slot_waiters) > 0)
        syscall(SYS_futex, &d->slot_releases, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
