#include "base/status.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

Test(status, keeps_the_last_message)
{
    cr_assert_str_eq(status_message(), "");
    cr_assert_eq(status_fail(STATUS_NOT_FOUND, "no model '%s'", "x"), STATUS_NOT_FOUND);
    cr_assert_str_eq(status_message(), "no model 'x'");
}

/* Names in messages come from files and clients: they must not steer a terminal or forge a line. */
Test(status, shows_control_characters_as_question_marks)
{
    (void)status_fail(STATUS_CORRUPT, "node '%s'", "a\033[31m\r\nb\177\303\251");
    cr_assert_str_eq(status_message(), "node 'a?[31m??b?\303\251'");
    (void)status_prefix(STATUS_CORRUPT, "%s", "a\tb");
    cr_assert_str_eq(status_message(), "a?b: node 'a?[31m??b?\303\251'");
}

Test(status, may_quote_its_own_message)
{
    (void)status_fail(STATUS_IO, "inner");
    (void)status_fail(STATUS_IO, "outer: %s", status_message());
    cr_assert_str_eq(status_message(), "outer: inner");
    cr_assert_eq(status_prefix(STATUS_CORRUPT, "file %d", 7), STATUS_CORRUPT);
    cr_assert_str_eq(status_message(), "file 7: outer: inner");
}

Test(status, cuts_long_messages)
{
    (void)status_fail(STATUS_IO, "%02000d", 0);
    cr_assert_eq(strlen(status_message()), STATUS_MESSAGE_BYTES_MAX - 1);
    (void)status_prefix(STATUS_IO, "prefix");
    cr_assert_eq(strncmp(status_message(), "prefix: 000", 11), 0);
    cr_assert_lt(strlen(status_message()), STATUS_MESSAGE_BYTES_MAX);
    (void)status_prefix(STATUS_IO, "%02000d", 1);
    cr_assert_lt(strlen(status_message()), STATUS_MESSAGE_BYTES_MAX);
}

static void *fail_elsewhere(void *argument)
{
    *(bool *)argument = strcmp(status_message(), "") == 0;
    (void)status_fail(STATUS_INTERNAL, "elsewhere");
    return NULL;
}

Test(status, belongs_to_its_thread)
{
    pthread_t thread;
    bool began_empty = false;
    (void)status_fail(STATUS_IO, "here");
    pthread_create(&thread, NULL, fail_elsewhere, &began_empty);
    pthread_join(thread, NULL);
    cr_assert(began_empty);
    cr_assert_str_eq(status_message(), "here");
}

Test(status, has_a_name_for_every_code)
{
    for (int i = 0; i < STATUS_COUNT; i++) {
        cr_assert_not_null(status_name((status)i));
        for (int j = 0; j < i; j++)
            cr_assert_str_neq(status_name((status)i), status_name((status)j));
    }
}
