/* One text to tokens: added tokens are cut out, the rest is normalised, cut into words and given to
 * the model. */
#include <assert.h>
#include <string.h>

#include "text/aligned/grow.h"
#include "text/scratch.h"
#include "text/unicode/properties.h"

#define GROWTH_MAX 32 /* NFKC: 11 times, U+FDFA */
#define GROWTH_FREE_BYTES 65536
#define STEP_BYTES_MAX (256u << 20)

static status check_text(tokenizer_text text)
{
    assert(text.data != NULL || text.bytes == 0);
    if (text.bytes > TOKENIZER_TEXT_BYTES_MAX)
        return status_fail(STATUS_TOO_LARGE, "a text of %zu bytes; at most %u are allowed",
                           text.bytes, TOKENIZER_TEXT_BYTES_MAX);
    size_t valid = utf8_valid_bytes((const uint8_t *)text.data, text.bytes);
    if (valid < text.bytes)
        return status_fail(STATUS_INVALID_ARGUMENT, "the text is not UTF-8: byte %zu is 0x%02x",
                           valid, (uint8_t)text.data[valid]);
    return STATUS_OK;
}

/* Normalises in place where all steps are a table. False: they are not, for this text. */
static bool normalize_by_table(const tokenizer *t, aligned_text *text, const pieces *p)
{
    if (!text->is_identity)
        return false;
    for (size_t i = 0; i < text->bytes; i++) {
        if (t->ascii[text->data[i]] == NORMALIZER_SLOW)
            return false;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].id != PIECE_IS_TEXT)
            continue;
        for (size_t at = p->items[i].begin; at < p->items[i].end; at++)
            text->data[at] = t->ascii[text->data[at]];
    }
    return true;
}

/* Appends bytes [begin, end) of texts[0], after all steps, to texts[1]. */
static status normalize_piece(const tokenizer *t, tokenizer_scratch *s, size_t begin, size_t end,
                              size_t bytes_max)
{
    aligned_text steps[2] = {{0}}, *from = s->texts;
    status failed = STATUS_OK;
    for (size_t i = 0; i < t->normalizer_count && !failed; i++) {
        bool is_last = i + 1 == t->normalizer_count;
        aligned_text *to = is_last ? s->texts + 1 : i % 2 ? s->texts + 2 : steps;
        if (!is_last)
            aligned_text_clear(to);
        failed = normalizer_apply(t->normalizers + i, from, begin, end, &s->pattern, bytes_max, to);
        begin = 0;
        end = to->bytes;
        from = to;
    }
    aligned_text_dispose(steps);
    return failed;
}

/* Gives texts and pieces back as `state`. */
static status normalize_all(const tokenizer *t, tokenizer_scratch *s, size_t bytes_max,
                            split_state *state)
{
    if (t->normalizer_count == 0 || normalize_by_table(t, state->text, state->pieces))
        return STATUS_OK;
    aligned_text *to = s->texts + 1;
    pieces *out = state->next_pieces;
    aligned_text_clear(to);
    pieces_clear(out);
    for (size_t i = 0; i < state->pieces->count; i++) {
        piece p = state->pieces->items[i];
        size_t begin = to->bytes;
        if (p.id != PIECE_IS_TEXT) {
            aligned_text_copy(to, s->texts, p.begin, p.end);
        } else {
            status failed = normalize_piece(t, s, p.begin, p.end, bytes_max);
            if (failed)
                return failed;
        }
        pieces_add(out, begin, to->bytes, p.id);
    }
    state->next_pieces = state->pieces;
    state->pieces = out;
    state->text = to;
    state->next_text = s->texts;
    return split_check(state);
}

static status split_added(const added_tokens *a, bool is_normalized, split_state *state)
{
    pieces *out = state->next_pieces;
    pieces_clear(out);
    for (size_t i = 0; i < state->pieces->count; i++) {
        piece p = state->pieces->items[i];
        if (p.id != PIECE_IS_TEXT)
            pieces_add(out, p.begin, p.end, p.id);
        else
            added_tokens_split(a, is_normalized, state->text, p.begin, p.end, out);
    }
    state->next_pieces = state->pieces;
    state->pieces = out;
    return split_check(state);
}

static status reserve_tokens(sequence_tokens *q, size_t more)
{
    if (q->capacity - q->count >= more)
        return STATUS_OK;
    size_t capacity = grow_capacity(q->capacity, q->count + more);
    if (!grow(&q->ids, capacity, sizeof *q->ids) || !grow(&q->spans, capacity, sizeof *q->spans) ||
        !grow(&q->spaces, capacity, sizeof *q->spaces))
        return grow_fail();
    q->capacity = capacity;
    return STATUS_OK;
}

static bool is_trimmed(const uint8_t *p)
{
    uint32_t code = utf8_decode(p);
    return code == 0x120 || unicode_properties(code) & UNICODE_SPACE;
}

/* Spaces, and bytes that stand for one, at both ends of a token's text. */
static uint32_t count_spaces(const uint8_t *text, size_t bytes)
{
    uint32_t front = 0, back = 0;
    for (size_t at = 0; at < bytes && is_trimmed(text + at); at += utf8_length(text[at]))
        front++;
    for (size_t at = bytes; at > 0 && is_trimmed(text + utf8_before(text, at));)
        at = utf8_before(text, at), back++;
    front = front > UINT16_MAX ? UINT16_MAX : front;
    return front << 16 | (back > UINT16_MAX ? UINT16_MAX : back);
}

