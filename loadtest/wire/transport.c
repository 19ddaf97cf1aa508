#include "loadtest/wire/transport.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#define PLAIN_BYTES 16384 /* one TLS record */

static void fail(transport *t, const char *what)
{
    char reason[256];
    unsigned long code = ERR_get_error();
    const char *detail = code ? ERR_reason_error_string(code) : NULL;
    long verify = SSL_get_verify_result(t->tls);
    if (verify != X509_V_OK && !t->open)
        detail = X509_verify_cert_error_string(verify);
    snprintf(reason, sizeof reason, "%s%s%s", what, detail ? ": " : "", detail ? detail : "");
    ERR_clear_error();
    t->ended_in_order = false;
    t->events->on_end(t->owner, reason);
}

/* Moves what OpenSSL wants to say into the socket's buffer. */
static void drain_tls(transport *t)
{
    BIO *out = SSL_get_wbio(t->tls);
    size_t waiting;
    while ((waiting = BIO_ctrl_pending(out)) != 0) {
        text_buffer *b = network_outgoing(t->socket);
        int n = BIO_read(out, text_buffer_require(b, waiting), (int)waiting);
        if (n <= 0)
            break;
        b->bytes += (size_t)n;
    }
}

static void encrypt(transport *t)
{
    if (t->plain.bytes != 0) {
        int n = SSL_write(t->tls, t->plain.data, (int)t->plain.bytes);
        assert(n == (int)t->plain.bytes); /* a memory BIO takes everything */
        (void)n;
        text_buffer_clear(&t->plain);
    }
    drain_tls(t);
}

/* False when the transport ended. */
static bool shake_hands(transport *t)
{
    int result = SSL_do_handshake(t->tls);
    drain_tls(t);
    network_flush(t->socket);
    if (result != 1) {
        if (SSL_get_error(t->tls, result) == SSL_ERROR_WANT_READ)
            return true;
        fail(t, "TLS handshake");
        return false;
    }
    const unsigned char *protocol;
    unsigned bytes;
    SSL_get0_alpn_selected(t->tls, &protocol, &bytes);
    bool http2 = bytes == 2 && memcmp(protocol, "h2", 2) == 0;
    if (t->target->protocol == TARGET_HTTP2 && !http2) {
        fail(t, "the server does not speak HTTP/2 (no h2 in ALPN)");
        return false;
    }
    t->open = true;
    t->events->on_open(t->owner, http2);
    return t->socket != NULL;
}

static void on_connected(void *owner)
{
    transport *t = owner;
    if (t->tls != NULL) {
        shake_hands(t);
        return;
    }
    t->open = true;
    t->events->on_open(t->owner, t->target->protocol == TARGET_HTTP2);
}

static void on_encrypted(transport *t, const uint8_t *data, size_t bytes)
{
    BIO_write(SSL_get_rbio(t->tls), data, (int)bytes);
    if (!t->open && (!shake_hands(t) || !t->open))
        return;
    uint8_t plain[PLAIN_BYTES];
    int n;
    while ((n = SSL_read(t->tls, plain, sizeof plain)) > 0) {
        t->events->on_data(t->owner, plain, (size_t)n);
        if (t->socket == NULL)
            return;
    }
    int error = SSL_get_error(t->tls, n);
    if (error == SSL_ERROR_ZERO_RETURN) {
        t->ended_in_order = true;
        t->events->on_end(t->owner, "closed by the server");
    } else if (error != SSL_ERROR_WANT_READ) {
        fail(t, "TLS");
    } else {
        drain_tls(t); /* key updates and the like */
        network_flush(t->socket);
    }
}

static void on_received(void *owner, const uint8_t *data, size_t bytes)
{
    transport *t = owner;
    if (t->tls != NULL)
        on_encrypted(t, data, bytes);
    else
        t->events->on_data(t->owner, data, bytes);
}

static void on_closed(void *owner, int error)
{
    transport *t = owner;
    t->ended_in_order = error == 0;
    t->events->on_end(t->owner, error ? strerror(error) : "closed by the server");
}

static const network_events events_of_socket = {on_connected, on_received, on_closed};

static status create_tls(transport *t)
{
    t->tls = SSL_new(t->target->tls_context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    if (t->tls == NULL || in == NULL || out == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "OpenSSL is out of memory");
    BIO_set_mem_eof_return(in, -1);
    BIO_set_mem_eof_return(out, -1);
    SSL_set_bio(t->tls, in, out);
    SSL_set_connect_state(t->tls);
    unsigned char literal[16];
    bool numeric = inet_pton(AF_INET, t->target->host, literal) == 1 ||
                   inet_pton(AF_INET6, t->target->host, literal) == 1;
    if (numeric) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->tls), t->target->host);
    } else {
        SSL_set_tlsext_host_name(t->tls, t->target->host);
        SSL_set1_host(t->tls, t->target->host);
    }
    return STATUS_OK;
}

status transport_open(transport *t, network *n, const target *to, const transport_events *events,
                      void *owner)
{
    *t = (transport){.target = to, .events = events, .owner = owner, .plain = t->plain};
    status s = to->tls ? create_tls(t) : STATUS_OK;
    if (!s)
        s = network_connect(n, (const struct sockaddr *)&to->address, to->address_bytes,
                            &events_of_socket, t, &t->socket);
    if (s) {
        SSL_free(t->tls);
        t->tls = NULL;
    }
    return s;
}

text_buffer *transport_outgoing(transport *t)
{
    return t->tls != NULL ? &t->plain : network_outgoing(t->socket);
}

void transport_flush(transport *t)
{
    if (!t->open || t->socket == NULL)
        return;
    if (t->tls != NULL)
        encrypt(t);
    network_flush(t->socket);
}

void transport_close(transport *t)
{
    if (t->socket == NULL)
        return;
    network_close(t->socket);
    t->socket = NULL;
    t->open = false;
    SSL_free(t->tls);
    t->tls = NULL;
    text_buffer_dispose(&t->plain);
}
