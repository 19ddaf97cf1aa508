#include "server/protocol/text/json_scan.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "server/protocol/text/number_scan.h"

void json_scan_init(json_scan *s, const char *text, size_t bytes, int depth_max, bool is_strict,
                    arena *memory)
{
    *s = (json_scan){.at = text,
                     .end = text + bytes,
                     .start = text,
                     .depth_max = depth_max,
                     .is_strict = is_strict,
                     .memory = memory};
}

status json_fail(const json_scan *s, const char *what)
{
    size_t position = (size_t)(s->at - s->start);
    if (s->at >= s->end)
        return status_fail(STATUS_INVALID_ARGUMENT, "JSON ends at byte %zu: expected %s", position,
                           what);
    return status_fail(STATUS_INVALID_ARGUMENT, "JSON at byte %zu: expected %s", position, what);
}

char json_peek_after_space(json_scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
    return s->at < s->end ? *s->at : '\0';
}

static status enter(json_scan *s)
{
    if (s->depth >= s->depth_max)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "JSON at byte %zu: nested deeper than the limit of %d",
                           (size_t)(s->at - s->start), s->depth_max);
    s->depth++;
    s->at++;
    return STATUS_OK;
}

status json_open_object(json_scan *s, json_object *o)
{
    o->count = 0;
    if (json_peek(s) != '{')
        return json_fail(s, "an object");
    return enter(s);
}

status json_object_next(json_scan *s, json_object *o, json_string *key, bool *has_key)
{
    char c = json_peek(s);
    if (c == '}') {
        s->at++;
        s->depth--;
        *has_key = false;
        return STATUS_OK;
    }
    if (o->count > 0) {
        if (c != ',')
            return json_fail(s, "',' or '}'");
        s->at++;
        c = json_peek(s);
    }
    if (c != '"')
        return json_fail(s, "a key in quotes");
    status failure = json_read_string(s, key);
    if (failure)
        return failure;
    for (int i = 0; i < o->count; i++) {
        if (o->keys[i].bytes == key->bytes && !memcmp(o->keys[i].text, key->text, key->bytes))
            return status_fail(STATUS_INVALID_ARGUMENT, "JSON at byte %zu: key \"%.*s\" twice",
                               (size_t)(s->at - s->start),
                               (int)(key->bytes < 100 ? key->bytes : 100), key->text);
    }
    if (o->count == JSON_KEYS_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "JSON at byte %zu: an object with more than %d keys",
                           (size_t)(s->at - s->start), JSON_KEYS_MAX);
    o->keys[o->count++] = *key;
    if (json_peek(s) != ':')
        return json_fail(s, "':'");
    s->at++;
    *has_key = true;
    return STATUS_OK;
}

status json_open_array(json_scan *s)
{
    if (json_peek(s) != '[')
        return json_fail(s, "an array");
    return enter(s);
}

status json_array_next(json_scan *s, bool *is_first, bool *has_element)
{
    char c = json_peek(s);
    if (c == ']') {
        s->at++;
        s->depth--;
        *has_element = false;
        return STATUS_OK;
    }
    if (!*is_first) {
        if (c != ',')
            return json_fail(s, "',' or ']'");
        s->at++;
        if (json_peek(s) == ']')
            return json_fail(s, "a value");
    }
    *is_first = false;
    *has_element = true;
    return STATUS_OK;
}

bool json_is_utf8(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + bytes;
    while (p < end) {
        uint64_t eight;
        if (end - p >= 8 && (memcpy(&eight, p, 8), (eight & 0x8080808080808080ull) == 0)) {
            p += 8;
            continue;
        }
        unsigned char c = *p;
        int more;
        unsigned char low = 0x80, high = 0xbf; /* bounds of the second byte */
        if (c < 0x80)
            more = 0;
        else if (c >= 0xc2 && c <= 0xdf)
            more = 1;
        else if (c >= 0xe0 && c <= 0xef)
            more = 2, low = c == 0xe0 ? 0xa0 : 0x80, high = c == 0xed ? 0x9f : 0xbf;
        else if (c >= 0xf0 && c <= 0xf4)
            more = 3, low = c == 0xf0 ? 0x90 : 0x80, high = c == 0xf4 ? 0x8f : 0xbf;
        else
            return false;
        if (end - p <= more)
            return false;
        for (int i = 1; i <= more; i++, low = 0x80, high = 0xbf) {
            if (p[i] < low || p[i] > high)
                return false;
        }
        p += more + 1;
    }
    return true;
}

