#include "server/request/life.h"

#include <assert.h>

#define BIT(state) (1u << (state))

/* Each event: in which states it may happen, the state it leads to, and which use it ends. */
static const struct {
    unsigned from;
    life_state to;
    unsigned ends_use;
} table[LIFE_EVENT_COUNT] = {
    [LIFE_ANSWER] = {BIT(LIFE_RECEIVED) | BIT(LIFE_QUEUED), LIFE_ANSWERED, 0},
    [LIFE_REFUSE] = {BIT(LIFE_RECEIVED) | BIT(LIFE_PARSED) | BIT(LIFE_QUEUED), LIFE_ANSWERED, 0},
    [LIFE_DEADLINE] = {BIT(LIFE_RECEIVED) | BIT(LIFE_PARSED) | BIT(LIFE_QUEUED), LIFE_ANSWERED, 0},
    [LIFE_CLIENT_GONE] = {BIT(LIFE_RECEIVED) | BIT(LIFE_QUEUED), LIFE_ANSWERED, 0},
    [LIFE_SHUTDOWN] = {BIT(LIFE_RECEIVED) | BIT(LIFE_QUEUED), LIFE_ANSWERED, 0},
    [LIFE_PARSE] = {BIT(LIFE_RECEIVED), LIFE_PARSED, 0},
    [LIFE_ADMIT] = {BIT(LIFE_PARSED), LIFE_ADMITTED, 0},
    [LIFE_SUBMIT] = {BIT(LIFE_ADMITTED), LIFE_QUEUED, 0},
    [LIFE_WORK_DONE] = {BIT(LIFE_ANSWERED), LIFE_ANSWERED, LIFE_USED_BY_WORK},
    [LIFE_STREAM_CLOSED] = {BIT(LIFE_ANSWERED), LIFE_ANSWERED, LIFE_USED_BY_STREAM},
};

void life_begin(life *l, uint64_t now_ns)
{
    *l = (life){.state = LIFE_RECEIVED, .users = LIFE_USED_BY_WORK | LIFE_USED_BY_STREAM};
    l->since_ns[LIFE_RECEIVED] = now_ns;
}

bool life_allows(const life *l, life_event event)
{
    assert((unsigned)event < LIFE_EVENT_COUNT && (unsigned)l->state < LIFE_STATE_COUNT);
    return (table[event].from & BIT(l->state)) != 0 && (table[event].ends_use & ~l->users) == 0;
}

life_state life_advance(life *l, life_event event, uint64_t now_ns)
{
    assert(life_allows(l, event));
    if (event < LIFE_REASON_COUNT)
        l->reason = event;
    l->users &= ~table[event].ends_use;
    life_state next = l->users == 0 ? LIFE_RELEASED : table[event].to;
    if (next != l->state)
        l->since_ns[next] = now_ns;
    return l->state = next;
}

const char *life_state_name(life_state state)
{
    static const char *const names[LIFE_STATE_COUNT] = {
        [LIFE_RECEIVED] = "received", [LIFE_PARSED] = "parsed",     [LIFE_ADMITTED] = "admitted",
        [LIFE_QUEUED] = "queued",     [LIFE_ANSWERED] = "answered", [LIFE_RELEASED] = "released",
    };
    assert((unsigned)state < LIFE_STATE_COUNT);
    return names[state];
}

const char *life_event_name(life_event event)
{
    static const char *const names[LIFE_EVENT_COUNT] = {
        [LIFE_ANSWER] = "answer",       [LIFE_REFUSE] = "refuse",
        [LIFE_DEADLINE] = "deadline",   [LIFE_CLIENT_GONE] = "client gone",
        [LIFE_SHUTDOWN] = "shutdown",   [LIFE_PARSE] = "parse",
        [LIFE_ADMIT] = "admit",         [LIFE_SUBMIT] = "submit",
        [LIFE_WORK_DONE] = "work done", [LIFE_STREAM_CLOSED] = "stream closed",
    };
    assert((unsigned)event < LIFE_EVENT_COUNT);
    return names[event];
}
