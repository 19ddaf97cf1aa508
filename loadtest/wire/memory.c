#include "loadtest/wire/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
    fputs("penstock-load: out of memory\n", stderr);
    exit(3);
}

void *memory_allocate(size_t count, size_t item_bytes)
{
    void *p = calloc(count ? count : 1, item_bytes ? item_bytes : 1);
    if (p == NULL)
        out_of_memory();
    return p;
}

void *memory_resize(void *old, size_t count, size_t item_bytes)
{
    void *p = reallocarray(old, count ? count : 1, item_bytes);
    if (p == NULL)
        out_of_memory();
    return p;
}

char *memory_copy_string(const char *text, size_t bytes)
{
    char *copy = memory_allocate(bytes + 1, 1);
    if (bytes != 0)
        memcpy(copy, text, bytes);
    return copy;
}
