#include "text/decode/decoder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/aligned/grow.h"
#include "text/unicode/byte_alphabet.h"
#include "text/unicode/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

void decoder_dispose(decoder *d)
{
    free(d->text);
    free(d->delimiter);
    pattern_destroy(d->pattern);
    *d = (decoder){0};
}

void token_texts_dispose(token_texts *t)
{
    free(t->data);
    free(t->ends);
    *t = (token_texts){0};
}

void token_texts_clear(token_texts *t)
{
    t->bytes = t->count = 0;
}

/* Disposes of what `to` was made with. */
static void dispose_with(token_texts *t, token_texts *to)
{
    to->is_broken |= t->is_broken;
    token_texts_dispose(t);
}

void token_texts_append(token_texts *t, const void *data, size_t bytes)
{
    if (bytes == 0 || t->is_broken)
        return;
    if (t->capacity - t->bytes < bytes) {
        size_t capacity = grow_capacity(t->capacity, t->bytes + bytes);
        t->is_broken = !grow(&t->data, capacity, 1);
        if (t->is_broken)
            return;
        t->capacity = capacity;
    }
    memcpy(t->data + t->bytes, data, bytes);
    t->bytes += bytes;
}

void token_texts_end(token_texts *t)
{
    if (t->count == t->ends_capacity) {
        size_t capacity = grow_capacity(t->ends_capacity, t->count + 1);
        if (!grow(&t->ends, capacity, sizeof *t->ends)) {
            t->is_broken = true;
            return;
        }
        t->ends_capacity = capacity;
    }
    t->ends[t->count++] = t->bytes;
}

/* Text `index`; not zero-terminated. */
static const char *text_at(const token_texts *t, size_t index, size_t *bytes)
{
    size_t begin = index ? t->ends[index - 1] : 0;
    *bytes = t->ends[index] - begin;
    return t->data ? t->data + begin : "";
}

/* Appends `text` with every `old` replaced, from the left; an empty `old` matches around each
 * character. */
static void replace_all(token_texts *to, const char *text, size_t bytes, const char *old,
                        size_t old_bytes, const char *new, size_t new_bytes)
{
    size_t copied = 0;
    for (size_t at = 0; at + old_bytes <= bytes;) {
        bool is_match = old_bytes == 0 ? at == bytes || utf8_is_first((uint8_t)text[at])
                                       : memcmp(text + at, old, old_bytes) == 0;
        if (is_match) {
            token_texts_append(to, text + copied, at - copied);
            token_texts_append(to, new, new_bytes);
            copied = at + old_bytes;
        }
        at += is_match && old_bytes ? old_bytes : 1;
    }
    token_texts_append(to, text + copied, bytes - copied);
}

/* The library's cleanup(): one replacement after the other. */
static void clean_up(token_texts *work, const char *text, size_t bytes)
{
    static const char *const rules[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    token_texts next = {0};
    token_texts_append(work, text, bytes);
    if (work->is_broken || memchr(text, ' ', bytes) == NULL)
        return;
    size_t begin = work->bytes - bytes;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        token_texts_clear(&next);
        replace_all(&next, work->data + begin, work->bytes - begin, rules[i][0],
                    strlen(rules[i][0]), rules[i][1], strlen(rules[i][1]));
        work->bytes = begin;
        token_texts_append(work, next.data, next.bytes);
    }
    dispose_with(&next, work);
}

static void decode_wordpiece(const decoder *d, const token_texts *from, token_texts *to)
{
    token_texts joined = {0};
    for (size_t i = 0; i < from->count; i++) {
        size_t bytes;
        const char *text = text_at(from, i, &bytes);
        token_texts_clear(&joined);
        if (i > 0) {
            if (bytes >= d->text_bytes && memcmp(text, d->text, d->text_bytes) == 0) {
                text += d->text_bytes;
                bytes -= d->text_bytes;
            } else {
                token_texts_append(&joined, " ", 1);
            }
        }
        token_texts_append(&joined, text, bytes);
        if (d->cleans_up && joined.bytes > 0)
            clean_up(to, joined.data, joined.bytes);
        else
            token_texts_append(to, joined.data, joined.bytes);
        token_texts_end(to);
    }
    dispose_with(&joined, to);
}

