#include "base/text/text_buffer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN_BYTES 1024

void text_buffer_dispose(text_buffer *t)
{
    free(t->data);
    *t = (text_buffer){0};
}

void text_buffer_reset(text_buffer *t, size_t keep_bytes)
{
    if (t->capacity > keep_bytes)
        text_buffer_dispose(t);
    text_buffer_clear(t);
}

char *text_buffer_reserve(text_buffer *t, size_t bytes)
{
    assert(t->bytes <= t->capacity && bytes < SIZE_MAX / 4);
    if (t->is_broken)
        return NULL;
    if (t->capacity - t->bytes < bytes || t->data == NULL) {
        size_t larger = t->capacity ? t->capacity : CAPACITY_MIN_BYTES;
        while (larger - t->bytes < bytes)
            larger *= 2;
        char *moved = realloc(t->data, larger);
        if (moved == NULL) {
            t->is_broken = true;
            return NULL;
        }
        t->data = moved;
        t->capacity = larger;
    }
    return t->data + t->bytes;
}

char *text_buffer_require(text_buffer *t, size_t bytes)
{
    char *room = text_buffer_reserve(t, bytes);
    if (room == NULL) {
        fprintf(stderr, "out of memory: no room for %zu bytes of text\n", t->bytes + bytes);
        abort();
    }
    return room;
}

void text_buffer_append(text_buffer *t, const void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    char *room = text_buffer_reserve(t, bytes);
    if (room == NULL)
        return;
    memcpy(room, data, bytes);
    t->bytes += bytes;
}

void text_buffer_format(text_buffer *t, const char *format, ...)
{
    for (size_t room = 256;;) {
        char *to = text_buffer_reserve(t, room);
        if (to == NULL)
            return;
        va_list arguments;
        va_start(arguments, format);
        int n = vsnprintf(to, room, format, arguments);
        va_end(arguments);
        assert(n >= 0);
        if ((size_t)n < room) {
            t->bytes += (size_t)n;
            return;
        }
        room = (size_t)n + 1;
    }
}

const char *text_buffer_string(text_buffer *t)
{
    *text_buffer_require(t, 1) = 0;
    return t->data;
}
