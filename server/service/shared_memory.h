#ifndef SERVER_SERVICE_SHARED_MEMORY_H
#define SERVER_SERVICE_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Regions of POSIX shared memory that local clients have named (Triton's system shared memory):
 * tensors lie there instead of in bodies. A region is a part of a file in /dev/shm, and is read and
 * written, never mapped: a client that makes the file shorter gets an error, and nobody a SIGBUS.
 * Any thread; takes a lock, which is not held while memory is copied. */

typedef struct shared_memory shared_memory;

#define SHARED_REGIONS_MAX 64
#define SHARED_NAME_BYTES 256

typedef struct shared_region {
    char name[SHARED_NAME_BYTES], key[SHARED_NAME_BYTES]; /* the client's name; the file's */
    uint64_t offset, bytes;                               /* of the file */
} shared_region;

/* `bytes_max`: of all regions together. NULL: memory is out. */
shared_memory *shared_memory_create(uint64_t bytes_max);
void shared_memory_destroy(shared_memory *m); /* or NULL */

/* Opens the file "/key" of /dev/shm. STATUS_INVALID_ARGUMENT: the name is taken, the key is no such
 * file, or it is shorter than that; STATUS_RESOURCE_EXHAUSTED: too many regions, or bytes. */
status shared_memory_register(shared_memory *m, const shared_region *region) MUST_CHECK;

/* Forgets the region of that name, if there is one; NULL or "": all of them. */
void shared_memory_unregister(shared_memory *m, const char *name);

/* The region of that name, or all ("" or NULL), in the order of their names; returns how many,
 * writes at most SHARED_REGIONS_MAX. */
int shared_memory_list(shared_memory *m, const char *name, shared_region out[SHARED_REGIONS_MAX]);

/* Takes no lock. */
bool shared_memory_is_empty(const shared_memory *m);

/* `bytes` at `offset` of the region. STATUS_INVALID_ARGUMENT: there is no such region, they do not
 * lie in it, or its file has become shorter. */
status shared_memory_check(shared_memory *m, const char *name, size_t name_bytes, uint64_t offset,
                           uint64_t bytes) MUST_CHECK;
status shared_memory_read(shared_memory *m, const char *name, size_t name_bytes, uint64_t offset,
                          uint64_t bytes, void *to) MUST_CHECK;
status shared_memory_write(shared_memory *m, const char *name, size_t name_bytes, uint64_t offset,
                           uint64_t bytes, const void *from) MUST_CHECK;

#endif
