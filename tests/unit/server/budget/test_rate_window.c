#include <criterion/criterion.h>

#include "server/budget/rate_window.h"

#define SECOND UINT64_C(1000000000)

static const rate_limit limit = {5 * SECOND, 100};

Test(rate_window, nothing_moves)
{
    rate_window w = {0};
    cr_assert(!rate_window_is_slow(&w, 0, 10 * SECOND, &limit));
    cr_assert(!rate_window_is_slow(&w, 0, 15 * SECOND - 1, &limit));
    cr_assert(rate_window_is_slow(&w, 0, 15 * SECOND, &limit));
}

Test(rate_window, speed_is_not_saved_up)
{
    rate_window w = {0};
    uint64_t bytes = 0;
    cr_assert(!rate_window_is_slow(&w, bytes, SECOND, &limit));
    bytes += 1000000;
    cr_assert(!rate_window_is_slow(&w, bytes, 6 * SECOND, &limit));
    bytes += 500;
    cr_assert(!rate_window_is_slow(&w, bytes, 11 * SECOND, &limit));
    bytes += 499;
    cr_assert(rate_window_is_slow(&w, bytes, 16 * SECOND, &limit));
}

Test(rate_window, looks_are_late)
{
    rate_window w = {0};
    cr_assert(!rate_window_is_slow(&w, 0, SECOND, &limit));
    cr_assert(rate_window_is_slow(&w, 999, 11 * SECOND, &limit), "10 s have passed, not 5");
}

Test(rate_window, any_byte_will_do)
{
    rate_limit any = {5 * SECOND, 0};
    rate_window w = {0};
    cr_assert(!rate_window_is_slow(&w, 7, SECOND, &any));
    cr_assert(!rate_window_is_slow(&w, 8, 6 * SECOND, &any));
    cr_assert(rate_window_is_slow(&w, 8, 11 * SECOND, &any));
}

Test(rate_window, ends)
{
    rate_window w = {0};
    cr_assert(!rate_window_is_slow(&w, 0, SECOND, &limit));
    rate_window_end(&w);
    cr_assert(!rate_window_is_slow(&w, 0, 60 * SECOND, &limit));
    cr_assert(rate_window_is_slow(&w, 0, 65 * SECOND, &limit));
}
