#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/request/shared_text.h"

#define MS 1000000ull

static shared_texts all;
static uint64_t now_ns;
static const shared_text_key metrics = {ROUTE_METRICS, NULL, CODING_IDENTITY};

static void begin(void)
{
    now_ns = 1000 * MS;
}

static void end(void)
{
    shared_texts_dispose(&all);
}

TestSuite(shared_text, .init = begin, .fini = end);

static void make(shared_text_key key, const char *text, uint64_t cost_ns)
{
    uint64_t begin_ns = now_ns;
    shared_texts_find(&all, key, now_ns);
    now_ns += cost_ns;
    shared_texts_put(&all, key, key.coding, strdup(text), strlen(text), begin_ns, now_ns);
}

Test(shared_text, who_asks_now_and_then_gets_a_new_one)
{
    for (int i = 0; i < 100; i++) {
        cr_assert_null(shared_texts_find(&all, metrics, now_ns), "round %d", i);
        make(metrics, "x", 2 * MS);
        now_ns += 40 * MS;
    }
}

Test(shared_text, who_asks_all_the_time_shares_and_the_loop_spends_a_twentieth)
{
    int made = 0, asked = 0;
    for (uint64_t end_ns = now_ns + 10000 * MS; now_ns < end_ns; asked++) {
        const shared_text *t = shared_texts_find(&all, metrics, now_ns);
        if (t == NULL) {
            make(metrics, "x", 2 * MS);
            made++;
        } else {
            cr_assert(now_ns - t->made_ns < 100 * MS);
            now_ns += MS / 10;
        }
    }
    cr_assert(made >= 10000 / 40 && made <= 10000 / 40 + 30, "%d made, %d asked for", made, asked);
}

Test(shared_text, texts_differ_by_key_and_are_not_old)
{
    const shared_text_key packed = {ROUTE_METRICS, NULL, CODING_GZIP};
    const shared_text_key index = {ROUTE_INDEX, &all, CODING_IDENTITY};
    make(metrics, "metrics", 30 * MS);
    make(packed, "packed", 30 * MS);
    make(index, "index", 40 * MS);
    cr_assert_str_eq(shared_texts_find(&all, metrics, now_ns)->data, "metrics");
    cr_assert_str_eq(shared_texts_find(&all, packed, now_ns)->data, "packed");
    cr_assert_str_eq(shared_texts_find(&all, index, now_ns)->data, "index");
    cr_assert_null(
        shared_texts_find(&all, (shared_text_key){ROUTE_INDEX, NULL, CODING_IDENTITY}, now_ns));
    make(metrics, "newer", 1000 * MS);
    cr_assert_str_eq(shared_texts_find(&all, metrics, now_ns)->data, "newer");
    now_ns += 990 * MS;
    cr_assert_null(shared_texts_find(&all, packed, now_ns));
}

Test(shared_text, the_oldest_makes_room)
{
    shared_text_key key = metrics;
    for (size_t i = 0; i <= SHARED_TEXTS_MAX; i++) {
        key.about = (const void *)(i + 1);
        make(key, i == 0 ? "first" : "other", 100 * MS);
    }
    cr_assert_not_null(shared_texts_find(&all, key, now_ns));
    key.about = (const void *)1;
    cr_assert_null(shared_texts_find(&all, key, now_ns));
}
