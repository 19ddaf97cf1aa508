#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/large_memory.h"

struct arena_block {
    arena_block *next;
    size_t bytes, used; /* of `data` */
    unsigned char data[] __attribute__((aligned(64)));
};

void arena_init(arena *a, size_t block_bytes)
{
    *a = (arena){.block_bytes = block_bytes};
}

static void free_chain(arena_block *block)
{
    while (block != NULL) {
        arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void arena_dispose(arena *a)
{
    free_chain(a->first);
    a->first = a->current = NULL;
}

void arena_reset(arena *a, size_t keep_bytes)
{
    size_t kept = 0;
    arena_block **link = &a->first;
    while (*link != NULL) {
        arena_block *block = *link;
        if (kept + block->bytes > keep_bytes) {
            *link = block->next;
            free(block);
            continue;
        }
        kept += block->bytes;
        block->used = 0;
        link = &block->next;
    }
    a->current = a->first;
}

static void *take(arena_block *block, size_t bytes, size_t alignment)
{
    uintptr_t base = (uintptr_t)block->data;
    uintptr_t start = (base + block->used + alignment - 1) & ~(uintptr_t)(alignment - 1);
    size_t offset = start - base;
    if (offset > block->bytes || block->bytes - offset < bytes)
        return NULL;
    block->used = offset + bytes;
    return (void *)start;
}

static arena_block *append_block(arena *a, size_t bytes_min)
{
    size_t bytes = a->block_bytes ? a->block_bytes : ARENA_BLOCK_BYTES_DEFAULT;
    if (bytes < bytes_min)
        bytes = bytes_min;
    if (bytes > SIZE_MAX - sizeof(arena_block) - 64)
        return NULL;
    size_t total = (sizeof(arena_block) + bytes + 63) & ~(size_t)63;
    arena_block *block = large_memory_allocate(total);
    if (block == NULL)
        return NULL;
    *block = (arena_block){.bytes = bytes};
    if (a->current == NULL) {
        a->first = block;
    } else {
        block->next = a->current->next;
        a->current->next = block;
    }
    a->current = block;
    return block;
}

void *arena_allocate_aligned(arena *a, size_t bytes, size_t alignment)
{
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= 4096);
    /* Blocks after `current` are empty ones kept by a reset. */
    for (arena_block *block = a->current; block != NULL; block = block->next) {
        void *p = take(block, bytes, alignment);
        if (p != NULL) {
            a->current = block;
            return p;
        }
    }
    if (bytes > SIZE_MAX - alignment)
        return NULL;
    arena_block *block = append_block(a, bytes + alignment);
    return block ? take(block, bytes, alignment) : NULL;
}

void *arena_allocate(arena *a, size_t bytes)
{
    return arena_allocate_aligned(a, bytes, 16);
}

void *arena_allocate_zeroed(arena *a, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes))
        return NULL;
    void *p = arena_allocate(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

char *arena_copy_string(arena *a, const char *text, size_t bytes)
{
    if (bytes == SIZE_MAX)
        return NULL;
    char *copy = arena_allocate_aligned(a, bytes + 1, 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

char *arena_format(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(bytes >= 0);
    char *text = arena_allocate_aligned(a, (size_t)bytes + 1, 1);
    if (text == NULL)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)bytes + 1, format, args);
    va_end(args);
    return text;
}

size_t arena_held_bytes(const arena *a)
{
    size_t bytes = 0;
    for (const arena_block *block = a->first; block != NULL; block = block->next)
        bytes += block->bytes;
    return bytes;
}