static bool read_hex4(const char *p, const char *end, uint32_t *out)
{
    if (end - p < 4)
        return false;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return false;
        v = v << 4 | (uint32_t)digit;
    }
    *out = v;
    return true;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* \uXXXX at `*p` (after the 'u'), with its second half when it is a surrogate. */
static bool read_unicode(const char **p, const char *end, uint32_t *out)
{
    uint32_t c, second;
    if (!read_hex4(*p, end, &c) || (c >= 0xdc00 && c <= 0xdfff))
        return false;
    *p += 4;
    if (c >= 0xd800 && c <= 0xdbff) {
        if (end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u' || !read_hex4(*p + 2, end, &second) ||
            second < 0xdc00 || second > 0xdfff)
            return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (second - 0xdc00);
        *p += 6;
    }
    *out = c;
    return true;
}

/* [from, to) holds escapes: unfolds it into the arena. */
static status unfold(json_scan *s, const char *from, const char *to, json_string *out)
{
    char *text = arena_allocate(s->memory, (size_t)(to - from) + 1), *w = text;
    if (text == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a string of %zu bytes",
                           (size_t)(to - from));
    static const char from_letter[] = "\"\\/bfnrt", to_byte[] = "\"\\/\b\f\n\r\t";
    for (const char *p = from; p < to;) {
        if (*p != '\\') {
            *w++ = *p++;
            continue;
        }
        p++;
        const char *letter = *p ? strchr(from_letter, *p) : NULL;
        uint32_t c;
        if (letter) {
            *w++ = to_byte[letter - from_letter];
            p++;
        } else if (*p == 'u' && (p++, read_unicode(&p, to, &c))) {
            w = put_utf8(w, c);
        } else {
            s->at = p;
            return json_fail(s, "a valid escape");
        }
    }
    *out = (json_string){text, (size_t)(w - text)};
    return STATUS_OK;
}

#define EIGHT(byte) ((byte)*0x0101010101010101ull)

/* The first byte from `p` on that is a quote, a backslash, a control character or not ASCII. */
static const char *plain_end(const char *p, const char *end)
{
    for (uint64_t v; end - p >= 8; p += 8) {
        memcpy(&v, p, 8);
        uint64_t quote = v ^ EIGHT('"'), backslash = v ^ EIGHT('\\');
        /* The lowest bit is exact: a borrow only reaches the bytes after it. */
        uint64_t found = ((quote - EIGHT(1)) & ~quote) | ((backslash - EIGHT(1)) & ~backslash) |
                         ((v - EIGHT(0x20)) & ~v) | v;
        found &= EIGHT(0x80);
        if (found != 0)
            return p + __builtin_ctzll(found) / 8;
    }
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' &&
           *p != '\\')
        p++;
    return p;
}

status json_read_string(json_scan *s, json_string *out)
{
    if (json_peek(s) != '"')
        return json_fail(s, "a string");
    const char *from = ++s->at, *p = plain_end(from, s->end);
    if (p < s->end && *p == '"') {
        *out = (json_string){from, (size_t)(p - from)};
        s->at = p + 1;
        return STATUS_OK;
    }
    bool has_escape = false;
    for (; p < s->end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20) {
            s->at = p;
            return json_fail(s, "no control character in a string");
        }
        if (*p == '\\') {
            has_escape = true;
            if (++p == s->end)
                break;
        }
    }
    if (p >= s->end) {
        s->at = s->end;
        return json_fail(s, "the end of a string");
    }
    if (!json_is_utf8(from, (size_t)(p - from)))
        return json_fail(s, "UTF-8");
    if (!has_escape) {
        *out = (json_string){from, (size_t)(p - from)};
    } else {
        status failure = unfold(s, from, p, out);
        if (failure)
            return failure;
    }
    s->at = p + 1;
    return STATUS_OK;
}

