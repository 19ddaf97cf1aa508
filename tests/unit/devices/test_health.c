#include <criterion/criterion.h>
#include <pthread.h>

#include "base/clock.h"
#include "devices/health.h"

static void *wait_for_change(void *seen)
{
    device_health_wait(*(uint32_t *)seen, UINT64_MAX);
    return NULL;
}

Test(device_health, a_change_ends_every_wait)
{
    uint32_t seen = device_health_changes();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, wait_for_change, &seen), 0);
    device_health_changed();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(device_health_changes(), seen + 1);
    wait_for_change(&seen); /* over already */
}

Test(device_health, a_wait_has_a_limit)
{
    uint32_t seen = device_health_changes();
    uint64_t until_ns = clock_now_ns() + 2000000;
    device_health_wait(seen, until_ns);
    cr_expect_geq(clock_now_ns(), until_ns);
    cr_expect_eq(device_health_changes(), seen);
}
