#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "batcher/policy/pack.h"

Test(pack, no_place_is_shared)
{
    static bool used[9][100];
    static pack p;
    pack_open(&p, 100, 9, 50);
    srand(7);
    memset(used, 0, sizeof used);
    for (int i = 0; i < 200; i++) {
        pack_place at;
        int64_t length = 1 + rand() % 40;
        if (!pack_add(&p, length, &at))
            continue;
        cr_assert(at.row >= 0 && at.row < p.rows && p.rows <= 9);
        cr_assert(at.offset >= 0 && at.offset + length <= 100);
        for (int64_t k = 0; k < length; k++) {
            cr_assert_not(used[at.row][at.offset + k], "two in one place");
            used[at.row][at.offset + k] = true;
        }
    }
    cr_assert_leq(p.count, 50);
    cr_assert_gt(p.count, 40);
}

Test(pack, the_fullest_row_that_holds_it)
{
    static pack p;
    pack_place at;
    pack_open(&p, 100, 3, 100);
    cr_assert(pack_add(&p, 60, &at) && at.row == 0 && at.offset == 0);
    cr_assert(pack_add(&p, 70, &at) && at.row == 1 && at.offset == 0);
    cr_assert(pack_add(&p, 20, &at) && at.row == 1 && at.offset == 70);
    cr_assert(pack_add(&p, 40, &at) && at.row == 0 && at.offset == 60);
    cr_assert(pack_add(&p, 100, &at) && at.row == 2);
    cr_assert_not(pack_add(&p, 11, &at), "all rows are too full for it");
    cr_assert(pack_add(&p, 10, &at) && at.row == 1 && at.offset == 90, "a shorter one may fit");
    cr_assert_not(pack_add(&p, 1, &at));
}

Test(pack, limits)
{
    static pack p;
    pack_place at;
    pack_open(&p, 10, 5, 2);
    cr_assert_not(pack_add(&p, 11, &at), "longer than a row");
    cr_assert(pack_add(&p, 1, &at));
    cr_assert(pack_add(&p, 10, &at) && at.row == 1);
    cr_assert_not(pack_add(&p, 1, &at), "as many sequences as may be");
    pack_open(&p, 10, 0, 2);
    cr_assert_not(pack_add(&p, 1, &at), "no rows");
}
