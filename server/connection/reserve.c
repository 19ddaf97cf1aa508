#include "server/connection/reserve.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

#define LOG_NS 10000000000ull

bool reserve_fill(reserve *r)
{
    if (r->memory == NULL)
        r->memory = malloc(RESERVE_BYTES);
    if (r->memory == NULL)
        return false;
    r->waits = 0;
    return true;
}

/* Of the log, no memory is asked. */
static void say(reserve *r, size_t bytes)
{
    uint64_t now_ns = clock_now_ns();
    if (r->logged_ns != 0 && now_ns - r->logged_ns < LOG_NS)
        return;
    r->logged_ns = now_ns;
    log_error("server", "out of memory: no %zu bytes for a connection; the reserve is used", bytes);
}

bool reserve_spend(reserve *r, size_t bytes)
{
    if (r->memory != NULL) {
        free(r->memory);
        r->memory = NULL;
        say(r, bytes);
        return true;
    }
    if (r->waits == RESERVE_WAITS_MAX)
        return false;
    r->waits++;
    nanosleep(&(struct timespec){.tv_nsec = RESERVE_WAIT_NS}, NULL);
    return true;
}

void reserve_dispose(reserve *r)
{
    free(r->memory);
    *r = (reserve){0};
}
