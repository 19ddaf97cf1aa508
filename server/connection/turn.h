#ifndef SERVER_CONNECTION_TURN_H
#define SERVER_CONNECTION_TURN_H

#include <h2o.h>
#include <stdbool.h>
#include <stdint.h>

/* Fairness between the connections of one loop. A turn is what the loop does between two waits; in
 * each turn a connection has a share: so many requests, so much time, so many bytes of responses.
 * One that has used up its share stops, and goes on in the next turn, after the others. One
 * thread. */

#define TURN_REQUESTS_MAX 32
#define TURN_NS_MAX 2000000              /* from its first request of a turn to its last */
#define TURN_BYTES_MAX ((size_t)1 << 20) /* written */
/* Read from all sockets, a quarter of what is left at a time, and so much of each in any case. */
#define TURN_READ_BYTES_MAX ((size_t)1 << 20)
#define TURN_READ_BYTES_MIN ((size_t)16384)
#define TURN_HANDSHAKES_MAX 4 /* of TLS, of all connections: a millisecond each */

/* Of a loop. */
typedef struct turns {
    uint64_t number;        /* of this turn, from 1 */
    size_t read_bytes;      /* allowed in it so far */
    int handshakes;         /* begun in it */
    h2o_linklist_t waiting; /* turn_share.link, for the next turn */
} turns;

/* Of a connection. Zeroed is a share that was never used. */
typedef struct turn_share {
    uint64_t turn; /* which the rest is about */
    uint64_t begin_ns;
    int requests;
    size_t bytes;
    h2o_linklist_t link;
    void (*go_on)(struct turn_share *share);
} turn_share;

void turns_init(turns *all);

/* A request begins at `now_ns`. False: the share was used up before it. */
bool turn_take_request(const turns *all, turn_share *share, uint64_t now_ns);
/* May more be written in this turn? */
bool turn_may_write(const turns *all, turn_share *share);
void turn_count_written(const turns *all, turn_share *share, size_t bytes);

/* A TLS handshake begins. False: there were enough of them in this turn. */
bool turn_take_handshake(turns *all);
/* A socket has `bytes` of room: how much of it may be read now? */
size_t turn_read_bytes_max(turns *all, size_t bytes);

/* `go_on` is called in the next turn, once, unless turn_forget() comes first. Nothing happens if
 * the share waits already. */
void turn_wait(turns *all, turn_share *share, void (*go_on)(turn_share *share));
bool turn_is_waiting(turn_share *share);
/* Before the share's memory goes. */
void turn_forget(turn_share *share);

bool turns_are_waited_for(turns *all);
/* A turn begins: calls `go_on` of the shares that wait; they may wait again, for the turn after.
 * Returns how many there were. */
int turns_begin(turns *all);

#endif
