#include "server/http/tls.h"

#include <h2o.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "server/connection/connection.h"

#define NAMES_BYTES_MAX 4096 /* of a client's certificate */

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

/* Adds a name to the list, unless it is too long or would end it early. */
static size_t add_name(char *names, size_t used, const char *name, int bytes)
{
    bool fits = bytes > 0 && used + (size_t)bytes + 2 <= NAMES_BYTES_MAX;
    if (!fits || memchr(name, 0, (size_t)bytes) != NULL)
        return used;
    memcpy(names + used, name, (size_t)bytes);
    names[used + (size_t)bytes] = 0;
    return used + (size_t)bytes + 1;
}

/* Common name, and alternative names that are DNS names, URIs or mail addresses. */
static size_t list_names(X509 *certificate, char *names)
{
    size_t used = 0;
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *text = NULL;
    int bytes = at < 0 ? -1
                       : ASN1_STRING_to_UTF8(
                             &text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (bytes > 0)
        used = add_name(names, used, (const char *)text, bytes);
    OPENSSL_free(text);
    GENERAL_NAMES *others = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(others); i++) {
        int kind;
        const ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(others, i), &kind);
        if (kind == GEN_DNS || kind == GEN_URI || kind == GEN_EMAIL)
            used = add_name(names, used, (const char *)ASN1_STRING_get0_data(value),
                            ASN1_STRING_length(value));
    }
    GENERAL_NAMES_free(others);
    return used;
}

/* A handshake is over: the connection keeps the names of the certificate that was checked. libh2o
 * gives its socket as the data of the session's reader. */
static void on_info(const SSL *session, int where, int result)
{
    (void)result;
    X509 *certificate = where & SSL_CB_HANDSHAKE_DONE ? SSL_get0_peer_certificate(session) : NULL;
    if (certificate == NULL || SSL_get_verify_result(session) != X509_V_OK)
        return;
    connection *c = connection_of(BIO_get_data(SSL_get_rbio(session)));
    char *names =
        c != NULL && c->base.certificate_names == NULL ? calloc(1, NAMES_BYTES_MAX) : NULL;
    if (names != NULL && list_names(certificate, names) > 0)
        c->base.certificate_names = names;
    else
        free(names);
}

static status check_clients(SSL_CTX *context, const server_tls *files)
{
    static const unsigned char name[] = "penstock";
    if (files->client_ca_file == NULL)
        return STATUS_OK;
    STACK_OF(X509_NAME) *list = SSL_load_client_CA_file(files->client_ca_file);
    if (list == NULL || SSL_CTX_load_verify_locations(context, files->client_ca_file, NULL) != 1) {
        sk_X509_NAME_pop_free(list, X509_NAME_free);
        return fail_file("tls.client_ca_file", files->client_ca_file);
    }
    SSL_CTX_set_client_CA_list(context, list);
    SSL_CTX_set_session_id_context(context, name, sizeof name - 1);
    SSL_CTX_set_verify(context,
                       SSL_VERIFY_PEER |
                           (files->needs_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       NULL);
    SSL_CTX_set_info_callback(context, on_info);
    return STATUS_OK;
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
    else
        failure = check_clients(context, files);
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
