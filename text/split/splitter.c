#include "text/split/splitter.h"

#include <assert.h>
#include <stdlib.h>

#include "text/aligned/grow.h"
#include "text/unicode/properties.h"

void splitter_dispose(splitter *s)
{
    pattern_destroy(s->pattern);
    *s = (splitter){0};
}

/* What a text is cut into: matches of a delimiter, and what lies between them, in order. */
typedef struct split_sink {
    pieces *out;
    split_behavior behavior;
    size_t begin, end; /* the piece that is still open */
    bool has_open, was_match;
} split_sink;

static void flush(split_sink *sink)
{
    if (sink->has_open)
        pieces_add(sink->out, sink->begin, sink->end, PIECE_IS_TEXT);
    sink->has_open = false;
}

static void put(split_sink *sink, size_t begin, size_t end, bool is_match)
{
    bool joins = false;
    switch (sink->behavior) {
    case SPLIT_REMOVED:
        if (!is_match)
            pieces_add(sink->out, begin, end, PIECE_IS_TEXT);
        return;
    case SPLIT_ISOLATED:
        pieces_add(sink->out, begin, end, PIECE_IS_TEXT);
        return;
    case SPLIT_MERGED_WITH_PREVIOUS:
        joins = is_match && !sink->was_match;
        break;
    case SPLIT_MERGED_WITH_NEXT:
        joins = !is_match && sink->was_match;
        break;
    case SPLIT_CONTIGUOUS:
        joins = is_match == sink->was_match;
        break;
    }
    if (!joins || !sink->has_open) {
        flush(sink);
        sink->begin = begin;
        sink->has_open = true;
    }
    sink->end = end;
    sink->was_match = is_match;
}

static bool is_delimiter(const splitter *s, uint32_t code)
{
    return s->kind == SPLITTER_PROPERTY ? unicode_properties(code) & s->properties
                                        : code == s->character;
}

/* Each delimiter by itself. */
static void split_by_character(const splitter *s, const aligned_text *text, piece p, pieces *out)
{
    split_sink sink = {.out = out, .behavior = s->behavior};
    size_t begin = p.begin;
    for (size_t at = p.begin; at < p.end;) {
        unsigned length = utf8_length(text->data[at]);
        if (is_delimiter(s, utf8_decode(text->data + at))) {
            if (begin < at)
                put(&sink, begin, at, false);
            put(&sink, at, at + length, true);
            begin = at + length;
        }
        at += length;
    }
    if (begin < p.end)
        put(&sink, begin, p.end, false);
    flush(&sink);
}

static void split_bert(const aligned_text *text, piece p, pieces *out)
{
    size_t begin = p.begin;
    for (size_t at = p.begin; at < p.end;) {
        unsigned length = utf8_length(text->data[at]);
        unsigned properties = unicode_properties(utf8_decode(text->data + at));
        if (properties & (UNICODE_SPACE | UNICODE_PUNCTUATION)) {
            pieces_add(out, begin, at, PIECE_IS_TEXT);
            if (!(properties & UNICODE_SPACE))
                pieces_add(out, at, at + length, PIECE_IS_TEXT);
            begin = at + length;
        }
        at += length;
    }
    pieces_add(out, begin, p.end, PIECE_IS_TEXT);
}

/* Runs of word characters, and of those that are neither word nor space. */
static void split_whitespace(const aligned_text *text, piece p, pieces *out)
{
    size_t begin = p.begin;
    unsigned run = UNICODE_SPACE;
    for (size_t at = p.begin; at < p.end; at += utf8_length(text->data[at])) {
        unsigned properties = unicode_properties(utf8_decode(text->data + at));
        unsigned kind = properties & UNICODE_WORD ? UNICODE_WORD : properties & UNICODE_SPACE;
        if (kind == run)
            continue;
        if (run != UNICODE_SPACE)
            pieces_add(out, begin, at, PIECE_IS_TEXT);
        begin = at;
        run = kind;
    }
    if (run != UNICODE_SPACE)
        pieces_add(out, begin, p.end, PIECE_IS_TEXT);
}

static status split_by_pattern(const splitter *s, const split_state *state, piece p, pieces *out)
{
    split_sink sink = {.out = out, .behavior = s->behavior};
    pattern_search search;
    size_t copied = p.begin, begin = 0, end = 0;
    bool found = true;
    pattern_search_begin(&search, s->pattern, state->memory, state->text->data + p.begin,
                         p.end - p.begin);
    for (;;) {
        status failed = pattern_search_next(&search, &found, &begin, &end);
        if (failed)
            return failed;
        if (!found)
            break;
        if (copied != p.begin + begin)
            put(&sink, copied, p.begin + begin, s->is_inverted);
        put(&sink, p.begin + begin, p.begin + end, !s->is_inverted);
        copied = p.begin + end;
    }
    if (copied != p.end)
        put(&sink, copied, p.end, s->is_inverted);
    flush(&sink);
    return STATUS_OK;
}

static void split_fixed(const splitter *s, const aligned_text *text, piece p, pieces *out)
{
    size_t begin = p.begin, count = 0;
    for (size_t at = p.begin; at < p.end; at += utf8_length(text->data[at])) {
        if (count == s->length_characters) {
            pieces_add(out, begin, at, PIECE_IS_TEXT);
            begin = at;
            count = 0;
        }
        count++;
    }
    pieces_add(out, begin, p.end, PIECE_IS_TEXT);
}

static status split_piece(const splitter *s, const split_state *state, piece p, pieces *out)
{
    switch (s->kind) {
    case SPLITTER_BERT:
        split_bert(state->text, p, out);
        return STATUS_OK;
    case SPLITTER_PROPERTY:
    case SPLITTER_CHARACTER:
        split_by_character(s, state->text, p, out);
        return STATUS_OK;
    case SPLITTER_WHITESPACE:
        split_whitespace(state->text, p, out);
        return STATUS_OK;
    case SPLITTER_FIXED_LENGTH:
        split_fixed(s, state->text, p, out);
        return STATUS_OK;
    default:
        assert(s->kind == SPLITTER_PATTERN);
        return split_by_pattern(s, state, p, out);
    }
}

static status apply(const splitter *s, split_state *state)
{
    if (s->kind == SPLITTER_BYTE_LEVEL) {
        split_byte_level(s, state);
        return STATUS_OK;
    }
    if (s->kind == SPLITTER_METASPACE) {
        split_metaspace(s, state);
        return STATUS_OK;
    }
    pieces *out = state->next_pieces;
    pieces_clear(out);
    for (size_t i = 0; i < state->pieces->count; i++) {
        piece p = state->pieces->items[i];
        if (p.id != PIECE_IS_TEXT) {
            pieces_add(out, p.begin, p.end, p.id);
            continue;
        }
        status failed = split_piece(s, state, p, out);
        if (failed)
            return failed;
    }
    state->next_pieces = state->pieces;
    state->pieces = out;
    return STATUS_OK;
}

status split_check(const split_state *state)
{
    return state->text->is_broken || state->pieces->is_broken ? grow_fail() : STATUS_OK;
}

status splitter_apply(const splitter *s, split_state *state)
{
    status failed = apply(s, state);
    return failed ? failed : split_check(state);
}
