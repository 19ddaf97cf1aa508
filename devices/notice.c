#include "devices/notice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io/tcp.h"

#define HTTP "http://"
#define TIMEOUT_S 2 /* of connecting, and of each read and write */
#define SPACE " \t\r\n,;"

static status read_file(const char *path, char text[DEVICE_NOTICE_BYTES])
{
    FILE *file = fopen(path, "re");
    if (file == NULL && errno != ENOENT)
        return status_fail(STATUS_IO, "%s: %m", path);
    size_t bytes = file != NULL ? fread(text, 1, DEVICE_NOTICE_BYTES - 1, file) : 0;
    bool is_bad = file != NULL && ferror(file);
    if (file != NULL)
        fclose(file);
    if (is_bad)
        return status_fail(STATUS_IO, "%s: cannot be read", path);
    text[bytes] = 0;
    return STATUS_OK;
}

/* --- HTTP --- */

/* The whole response, cut at `bytes` - 1. With HTTP/1.0 it ends with the connection. */
static status exchange(int fd, const char *request, char *response, size_t bytes)
{
    size_t length = strlen(request), used = 0;
    if (send(fd, request, length, MSG_NOSIGNAL) != (ssize_t)length)
        return status_fail(STATUS_UNAVAILABLE, "the request could not be sent: %m");
    for (;;) {
        ssize_t got = recv(fd, response + used, bytes - 1 - used, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return status_fail(STATUS_UNAVAILABLE, "no response: %m");
        if (got == 0)
            break;
        used += (size_t)got;
    }
    response[used] = 0;
    return STATUS_OK;
}

static status take_body(const char *url, const char *response, char text[DEVICE_NOTICE_BYTES])
{
    int code = 0;
    const char *body = strstr(response, "\r\n\r\n");
    if (sscanf(response, "HTTP/1.%*d %d", &code) != 1 || body == NULL)
        return status_fail(STATUS_UNAVAILABLE, "%s: the response is not HTTP", url);
    if (code != 200 && code != 404)
        return status_fail(STATUS_UNAVAILABLE, "%s: code %d", url, code);
    snprintf(text, DEVICE_NOTICE_BYTES, "%s", code == 200 ? body + 4 : "");
    return STATUS_OK;
}

static status read_url(const char *url, char text[DEVICE_NOTICE_BYTES])
{
    char host[256], request[1024], response[2 * DEVICE_NOTICE_BYTES];
    const char *begin = url + strlen(HTTP), *path = strchr(begin, '/'), *port = "80";
    size_t bytes = path != NULL ? (size_t)(path - begin) : strlen(begin);
    if (bytes == 0 || bytes >= sizeof host)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: not http://HOST[:PORT]/PATH", url);
    memcpy(host, begin, bytes);
    host[bytes] = 0;
    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.0\r\nHost: %s\r\nMetadata-Flavor: Google\r\n\r\n",
                          path != NULL ? path : "/", host);
    if (length >= (int)sizeof request)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: too long", url);
    char *colon = strrchr(host, ':');
    if (colon != NULL) {
        *colon = 0;
        port = colon + 1;
    }
    int fd = -1;
    status s = tcp_connect(host, port, TIMEOUT_S, &fd);
    if (s)
        return s;
    s = exchange(fd, request, response, sizeof response);
    close(fd);
    return s ? status_prefix(s, "%s", url) : take_body(url, response, text);
}

status device_notice_read(const char *source, char text[DEVICE_NOTICE_BYTES])
{
    if (strncmp(source, HTTP, strlen(HTTP)) == 0)
        return read_url(source, text);
    if (strstr(source, "://") != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: use a file, or http://HOST[:PORT]/PATH",
                           source);
    return read_file(source, text);
}

/* --- what it says --- */

static bool is_nothing(const char *text)
{
    static const char *const words[] = {"", "none", "false", "null", "0"};
    size_t bytes = strcspn(text, SPACE);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == bytes && strncasecmp(words[i], text, bytes) == 0)
            return true;
    return false;
}

bool device_notice_tells(const char *text, const char *name)
{
    bool has_names = false;
    text += strspn(text, SPACE);
    if (is_nothing(text))
        return false;
    for (const char *word = text; *word != 0; word += strspn(word, SPACE)) {
        size_t bytes = strcspn(word, SPACE);
        if (bytes == strlen(name) && strncmp(word, name, bytes) == 0)
            return true;
        has_names |= strncmp(word, "pjrt:", 5) == 0;
        word += bytes;
    }
    return !has_names;
}
