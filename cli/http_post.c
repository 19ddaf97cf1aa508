#include "cli/http_post.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_BYTES_MAX ((size_t)2 << 30)

status http_target_read(const char *url, http_target *out)
{
    http_target t = {.is_tls = strncmp(url, "https://", 8) == 0};
    if (strncmp(url, "unix:", 5) == 0) {
        snprintf(t.host, sizeof t.host, "%s", url + 5);
        *out = t;
        return STATUS_OK;
    }
    if (!t.is_tls && strncmp(url, "http://", 7) != 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "%s: use http://HOST[:PORT], https://HOST[:PORT] or unix:PATH", url);
    const char *begin = url + (t.is_tls ? 8 : 7);
    size_t bytes = strcspn(begin, "/");
    const char *bracket = memchr(begin, ']', bytes); /* [::1]:8080 */
    const char *from = bracket != NULL ? bracket : begin;
    const char *colon = memchr(from, ':', (size_t)(begin + bytes - from));
    size_t host_bytes = colon != NULL ? (size_t)(colon - begin) : bytes;
    size_t port_bytes = colon != NULL ? bytes - host_bytes - 1 : 0;
    if (host_bytes == 0 || host_bytes >= sizeof t.host || port_bytes >= sizeof t.port ||
        (begin[bytes] == '/' && begin[bytes + 1] != 0))
        return status_fail(STATUS_INVALID_ARGUMENT, "%s: the address has no path", url);
    memcpy(t.host, begin, host_bytes);
    snprintf(t.port, sizeof t.port, "%.*s", (int)port_bytes, colon != NULL ? colon + 1 : "");
    if (t.port[0] == 0)
        snprintf(t.port, sizeof t.port, "%s", t.is_tls ? "443" : "80");
    *out = t;
    return STATUS_OK;
}

static status fail(const http_target *to)
{
    char why[200] = "no connection";
    unsigned long code = ERR_get_error();
    if (code != 0)
        ERR_error_string_n(code, why, sizeof why);
    return status_fail(STATUS_UNAVAILABLE, "%s%s%s: %s", to->host, to->port[0] ? ":" : "", to->port,
                       why);
}

static BIO *connect_to_socket(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path)
        return NULL;
    memcpy(to.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return BIO_new_socket(fd, BIO_CLOSE);
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* The name of the certificate must be the host's. */
static BIO *connect_tls(SSL_CTX *context, const http_target *to)
{
    SSL *ssl = NULL;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_default_verify_paths(context) != 1)
        return NULL;
    BIO *bio = BIO_new_ssl_connect(context);
    if (bio != NULL && BIO_get_ssl(bio, &ssl) == 1 && ssl != NULL &&
        SSL_set_tlsext_host_name(ssl, to->host) == 1 && SSL_set1_host(ssl, to->host) == 1) {
        BIO_set_conn_hostname(bio, to->host);
        BIO_set_conn_port(bio, to->port);
        if (BIO_do_connect(bio) == 1)
            return bio;
    }
    BIO_free_all(bio);
    return NULL;
}

static BIO *connect_plain(const http_target *to)
{
    BIO *bio = BIO_new_connect(to->host);
    if (bio == NULL)
        return NULL;
    BIO_set_conn_port(bio, to->port);
    if (BIO_do_connect(bio) == 1)
        return bio;
    BIO_free_all(bio);
    return NULL;
}

/* All that comes until the end of the connection, with a zero after it. */
static status read_all(BIO *bio, char **data, size_t *bytes)
{
    size_t used = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    for (int got = 1; text != NULL && got > 0;) {
        if (capacity - used < 2) {
            char *more = capacity < ANSWER_BYTES_MAX ? realloc(text, 2 * capacity) : NULL;
            if (more == NULL)
                break;
            text = more;
            capacity *= 2;
        }
        size_t room = capacity - used - 1;
        got = BIO_read(bio, text + used, room < 1 << 20 ? (int)room : 1 << 20);
        if (got > 0) {
            used += (size_t)got;
            continue;
        }
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

static status exchange(BIO *bio, const http_target *to, const char *path, const char *key,
                       const char *json, http_answer *out)
{
    char *data = NULL;
    size_t bytes = 0;
    const char *host = to->port[0] != 0 ? to->host : "localhost";
    int failed = BIO_printf(bio,
                            "POST %s HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n%s%s%s\r\n%s",
                            path, host, strlen(json), key ? "Authorization: Bearer " : "",
                            key ? key : "", key ? "\r\n" : "", json) <= 0;
    if (failed || BIO_flush(bio) != 1)
        return fail(to);
    status s = read_all(bio, &data, &bytes);
    if (s == STATUS_OK)
        s = take_body(data, bytes, out);
    if (s)
        free(data);
    return s;
}

status http_post(const http_target *to, const char *path, const char *key, const char *json,
                 http_answer *out)
{
    SSL_CTX *context = to->is_tls ? SSL_CTX_new(TLS_client_method()) : NULL;
    BIO *bio = to->port[0] == 0  ? connect_to_socket(to->host)
               : context != NULL ? connect_tls(context, to)
               : !to->is_tls     ? connect_plain(to)
                                 : NULL;
    status s = bio != NULL ? exchange(bio, to, path, key, json, out) : fail(to);
    BIO_free_all(bio);
    SSL_CTX_free(context);
    return s;
}
