#include "server/http1/overrides/socket_close.h"

#include <assert.h>
#include <dlfcn.h>

typedef void close_function(h2o_socket_t *socket);

/* Constant once loops run. */
static close_function *library_close;
static socket_close_hook *hook;

void socket_close_install(socket_close_hook *before_close)
{
    hook = before_close;
    library_close = (close_function *)dlsym(RTLD_NEXT, "h2o_socket_close");
    assert(library_close != NULL);
    assert(dlsym(RTLD_DEFAULT, "h2o_socket_close") == (void *)h2o_socket_close);
}

void socket_close_now(h2o_socket_t *socket)
{
    library_close(socket);
}

void h2o_socket_close(h2o_socket_t *socket)
{
    if (!hook(socket))
        library_close(socket);
}