/* Which character of the text has the byte `at`; bytes behind the end: `otherwise`. */
static uint32_t character_of(tokenizer_text text, size_t at, uint32_t otherwise)
{
    uint32_t characters = 0;
    if (at >= text.bytes)
        return otherwise;
    for (size_t i = 0; i <= at; i++)
        characters += ((uint8_t)text.data[i] & 0xC0) != 0x80;
    return characters - 1;
}

/* Bytes that stand for a word's prefix or suffix count in the library as bytes of the word, so the
 * last tokens of the word lie behind its end. It takes their places in the word for places in the
 * text. */
static tokenizer_span span_behind(tokenizer_text text, model_token token)
{
    if (token.begin >= text.bytes)
        return (tokenizer_span){token.begin, token.end};
    uint32_t begin = character_of(text, token.begin, 0);
    if (token.end < text.bytes)
        return (tokenizer_span){begin, character_of(text, token.end, 0)};
    return (tokenizer_span){begin, character_of(text, token.end - 1, begin + 1) + 1};
}

static void add_token(sequence_tokens *q, uint32_t id, const aligned_text *text, size_t begin,
                      size_t end)
{
    span range = aligned_text_range(text, begin, end > begin ? end : begin + 1);
    q->ids[q->count] = id;
    q->spans[q->count++] = (tokenizer_span){range.begin, range.end};
}

/* Of the token's text, which is the piece itself where Unigram does not know it. */
static uint32_t count_token_spaces(const model *m, model_token token, const uint8_t *word)
{
    size_t bytes = token.end - token.begin;
    if (m->kind == MODEL_UNIGRAM && token.id == m->unknown)
        return count_spaces(word + token.begin, bytes);
    const uint8_t *own = vocabulary_token(&m->vocabulary, token.id, &bytes);
    return count_spaces(own, bytes);
}

static status add_model_tokens(const tokenizer *t, const model_memory *tokens,
                               const aligned_text *text, piece p, tokenizer_text source,
                               sequence_tokens *q)
{
    status failed = reserve_tokens(q, tokens->token_count);
    if (failed)
        return failed;
    for (size_t i = 0; i < tokens->token_count; i++) {
        model_token token = tokens->tokens[i];
        if (t->processor.trims_spans)
            q->spaces[q->count] = count_token_spaces(&t->model, token, text->data + p.begin);
        if (token.end > p.end - p.begin) {
            q->ids[q->count] = token.id;
            q->spans[q->count++] = span_behind(source, token);
        } else {
            add_token(q, token.id, text, p.begin + token.begin, p.begin + token.end);
        }
    }
    return STATUS_OK;
}

static status tokenize_piece(const tokenizer *t, tokenizer_scratch *s, const aligned_text *text,
                             piece p, tokenizer_text source, sequence_tokens *q)
{
    if (p.id != PIECE_IS_TEXT) {
        status failed = reserve_tokens(q, 1);
        if (failed)
            return failed;
        q->spaces[q->count] = count_spaces(text->data + p.begin, p.end - p.begin);
        add_token(q, p.id, text, p.begin, p.end);
        return STATUS_OK;
    }
    status failed =
        model_tokenize(&t->model, t->serial, text->data + p.begin, p.end - p.begin, &s->model);
    return failed ? failed : add_model_tokens(t, &s->model, text, p, source, q);
}

/* Stops at the first word that reaches tokens_max. */
static status run_model(const tokenizer *t, tokenizer_scratch *s, const split_state *state,
                        tokenizer_text source, sequence_tokens *q, size_t tokens_max)
{
    for (size_t i = 0; i < state->pieces->count; i++) {
        piece p = state->pieces->items[i];
        status failed = tokenize_piece(t, s, state->text, p, source, q);
        if (failed)
            return failed;
        if (tokens_max != 0 && p.id == PIECE_IS_TEXT && q->count >= tokens_max) {
            q->is_cut = i + 1 < state->pieces->count;
            break;
        }
    }
    return STATUS_OK;
}

status text_encode_sequence(const tokenizer *t, tokenizer_scratch *s, int index,
                            tokenizer_text text, size_t tokens_max)
{
    sequence_tokens *q = s->sequences + index;
    split_state state = {s->texts, s->texts + 1, s->pieces, s->pieces + 1, &s->pattern};
    const uint8_t *data = (const uint8_t *)text.data;
    /* Steps may make the text longer; a hostile file would let them double it each time. */
    size_t bytes_max = GROWTH_MAX * text.bytes + GROWTH_FREE_BYTES;
    status failed = check_text(text);
    if (failed)
        return failed;
    bytes_max = bytes_max < STEP_BYTES_MAX ? bytes_max : STEP_BYTES_MAX;
    q->count = q->first = 0;
    q->is_cut = false;
    bool is_ascii = utf8_ascii_bytes(data, text.bytes) == text.bytes;
    aligned_text_set(s->texts, data, text.bytes, is_ascii);
    pieces_clear(state.pieces);
    pieces_add(state.pieces, 0, text.bytes, PIECE_IS_TEXT);
    failed = split_check(&state);
    if (!failed && t->added.before != NULL)
        failed = split_added(&t->added, false, &state);
    if (!failed)
        failed = normalize_all(t, s, bytes_max, &state);
    if (!failed && t->added.after != NULL)
        failed = split_added(&t->added, true, &state);
    for (size_t i = 0; i < t->splitter_count && !failed; i++) {
        failed = splitter_apply(t->splitters + i, &state);
        if (!failed && state.text->bytes > bytes_max)
            failed = status_fail(STATUS_TOO_LARGE, "the text becomes too long in pre-tokenizers");
    }
    if (failed)
        return failed;
    return run_model(t, s, &state, text, q, tokens_max);
}
