#include "base/io/tcp.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static status connect_to(const struct addrinfo *a, int limit_s, int *out)
{
    const struct timeval limit = {.tv_sec = limit_s};
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0)
        return status_fail(STATUS_UNAVAILABLE, "%m");
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
        connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        status s = status_fail(STATUS_UNAVAILABLE, "%m");
        close(fd);
        return s;
    }
    *out = fd;
    return STATUS_OK;
}

status tcp_connect(const char *host, const char *port, int limit_s, int *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return status_fail(STATUS_UNAVAILABLE, "%s: %s", host, gai_strerror(code));
    status s = status_fail(STATUS_UNAVAILABLE, "no address");
    for (struct addrinfo *a = found; a != NULL && s; a = a->ai_next)
        s = connect_to(a, limit_s, out);
    freeaddrinfo(found);
    return s ? status_prefix(s, "%s:%s", host, port) : STATUS_OK;
}
