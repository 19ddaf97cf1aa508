#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

/* An allocator whose memory is freed all at once: one per job, per batch, per loaded model. One
 * thread uses it at a time; no locks. A zeroed arena is empty, with the default block size. */
typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *first, *current;
    size_t block_bytes; /* size of the next block; 0 means ARENA_BLOCK_BYTES_DEFAULT */
} arena;

#define ARENA_BLOCK_BYTES_DEFAULT 16384

void arena_init(arena *a, size_t block_bytes);
void arena_dispose(arena *a);

/* Empties the arena and keeps up to `keep_bytes` of its blocks for reuse, so that nothing is
 * allocated in steady state. */
void arena_reset(arena *a, size_t keep_bytes);

/* Uninitialised memory, aligned for any type, valid until reset or dispose. NULL: out of memory. */
void *arena_allocate(arena *a, size_t bytes);
/* `alignment` is a power of two, at most 4096. */
void *arena_allocate_aligned(arena *a, size_t bytes, size_t alignment);
/* Zeroed memory for `count` items; NULL also on overflow. */
void *arena_allocate_zeroed(arena *a, size_t count, size_t item_bytes);
/* A copy of `bytes` bytes with a zero byte after it. */
char *arena_copy_string(arena *a, const char *text, size_t bytes);
char *arena_format(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes of all blocks, used or not. */
size_t arena_held_bytes(const arena *a);

#endif
