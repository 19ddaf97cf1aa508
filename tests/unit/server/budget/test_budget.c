#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>

#include "server/budget/budget.h"

#define KB ((size_t)1024)

static budget b;

static const budget_limits limits = {.bytes_max = 1024 * KB,
                                     .connection_bytes_max = 512 * KB,
                                     .address_bytes_max = 768 * KB,
                                     .address_accounts_max = 3};

static void begin(void)
{
    cr_assert_eq(budget_init(&b, &limits), STATUS_OK);
}

static void end(void)
{
    cr_assert_eq(atomic_load(&b.bytes), 0);
    cr_assert_eq(b.address_count, 0);
    budget_dispose(&b);
}

TestSuite(budget, .init = begin, .fini = end);

static budget_account open_from(const char *address)
{
    budget_account a;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(7)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(8)};
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    cr_assert(is_v4 || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
    cr_assert_eq(budget_open(&b, &a, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6),
                 STATUS_OK, "%s", status_message());
    return a;
}

Test(budget, small_amounts_stay_in_the_account)
{
    budget_account a = open_from("10.0.0.1");
    cr_assert_eq(budget_add(&a, 100), BUDGET_GRANTED);
    cr_assert_eq(atomic_load(&b.bytes), BUDGET_STEP_BYTES);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(budget_add(&a, 10000), BUDGET_GRANTED);
        budget_subtract(&a, 10000);
    }
    cr_assert_eq(atomic_load(&b.bytes), BUDGET_STEP_BYTES);
    cr_assert_eq(budget_add(&a, 300 * KB), BUDGET_GRANTED);
    cr_assert(atomic_load(&b.bytes) >= 300 * KB);
    budget_subtract(&a, 300 * KB);
    cr_assert_eq(atomic_load(&b.bytes), BUDGET_STEP_BYTES);
    budget_close(&a);
}

Test(budget, each_limit_is_named)
{
    budget_account a = open_from("10.0.0.1"), same = open_from("10.0.0.1"),
                   other = open_from("10.0.0.2"), third = open_from("10.0.0.3");
    cr_assert_eq(budget_add(&a, 513 * KB), BUDGET_CONNECTION_FULL);
    cr_assert_eq(a.bytes, 0);
    cr_assert_eq(budget_add(&a, 512 * KB), BUDGET_GRANTED);
    cr_assert_eq(budget_add(&a, 1), BUDGET_CONNECTION_FULL);
    cr_assert_eq(budget_add(&same, 300 * KB), BUDGET_ADDRESS_FULL);
    cr_assert_eq(budget_add(&same, 256 * KB), BUDGET_GRANTED);
    cr_assert_eq(budget_add(&other, 256 * KB), BUDGET_GRANTED);
    cr_assert_eq(budget_ask(&third, 1), BUDGET_PROCESS_FULL);
    cr_assert_eq(budget_add(&third, 1), BUDGET_PROCESS_FULL);
    cr_assert_eq(budget_excess(&b), 128 * KB);
    cr_assert_eq(atomic_load(&b.refusals[BUDGET_CONNECTION_FULL]), 2);
    cr_assert_eq(atomic_load(&b.refusals[BUDGET_ADDRESS_FULL]), 1);
    cr_assert_eq(atomic_load(&b.refusals[BUDGET_PROCESS_FULL]), 2);
    budget_subtract(&a, 512 * KB);
    cr_assert_eq(budget_excess(&b), 0);
    cr_assert_eq(budget_ask(&third, 100 * KB), BUDGET_GRANTED);
    budget_close(&a);
    budget_close(&same);
    budget_close(&other);
    budget_close(&third);
}

Test(budget, what_is_there_already_counts)
{
    budget_account a = open_from("10.0.0.1");
    budget_force(&a, 2000 * KB);
    cr_assert(a.bytes == 2000 * KB && budget_excess(&b) >= 1104 * KB);
    cr_assert_eq(budget_add(&a, 100 * KB), BUDGET_CONNECTION_FULL);
    budget_subtract(&a, 2000 * KB);
    cr_assert_eq(budget_excess(&b), 0);
    budget_close(&a);
}

Test(budget, addresses)
{
    budget_account a = open_from("2001:db8::1"), same = open_from("2001:db8::ffff:2"),
                   other = open_from("2001:db8:0:1::1"), mapped = open_from("::ffff:10.0.0.1"),
                   v4 = open_from("10.0.0.1"), v4_other = open_from("10.0.0.2"), fourth;
    cr_assert(a.address == same.address && a.address != other.address);
    cr_assert(mapped.address == v4.address && v4.address != v4_other.address);
    cr_assert_eq(b.address_count, 4);
    budget_account third = open_from("2001:db8::3");
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    inet_pton(AF_INET6, "2001:db8::4", &v6.sin6_addr);
    cr_assert_eq(budget_open(&b, &fourth, (struct sockaddr *)&v6), STATUS_RESOURCE_EXHAUSTED);
    budget_account *all[] = {&a, &same, &other, &mapped, &v4, &v4_other, &third};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        budget_close(all[i]);
}

Test(budget, many_addresses)
{
    static budget_account accounts[2000];
    for (int i = 0; i < 2000; i++) {
        char text[32];
        snprintf(text, sizeof text, "10.1.%d.%d", i / 250, i % 250);
        accounts[i] = open_from(text);
    }
    cr_assert(b.address_count == 2000 && b.capacity >= 1024);
    for (int i = 0; i < 2000; i++)
        budget_close(&accounts[i]);
}

static void *add_and_subtract(void *unused)
{
    (void)unused;
    budget_account a = open_from("10.0.0.9");
    for (int i = 0; i < 20000; i++) {
        size_t bytes = (size_t)(i % 7) * 40 * KB;
        if (budget_add(&a, bytes) == BUDGET_GRANTED)
            budget_subtract(&a, bytes);
    }
    budget_close(&a);
    return NULL;
}

Test(budget, threads)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, add_and_subtract, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

Test(budget_account, that_is_not_open_grants_everything)
{
    budget_account a = {0};
    cr_assert_eq(budget_add(&a, 1u << 30), BUDGET_GRANTED);
    budget_subtract(&a, 1u << 30);
    budget_close(&a);
}
