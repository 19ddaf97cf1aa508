#include <criterion/criterion.h>

#include "server/options/capacity.h"

Test(capacity, comes_from_the_ceilings)
{
    server_options o;
    server_options_default(&o);
    server_capacity c = server_capacity_of(&o);
    cr_assert_eq(c.requests_max, 10000 + 64 * 100);
    cr_assert_eq(c.jobs_max, c.requests_max + 16 * 1024 + 1024);
    cr_assert_eq(c.idle_bytes_max, (size_t)128 << 20);
    o.limits.connections_max = 20000;
    o.limits.connection_jobs_max = 2048;
    server_capacity larger = server_capacity_of(&o);
    cr_assert_eq(larger.requests_max, c.requests_max + 10000);
    cr_assert_eq(larger.jobs_max, c.jobs_max + 10000 + 16 * 1024);
}

Test(capacity, stays_within_bounds)
{
    server_options o;
    server_options_default(&o);
    o.limits.body_bytes_max = SIZE_MAX;
    o.limits.connections_max = INT32_MAX;
    o.limits.connection_jobs_max = INT32_MAX;
    server_capacity c = server_capacity_of(&o);
    cr_assert(c.requests_max == INT32_MAX && c.jobs_max == INT32_MAX);
    cr_assert_eq(c.idle_bytes_max, (size_t)256 << 20);
    o.limits.body_bytes_max = 1;
    cr_assert_eq(server_capacity_of(&o).idle_bytes_max, (size_t)32 << 20);
}
