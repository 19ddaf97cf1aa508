#ifndef SERVER_ACCESS_TABLE_H
#define SERVER_ACCESS_TABLE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/status.h"
#include "server/access/digest.h"
#include "server/access/rights.h"
#include "server/options/options.h"

/* Who is known, by key or certificate, and what they may do. Constant once made; replaced as a
 * whole when the file is read again. */

#define ACCESS_IDENTITIES_MAX 4096

typedef struct access_identity {
    const char *name;
    bool has_key;
    unsigned char digest[ACCESS_DIGEST_BYTES]; /* of the key */
    const char *certificate;   /* common name or alternative name of a certificate, or NULL */
    unsigned rights;           /* access_right */
    const char *const *models; /* that it may run; "a*" is all that begin with a */
    int model_count;           /* 0: all */
    int tenant;                /* number; 0: none of its own */
} access_identity;

typedef struct access_table {
    _Atomic int references;
    bool is_enforced; /* there is a file of keys: who has none has no rights */
    access_identity *identities;
    int count, capacity;
    arena memory;
} access_table;

/* From options->keys_file, and the tenants' keys; with one reference. STATUS_INVALID_ARGUMENT:
 * "FILE:LINE: what is wrong"; STATUS_NOT_FOUND, STATUS_IO, STATUS_OUT_OF_MEMORY. */
status access_table_create(const server_options *options, access_table **out) MUST_CHECK;
/* Any thread. */
access_table *access_table_retain(access_table *t);
void access_table_release(access_table *t);

/* The identity with that key, compared in time that does not depend on it; or NULL. */
const access_identity *access_find_key(const access_table *t, access_hasher *h, const char *key,
                                       size_t bytes);
/* The identity of a certificate's name, or NULL. */
const access_identity *access_find_certificate(const access_table *t, const char *name);

/* May it run that model? */
bool access_may_run(const access_identity *who, const char *model, size_t bytes);

#endif
