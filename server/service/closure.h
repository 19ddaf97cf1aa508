#ifndef SERVER_SERVICE_CLOSURE_H
#define SERVER_SERVICE_CLOSURE_H

/* Why the server, and not its client, ends a connection: labels of
 * penstock_connections_closed_total. */
typedef enum closure {
    CLOSURE_HANDSHAKE, /* TLS took too long */
    CLOSURE_HEAD,      /* a head did not arrive in time */
    CLOSURE_BODY,      /* a body did not arrive in time, or came too slowly */
    CLOSURE_RESPONSE,  /* the peer does not take its responses, or takes them too slowly */
    CLOSURE_IDLE,
    CLOSURE_AGE,
    CLOSURE_ROOM,    /* connections_max is reached: it had been without progress longest */
    CLOSURE_ADDRESS, /* its address has as many as it may */
    CLOSURE_MEMORY,  /* short of bytes or memory: it held most without progress, or got none */
    CLOSURE_ABUSE,
    CLOSURE_COUNT
} closure;

const char *closure_name(closure why);

#endif
