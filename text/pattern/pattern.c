#include "text/pattern/pattern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/pattern/translate.h"
#include "text/unicode/utf8.h"

#define PATTERN_BYTES_MAX 16384
#define MATCH_LIMIT 1000000 /* steps of one match */

struct pattern {
    pcre2_code *code; /* NULL: plain text */
    pcre2_match_context *context;
    size_t literal_bytes;
    char literal[];
};

static status no_memory(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a regular expression");
}

static status compile(pattern *p, const char *text, size_t bytes)
{
    text_buffer translated = {0};
    PCRE2_UCHAR message[128];
    PCRE2_SIZE at = 0;
    int error = 0;
    status s = pattern_translate(text, bytes, &translated);
    if (s)
        goto end;
    text_buffer_append(&translated, "", 1);
    if (translated.is_broken) {
        s = no_memory();
        goto end;
    }
    /* ^ and $ match at lines in Ruby's syntax. The text has been checked to be UTF-8. */
    p->code = pcre2_compile((PCRE2_SPTR)translated.data, translated.bytes - 1,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                            &error, &at, NULL);
    p->context = pcre2_match_context_create(NULL);
    if (p->context == NULL || (p->code == NULL && error == PCRE2_ERROR_HEAP_FAILED)) {
        s = no_memory();
        goto end;
    }
    if (p->code == NULL) {
        pcre2_get_error_message(error, message, sizeof message);
        s = status_fail(STATUS_UNSUPPORTED, "regular expression \"%.200s\": %s", text,
                        (const char *)message);
        goto end;
    }
    pcre2_set_match_limit(p->context, MATCH_LIMIT);
    pcre2_set_heap_limit(p->context, 64 * 1024);          /* KiB */
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without it, matching interprets */
end:
    text_buffer_dispose(&translated);
    return s;
}

status pattern_create(const char *text, size_t bytes, bool is_regular_expression, pattern **out)
{
    if (bytes > PATTERN_BYTES_MAX)
        return status_fail(STATUS_TOO_LARGE, "a pattern has %zu bytes; at most %d are allowed",
                           bytes, PATTERN_BYTES_MAX);
    pattern *p = calloc(1, sizeof *p + bytes + 1);
    if (p == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a pattern");
    memcpy(p->literal, text, bytes);
    p->literal_bytes = bytes;
    status s = is_regular_expression ? compile(p, text, bytes) : STATUS_OK;
    if (s) {
        pattern_destroy(p);
        return s;
    }
    *out = p;
    return STATUS_OK;
}

void pattern_destroy(pattern *p)
{
    if (p == NULL)
        return;
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->context);
    free(p);
}

void pattern_memory_dispose(pattern_memory *m)
{
    pcre2_match_data_free(m->matching);
    m->matching = NULL;
}

void pattern_search_begin(pattern_search *s, const pattern *p, pattern_memory *memory,
                          const uint8_t *data, size_t bytes)
{
    if (memory->matching == NULL && p->code != NULL)
        memory->matching = pcre2_match_data_create(1, NULL);
    *s = (pattern_search){.pattern = p, .data = data, .bytes = bytes, .matching = memory->matching};
}

static bool find_literal(pattern_search *s, size_t *begin, size_t *end)
{
    const pattern *p = s->pattern;
    const uint8_t *found = p->literal_bytes == 0 ? s->data + s->at
                                                 : memmem(s->data + s->at, s->bytes - s->at,
                                                          p->literal, p->literal_bytes);
    if (found == NULL)
        return false;
    *begin = (size_t)(found - s->data);
    *end = *begin + p->literal_bytes;
    return true;
}

static status find(pattern_search *s, bool *found, size_t *begin, size_t *end)
{
    const pattern *p = s->pattern;
    if (p->code == NULL) {
        *found = find_literal(s, begin, end);
        return STATUS_OK;
    }
    if (s->matching == NULL)
        return no_memory();
    int count =
        pcre2_match(p->code, s->data, s->bytes, s->at, PCRE2_NO_UTF_CHECK, s->matching, p->context);
    /* With room for one pair, a match with groups says 0. */
    if (count == PCRE2_ERROR_NOMATCH) {
        *found = false;
        return STATUS_OK;
    }
    if (count == PCRE2_ERROR_NOMEMORY)
        return no_memory();
    if (count < 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "a regular expression of the tokenizer takes too long on this text "
                           "(PCRE2's error %d)",
                           count);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->matching);
    *found = true;
    *begin = ends[0];
    *end = ends[1];
    return STATUS_OK;
}

status pattern_search_next(pattern_search *s, bool *found, size_t *begin, size_t *end)
{
    while (s->at <= s->bytes) {
        size_t from = 0, to = 0;
        status failed = find(s, found, &from, &to);
        if (failed || !*found)
            return failed;
        if (to == from && s->has_match && to == s->last_end) {
            s->at += s->at < s->bytes ? utf8_length(s->data[s->at]) : 1;
            continue;
        }
        s->at = s->last_end = to;
        s->has_match = true;
        *begin = from;
        *end = to;
        return STATUS_OK;
    }
    *found = false;
    return STATUS_OK;
}
