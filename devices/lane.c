#include "devices/lane.h"

#include <assert.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static int usable_lanes(const device *d)
{
    assert(d->lanes > 0);
    return d->lanes < DEVICE_LANES_MAX ? d->lanes : DEVICE_LANES_MAX;
}

static int take_free(device *d, int preferred)
{
    int lanes = usable_lanes(d);
    uint64_t all = lanes == 64 ? UINT64_MAX : (UINT64_C(1) << lanes) - 1;
    uint64_t taken = atomic_load(&d->lanes_taken);
    while ((taken & all) != all) {
        uint64_t bit = UINT64_C(1) << (preferred % lanes);
        if (taken & bit)
            bit = ~taken & all & -(~taken & all);
        if (atomic_compare_exchange_weak_explicit(&d->lanes_taken, &taken, taken | bit,
                                                  memory_order_acquire, memory_order_relaxed))
            return __builtin_ctzll(bit);
    }
    return -1;
}

int device_lane_take(device *d, int preferred)
{
    assert(preferred >= 0);
    int lane = take_free(d, preferred);
    if (lane >= 0)
        return lane;
    atomic_fetch_add(&d->lanes_waited_for, 1);
    for (;;) {
        uint32_t given = atomic_load(&d->lanes_given);
        lane = take_free(d, preferred);
        if (lane >= 0)
            break;
        syscall(SYS_futex, &d->lanes_given, FUTEX_WAIT_PRIVATE, given, NULL, NULL, 0);
    }
    atomic_fetch_sub(&d->lanes_waited_for, 1);
    return lane;
}

void device_lane_give(device *d, int lane)
{
    assert(lane >= 0 && lane < usable_lanes(d));
    uint64_t before = atomic_fetch_and(&d->lanes_taken, ~(UINT64_C(1) << lane));
    assert(before & (UINT64_C(1) << lane));
    atomic_fetch_add(&d->lanes_given, 1);
    /* Each lane given wakes one: two may wait for two lanes, and the second is given when no longer
     * all are taken. */
    if (atomic_load(&d->lanes_waited_for) > 0)
        syscall(SYS_futex, &d->lanes_given, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
