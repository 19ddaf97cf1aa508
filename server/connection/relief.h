#ifndef SERVER_CONNECTION_RELIEF_H
#define SERVER_CONNECTION_RELIEF_H

#include "server/connection/connection.h"

/* When the process is short of bytes for its clients, connections end: those for which most is held
 * and that are stalled, of all loops. What is held for requests that the server works for does not
 * count: its end would bring nothing. */

/* Ends as many of this loop's as are needed and hold more than any of another loop; none when the
 * process is not short, and nothing was refused of late. Not from within a connection.
 * `asks_others`: the loop that has the next is told to end it. */
void relief_relieve(connections *all, uint64_t now_ns, bool asks_others);
/* Does what another loop has asked for. */
void relief_help(connections *all, uint64_t now_ns);

/* Relief, soon: `bytes` were refused to `c`. Nothing happens if that was its own limit, or its
 * address's. */
void connections_relieve_soon(connection *c, size_t bytes);
/* connections.relief_entry.cb */
void relief_on_timeout(h2o_timeout_entry_t *entry);

/* The loop has as many requests open as it may: ends the connection with the most responses that
 * its peer does not take, if it has several and is not `asker`. True: one was ended, and a request
 * may have room. From within `asker`. */
bool relief_of_requests(connection *asker);

/* library_calls_hooks.on_shortage: libh2o got no memory on this thread. */
bool relief_on_shortage(size_t bytes);
/* Makes the reserve whole; without memory for it, the next relief makes room. */
void relief_restore(connections *all);

#endif
