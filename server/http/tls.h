#ifndef SERVER_HTTP_TLS_H
#define SERVER_HTTP_TLS_H

#include <openssl/ssl.h>
#include <pthread.h>

#include "base/status.h"
#include "server/options/options.h"

/* The TLS context that new connections get. The main thread replaces it when the files have
 * changed; loops take the current one. Whoever uses a context has a reference: this, each loop, and
 * each connection until its handshake is over (libh2o takes none before that). */
typedef struct tls_context {
    pthread_mutex_t lock; /* of `current`; taken when a loop starts and after a reload */
    SSL_CTX *current;     /* NULL: no listener has TLS */
} tls_context;

void tls_init(tls_context *t);
void tls_dispose(tls_context *t);

/* Reads the files; on failure the old context stays. STATUS_INVALID_ARGUMENT names the option and
 * the file. One thread at a time. */
status tls_load(tls_context *t, const server_tls *files) MUST_CHECK;

/* A reference to the current context, for SSL_CTX_free(); or NULL. Any thread. */
SSL_CTX *tls_acquire(tls_context *t);

#endif
