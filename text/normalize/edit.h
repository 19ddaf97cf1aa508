#ifndef TEXT_NORMALIZE_EDIT_H
#define TEXT_NORMALIZE_EDIT_H

#include "text/aligned/aligned_text.h"

/* Rewrites a range of a text character by character, as NormalizedString::transform() of the
 * `tokenizers` library does, so that spans come out the same. */
typedef struct edit {
    const aligned_text *from;
    size_t at, end;   /* what is left of the range, in bytes */
    size_t begin;     /* of the range */
    aligned_text *to; /* appended to; keeps spans */
} edit;

/* Begins with bytes [begin, end) of `from`. */
static inline edit edit_begin(const aligned_text *from, size_t begin, size_t end, aligned_text *to)
{
    return (edit){.from = from, .at = begin, .end = end, .begin = begin, .to = to};
}

/* Leaves out a character. */
static inline void edit_skip(edit *e)
{
    if (e->at < e->end)
        e->at += utf8_length(e->from->data[e->at]);
}

/* Appends `code`. change > 0: it is new and shares the span of the character before; else it
 * replaces the next character, and -change characters after that are left out. */
static inline void edit_put(edit *e, uint32_t code, int change)
{
    span s;
    if (change > 0) {
        uint32_t first = e->begin < e->from->bytes ? aligned_text_span(e->from, e->begin).begin : 0;
        s = e->at == e->begin ? (span){first, first} : aligned_text_span(e->from, e->at - 1);
    } else {
        s = aligned_text_span(e->from, e->at < e->end ? e->at : e->end - 1);
        for (int i = 0; i <= -change; i++)
            edit_skip(e);
    }
    if (e->to->capacity - e->to->bytes < UTF8_BYTES_MAX &&
        !aligned_text_reserve(e->to, UTF8_BYTES_MAX))
        return;
    aligned_text_put(e->to, code, s);
}

#endif
