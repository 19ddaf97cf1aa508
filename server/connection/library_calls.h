#ifndef SERVER_CONNECTION_LIBRARY_CALLS_H
#define SERVER_CONNECTION_LIBRARY_CALLS_H

#include <stdbool.h>
#include <stddef.h>

/* What libh2o asks of the C library and cannot be told otherwise. The program's malloc(), calloc(),
 * realloc() and read() are ours. They call the ones behind them, and differ for libh2o alone:
 *
 * - It ends the process when it gets no memory: a hook makes room, and the call is tried again. All
 *   other callers get NULL: they know what to refuse.
 * - It reads a socket until nothing is left, however much and fast a peer sends: a hook says how
 *   much it gets. What it did not get makes the socket readable in the next turn of the loop. */

typedef struct library_calls_hooks {
    /* On the calling thread, which wanted so many bytes. False: there is nothing to be done, and
     * the library ends the process. */
    bool (*on_shortage)(size_t bytes);
    /* At most so many bytes of `bytes` are read now, 1 or more. */
    size_t (*read_bytes_max)(size_t bytes);
} library_calls_hooks;

/* Reads of fewer bytes ask nobody. */
#define LIBRARY_CALLS_READ_BYTES ((size_t)16384)

/* Once, before any loop runs; asserts that the library calls ours. `hooks` are copied. */
void library_calls_install(const library_calls_hooks *hooks);

#endif