/* How much of an invalid sequence one U+FFFD stands for (Unicode 3.9, maximal subparts). */
static size_t invalid_bytes(const uint8_t *p, size_t bytes)
{
    unsigned length = p[0] >= 0xC2 && p[0] < 0xF5 ? utf8_length(p[0]) : 1;
    size_t count = 1;
    for (; count < length && count < bytes; count++) {
        uint8_t low = 0x80, high = 0xBF;
        if (count == 1) {
            low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : low;
            high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : high;
        }
        if (p[count] < low || p[count] > high)
            break;
    }
    return count;
}

static void append_lossily(token_texts *to, const uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t valid = utf8_valid_bytes(data + at, bytes - at);
        token_texts_append(to, data + at, valid);
        at += valid;
        if (at < bytes) {
            token_texts_append(to, REPLACEMENT, 3);
            at += invalid_bytes(data + at, bytes - at);
        }
    }
}

/* Tokens whose characters all stand for bytes become those. */
static void decode_byte_level(const token_texts *from, token_texts *to)
{
    token_texts all = {0};
    for (size_t i = 0; i < from->count; i++) {
        size_t bytes, begin = all.bytes;
        const uint8_t *text = (const uint8_t *)text_at(from, i, &bytes);
        for (size_t at = 0; at < bytes; at += utf8_length(text[at])) {
            int byte = byte_alphabet_byte(utf8_decode(text + at));
            if (byte < 0) {
                all.bytes = begin;
                token_texts_append(&all, text, bytes);
                break;
            }
            uint8_t one = (uint8_t)byte;
            token_texts_append(&all, &one, 1);
        }
    }
    append_lossily(to, (const uint8_t *)all.data, all.bytes);
    token_texts_end(to);
    dispose_with(&all, to);
}

static void decode_metaspace(const decoder *d, const token_texts *from, token_texts *to)
{
    char mark[UTF8_BYTES_MAX];
    size_t mark_bytes = utf8_encode(d->character, (uint8_t *)mark);
    for (size_t i = 0; i < from->count; i++) {
        size_t bytes;
        const char *text = text_at(from, i, &bytes);
        bool drops = i == 0 && !d->keeps_first;
        replace_all(to, text, bytes, mark, mark_bytes, " ", drops ? 0 : 1);
        token_texts_end(to);
    }
}

static void decode_bpe(const decoder *d, const token_texts *from, token_texts *to)
{
    for (size_t i = 0; i < from->count; i++) {
        size_t bytes;
        const char *text = text_at(from, i, &bytes);
        replace_all(to, text, bytes, d->text, d->text_bytes, " ", i + 1 == from->count ? 0 : 1);
        token_texts_end(to);
    }
}

static void flush_bytes(token_texts *to, token_texts *waiting)
{
    const uint8_t *data = (const uint8_t *)waiting->data;
    if (waiting->bytes > 0 && utf8_valid_bytes(data, waiting->bytes) == waiting->bytes) {
        token_texts_append(to, data, waiting->bytes);
        token_texts_end(to);
    } else {
        for (size_t i = 0; i < waiting->bytes; i++) {
            token_texts_append(to, REPLACEMENT, 3);
            token_texts_end(to);
        }
    }
    token_texts_clear(waiting);
}

/* <0x0A>: the digits as from_str_radix() takes them, which allows a plus sign. */
static int byte_token(const char *text, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    int value = 0;
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    for (int i = text[3] == '+' ? 4 : 3; i < 5; i++) {
        char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] | 0x20) : text[i];
        const char *digit = c ? strchr(digits, c) : NULL;
        if (digit == NULL)
            return -1;
        value = value * 16 + (int)(digit - digits);
    }
    return value;
}

static void decode_byte_fallback(const token_texts *from, token_texts *to)
{
    token_texts waiting = {0};
    for (size_t i = 0; i < from->count; i++) {
        size_t bytes;
        const char *text = text_at(from, i, &bytes);
        int byte = byte_token(text, bytes);
        if (byte >= 0) {
            uint8_t one = (uint8_t)byte;
            token_texts_append(&waiting, &one, 1);
            continue;
        }
        flush_bytes(to, &waiting);
        token_texts_append(to, text, bytes);
        token_texts_end(to);
    }
    flush_bytes(to, &waiting);
    dispose_with(&waiting, to);
}

