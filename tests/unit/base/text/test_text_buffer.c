#include "base/text/text_buffer.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

Test(text_buffer, a_zeroed_buffer_is_empty_and_grows)
{
    text_buffer t = {0};
    text_buffer_append(&t, NULL, 0);
    cr_expect_null(t.data);
    for (int i = 0; i < 5000; i++)
        text_buffer_put(&t, "ab");
    cr_assert_eq(t.bytes, 10000);
    cr_expect_geq(t.capacity, t.bytes);
    cr_expect_eq(memcmp(t.data + 9996, "abab", 4), 0);
    text_buffer_dispose(&t);
    cr_expect_null(t.data);
    cr_expect_eq(t.capacity, 0);
}

Test(text_buffer, formats_text_longer_than_its_first_guess)
{
    text_buffer t = {0};
    text_buffer_put(&t, "x");
    text_buffer_format(&t, "%0*d|%s", 3000, 7, "end");
    cr_assert_eq(t.bytes, 1 + 3000 + 4);
    cr_expect_eq(memcmp(t.data + t.bytes - 5, "7|end", 5), 0);
    text_buffer_dispose(&t);
}

Test(text_buffer, a_string_ends_with_a_zero_that_is_not_counted)
{
    text_buffer t = {0};
    cr_expect_str_eq(text_buffer_string(&t), "");
    text_buffer_put(&t, "abc");
    cr_expect_str_eq(text_buffer_string(&t), "abc");
    cr_expect_eq(t.bytes, 3);
    text_buffer_clear(&t);
    cr_expect_str_eq(text_buffer_string(&t), "");
    text_buffer_dispose(&t);
}

Test(text_buffer, reset_frees_only_what_exceeds_the_limit)
{
    text_buffer t = {0};
    text_buffer_reserve(&t, 5000);
    t.bytes = 5000;
    text_buffer_reset(&t, 1 << 20);
    cr_expect_not_null(t.data);
    cr_expect_eq(t.bytes, 0);
    text_buffer_reset(&t, 100);
    cr_expect_null(t.data);
    cr_expect_eq(t.capacity, 0);
}

Test(text_buffer, without_memory_it_is_broken_until_it_is_emptied)
{
    text_buffer t = {0};
    text_buffer_put(&t, "abc");
    cr_expect_null(text_buffer_reserve(&t, SIZE_MAX / 8));
    cr_expect(t.is_broken);
    text_buffer_put(&t, "d"); /* there is room, but what is behind it would be missed */
    text_buffer_format(&t, "%d", 1);
    cr_expect_eq(t.bytes, 3);
    text_buffer_clear(&t);
    cr_expect_not(t.is_broken);
    text_buffer_put(&t, "e");
    cr_expect_str_eq(text_buffer_string(&t), "e");
    cr_expect_null(text_buffer_reserve(&t, SIZE_MAX / 8));
    text_buffer_reset(&t, 0);
    cr_expect_not(t.is_broken);
    text_buffer_dispose(&t);
}

Test(text_buffer, a_program_without_memory_ends, .signal = SIGABRT)
{
    text_buffer t = {0};
    text_buffer_require(&t, SIZE_MAX / 8);
}
