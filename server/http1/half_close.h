#ifndef SERVER_HTTP1_HALF_CLOSE_H
#define SERVER_HTTP1_HALF_CLOSE_H

#include "server/connection/connection.h"

/* A client has closed its side while its request waits for jobs. Either it has gone, and its rows
 * should not be computed; or it only has nothing more to send, and waits for its response. The end
 * of its input looks the same. So the server sends the bytes with which every response begins, a
 * part of the status line: the kernel of a client that has gone replies with a reset, which
 * connection_watch() notices, and a client that waits has them early. */
typedef void half_close_send(h2o_req_t *stream, h2o_iovec_t *pieces, size_t count);

/* Of a connection; zeroed: nothing of a response was sent early. */
typedef struct half_close {
    bool is_beginning; /* the first bytes are being written; a response has to wait for that */
    bool has_begun;    /* they are written; the response leaves them out */
    h2o_req_t *stream; /* whose response waits, to be sent by `send`; or NULL */
    h2o_iovec_t *pieces;
    size_t count;
    half_close_send *send;
} half_close;

/* connection_protocol.input_ended */
void half_close_begin(connection *c);

/* Before a response is sent. True: not now; it will be, by `send`. The pieces themselves are
 * borrowed as by the library. */
bool half_close_postpones(connection *c, h2o_req_t *stream, const h2o_iovec_t *pieces, size_t count,
                          half_close_send *send);

/* socket_write_hook: the bytes that the response to be written leaves out. */
size_t half_close_bytes_sent(const h2o_socket_t *socket);

#endif
