#ifndef SERVER_CONNECTION_ROOM_H
#define SERVER_CONNECTION_ROOM_H

#include "server/connection/connection.h"

/* Who makes room when as many connections are open as may be. */

typedef enum room {
    ROOM_FREE,    /* there is room */
    ROOM_REPLACE, /* in the place of another */
    ROOM_NONE     /* not now: newcomers wait in the kernel's queue */
} room;

/* Is there room for one more? ROOM_REPLACE: `*replaced` is to be ended when it has come. Other
 * loops may be asked to make room; nothing ends here. */
room room_find(connections *all, uint64_t now_ns, connection **replaced);

/* Out of turn, because no descriptor is left: ends who waits longest for nothing. False: nobody
 * does. */
bool room_make(connections *all, uint64_t now_ns);

/* Tells the other loops since when this one's first to go has been idle. */
void room_publish(connections *all, uint64_t now_ns);
/* Makes the room that other loops have asked for. */
void room_help(connections *all, uint64_t now_ns);

#endif
