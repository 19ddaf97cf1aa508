#include "text/load/score.h"

#include <criterion/criterion.h>

Test(score, is_what_dividing_the_digits_gives)
{
    /* 17 digits are more than a double holds: they are rounded before they are divided. */
    cr_assert_eq(score_as_read(-9.5), -9.5);
    cr_assert_eq(score_as_read(0.1), 0.1);
    cr_assert_eq(score_as_read(-10.0), -10.0);
    cr_assert_eq(score_as_read(0), 0);
    int different = 0;
    for (int i = 1; i < 1000; i++) {
        double exact = -(double)i / 77, read = score_as_read(exact);
        cr_assert(read > exact * (1 + 1e-15) && read < exact * (1 - 1e-15));
        different += read != exact;
    }
    cr_assert_gt(different, 0);
}
