#include "devices/health.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic uint32_t changes;

uint32_t device_health_changes(void)
{
    return atomic_load(&changes);
}

void device_health_changed(void)
{
    atomic_fetch_add(&changes, 1);
    syscall(SYS_futex, &changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void device_health_wait(uint32_t seen, uint64_t until_ns)
{
    while (atomic_load(&changes) == seen) {
        struct timespec left, *limit = NULL;
        if (until_ns != UINT64_MAX) {
            uint64_t now_ns = clock_now_ns();
            if (now_ns >= until_ns)
                return;
            left.tv_sec = (time_t)((until_ns - now_ns) / 1000000000);
            left.tv_nsec = (long)((until_ns - now_ns) % 1000000000);
            limit = &left;
        }
        syscall(SYS_futex, &changes, FUTEX_WAIT_PRIVATE, seen, limit, NULL, 0);
    }
}
