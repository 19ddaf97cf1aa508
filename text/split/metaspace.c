/* SentencePiece's words: spaces become a visible character, which begins each word. */
#include <string.h>

#include "text/split/splitter.h"

/* Appends a piece with its spaces replaced, behind a replacement of its own where the scheme asks
 * for one. */
static void rewrite(const splitter *s, const aligned_text *from, piece p, aligned_text *to)
{
    span first = aligned_text_span(from, p.begin);
    uint32_t code = utf8_decode(from->data + p.begin);
    bool begins = code == ' ' || code == s->character;
    if (!aligned_text_reserve(to, UTF8_BYTES_MAX * (size_t)(p.end - p.begin + 1)))
        return;
    if (!begins && (s->prepend == SPLIT_PREPEND_ALWAYS ||
                    (s->prepend == SPLIT_PREPEND_FIRST && first.begin == 0)))
        aligned_text_put(to, s->character, first);
    for (size_t at = p.begin; at < p.end; at++) {
        if (from->data[at] == ' ') {
            aligned_text_put(to, s->character, aligned_text_span(from, at));
        } else {
            to->data[to->bytes] = from->data[at];
            to->spans[to->bytes++] = aligned_text_span(from, at);
        }
    }
}

/* Cuts before each replacement. */
static void cut(const splitter *s, const aligned_text *text, size_t begin, pieces *out)
{
    uint8_t mark[UTF8_BYTES_MAX];
    unsigned length = utf8_encode(s->character, mark);
    for (size_t at = begin + 1; at + length <= text->bytes; at++) {
        if (text->data[at] == mark[0] && memcmp(text->data + at, mark, length) == 0) {
            pieces_add(out, begin, at, PIECE_IS_TEXT);
            begin = at;
        }
    }
    pieces_add(out, begin, text->bytes, PIECE_IS_TEXT);
}

void split_metaspace(const splitter *s, split_state *state)
{
    aligned_text *from = state->text, *to = state->next_text;
    pieces *out = state->next_pieces;
    aligned_text_clear(to);
    pieces_clear(out);
    for (size_t i = 0; i < state->pieces->count; i++) {
        piece p = state->pieces->items[i];
        size_t begin = to->bytes;
        if (p.id != PIECE_IS_TEXT) {
            aligned_text_copy(to, from, p.begin, p.end);
            pieces_add(out, begin, to->bytes, p.id);
            continue;
        }
        rewrite(s, from, p, to);
        if (s->splits)
            cut(s, to, begin, out);
        else
            pieces_add(out, begin, to->bytes, PIECE_IS_TEXT);
    }
    state->text = to;
    state->next_text = from;
    state->next_pieces = state->pieces;
    state->pieces = out;
}
