#include "server/http/protocol.h"

#include <string.h>

#include "server/http1/handler.h"
#include "server/http2/connection.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* Words in the first line, but none is HTTP's: another protocol of text, or a wrong preface. There
 * is nobody who would understand a response. */
static bool is_foreign(const h2o_buffer_t *input)
{
    const char *end = memchr(input->bytes, '\n', input->size);
    bool is_word = input->bytes[0] >= 'A' && input->bytes[0] <= 'Z';
    return is_word && end != NULL &&
           memmem(input->bytes, (size_t)(end - input->bytes), "HTTP/", 5) == NULL;
}

static void on_first_bytes(h2o_socket_t *socket, const char *error)
{
    connection *c = connection_of(socket);
    if (error != NULL) {
        h2o_socket_close(socket);
        return;
    }
    size_t bytes = socket->input->size, all = sizeof(preface) - 1;
    if (memcmp(socket->input->bytes, preface, bytes < all ? bytes : all) != 0) {
        if (is_foreign(socket->input))
            h2o_socket_close(socket);
        else
            http1_start(c);
    } else if (bytes >= all) {
        http2_start(c);
    }
}

/* The context is referenced for as long as the handshake may need it: SIGHUP may replace it
 * meanwhile. */
static void on_handshake(h2o_socket_t *socket, const char *error)
{
    connection *c = connection_of(socket);
    SSL_CTX_free(c->tls);
    c->tls = NULL;
    c->is_in_handshake = false;
    if (error != NULL) {
        h2o_socket_close(socket);
        return;
    }
    h2o_iovec_t protocol = h2o_socket_ssl_get_selected_protocol(socket);
    if (h2o_memis(protocol.base, protocol.len, H2O_STRLIT("h2")))
        http2_start(c);
    else
        http1_start(c);
}

static void begin_handshake(turn_share *share)
{
    connection *c = H2O_STRUCT_FROM_MEMBER(connection, share, share);
    if (turn_take_handshake(&c->all->turns))
        h2o_socket_ssl_handshake(c->socket, c->tls, NULL, on_handshake);
    else
        connection_wait_turn(c, begin_handshake);
}

/* What a ClientHello begins with (RFC 8446, sections 5.1 and 4): the head of a record, and that of
 * a handshake message. */
#define RECORD_HEAD_BYTES 5
#define MESSAGE_HEAD_BYTES 4
#define RECORD_BYTES_MAX 16384
enum { TLS_HANDSHAKE = 22 };

typedef enum hello { HELLO_INCOMPLETE, HELLO_COMPLETE, HELLO_REFUSED } hello;

static hello inspect_hello(const h2o_buffer_t *input)
{
    const uint8_t *at = (const uint8_t *)input->bytes;
    if (input->size > 0 && at[0] != TLS_HANDSHAKE)
        return HELLO_REFUSED;
    if (input->size < RECORD_HEAD_BYTES + MESSAGE_HEAD_BYTES)
        return HELLO_INCOMPLETE;
    size_t record = (size_t)at[3] << 8 | at[4];
    size_t message = (size_t)at[6] << 16 | (size_t)at[7] << 8 | at[8];
    if (record > RECORD_BYTES_MAX || message + MESSAGE_HEAD_BYTES > record)
        return HELLO_REFUSED;
    return input->size < RECORD_HEAD_BYTES + record ? HELLO_INCOMPLETE : HELLO_COMPLETE;
}

/* The costly part of a handshake follows its first message. So it is waited for, in one record, and
 * handshakes begin a few at a time, however many messages come at once. */
static void on_hello(h2o_socket_t *socket, const char *error)
{
    connection *c = connection_of(socket);
    hello found = error != NULL ? HELLO_REFUSED : inspect_hello(socket->input);
    if (found == HELLO_INCOMPLETE)
        return;
    h2o_socket_read_stop(socket);
    if (found == HELLO_COMPLETE)
        begin_handshake(&c->share);
    else
        h2o_socket_close(socket);
}

void protocol_start(connection *c)
{
    h2o_accept_ctx_t *accept = c->accept;
    if (accept->ssl_ctx == NULL) {
        h2o_socket_read_start(c->socket, on_first_bytes);
        return;
    }
    c->tls = accept->ssl_ctx;
    SSL_CTX_up_ref(c->tls);
    c->is_in_handshake = true;
    h2o_socket_read_start(c->socket, on_hello);
}
