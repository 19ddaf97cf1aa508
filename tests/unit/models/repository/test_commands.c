#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "models/repository/commands.h"

static repository_commands queue;
static repository_order orders[8];

static void begin(void)
{
    memset(&queue, 0, sizeof queue);
    memset(orders, 0, sizeof orders);
    queue.count_max = 3;
}

static status add(int order, bool is_load, const char *name)
{
    return repository_commands_add(&queue, is_load, name, NULL, &orders[order]);
}

static bool cancel(int order, bool *is_running_unwanted)
{
    return repository_commands_cancel(&queue, &orders[order], is_running_unwanted);
}

/* Begins and ends the first command; checks what it is and how many waited for it. */
static void expect_next(bool is_load, const char *name, int order_count)
{
    const repository_command *c = repository_commands_begin(&queue);
    cr_assert_not_null(c);
    cr_expect(c->is_load == is_load && strcmp(c->name, name) == 0, "%s", c->name);
    int count = 0;
    for (repository_order *o = repository_commands_finish(&queue); o != NULL; o = o->next, count++)
        cr_expect_null(o->command);
    cr_expect_eq(count, order_count, "%s: %d", name, count);
}

Test(commands, are_done_in_order_and_equal_ones_once, .init = begin)
{
    cr_assert_null(repository_commands_begin(&queue));
    cr_assert_eq(add(0, true, "a"), STATUS_OK);
    cr_assert_eq(add(1, true, "b"), STATUS_OK);
    cr_assert_eq(add(2, true, "a"), STATUS_OK);
    cr_assert_eq(queue.count, 2);
    /* Not with the first load of a: the unload between them counts. */
    cr_assert_eq(add(3, false, "a"), STATUS_OK);
    cr_assert_eq(add(4, true, "a"), STATUS_RESOURCE_EXHAUSTED);
    cr_assert_null(orders[4].command);
    cr_assert_eq(add(4, false, "a"), STATUS_OK, "there is room beside an equal one");
    expect_next(true, "a", 2);
    cr_assert_eq(add(5, true, "a"), STATUS_OK);
    expect_next(true, "b", 1);
    expect_next(false, "a", 2);
    expect_next(true, "a", 1);
    cr_assert_eq(queue.count, 0);
    cr_assert_null(repository_commands_begin(&queue));
}

Test(commands, one_name_does_not_fill_the_queue, .init = begin)
{
    cr_assert_eq(add(0, true, "a"), STATUS_OK);
    cr_assert_eq(add(1, false, "a"), STATUS_OK);
    cr_assert_eq(add(2, true, "a"), STATUS_RESOURCE_EXHAUSTED);
    cr_assert(strstr(status_message(), "\"a\""), "%s", status_message());
    cr_assert_eq(add(2, true, "b"), STATUS_OK);
    expect_next(true, "a", 1);
    cr_assert_eq(add(3, true, "a"), STATUS_OK);
}

/* Files may have changed since the running one read them. */
Test(commands, a_running_one_is_not_joined, .init = begin)
{
    cr_assert_eq(add(0, true, "a"), STATUS_OK);
    cr_assert_not_null(repository_commands_begin(&queue));
    cr_assert_eq(add(1, true, "a"), STATUS_OK);
    cr_assert_eq(queue.count, 1);
    cr_assert_eq(repository_commands_finish(&queue), &orders[0]);
    expect_next(true, "a", 1);
}

Test(commands, those_that_nobody_waits_for_leave_the_queue, .init = begin)
{
    static const char *const names[] = {"a", "b", "c"};
    bool unwanted;
    for (int gone = 0; gone < 3; gone++) {
        for (int i = 0; i < 3; i++)
            cr_assert_eq(add(i, true, names[i]), STATUS_OK);
        cr_assert_eq(add(3, true, names[gone]), STATUS_OK);
        cr_assert(cancel(gone, &unwanted));
        cr_assert_eq(queue.count, 3, "another one waits for it");
        cr_assert(cancel(3, &unwanted));
        cr_assert_eq(queue.count, 2);
        cr_assert_not(unwanted);
        cr_assert_not(cancel(3, &unwanted), "once is enough");
        for (int i = 0; i < 3; i++)
            if (i != gone)
                expect_next(true, names[i], 1);
        cr_assert_null(queue.last);
    }
}

Test(commands, the_running_one_is_unwanted_when_the_last_has_gone, .init = begin)
{
    bool unwanted;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(add(i, true, "a"), STATUS_OK);
    cr_assert_not_null(repository_commands_begin(&queue));
    for (int i = 0; i < 3; i++) {
        cr_assert(cancel(i, &unwanted));
        cr_assert_eq(unwanted, i == 2);
    }
    cr_assert_null(repository_commands_finish(&queue));
    cr_assert_not(cancel(0, &unwanted));
}

Test(commands, orders_leave_a_command_in_any_order, .init = begin)
{
    static const int gone[] = {2, 0, 4}; /* the middle one, the last and the first of the list */
    bool unwanted;
    for (int i = 0; i < 5; i++)
        cr_assert_eq(add(i, true, "a"), STATUS_OK);
    for (int i = 0; i < 3; i++)
        cr_assert(cancel(gone[i], &unwanted));
    cr_assert_eq(add(5, true, "a"), STATUS_OK);
    cr_assert(cancel(5, &unwanted));
    expect_next(true, "a", 2);
}

Test(commands, a_name_that_is_too_long_is_none, .init = begin)
{
    char name[200];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    cr_assert_eq(add(0, true, name), STATUS_NOT_FOUND);
    cr_assert_eq(queue.count, 0);
}
