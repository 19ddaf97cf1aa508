#include "cli/http_post.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io/tcp.h"

#define ANSWER_BYTES_MAX ((size_t)2 << 30)

status http_target_read(const char *url, http_target *out)
{
    http_target t = {.port = "80"};
    if (strncmp(url, "unix:", 5) == 0) {
        snprintf(t.host, sizeof t.host, "%s", url + 5);
        t.port[0] = 0;
        *out = t;
        return STATUS_OK;
    }
    if (strncmp(url, "http://", 7) != 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%s: use http://HOST[:PORT] or unix:PATH; over TLS: curl --data "
                           "'{\"seconds\":3}' URL/v2/profile",
                           url);
    const char *begin = url + 7;
    size_t bytes = strcspn(begin, "/");
    const char *bracket = memchr(begin, ']', bytes); /* [::1]:8080 */
    const char *from = bracket != NULL ? bracket : begin;
    const char *colon = memchr(from, ':', (size_t)(begin + bytes - from));
    size_t host_bytes = colon != NULL ? (size_t)(colon - begin) : bytes;
    size_t port_bytes = colon != NULL ? bytes - host_bytes - 1 : 0;
    if (host_bytes == 0 || host_bytes >= sizeof t.host || port_bytes >= sizeof t.port ||
        (begin[bytes] == '/' && begin[bytes + 1] != 0))
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: the address has no path", url);
    bool has_brackets = begin[0] == '[' && begin[host_bytes - 1] == ']';
    snprintf(t.host, sizeof t.host, "%.*s", (int)host_bytes - 2 * has_brackets,
             begin + has_brackets);
    if (port_bytes > 0)
        snprintf(t.port, sizeof t.port, "%.*s", (int)port_bytes, colon + 1);
    *out = t;
    return STATUS_OK;
}

static status connect_to_socket(const char *path, int *out)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: too long for a socket", path);
    memcpy(to.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        status s = status_fail(STATUS_UNAVAILABLE, "%s: %m", path);
        if (fd >= 0)
            close(fd);
        return s;
    }
    *out = fd;
    return STATUS_OK;
}

/* All that comes until the end of the connection, with a zero after it. */
static status read_all(int fd, char **data, size_t *bytes)
{
    size_t used = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    while (text != NULL) {
        if (capacity - used < 2) {
            char *more = capacity < ANSWER_BYTES_MAX ? realloc(text, 2 * capacity) : NULL;
            if (more == NULL)
                break;
            text = more;
            capacity *= 2;
        }
        ssize_t got = recv(fd, text + used, capacity - used - 1, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(text);
            return status_fail(STATUS_UNAVAILABLE, "reading the answer: %m");
        }
        used += (size_t)got;
        if (got > 0)
            continue;
        text[used] = 0;
        *data = text;
        *bytes = used;
        return STATUS_OK;
    }
    free(text);
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the answer");
}

/* The length that the head tells; SIZE_MAX: it does not. */
static size_t told_length(const char *head, const char *end)
{
    static const char name[] = "content-length:";
    for (const char *line = head; line < end; line = strchr(line, '\n') + 1)
        if (strncasecmp(line, name, sizeof name - 1) == 0)
            return (size_t)strtoull(line + sizeof name - 1, NULL, 10);
    return SIZE_MAX;
}

static status take_body(char *data, size_t bytes, http_answer *out)
{
    int code = 0;
    const char *end = strstr(data, "\r\n\r\n");
    if (end == NULL || sscanf(data, "HTTP/1.%*d %d", &code) != 1)
        return status_fail(STATUS_UNAVAILABLE, "the answer is not HTTP");
    size_t head = (size_t)(end + 4 - data), told = told_length(data, end);
    if (told != SIZE_MAX && bytes - head != told)
        return status_fail(STATUS_UNAVAILABLE, "the answer was cut: %zu of %zu bytes", bytes - head,
                           told);
    memmove(data, data + head, bytes - head + 1);
    *out = (http_answer){code, data, bytes - head};
    return STATUS_OK;
}

static status exchange(int fd, const http_target *to, const char *path, const char *key,
                       const char *json, http_answer *out)
{
    char *data = NULL, head[1500];
    size_t bytes = 0;
    const char *host = to->port[0] != 0 ? to->host : "localhost";
    int length = snprintf(head, sizeof head,
                          "POST %s HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n%s%s%s\r\n%s",
                          path, host, strlen(json), key ? "Authorization: Bearer " : "",
                          key ? key : "", key ? "\r\n" : "", json);
    if (length >= (int)sizeof head || send(fd, head, (size_t)length, MSG_NOSIGNAL) != length)
        return status_fail(STATUS_UNAVAILABLE, "the request could not be sent: %m");
    status s = read_all(fd, &data, &bytes);
    if (s)
        return s;
    s = take_body(data, bytes, out);
    if (s)
        free(data);
    return s;
}

status http_post(const http_target *to, const char *path, const char *key, const char *json,
                 http_answer *out)
{
    int fd = -1;
    status s = to->port[0] == 0 ? connect_to_socket(to->host, &fd)
                                : tcp_connect(to->host, to->port, 0, &fd);
    if (s)
        return s;
    s = exchange(fd, to, path, key, json, out);
    close(fd);
    return s;
}
