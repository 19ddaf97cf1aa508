#include "base/text/nearest.h"

#include <criterion/criterion.h>

Test(nearest, distances)
{
    cr_expect_eq(nearest_distance("", "abc"), 3);
    cr_expect_eq(nearest_distance("kitten", "sitting"), 3);
    cr_expect_eq(nearest_distance("depht", "depth"), 1);
    cr_expect_eq(nearest_distance("same", "same"), 0);
    static const char *const words[] = {"ab", "repository", "precision"};
    cr_expect_str_eq(nearest_find("repo_sitory", words, 3), "repository");
    cr_expect_null(nearest_find("xy", words, 3));
    cr_expect_null(nearest_find("unrelated", words, 3));
}
