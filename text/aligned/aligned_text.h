#ifndef TEXT_ALIGNED_ALIGNED_TEXT_H
#define TEXT_ALIGNED_ALIGNED_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/unicode/utf8.h"

/* Text that is being normalised, and for each of its bytes the characters of the input that it
 * stands for. One thread uses it at a time.
 *
 * Without memory it is broken until it is emptied: what is added is dropped. Whoever reads its
 * content looks at `is_broken` first: what is there is not all. So are pieces. */

/* Characters [begin, end) of the input. */
typedef struct span {
    uint32_t begin, end;
} span;

typedef struct aligned_text {
    uint8_t *data;
    span *spans; /* of each byte; not kept while is_identity */
    size_t bytes, capacity;
    bool is_identity; /* byte i is character i of the input */
    bool is_broken;
} aligned_text;

void aligned_text_dispose(aligned_text *t);
/* Empties it. */
void aligned_text_clear(aligned_text *t);
/* Makes room for `bytes` bytes more. False: there is no memory, and it is broken. */
bool aligned_text_reserve(aligned_text *t, size_t bytes);
/* Makes it a copy of the input, valid UTF-8. */
void aligned_text_set(aligned_text *t, const uint8_t *data, size_t bytes, bool is_ascii);
/* Appends bytes [begin, end) of another one with their spans. `t` keeps spans. */
void aligned_text_copy(aligned_text *t, const aligned_text *from, size_t begin, size_t end);

static inline span aligned_text_span(const aligned_text *t, size_t at)
{
    return t->is_identity ? (span){(uint32_t)at, (uint32_t)at + 1} : t->spans[at];
}

/* What bytes [begin, end), at least one, stand for. */
static inline span aligned_text_range(const aligned_text *t, size_t begin, size_t end)
{
    return (span){aligned_text_span(t, begin).begin, aligned_text_span(t, end - 1).end};
}

/* Appends a character; room is reserved. `t` keeps spans. */
static inline void aligned_text_put(aligned_text *t, uint32_t code, span s)
{
    unsigned length = utf8_encode(code, t->data + t->bytes);
    for (unsigned i = 0; i < length; i++)
        t->spans[t->bytes + i] = s;
    t->bytes += length;
}

/* A part of a text: a word on its way to the model, or a token that was added to the vocabulary. */
typedef struct piece {
    uint32_t begin, end; /* bytes of the text */
    uint32_t id;         /* of an added token, or PIECE_IS_TEXT */
} piece;

#define PIECE_IS_TEXT UINT32_MAX

typedef struct pieces {
    piece *items;
    size_t count, capacity;
    bool is_broken;
} pieces;

void pieces_dispose(pieces *p);
/* False: there is no memory for `count` more, and it is broken. */
bool pieces_reserve(pieces *p, size_t count);
/* Empties it. */
static inline void pieces_clear(pieces *p)
{
    p->count = 0;
    p->is_broken = false;
}

/* Appends, unless it is empty text. */
static inline void pieces_add(pieces *p, size_t begin, size_t end, uint32_t id)
{
    if (begin == end)
        return;
    if (p->count == p->capacity && !pieces_reserve(p, 1))
        return;
    p->items[p->count++] = (piece){(uint32_t)begin, (uint32_t)end, id};
}

#endif
