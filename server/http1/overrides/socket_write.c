#include "server/http1/overrides/socket_write.h"

#include <assert.h>
#include <dlfcn.h>

typedef void write_function(h2o_socket_t *socket, h2o_iovec_t *pieces, size_t count,
                            h2o_socket_cb on_written);

/* Constant once loops run. */
static write_function *library_write;
static socket_write_hooks hooks;

void socket_write_install(const socket_write_hooks *to_call)
{
    hooks = *to_call;
    library_write = (write_function *)dlsym(RTLD_NEXT, "h2o_socket_write");
    assert(library_write != NULL);
    assert(dlsym(RTLD_DEFAULT, "h2o_socket_write") == (void *)h2o_socket_write);
}

void socket_write_now(h2o_socket_t *socket, h2o_iovec_t *pieces, size_t count,
                      h2o_socket_cb on_written)
{
    library_write(socket, pieces, count, on_written);
}

void h2o_socket_write(h2o_socket_t *socket, h2o_iovec_t *pieces, size_t count,
                      h2o_socket_cb on_written)
{
    size_t sent = hooks.bytes_sent(socket);
    if (sent > 0) {
        assert(count > 0 && pieces[0].len > sent);
        pieces[0].base += sent;
        pieces[0].len -= sent;
    }
    if (socket->ssl == NULL || !hooks.takes_over(socket, pieces, count, on_written))
        library_write(socket, pieces, count, on_written);
}
