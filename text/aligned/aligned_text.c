#include "text/aligned/aligned_text.h"

#include <assert.h>
#include <string.h>

#include "text/aligned/grow.h"

void aligned_text_dispose(aligned_text *t)
{
    free(t->data);
    free(t->spans);
    *t = (aligned_text){0};
}

void aligned_text_clear(aligned_text *t)
{
    t->bytes = 0;
    t->is_identity = t->is_broken = false;
}

bool aligned_text_reserve(aligned_text *t, size_t bytes)
{
    if (t->capacity - t->bytes >= bytes)
        return true;
    size_t capacity = grow_capacity(t->capacity, t->bytes + bytes);
    if (!grow(&t->data, capacity, 1) || !grow(&t->spans, capacity, sizeof *t->spans)) {
        t->is_broken = true;
        return false;
    }
    t->capacity = capacity;
    return true;
}

void aligned_text_set(aligned_text *t, const uint8_t *data, size_t bytes, bool is_ascii)
{
    aligned_text_clear(t);
    if (!aligned_text_reserve(t, bytes))
        return;
    if (bytes > 0)
        memcpy(t->data, data, bytes);
    t->bytes = bytes;
    t->is_identity = is_ascii;
    if (is_ascii)
        return;
    uint32_t character = 0;
    for (size_t i = 0; i < bytes; character++) {
        unsigned length = utf8_length(data[i]);
        for (unsigned k = 0; k < length; k++)
            t->spans[i + k] = (span){character, character + 1};
        i += length;
    }
}

void aligned_text_copy(aligned_text *t, const aligned_text *from, size_t begin, size_t end)
{
    assert(!t->is_identity && begin <= end && end <= from->bytes);
    if (begin == end || !aligned_text_reserve(t, end - begin))
        return;
    memcpy(t->data + t->bytes, from->data + begin, end - begin);
    if (!from->is_identity)
        memcpy(t->spans + t->bytes, from->spans + begin, (end - begin) * sizeof *t->spans);
    else
        for (size_t i = begin; i < end; i++)
            t->spans[t->bytes + i - begin] = aligned_text_span(from, i);
    t->bytes += end - begin;
}

void pieces_dispose(pieces *p)
{
    free(p->items);
    *p = (pieces){0};
}

bool pieces_reserve(pieces *p, size_t count)
{
    if (p->capacity - p->count >= count)
        return true;
    size_t capacity = grow_capacity(p->capacity, p->count + count);
    if (!grow(&p->items, capacity, sizeof *p->items)) {
        p->is_broken = true;
        return false;
    }
    p->capacity = capacity;
    return true;
}
