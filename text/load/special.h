#ifndef TEXT_LOAD_SPECIAL_H
#define TEXT_LOAD_SPECIAL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

/* The tokens that the older files name beside the vocabulary, as "added_tokens" of a
 * tokenizer.json. Pointers are borrowed. */
typedef struct special_files {
    const json_t *config;  /* tokenizer_config.json, or NULL */
    const json_t *map;     /* special_tokens_map.json, or NULL */
    const json_t *numbers; /* added_tokens.json, or NULL */
} special_files;

/* The content of a named token ("cls_token"), or `fallback`. */
const char *special_token(const special_files *f, const char *name, const char *fallback);
bool special_flag(const special_files *f, const char *name, bool fallback);

/* Appends a token of the files' kind to "added_tokens". */
status special_add(json_t *added, const char *content, bool is_special,
                   bool strips_left) MUST_CHECK;

/* Appends what the files name, in the order in which the `transformers` library numbers it: what
 * has a number in its own order, then the named tokens. */
status special_add_all(const special_files *f, json_t *added) MUST_CHECK;

#endif
