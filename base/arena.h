#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

/* Memory that is taken piece by piece and given back all at once. One per job, per batch, per
 * loaded model. Owned by one thread at a time; no locks. A zeroed arena is a valid empty one of
 * default block size. */
typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *first, *current;
    size_t block_bytes; /* size of the next block; 0 means ARENA_BLOCK_BYTES_DEFAULT */
} arena;

#define ARENA_BLOCK_BYTES_DEFAULT 16384

void arena_init(arena *a, size_t block_bytes);
void arena_dispose(arena *a);

/* Empties the arena but keeps its blocks for reuse, up to `keep_bytes` of them: in steady state
 * nothing is allocated. */
void arena_reset(arena *a, size_t keep_bytes);

/* Uninitialised memory, aligned for any type, or NULL when there is none. Lives until reset or
 * dispose. */
void *arena_allocate(arena *a, size_t bytes);
/* `alignment` is a power of two, at most 4096. */
void *arena_allocate_aligned(arena *a, size_t bytes, size_t alignment);
/* Zeroed memory for `count` items; NULL also on overflow. */
void *arena_allocate_zeroed(arena *a, size_t count, size_t item_bytes);
/* A copy of `bytes` bytes with a zero byte after it. */
char *arena_copy_string(arena *a, const char *text, size_t bytes);
char *arena_format(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes of all blocks held, used or not. */
size_t arena_held_bytes(const arena *a);

#endif
