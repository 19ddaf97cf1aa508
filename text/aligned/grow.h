#ifndef TEXT_ALIGNED_GROW_H
#define TEXT_ALIGNED_GROW_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Arrays of a scratch, which grow to the largest text they have seen. As base/text/text_buffer.h
 * does, running out of memory ends the process with a message: the largest text is limited. */

/* The next capacity, at least `count`. */
static inline size_t grow_capacity(size_t capacity, size_t count)
{
    if (capacity < 256)
        capacity = 256;
    while (capacity < count)
        capacity *= 2;
    return capacity;
}

/* realloc(), of at least one item. */
static inline void *grow(void *data, size_t count, size_t item_bytes)
{
    assert(count > 0 && count < SIZE_MAX / 2 / item_bytes);
    void *moved = realloc(data, count * item_bytes);
    if (moved == NULL) {
        fprintf(stderr, "out of memory: no %zu bytes for a text\n", count * item_bytes);
        abort();
    }
    return moved;
}

#endif
