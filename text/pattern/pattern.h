#ifndef TEXT_PATTERN_PATTERN_H
#define TEXT_PATTERN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A regular expression of tokenizer.json, or plain text to look for. The file's are written for
 * Oniguruma; PCRE2 compiles them, translated where the two differ. Constant after pattern_create():
 * any thread may search. */
typedef struct pattern pattern;

/* STATUS_UNSUPPORTED names the construct or the error and its place. */
status pattern_create(const char *text, size_t bytes, bool is_regular_expression,
                      pattern **out) MUST_CHECK;
void pattern_destroy(pattern *p);

/* Memory that searches of one thread need: a zeroed one is empty. */
typedef struct pattern_memory {
    void *matching; /* PCRE2's */
} pattern_memory;

void pattern_memory_dispose(pattern_memory *m);

/* A search through one text, from match to match. */
typedef struct pattern_search {
    const pattern *pattern;
    const uint8_t *data; /* borrowed; valid UTF-8 */
    size_t bytes, at, last_end;
    bool has_match;
    void *matching;
} pattern_search;

/* `memory` and `data` are borrowed until the last call of pattern_search_next(). */
void pattern_search_begin(pattern_search *s, const pattern *p, pattern_memory *memory,
                          const uint8_t *data, size_t bytes);
/* The next match; false at the end. An empty match right behind the last one is skipped, as the
 * library does. STATUS_UNSUPPORTED: PCRE2 gave up on this text; STATUS_OUT_OF_MEMORY. */
status pattern_search_next(pattern_search *s, bool *found, size_t *begin, size_t *end) MUST_CHECK;

#endif
