#ifndef SERVER_ACCESS_DIGEST_H
#define SERVER_ACCESS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

/* SHA-256, by OpenSSL. */

#define ACCESS_DIGEST_BYTES 32
#define ACCESS_DIGEST_HEX_BYTES (2 * ACCESS_DIGEST_BYTES + 1)

/* What hashing needs, made once; of one thread. NULL: memory is out. */
typedef struct access_hasher access_hasher;
access_hasher *access_hasher_create(void);
void access_hasher_destroy(access_hasher *h);
/* Loads the algorithm, which the first digest would do otherwise: in a process that hashes nothing,
 * OpenSSL does not start at all (a millisecond). False: the library fails. */
bool access_hasher_prepare(access_hasher *h);

/* False: the library fails. */
bool access_digest(access_hasher *h, const void *data, size_t bytes,
                   unsigned char out[ACCESS_DIGEST_BYTES]);
/* In time that does not depend on the bytes. */
bool access_digest_is_same(const unsigned char *a, const unsigned char *b);

void access_digest_write(const unsigned char *digest, char hex[ACCESS_DIGEST_HEX_BYTES]);
/* False: it is no digest in hexadecimal. */
bool access_digest_read(const char *hex, size_t bytes, unsigned char out[ACCESS_DIGEST_BYTES]);

#endif