static bool skip_word(json_scan *s, const char *word)
{
    size_t bytes = strlen(word);
    if ((size_t)(s->end - s->at) < bytes || memcmp(s->at, word, bytes) != 0)
        return false;
    s->at += bytes;
    return true;
}

status json_read_bool(json_scan *s, bool *out)
{
    json_peek(s);
    if (skip_word(s, "true"))
        *out = true;
    else if (skip_word(s, "false"))
        *out = false;
    else
        return json_fail(s, "true or false");
    return STATUS_OK;
}

#define SHORT_DIGITS 18 /* always fit an int64_t */

/* Digits and nothing else that a number may have: most integers. NULL: it is not one of these. */
static const char *read_short_integer(const char *at, const char *end, int64_t *out)
{
    const char *p = at;
    int64_t value = 0;
    while (p < end && *p >= '0' && *p <= '9' && p - at < SHORT_DIGITS)
        value = value * 10 + (*p++ - '0');
    bool goes_on = p == end || (*p >= '0' && *p <= '9') || *p == '.' || *p == 'e' || *p == 'E';
    if (p == at || goes_on || (*at == '0' && p - at > 1))
        return NULL;
    *out = value;
    return p;
}

status json_read_i64(json_scan *s, int64_t *out)
{
    number n;
    json_peek(s);
    const char *end = read_short_integer(s->at, s->end, out);
    if (end != NULL) {
        s->at = end;
        return STATUS_OK;
    }
    const char *after = number_scan(s->at, s->end, &n);
    if (after == NULL || !number_to_i64(&n, out))
        return json_fail(s, "an integer");
    s->at = after;
    return STATUS_OK;
}

static status skip_scalar(json_scan *s, char c)
{
    if (c == '"') {
        json_string unused;
        return json_read_string(s, &unused);
    }
    if (skip_word(s, "true") || skip_word(s, "false") || skip_word(s, "null"))
        return STATUS_OK;
    number n;
    const char *after = number_scan(s->at, s->end, &n);
    if (after == NULL || (s->is_strict && n.kind != NUMBER_DECIMAL))
        return json_fail(s, "a value");
    s->at = after;
    return STATUS_OK;
}

/* No recursion: a bit per level says whether it is an object. Keys of skipped objects are not
 * compared, since nothing reads them. */
status json_skip_value(json_scan *s)
{
    enum { LEVELS = 1024 };
    uint64_t is_object[LEVELS / 64] = {0};
    int bottom = s->depth;
    assert(s->depth_max <= LEVELS);
    for (;;) {
        char c = json_peek(s);
        status failure = json_step(s);
        if (failure)
            return failure;
        if (c == '{' || c == '[') {
            if ((failure = enter(s)))
                return failure;
            uint64_t bit = 1ull << (s->depth & 63), *word = &is_object[(s->depth - 1) / 64];
            bit = 1ull << ((s->depth - 1) & 63);
            *word = c == '{' ? *word | bit : *word & ~bit;
            char close = c == '{' ? '}' : ']';
            if (json_peek(s) != close) {
                if (c == '[')
                    continue;
                goto key;
            }
        } else if ((failure = skip_scalar(s, c))) {
            return failure;
        } else {
            goto after_value;
        }
        s->at++; /* an empty array or object */
        s->depth--;
    after_value:
        for (;;) {
            if (s->depth == bottom)
                return STATUS_OK;
            bool in_object = is_object[(s->depth - 1) / 64] >> ((s->depth - 1) & 63) & 1;
            c = json_peek(s);
            if (c == (in_object ? '}' : ']')) {
                s->at++;
                s->depth--;
                continue;
            }
            if (c != ',')
                return json_fail(s, in_object ? "',' or '}'" : "',' or ']'");
            s->at++;
            if (!in_object)
                break;
        key:;
            json_string unused;
            if (json_peek(s) != '"')
                return json_fail(s, "a key in quotes");
            if ((failure = json_read_string(s, &unused)))
                return failure;
            if (json_peek(s) != ':')
                return json_fail(s, "':'");
            s->at++;
            break;
        }
    }
}

status json_expect_end(json_scan *s)
{
    json_peek(s);
    return s->at == s->end ? STATUS_OK : json_fail(s, "nothing more");
}
