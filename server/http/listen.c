#include "server/http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static status open_one(const server_listener *at, uint16_t port, int *out, uint16_t *bound)
{
    char service[8];
    const char *host = at->host && *at->host && strcmp(at->host, "*") != 0 ? at->host : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
    snprintf(service, sizeof(service), "%u", port);
    if (host == NULL)
        hints.ai_family = AF_INET;
    int code = getaddrinfo(host, service, &hints, &list);
    if (code != 0)
        return status_fail(STATUS_IO, "listen %s:%u: %s", host ? host : "*", port,
                           gai_strerror(code));
    const char *step = "socket";
    int one = 1;
    struct sockaddr_storage name;
    socklen_t name_bytes = sizeof(name);
    int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        goto fail;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    step = "SO_REUSEPORT";
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0)
        goto fail;
    step = "bind";
    if (bind(fd, list->ai_addr, list->ai_addrlen) != 0)
        goto fail;
    step = "listen";
    if (listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&name, &name_bytes) != 0)
        goto fail;
    *bound = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port
                                              : ((struct sockaddr_in *)&name)->sin_port);
    *out = fd;
    freeaddrinfo(list);
    return STATUS_OK;
fail:
    code = errno;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(list);
    return status_fail(STATUS_IO, "listen %s:%u: %s: %s", host ? host : "*", port, step,
                       strerror(code));
}

/* SO_REUSEPORT would let a second server share our port in silence: ask first without it. */
static status check_free(const server_listener *at)
{
    if (at->port == 0)
        return STATUS_OK;
    char service[8];
    const char *host = at->host && *at->host && strcmp(at->host, "*") != 0 ? at->host : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
    snprintf(service, sizeof(service), "%u", at->port);
    if (host == NULL)
        hints.ai_family = AF_INET;
    if (getaddrinfo(host, service, &hints, &list) != 0)
        return STATUS_OK; /* open_one says it */
    int one = 1, fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), code = 0;
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, list->ai_addr, list->ai_addrlen) != 0)
            code = errno;
        close(fd);
    }
    freeaddrinfo(list);
    if (code == EADDRINUSE)
        return status_fail(STATUS_IO,
                           "listen %s:%u: %s: by another server, or by one that is still "
                           "draining; --listen HOST:PORT chooses another address",
                           host ? host : "*", at->port, strerror(code));
    return STATUS_OK;
}

/* Is it the socket of a process that has ended? */
static bool is_left_over(const struct sockaddr_un *name)
{
    struct stat about;
    if (lstat(name->sun_path, &about) != 0 || !S_ISSOCK(about.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_refused = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) != 0 &&
                      errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return is_refused;
}

/* For the owner alone. */
static status open_local(const char *path, int *out)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        return status_fail(STATUS_INVALID_ARGUMENT, "listen unix:%s: the path is too long", path);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    if (is_left_over(&name))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof name) == 0 &&
        chmod(path, S_IRUSR | S_IWUSR) == 0 && listen(fd, BACKLOG) == 0) {
        *out = fd;
        return STATUS_OK;
    }
    int code = errno;
    if (fd >= 0)
        close(fd);
    return status_fail(STATUS_IO, "listen unix:%s: %s", path, strerror(code));
}

status listen_open(const server_listener *at, int loops, int *fds, uint16_t *port)
{
    if (at->path != NULL) {
        *port = 0;
        return open_local(at->path, &fds[0]);
    }
    status failure = check_free(at);
    uint16_t wanted = at->port;
    int opened = 0;
    for (; !failure && opened < loops; opened++) {
        failure = open_one(at, wanted, &fds[opened], port);
        if (failure)
            break;
        wanted = *port;
    }
    while (failure && opened > 0)
        close(fds[--opened]);
    return failure;
}
