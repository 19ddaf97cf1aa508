#ifndef SERVER_HTTP_TLS_H
#define SERVER_HTTP_TLS_H

#include <openssl/ssl.h>
#include <pthread.h>

#include "base/status.h"
#include "server/options/options.h"

/* The TLS context that new connections get. The main thread replaces it when the files have
 * changed; loops take the current one.
 *
 * libh2o's sockets point to their context without a reference until the handshake is over, so
 * replaced contexts live on for TLS_RETIRED_MAX replacements. */
#define TLS_RETIRED_MAX 16

typedef struct tls_context {
    pthread_mutex_t lock; /* of `current`; taken when a loop starts and after a reload */
    SSL_CTX *current;     /* NULL: no listener has TLS */
    SSL_CTX *retired[TLS_RETIRED_MAX];
    unsigned reloads;
} tls_context;

void tls_init(tls_context *t);
void tls_dispose(tls_context *t);

/* Reads the files; on failure the old context stays. STATUS_INVALID_ARGUMENT names the option and
 * the file. One thread at a time. */
status tls_load(tls_context *t, const server_tls *files) MUST_CHECK;

/* A reference to the current context, for SSL_CTX_free(); or NULL. Any thread. */
SSL_CTX *tls_acquire(tls_context *t);

#endif
