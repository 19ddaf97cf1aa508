#include "server/http/protocol.h"

#include <string.h>

#include "base/clock.h"
#include "server/http/handshake.h"
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
    connection_note_progress(c, clock_now_ns());
    h2o_iovec_t protocol = h2o_socket_ssl_get_selected_protocol(socket);
    if (h2o_memis(protocol.base, protocol.len, H2O_STRLIT("h2")))
        http2_start(c);
    else
        http1_start(c);
}

void protocol_start(connection *c)
{
    if (c->accept->ssl_ctx == NULL)
        h2o_socket_read_start(c->socket, on_first_bytes);
    else
        handshake_start(c, on_handshake);
}
