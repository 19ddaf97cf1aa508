#include "server/http/handshake.h"

#include <assert.h>
#include <dlfcn.h>

#include "base/clock.h"

typedef void read_start_function(h2o_socket_t *socket, h2o_socket_cb on_read);

/* Constant once loops run. */
static read_start_function *library_read_start;

static void find_library_function(void)
{
    library_read_start = (read_start_function *)dlsym(RTLD_NEXT, "h2o_socket_read_start");
    assert(library_read_start != NULL);
}

void handshake_install(void)
{
    find_library_function();
    assert(dlsym(RTLD_DEFAULT, "h2o_socket_read_start") == (void *)h2o_socket_read_start);
}

/* What a ClientHello begins with (RFC 8446, sections 5.1 and 4): the head of a record, and in it
 * that of a handshake message, which may go on in further records. */
#define RECORD_HEAD_BYTES 5
#define MESSAGE_HEAD_BYTES 4
#define RECORD_BYTES_MAX 16384
#define HELLO_BYTES_MAX 16384
#define HELLO_RECORDS_MAX 64 /* each is looked at with every read */
enum { TLS_HANDSHAKE = 22 };

typedef enum hello { HELLO_INCOMPLETE, HELLO_COMPLETE, HELLO_REFUSED } hello;

static hello inspect_hello(const uint8_t *at, size_t bytes)
{
    uint8_t head[MESSAGE_HEAD_BYTES];
    size_t found = 0; /* of the message */
    for (int i = 0; i < HELLO_RECORDS_MAX; i++) {
        if (bytes > 0 && at[0] != TLS_HANDSHAKE)
            return HELLO_REFUSED;
        if (bytes < RECORD_HEAD_BYTES)
            return HELLO_INCOMPLETE;
        size_t record = (size_t)at[3] << 8 | at[4];
        if (record == 0 || record > RECORD_BYTES_MAX)
            return HELLO_REFUSED;
        at += RECORD_HEAD_BYTES;
        bytes -= RECORD_HEAD_BYTES;
        for (size_t k = 0; k < record && k < bytes && found + k < sizeof head; k++)
            head[found + k] = at[k];
        found += bytes < record ? bytes : record;
        size_t message = found < sizeof head
                             ? HELLO_BYTES_MAX
                             : ((size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3]);
        if (message > HELLO_BYTES_MAX)
            return HELLO_REFUSED;
        if (bytes < record)
            return HELLO_INCOMPLETE;
        if (found >= sizeof head && found >= sizeof head + message)
            return HELLO_COMPLETE;
        at += record;
        bytes -= record;
    }
    return HELLO_REFUSED;
}

static void step(turn_share *share)
{
    connection *c = H2O_STRUCT_FROM_MEMBER(connection, share, share);
    if (!turn_take_handshake(&c->all->turns)) {
        connection_wait_turn(c, step);
    } else if (c->handshake_read == NULL) {
        connection_note_progress(c, clock_now_ns());
        h2o_socket_ssl_handshake(c->socket, c->tls, NULL, c->handshake_done);
    } else {
        c->handshake_read(c->socket, NULL);
    }
}

/* A message of a handshake that has begun, or a part of it, or the end. */
static void on_message(h2o_socket_t *socket, const char *error)
{
    connection *c = connection_of(socket);
    h2o_socket_read_stop(socket);
    if (error != NULL)
        c->handshake_read(socket, error);
    else
        step(&c->share);
}

void h2o_socket_read_start(h2o_socket_t *socket, h2o_socket_cb on_read)
{
    connection *c = connection_of(socket);
    if (library_read_start == NULL) /* in tests of the library alone */
        find_library_function();
    if (c != NULL && c->is_in_handshake) {
        c->handshake_read = on_read;
        on_read = on_message;
    }
    library_read_start(socket, on_read);
}

static void on_hello(h2o_socket_t *socket, const char *error)
{
    connection *c = connection_of(socket);
    const h2o_buffer_t *input = socket->input;
    hello found =
        error != NULL ? HELLO_REFUSED : inspect_hello((const uint8_t *)input->bytes, input->size);
    if (found == HELLO_INCOMPLETE)
        return;
    h2o_socket_read_stop(socket);
    if (found == HELLO_COMPLETE)
        step(&c->share);
    else
        h2o_socket_close(socket);
}

/* The costly part of a handshake follows its first message. So it is waited for, however small the
 * pieces are in which it comes. */
void handshake_start(connection *c, h2o_socket_cb on_done)
{
    c->tls = c->accept->ssl_ctx;
    SSL_CTX_up_ref(c->tls);
    c->is_in_handshake = true;
    c->handshake_done = on_done;
    library_read_start(c->socket, on_hello);
}
