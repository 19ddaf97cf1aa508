#include "loadtest/run/search.h"

#include <criterion/criterion.h>

/* Runs a search against a server that holds any rate up to `capacity`. */
static double search_for(double capacity, double start, double resolution, unsigned *runs)
{
    search s;
    search_begin(&s, start, resolution, 2);
    for (*runs = 0; s.stage != SEARCH_DONE; ++*runs) {
        cr_assert_lt(*runs, 100);
        search_tell(&s, s.rate <= capacity);
    }
    return s.rate;
}

Test(search, finds_the_highest_rate)
{
    static const double capacities[] = {3, 97, 1000, 54321};
    for (size_t i = 0; i < 4; i++)
        for (double start = 1; start < 1e6; start *= 7) {
            unsigned runs;
            double found = search_for(capacities[i], start, 0.03, &runs);
            cr_expect(found <= capacities[i] && found > capacities[i] / 1.031, "%g from %g: %g",
                      capacities[i], start, found);
            cr_expect_leq(runs, 75);
        }
}

Test(search, a_rate_that_held_by_luck_is_not_confirmed)
{
    search s;
    search_begin(&s, 100, 0.05, 2);
    int confirmations = 0;
    while (s.stage != SEARCH_DONE) {
        /* Holds up to 200 while it looks, up to 150 when asked again. */
        double capacity = s.stage == SEARCH_CONFIRM ? 150 : 200;
        confirmations += s.stage == SEARCH_CONFIRM;
        search_tell(&s, s.rate <= capacity);
    }
    cr_expect(s.rate <= 150 && s.rate > 150 / 1.06, "%g", s.rate);
    cr_expect_gt(confirmations, 3);
}

Test(search, one_hiccup_is_forgiven)
{
    search s;
    search_begin(&s, 100, 0.03, 2);
    for (int run = 0; s.stage != SEARCH_DONE; run++)
        search_tell(&s,
                    s.rate <= 1000 && run % 3 != 0); /* every third run fails, whatever its rate */
    cr_expect(s.rate <= 1000 && s.rate > 1000 / 1.031, "%g", s.rate);
}

Test(search, a_server_that_holds_nothing)
{
    unsigned runs;
    cr_expect_eq(search_for(0, 100, 0.05, &runs), 0);
}
