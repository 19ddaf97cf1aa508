#include <criterion/criterion.h>

#include "server/connection/turn.h"

static turns all;
static turn_share a, b;
static int calls;

static void begin(void)
{
    turns_init(&all);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    calls = 0;
    cr_assert_eq(turns_begin(&all), 0);
}

TestSuite(turn, .init = begin);

static void count_call(turn_share *share)
{
    (void)share;
    calls++;
}

static void wait_again(turn_share *share)
{
    calls++;
    turn_take_request(&all, share, 0);
    turn_wait(&all, share, wait_again);
}

static void forget_other(turn_share *share)
{
    calls++;
    turn_forget(share == &a ? &b : &a);
}

Test(turn, a_share_is_so_many_requests_a_turn)
{
    for (int i = 0; i < TURN_REQUESTS_MAX; i++)
        cr_assert(turn_take_request(&all, &a, 1000));
    cr_assert_not(turn_take_request(&all, &a, 1000));
    cr_assert(turn_take_request(&all, &b, 1000), "another's share is its own");
    turns_begin(&all);
    cr_assert(turn_take_request(&all, &a, 1000));
}

Test(turn, a_share_is_so_much_time_from_its_first_request)
{
    uint64_t now_ns = 5000000000;
    cr_assert(turn_take_request(&all, &a, now_ns));
    cr_assert(turn_take_request(&all, &a, now_ns + TURN_NS_MAX));
    cr_assert_not(turn_take_request(&all, &a, now_ns + TURN_NS_MAX + 1));
    turns_begin(&all);
    cr_assert(turn_take_request(&all, &a, now_ns + TURN_NS_MAX + 2));
    cr_assert(turn_take_request(&all, &a, now_ns + 2 * TURN_NS_MAX));
}

Test(turn, a_share_is_so_many_bytes)
{
    cr_assert(turn_may_write(&all, &a));
    turn_count_written(&all, &a, TURN_BYTES_MAX - 1);
    cr_assert(turn_may_write(&all, &a));
    turn_count_written(&all, &a, 1);
    cr_assert_not(turn_may_write(&all, &a));
    turns_begin(&all);
    cr_assert(turn_may_write(&all, &a));
}

Test(turn, who_waits_goes_on_once_in_the_next_turn)
{
    turn_wait(&all, &a, count_call);
    turn_wait(&all, &a, count_call);
    turn_wait(&all, &b, count_call);
    cr_assert(turn_is_waiting(&a) && calls == 0);
    cr_assert_eq(turns_begin(&all), 2);
    cr_assert(!turn_is_waiting(&a) && calls == 2);
    cr_assert_eq(turns_begin(&all), 0);
    cr_assert_eq(calls, 2);
}

Test(turn, who_waits_again_gets_the_turn_after)
{
    turn_wait(&all, &a, wait_again);
    for (int i = 1; i <= 5; i++) {
        cr_assert_eq(turns_begin(&all), 1);
        cr_assert_eq(calls, i);
    }
}

Test(turn, who_is_forgotten_is_not_called)
{
    turn_wait(&all, &a, forget_other);
    turn_wait(&all, &b, forget_other);
    cr_assert_eq(turns_begin(&all), 1);
    cr_assert_eq(calls, 1);
    turn_forget(&a);
    turn_wait(&all, &a, count_call);
    turn_forget(&a);
    cr_assert_eq(turns_begin(&all), 0);
}

Test(turn, what_is_read_from_all_sockets_has_a_limit)
{
    size_t room = TURN_READ_BYTES_MAX;
    cr_expect_eq(turn_read_bytes_max(&all, 5), 5);
    size_t first = turn_read_bytes_max(&all, room), sum = first;
    cr_expect(first <= room / 4 && first > room / 8);
    for (int i = 0; i < 20; i++)
        sum += turn_read_bytes_max(&all, room);
    cr_expect_leq(sum, room + 20 * TURN_READ_BYTES_MIN);
    cr_expect_eq(turn_read_bytes_max(&all, room), TURN_READ_BYTES_MIN, "each gets something");
    turns_begin(&all);
    cr_expect_eq(turn_read_bytes_max(&all, room), room / 4);
}

Test(turn, handshakes_begin_in_the_next_turn_when_there_were_enough)
{
    for (int i = 0; i < TURN_HANDSHAKES_MAX; i++)
        cr_assert(turn_take_handshake(&all));
    cr_expect_not(turn_take_handshake(&all));
    turns_begin(&all);
    cr_expect(turn_take_handshake(&all));
}
