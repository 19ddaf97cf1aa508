#include "server/http2/session/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* AddressSanitizer sees a block that is used after it was freed only if it is really freed. */
#ifdef __SANITIZE_ADDRESS__
#define KEPT_BYTES_MAX 0
#else
#define KEPT_BYTES_MAX (1 << 20)
#endif
#define CLASS_SHIFT_MIN 5

typedef struct http2_block http2_block;
struct http2_block {
    size_t bytes; /* with this head */
    union {
        http2_block *next; /* while it is kept */
        size_t size_class; /* HTTP2_MEMORY_CLASSES: too large to be kept */
    };
};
_Static_assert(sizeof(http2_block) % 16 == 0, "blocks are aligned for any type");

static unsigned class_of(size_t bytes)
{
    unsigned shift = bytes <= 1u << CLASS_SHIFT_MIN
                         ? CLASS_SHIFT_MIN
                         : 64u - (unsigned)__builtin_clzll((unsigned long long)bytes - 1);
    unsigned c = shift - CLASS_SHIFT_MIN;
    return c < HTTP2_MEMORY_CLASSES ? c : HTTP2_MEMORY_CLASSES;
}

void *http2_memory_allocate(http2_memory *m, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes += sizeof(http2_block);
    unsigned c = class_of(bytes);
    http2_block *block = c < HTTP2_MEMORY_CLASSES ? m->kept[c] : NULL;
    if (block != NULL) {
        m->kept[c] = block->next;
        m->kept_bytes -= block->bytes;
    } else {
        if (c < HTTP2_MEMORY_CLASSES)
            bytes = (size_t)1 << (c + CLASS_SHIFT_MIN);
        block = malloc(bytes);
        if (block == NULL)
            return NULL;
        block->bytes = bytes;
    }
    block->size_class = c;
    return block + 1;
}

void http2_memory_free(http2_memory *m, void *p)
{
    if (p == NULL)
        return;
    http2_block *block = (http2_block *)p - 1;
    size_t c = block->size_class;
    if (c == HTTP2_MEMORY_CLASSES || m->kept_bytes + block->bytes > KEPT_BYTES_MAX) {
        free(block);
        return;
    }
    block->next = m->kept[c];
    m->kept[c] = block;
    m->kept_bytes += block->bytes;
}

void *http2_memory_reallocate(http2_memory *m, void *old, size_t bytes)
{
    size_t room = old != NULL ? http2_memory_block_bytes(old) - sizeof(http2_block) : 0;
    if (old != NULL && bytes <= room)
        return old;
    void *p = http2_memory_allocate(m, bytes);
    if (p == NULL || old == NULL)
        return p;
    memcpy(p, old, room);
    http2_memory_free(m, old);
    return p;
}

size_t http2_memory_block_bytes(const void *p)
{
    return p != NULL ? ((const http2_block *)p - 1)->bytes : 0;
}

void http2_memory_dispose(http2_memory *m)
{
    for (int c = 0; c < HTTP2_MEMORY_CLASSES; c++)
        for (http2_block *block = m->kept[c]; block != NULL;) {
            http2_block *next = block->next;
            free(block);
            block = next;
        }
    *m = (http2_memory){0};
}
