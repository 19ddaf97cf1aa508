#include "base/cancel.h"

#include <stddef.h>

#include "base/clock.h"

void cancel_request(cancel_token *c)
{
    atomic_store_explicit(&c->is_requested, true, memory_order_relaxed);
}

status cancel_check(const cancel_token *c)
{
    if (c == NULL)
        return STATUS_OK;
    if (atomic_load_explicit(&c->is_requested, memory_order_relaxed))
        return status_fail(STATUS_CANCELLED, "cancelled: nobody waits for the result any more");
    if (c->deadline_ns != 0 && clock_now_ns() >= c->deadline_ns)
        return status_fail(STATUS_DEADLINE_EXCEEDED, "the time limit has passed");
    return STATUS_OK;
}

bool cancel_is_end(status s)
{
    return s == STATUS_CANCELLED || s == STATUS_DEADLINE_EXCEEDED;
}
