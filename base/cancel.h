#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Ends long work early: when its deadline has passed, or when nobody wants its result any more. One
 * object per piece of work, owned by whoever started it and passed down to whatever takes long,
 * which calls cancel_check() between its steps. */
typedef struct cancel_token {
    atomic_bool is_requested;
    uint64_t deadline_ns; /* as clock_now_ns() counts; 0: none. Set before the work starts */
} cancel_token;

/* The next check fails. Any thread. */
void cancel_request(cancel_token *c);

/* STATUS_CANCELLED after cancel_request(), STATUS_DEADLINE_EXCEEDED after the deadline, else
 * STATUS_OK. NULL never ends. Any thread; reads the clock: for steps of a microsecond and more. */
status cancel_check(const cancel_token *c) MUST_CHECK;

/* Whether a failure came from cancel_check(): then nothing else is worth trying. */
bool cancel_is_end(status s);

#endif