static status decode_replace(const decoder *d, const token_texts *from, token_texts *to)
{
    pattern_memory memory = {0};
    status s = STATUS_OK;
    for (size_t i = 0; i < from->count && !s; i++) {
        size_t bytes, copied = 0, begin = 0, end = 0;
        const char *text = text_at(from, i, &bytes);
        pattern_search search;
        bool found = bytes > 0; /* the library finds nothing in empty text */
        pattern_search_begin(&search, d->pattern, &memory, (const uint8_t *)text, bytes);
        while (found) {
            s = pattern_search_next(&search, &found, &begin, &end);
            if (s || !found)
                break;
            token_texts_append(to, text + copied, begin - copied);
            token_texts_append(to, d->text, d->text_bytes);
            copied = end;
        }
        token_texts_append(to, text + copied, bytes - copied);
        token_texts_end(to);
    }
    pattern_memory_dispose(&memory);
    return s;
}

/* Up to `start` of a character at the front, up to `stop` at the end. */
static void decode_strip(const decoder *d, const token_texts *from, token_texts *to)
{
    char mark[UTF8_BYTES_MAX];
    size_t mark_bytes = utf8_encode(d->character, (uint8_t *)mark);
    for (size_t i = 0; i < from->count; i++) {
        size_t bytes, begin = 0;
        const char *text = text_at(from, i, &bytes);
        size_t end = bytes;
        for (size_t n = 0; n < d->start && begin + mark_bytes <= end &&
                           memcmp(text + begin, mark, mark_bytes) == 0;
             n++)
            begin += mark_bytes;
        for (size_t n = 0; n < d->stop && begin + mark_bytes <= end &&
                           memcmp(text + end - mark_bytes, mark, mark_bytes) == 0;
             n++)
            end -= mark_bytes;
        token_texts_append(to, text + begin, end - begin);
        token_texts_end(to);
    }
}

/* Repeated tokens are one; the padding goes. */
static void decode_ctc(const decoder *d, const token_texts *from, token_texts *to)
{
    token_texts replaced = {0}, cleaned = {0};
    for (size_t i = 0; i < from->count; i++) {
        size_t bytes, before_bytes = 0, begin = to->bytes;
        const char *text = text_at(from, i, &bytes);
        const char *before = i ? text_at(from, i - 1, &before_bytes) : NULL;
        if (before != NULL && before_bytes == bytes && memcmp(before, text, bytes) == 0)
            continue;
        token_texts_clear(&replaced);
        token_texts_clear(&cleaned);
        replace_all(&replaced, text, bytes, d->text, d->text_bytes, "", 0);
        if (d->cleans_up && replaced.bytes > 0) {
            clean_up(&cleaned, replaced.data, replaced.bytes);
            replace_all(to, cleaned.data, cleaned.bytes, d->delimiter, d->delimiter_bytes, " ", 1);
        } else {
            token_texts_append(to, replaced.data, replaced.bytes);
        }
        if (to->bytes > begin)
            token_texts_end(to);
    }
    dispose_with(&replaced, to);
    dispose_with(&cleaned, to);
}

static status apply(const decoder *d, const token_texts *from, token_texts *to)
{
    switch (d->kind) {
    case DECODER_WORDPIECE:
        decode_wordpiece(d, from, to);
        break;
    case DECODER_BYTE_LEVEL:
        decode_byte_level(from, to);
        break;
    case DECODER_METASPACE:
        decode_metaspace(d, from, to);
        break;
    case DECODER_BPE:
        decode_bpe(d, from, to);
        break;
    case DECODER_BYTE_FALLBACK:
        decode_byte_fallback(from, to);
        break;
    case DECODER_FUSE:
        token_texts_append(to, from->data, from->bytes);
        token_texts_end(to);
        break;
    case DECODER_REPLACE:
        return decode_replace(d, from, to);
    case DECODER_STRIP:
        decode_strip(d, from, to);
        break;
    case DECODER_CTC:
        decode_ctc(d, from, to);
        break;
    }
    return STATUS_OK;
}

status decoder_apply(const decoder *d, const token_texts *from, token_texts *to)
{
    assert(to->bytes == 0 && to->count == 0);
    if (from->is_broken)
        return grow_fail();
    status s = apply(d, from, to);
    return !s && to->is_broken ? grow_fail() : s;
}
