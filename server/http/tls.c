#include "server/http/tls.h"

#include <h2o.h>
#include <openssl/err.h>
#include <string.h>

static status fail_file(const char *key, const char *file)
{
    /* The first error is the cause; for files OpenSSL's reason is the system's text. */
    unsigned long code = ERR_get_error();
    const char *reason =
        ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    ERR_clear_error();
    bool is_not_pem = reason != NULL && strcmp(reason, "no start line") == 0;
    return status_fail(STATUS_INVALID_ARGUMENT, "%s %s: %s", key, file,
                       is_not_pem       ? "has no such item in PEM format"
                       : reason == NULL ? "cannot be used"
                                        : reason);
}

/* TLS 1.2 and 1.3, with ALPN for HTTP/2 and HTTP/1.1. */
static status make_context(const server_tls *files, SSL_CTX **out)
{
    static const h2o_iovec_t protocols[] = {
        {H2O_STRLIT("h2")}, {H2O_STRLIT("http/1.1")}, {NULL, 0}};
    if (files->certificate_file == NULL || files->key_file == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "a TLS listener needs tls.certificate_file and tls.key_file");
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (context == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a TLS context");
    status failure = STATUS_OK;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* HTTP/2 over TLS 1.2 forbids the older suites (RFC 9113, appendix A). */
    SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
    if (SSL_CTX_use_certificate_chain_file(context, files->certificate_file) != 1)
        failure = fail_file("tls.certificate_file", files->certificate_file);
    else if (SSL_CTX_use_PrivateKey_file(context, files->key_file, SSL_FILETYPE_PEM) != 1)
        failure = fail_file("tls.key_file", files->key_file);
    else if (SSL_CTX_check_private_key(context) != 1)
        failure = fail_file("tls.key_file does not fit the certificate:", files->key_file);
    if (failure) {
        SSL_CTX_free(context);
        return failure;
    }
    h2o_ssl_register_alpn_protocols(context, protocols);
    *out = context;
    return STATUS_OK;
}

void tls_init(tls_context *t)
{
    *t = (tls_context){.current = NULL};
    pthread_mutex_init(&t->lock, NULL);
}

void tls_dispose(tls_context *t)
{
    SSL_CTX_free(t->current);
    pthread_mutex_destroy(&t->lock);
}

status tls_load(tls_context *t, const server_tls *files)
{
    SSL_CTX *fresh = NULL;
    status failure = make_context(files, &fresh);
    if (failure)
        return failure;
    pthread_mutex_lock(&t->lock);
    SSL_CTX *replaced = t->current;
    t->current = fresh;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(replaced);
    return STATUS_OK;
}

SSL_CTX *tls_acquire(tls_context *t)
{
    pthread_mutex_lock(&t->lock);
    SSL_CTX *current = t->current;
    if (current != NULL)
        SSL_CTX_up_ref(current);
    pthread_mutex_unlock(&t->lock);
    return current;
}
