#include "server/http/overrides/late.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "server/http/edge.h"

#define TEXT "{\"error\":\"the request did not arrive in time\"}"

typedef void close_function(h2o_socket_t *socket);

static close_function *library_close;

void late_find_library(void)
{
    library_close = (close_function *)dlsym(RTLD_NEXT, "h2o_socket_close");
    assert(library_close != NULL);
    assert(dlsym(RTLD_DEFAULT, "h2o_socket_close") == (void *)h2o_socket_close);
}

/* Cut in the middle of an HTTP/1 request, with nobody answered and the client still there. A frame
 * of HTTP/2 begins with the zero byte of its length, a method with a letter. */
static bool is_cut_short(const connection *c, h2o_socket_t *socket)
{
    char byte;
    if (c->is_condemned || c->is_final || c->exchanges > 0 || socket->input->size == 0 ||
        socket->input->bytes[0] < 'A' || socket->input->bytes[0] > 'Z' ||
        h2o_socket_is_writing(socket))
        return false;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void on_written(h2o_socket_t *socket, const char *error)
{
    (void)error;
    library_close(socket);
}

void h2o_socket_close(h2o_socket_t *socket)
{
    static const char answer_text[] =
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 46\r\n\r\n" TEXT;
    _Static_assert(sizeof(TEXT) - 1 == 46, "Content-Length");
    connection *c = connection_of(socket);
    if (c == NULL || !is_cut_short(c, socket)) {
        library_close(socket);
        return;
    }
    c->is_final = true;
    record_sample sample = {.begin_ns = clock_now_ns(), .code = 408, .bucket_index = -1};
    record_request(c->loop->server->recorder, NULL, c->loop->index, &sample, sample.begin_ns);
    h2o_iovec_t piece = h2o_iovec_init(answer_text, sizeof(answer_text) - 1);
    h2o_socket_read_stop(socket);
    h2o_socket_write(socket, &piece, 1, on_written);
}
