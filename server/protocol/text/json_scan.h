#ifndef SERVER_PROTOCOL_TEXT_JSON_SCAN_H
#define SERVER_PROTOCOL_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/cancel.h"
#include "base/status.h"

/* A reading position in one JSON text (RFC 8259): the envelope of a request is walked once, front
 * to back, and its number arrays go straight into tensors (tensor_scan.h). Nothing is built.
 * Every error is STATUS_INVALID_ARGUMENT with the byte where it stands. One thread. */
typedef struct json_scan {
    const char *at, *end, *start;
    int depth, depth_max; /* open arrays and objects, and their ceiling */
    bool is_strict;       /* NaN and Infinity are refused */
    arena *memory;        /* where strings with escapes are unfolded; lives as long as they do */
    const cancel_token *cancel; /* asked every few thousand values; NULL: nobody cancels */
    unsigned steps;
} json_scan;

typedef struct json_string {
    const char *text; /* borrowed from the JSON text or held by `memory`; no zero byte after it */
    size_t bytes;
} json_string;

#define JSON_KEYS_MAX 64 /* of an object whose keys we look at */

/* Walks an object's keys: json_object_next() leaves the cursor before the value of `key`. */
typedef struct json_object {
    json_string keys[JSON_KEYS_MAX]; /* seen so far: duplicates are refused */
    int count;
} json_object;

void json_scan_init(json_scan *s, const char *text, size_t bytes, int depth_max, bool is_strict,
                    arena *memory);

/* The next byte that is no white space, or 0 at the end. */
char json_peek_after_space(json_scan *s);
static inline char json_peek(json_scan *s)
{
    return s->at < s->end && (unsigned char)*s->at > ' ' ? *s->at : json_peek_after_space(s);
}
/* STATUS_INVALID_ARGUMENT with position; `what` completes "expected ...". */
status json_fail(const json_scan *s, const char *what);

status json_open_object(json_scan *s, json_object *o) MUST_CHECK;
/* *has_key says whether there was one; false: the object is closed. */
status json_object_next(json_scan *s, json_object *o, json_string *key, bool *has_key) MUST_CHECK;

status json_open_array(json_scan *s) MUST_CHECK;
/* Before each element; `*is_first` is the caller's, true before the first. */
status json_array_next(json_scan *s, bool *is_first, bool *has_element) MUST_CHECK;

status json_read_string(json_scan *s, json_string *out) MUST_CHECK;
status json_read_bool(json_scan *s, bool *out) MUST_CHECK;
status json_read_i64(json_scan *s, int64_t *out) MUST_CHECK;
/* Any value, checked for form and left. */
status json_skip_value(json_scan *s) MUST_CHECK;
/* Nothing but white space may be left. */
status json_expect_end(json_scan *s) MUST_CHECK;

/* Before each value of a long list: as cancel_check(), once in a while. */
#define JSON_STEPS 4096
static inline status json_step(json_scan *s)
{
    return ++s->steps % JSON_STEPS != 0 ? STATUS_OK : cancel_check(s->cancel);
}

static inline bool json_string_is(json_string s, const char *text)
{
    size_t bytes = strlen(text); /* of a literal: known when compiled */
    return bytes == s.bytes && memcmp(s.text, text, bytes) == 0;
}

/* Whether the bytes are well-formed UTF-8 (Unicode 15, table 3-7). */
bool json_is_utf8(const char *text, size_t bytes);

#endif
