#ifndef TEXT_ALIGNED_GROW_H
#define TEXT_ALIGNED_GROW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Arrays of a scratch, which grow to the largest text they have seen. What finds no memory is
 * broken, as base/text/text_buffer.h has it: what is added is dropped, and whoever began the text
 * refuses it with grow_fail(). */

/* The next capacity, at least `count`. */
static inline size_t grow_capacity(size_t capacity, size_t count)
{
    if (capacity < 256)
        capacity = 256;
    while (capacity < count)
        capacity *= 2;
    return capacity;
}

/* realloc() of *array, of at least one item; `array` is the address of a pointer. False: there is
 * no memory, and the array is what it was. */
static inline bool grow(void *array, size_t count, size_t item_bytes)
{
    void *data;
    assert(count > 0 && count < SIZE_MAX / 2 / item_bytes);
    memcpy(&data, array, sizeof data);
    data = realloc(data, count * item_bytes);
    if (data == NULL)
        return false;
    memcpy(array, &data, sizeof data);
    return true;
}

static inline status grow_fail(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory to tokenize a text");
}

#endif
