#include <criterion/criterion.h>
#include <pthread.h>

#include "base/clock.h"
#include "batcher/execute/health.h"
#include "devices/health.h"

#define MS UINT64_C(1000000)

static device_state state = DEVICE_HEALTHY;
static int asked;

static void describe(device *d, device_status *out)
{
    (void)d;
    asked++;
    out->state = state;
}

static const device_interface interface = {.describe = describe};
static device accelerator = {.interface = &interface, .name = "a", .kind = "a", .slots = 1},
              cpu = {.interface = &interface, .name = "cpu", .kind = "cpu", .slots = 1};
static device *const devices[] = {&accelerator, &cpu};
static health h;

static void start(void)
{
    state = DEVICE_HEALTHY;
    cr_assert_eq(health_init(&h, devices, 2), STATUS_OK);
}

Test(health, a_device_is_asked_before_its_first_batch)
{
    start();
    cr_expect_not(health_is_good(&h, 0));
    cr_expect(health_is_good(&h, 1), "the CPU is always good");
    health_refresh(&h, 1);
    cr_expect(health_is_good(&h, 0));
    health_refresh(&h, 2);
    cr_expect_eq(asked, 1);
    health_dispose(&h);
}

Test(health, a_failed_device_rests_before_it_is_asked)
{
    start();
    health_refresh(&h, 1);
    health_report_failure(&h, 0, 100 * MS);
    cr_expect_not(health_is_good(&h, 0));
    cr_expect_eq(health_rests_until_ns(&h, 100 * MS), 100 * MS + HEALTH_REST_NS);
    device_health_changed();
    health_refresh(&h, 100 * MS + HEALTH_REST_NS - 1);
    cr_expect_not(health_is_good(&h, 0));
    health_refresh(&h, 100 * MS + HEALTH_REST_NS);
    cr_expect(health_is_good(&h, 0));
    cr_expect_eq(health_rests_until_ns(&h, 200 * MS), UINT64_MAX);
    health_dispose(&h);
}

Test(health, it_is_asked_again_only_after_a_change)
{
    start();
    state = DEVICE_FAILED;
    for (uint64_t i = 1; i < 100; i++)
        health_refresh(&h, i * MS);
    cr_expect_eq(asked, 1);
    cr_expect_eq(health_rests_until_ns(&h, 100 * MS), UINT64_MAX);
    state = DEVICE_HEALTHY;
    health_refresh(&h, 100 * MS);
    cr_expect_not(health_is_good(&h, 0));
    device_health_changed();
    health_refresh(&h, 101 * MS);
    cr_expect(health_is_good(&h, 0));
    cr_expect_eq(asked, 2);
    health_dispose(&h);
}

Test(health, who_confirms_a_device_finds_out_that_it_failed)
{
    start();
    health_refresh(&h, 1);
    cr_expect(health_confirm(&h, 0));
    state = DEVICE_FAILED;
    cr_expect_not(health_confirm(&h, 0));
    cr_expect_not(health_is_good(&h, 0));
    health_dispose(&h);
}
