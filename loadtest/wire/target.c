#include "loadtest/wire/target.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text/text_buffer.h"
#include "loadtest/wire/memory.h"

#define CONNECT_TIMEOUT_MS 5000

static status split(target *t, const char *url)
{
    const char *at = url;
    if (strncasecmp(at, "http://", 7) == 0) {
        at += 7;
    } else if (strncasecmp(at, "https://", 8) == 0) {
        at += 8;
        t->tls = true;
    } else if (strstr(at, "://") != NULL) {
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "\"%s\": the URL must begin with http:// or https://", url);
    }
    size_t authority_bytes = strcspn(at, "/?#");
    const char *path = at + authority_bytes, *host = at, *colon;
    size_t host_bytes = authority_bytes;
    if (memchr(at, '@', authority_bytes) != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\": no user name in a URL; use --header",
                           url);
    if (*at == '[') {
        const char *bracket = memchr(at, ']', authority_bytes);
        if (bracket == NULL)
            return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\": no ] after the address", url);
        host = at + 1;
        host_bytes = (size_t)(bracket - host);
        colon = bracket + 1 < path ? bracket + 1 : NULL;
    } else {
        colon = memchr(at, ':', authority_bytes);
        if (colon != NULL)
            host_bytes = (size_t)(colon - host);
    }
    if (host_bytes == 0 || (colon != NULL && (*colon != ':' || colon + 1 == path)))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "\"%s\" is not a URL such as "
                           "http://127.0.0.1:8080",
                           url);
    t->host = memory_copy_string(host, host_bytes);
    t->port = colon ? memory_copy_string(colon + 1, (size_t)(path - colon - 1))
                    : memory_copy_string(t->tls ? "443" : "80", t->tls ? 3 : 2);
    char *end;
    unsigned long port = strtoul(t->port, &end, 10);
    if (*end != 0 || t->port[0] < '0' || t->port[0] > '9' || port < 1 || port > 65535)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\": the port is a number from 1 to 65535",
                           url);
    for (const char *c = at; *c != 0; c++)
        if ((unsigned char)*c <= ' ' || *c == 127)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "\"%s\": no spaces in a URL; write %%20 for one", url);
    t->authority = memory_copy_string(at, authority_bytes);
    text_buffer b = {0};
    if (*path != '/')
        text_buffer_put(&b, "/");
    text_buffer_append(&b, path, strcspn(path, "#"));
    t->path = (char *)text_buffer_string(&b);
    return STATUS_OK;
}

static bool accepts(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int error = 0;
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t bytes = sizeof error;
        if (poll(&p, 1, CONNECT_TIMEOUT_MS) != 1)
            error = ETIMEDOUT;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
    close(fd);
    errno = error;
    return error == 0;
}

static status resolve(target *t)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    int error = getaddrinfo(t->host, t->port, &hints, &list);
    if (error != 0)
        return status_fail(STATUS_NOT_FOUND, "%s port %s: %s", t->host, t->port,
                           gai_strerror(error));
    int last = 0;
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        if (accepts(a)) {
            memcpy(&t->address, a->ai_addr, a->ai_addrlen);
            t->address_bytes = a->ai_addrlen;
            freeaddrinfo(list);
            return STATUS_OK;
        }
        last = errno;
    }
    freeaddrinfo(list);
    return status_fail(STATUS_UNAVAILABLE, "cannot connect to %s port %s: %s", t->host, t->port,
                       strerror(last));
}

static status set_up_tls(target *t, const char *ca_file, bool insecure)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    static const unsigned char only_http2[] = "\x02h2", only_http1[] = "\x08http/1.1";
    t->tls_context = SSL_CTX_new(TLS_client_method());
    if (t->tls_context == NULL)
        return status_fail(STATUS_INTERNAL, "OpenSSL cannot be set up");
    SSL_CTX_set_min_proto_version(t->tls_context, TLS1_2_VERSION);
    int loaded = ca_file ? SSL_CTX_load_verify_locations(t->tls_context, ca_file, NULL)
                         : SSL_CTX_set_default_verify_paths(t->tls_context);
    if (!loaded && !insecure)
        return status_fail(STATUS_IO, "%s: no certificates can be read from it",
                           ca_file ? ca_file : "the system's certificate store");
    SSL_CTX_set_verify(t->tls_context, insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(t->tls_context, SSL_MODE_RELEASE_BUFFERS);
    switch (t->protocol) {
    case TARGET_AUTO:
        SSL_CTX_set_alpn_protos(t->tls_context, both, sizeof both - 1);
        break;
    case TARGET_HTTP1:
        SSL_CTX_set_alpn_protos(t->tls_context, only_http1, sizeof only_http1 - 1);
        break;
    case TARGET_HTTP2:
        SSL_CTX_set_alpn_protos(t->tls_context, only_http2, sizeof only_http2 - 1);
    }
    return STATUS_OK;
}

status target_init(target *t, const char *url, target_protocol protocol, const char *ca_file,
                   bool insecure)
{
    *t = (target){.protocol = protocol};
    status s = split(t, url);
    if (!s)
        s = resolve(t);
    if (!s && t->tls)
        s = set_up_tls(t, ca_file, insecure);
    if (s)
        target_dispose(t);
    return s;
}

void target_dispose(target *t)
{
    free(t->host);
    free(t->port);
    free(t->authority);
    free(t->path);
    SSL_CTX_free(t->tls_context);
    *t = (target){0};
}
