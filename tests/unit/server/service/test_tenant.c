#include <criterion/criterion.h>

#include "server/service/tenant.h"

#define SECOND UINT64_C(1000000000)

Test(tenant, a_name_is_a_claim_of_tenants_without_a_key)
{
    static server_options o;
    o.tenant_count = 3;
    o.tenants[0] = (server_tenant){.name = "gold", .key = "s3cret"};
    o.tenants[1] = (server_tenant){.name = "plain"};
    o.tenants[2] = (server_tenant){.name = "silver", .key = "other"};
    cr_expect_eq(tenant_find(&o, "", 0), 0);
    cr_expect_eq(tenant_find(&o, "gold", 4), 0, "a name does not replace the key");
    cr_expect_eq(tenant_find(&o, "plain", 5), 2);
    cr_expect_eq(tenant_find(&o, "plain", 4), 0);
    cr_expect_eq(tenant_find(&o, "plain2", 6), 0);
}

Test(tenant, quota_and_when_there_is_room_again)
{
    server_tenant t = {.name = "t", .requests_per_s = 4};
    tenant_quota q = {0};
    uint64_t now = 100 * SECOND;
    for (int i = 0; i < 4; i++)
        cr_assert_eq(tenant_acquire(&t, &q, 1, now), 0);
    uint64_t wait = tenant_acquire(&t, &q, 1, now);
    cr_assert(wait > SECOND / 4 - 10 && wait < SECOND / 4 + 10, "%llu", (unsigned long long)wait);
    cr_assert_gt(tenant_acquire(&t, &q, 1, now + wait - 1000), 0, "too early");
    cr_assert_eq(tenant_acquire(&t, &q, 1, now + wait), 0, "as was said");
    for (uint64_t taken = 0, at = now + 10 * SECOND; taken < 40; taken++, at += SECOND / 4)
        cr_assert_eq(tenant_acquire(&t, &q, 1, at), 0, "at the rate itself there is always room");
}

Test(tenant, tokens_refused_cost_no_request_and_a_giant_goes_when_full)
{
    server_tenant t = {.name = "t", .requests_per_s = 2, .tokens_per_s = 100};
    tenant_quota q = {0};
    uint64_t now = 100 * SECOND;
    cr_assert_eq(tenant_acquire(&t, &q, 1000, now), 0);
    uint64_t wait = tenant_acquire(&t, &q, 50, now);
    cr_assert(wait > 9 * SECOND && wait <= 10 * SECOND, "%llu", (unsigned long long)wait);
    cr_assert_eq(atomic_load(&q.requests_ns), now + SECOND / 2, "the refused one took no request");
    cr_assert_eq(tenant_acquire(&t, &q, 50, now + wait), 0);
    cr_assert_gt(tenant_acquire(&t, &q, 50, now + wait), 0);
}

Test(tenant, waiting_is_known_without_taking)
{
    server_tenant t = {.name = "t", .requests_per_s = 2, .tokens_per_s = 100};
    tenant_quota q = {0};
    uint64_t now = 100 * SECOND;
    cr_assert_eq(tenant_wait(&t, &q, now), 0);
    cr_assert_eq(tenant_acquire(&t, &q, 1, now), 0);
    cr_assert_eq(tenant_wait(&t, &q, now), 0);
    cr_assert_eq(tenant_acquire(&t, &q, 1, now), 0);
    cr_expect_eq(tenant_wait(&t, &q, now), tenant_acquire(&t, &q, 1, now), "requests");
    now += SECOND;
    cr_assert_eq(tenant_acquire(&t, &q, 100, now), 0);
    cr_expect_eq(tenant_wait(&t, &q, now), tenant_acquire(&t, &q, 1, now), "tokens");
    cr_expect_gt(tenant_wait(&t, &q, now), 0);
    cr_expect_eq(tenant_wait(&(server_tenant){.name = "u"}, &q, now), 0, "without quotas");
}
