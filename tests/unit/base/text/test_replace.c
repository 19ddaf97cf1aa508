#include <criterion/criterion.h>
#include <string.h>

#include "base/text/replace.h"

static const char *replaced(const char *text, const char *what, const char *with, size_t capacity)
{
    static char out[64];
    memset(out, '#', sizeof out);
    strcpy(out, text);
    text_replace(out, capacity, what, with);
    cr_assert_lt(strlen(out), capacity);
    return out;
}

Test(replace, everywhere_and_not_in_what_was_put)
{
    cr_expect_str_eq(replaced("/a/b: no /a/b/c", "/a/b", "m", 64), "m: no m/c");
    cr_expect_str_eq(replaced("xx", "x", "xx", 64), "xxxx");
    cr_expect_str_eq(replaced("axa", "x", "", 64), "aa");
    cr_expect_str_eq(replaced("abc", "x", "y", 64), "abc");
    cr_expect_str_eq(replaced("", "x", "y", 64), "");
    cr_expect_str_eq(replaced("x", "x", "", 64), "");
}

Test(replace, what_does_not_fit_is_cut)
{
    cr_expect_str_eq(replaced("axbxc", "x", "1234", 6), "a1234");
    cr_expect_str_eq(replaced("axbxc", "x", "1234", 9), "a1234b12");
    cr_expect_str_eq(replaced("axbxc", "x", "12", 8), "a12b12c");
    cr_expect_str_eq(replaced("axbxc", "x", "12", 7), "a12b12");
    cr_expect_str_eq(replaced("x", "x", "123", 2), "1");
}
