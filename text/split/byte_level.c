/* GPT-2's pre-tokenizer (encoder.py): its expression, written out:
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#include "text/split/splitter.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/properties.h"

/* Kinds of characters; every character has one. */
#define LETTER UNICODE_LETTER
#define NUMBER UNICODE_NUMBER
#define SPACE UNICODE_SPACE
#define OTHER 0u

static unsigned kind_at(const uint8_t *p)
{
    unsigned properties = unicode_properties(utf8_decode(p));
    return properties & LETTER ? LETTER : properties & (NUMBER | SPACE);
}

static size_t run_end(const uint8_t *data, size_t at, size_t end, unsigned kind)
{
    while (at < end && kind_at(data + at) == kind)
        at += utf8_length(data[at]);
    return at;
}

/* The length of 's 't 're 've 'm 'll 'd; 0: none. */
static size_t contraction_bytes(const uint8_t *p, size_t bytes)
{
    if (bytes < 2)
        return 0;
    switch (p[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
        return 2;
    case 'r':
    case 'v':
        return bytes > 2 && p[2] == 'e' ? 3 : 0;
    case 'l':
        return bytes > 2 && p[2] == 'l' ? 3 : 0;
    default:
        return 0;
    }
}

/* The end of the match at `at`: there always is one. */
static size_t match_end(const uint8_t *data, size_t at, size_t end)
{
    if (data[at] == '\'') {
        size_t bytes = contraction_bytes(data + at, end - at);
        if (bytes > 0)
            return at + bytes;
    }
    unsigned kind = kind_at(data + at);
    if (data[at] == ' ' && at + 1 < end) {
        unsigned next = kind_at(data + at + 1);
        if (next != SPACE)
            return run_end(data, at + 1, end, next);
    }
    size_t stop = run_end(data, at, end, kind);
    if (kind != SPACE || stop == end)
        return stop;
    /* Spaces before something else leave their last one to it. */
    size_t last = utf8_before(data, stop);
    return last > at ? last : stop;
}

/* Puts a space before pieces that do not begin with one. */
static void add_prefix_spaces(split_state *state)
{
    aligned_text *from = state->text, *to = state->next_text;
    aligned_text_clear(to);
    for (size_t i = 0; i < state->pieces->count; i++) {
        piece *p = state->pieces->items + i;
        size_t begin = to->bytes;
        if (p->id == PIECE_IS_TEXT && from->data[p->begin] != ' ' && aligned_text_reserve(to, 1))
            aligned_text_put(to, ' ', aligned_text_span(from, p->begin));
        aligned_text_copy(to, from, p->begin, p->end);
        *p = (piece){(uint32_t)begin, (uint32_t)to->bytes, p->id};
    }
    state->text = to;
    state->next_text = from;
}

/* Bytes become characters. */
static void spell_bytes(split_state *state)
{
    aligned_text *from = state->text, *to = state->next_text;
    aligned_text_clear(to);
    for (size_t i = 0; i < state->pieces->count; i++) {
        piece *p = state->pieces->items + i;
        size_t begin = to->bytes;
        if (!aligned_text_reserve(to, 2 * (size_t)(p->end - p->begin)))
            break;
        if (p->id != PIECE_IS_TEXT)
            aligned_text_copy(to, from, p->begin, p->end);
        else
            for (size_t at = p->begin; at < p->end; at++)
                aligned_text_put(to, byte_alphabet_character(from->data[at]),
                                 aligned_text_span(from, at));
        *p = (piece){(uint32_t)begin, (uint32_t)to->bytes, p->id};
    }
    state->text = to;
    state->next_text = from;
}

void split_byte_level(const splitter *s, split_state *state)
{
    if (s->adds_prefix_space)
        add_prefix_spaces(state);
    if (s->uses_expression) {
        pieces *out = state->next_pieces;
        const uint8_t *data = state->text->data;
        pieces_clear(out);
        for (size_t i = 0; i < state->pieces->count; i++) {
            piece p = state->pieces->items[i];
            if (p.id != PIECE_IS_TEXT) {
                pieces_add(out, p.begin, p.end, p.id);
                continue;
            }
            for (size_t at = p.begin; at < p.end;) {
                size_t stop = match_end(data, at, p.end);
                pieces_add(out, at, stop, PIECE_IS_TEXT);
                at = stop;
            }
        }
        state->next_pieces = state->pieces;
        state->pieces = out;
    }
    if (!s->keeps_bytes)
        spell_bytes(state);
}
