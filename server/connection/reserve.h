#ifndef SERVER_CONNECTION_RESERVE_H
#define SERVER_CONNECTION_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that a loop keeps for libh2o, which ends the process when it gets none (library_calls.h).
 * One thread, the loop's.
 *
 * Whole: as always. Spent: it was freed, so that the library gets what it wants from there; nobody
 * new is let in, and connections that hold much and make no progress end. Exhausted: that was not
 * enough either; the library waits for what others free, as long as RESERVE_WAITS_MAX allows, and
 * connections that send something end. The loop makes it whole as soon as it can. */
#define RESERVE_BYTES ((size_t)1 << 20)
#define RESERVE_WAIT_NS 1000000
#define RESERVE_WAITS_MAX 2000 /* together: two seconds */

typedef struct reserve {
    void *memory; /* NULL: spent */
    int waits;    /* since it was spent */
    uint64_t logged_ns;
} reserve;

static inline bool reserve_is_exhausted(const reserve *r)
{
    return r->waits > 0;
}

/* Makes it whole, if there is memory; false: there is none. */
bool reserve_fill(reserve *r);
/* The library did not get its `bytes`. True: it may try again. */
bool reserve_spend(reserve *r, size_t bytes);
void reserve_dispose(reserve *r);

#endif
