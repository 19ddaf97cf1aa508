#ifndef BASE_IDENTITY_CONTENT_HASH_H
#define BASE_IDENTITY_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a with a shift, over four words of 8 bytes side by side, as fast as memory is read: finds
 * damage and tells contents apart, does not resist attacks. `seed`: of what came before. */
uint64_t content_hash(uint64_t seed, const void *data, size_t bytes);

#endif
