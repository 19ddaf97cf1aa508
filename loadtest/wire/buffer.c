#include "loadtest/wire/buffer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
    fputs("penstock-load: out of memory\n", stderr);
    exit(3);
}

void *memory_take(size_t count, size_t item_bytes)
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

char *memory_string(const char *text, size_t bytes)
{
    char *copy = memory_take(bytes + 1, 1);
    if (bytes != 0)
        memcpy(copy, text, bytes);
    return copy;
}

void buffer_dispose(buffer *b)
{
    free(b->data);
    *b = (buffer){0};
}

char *buffer_reserve(buffer *b, size_t bytes)
{
    assert(b->used <= b->capacity && bytes < SIZE_MAX / 4);
    if (b->capacity - b->used < bytes || b->data == NULL) {
        size_t capacity = b->capacity ? b->capacity * 2 : 256;
        while (capacity < b->used + bytes)
            capacity *= 2;
        b->data = memory_resize(b->data, capacity, 1);
        b->capacity = capacity;
    }
    return b->data + b->used;
}

void buffer_append(buffer *b, const void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    memcpy(buffer_reserve(b, bytes), data, bytes);
    b->used += bytes;
}

void buffer_text(buffer *b, const char *text)
{
    buffer_append(b, text, strlen(text));
}

void buffer_printf(buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(bytes >= 0);
    char *to = buffer_reserve(b, (size_t)bytes + 1);
    va_start(args, format);
    vsnprintf(to, (size_t)bytes + 1, format, args);
    va_end(args);
    b->used += (size_t)bytes;
}

const char *buffer_string(buffer *b)
{
    *buffer_reserve(b, 1) = 0;
    return b->data;
}
