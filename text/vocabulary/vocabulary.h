#ifndef TEXT_VOCABULARY_VOCABULARY_H
#define TEXT_VOCABULARY_VOCABULARY_H

#include <stdbool.h>

#include "text/vocabulary/trie.h"

/* The tokens of a model, by id and by text. Constant once it is finished; any thread. */

#define VOCABULARY_IDS_MAX (1u << 24)
#define VOCABULARY_TOKEN_BYTES_MAX 65535

typedef struct vocabulary_entry {
    uint32_t begin, bytes, id;
} vocabulary_entry;

typedef struct vocabulary {
    uint8_t *text; /* of all tokens, one after the other */
    size_t text_bytes, text_capacity;
    vocabulary_entry *entries; /* as they came */
    size_t count, capacity;
    uint32_t *by_id; /* index into entries, or TRIE_NONE; id_count of them */
    uint32_t id_count;
    trie *trie; /* text to id */
    bool is_byte_level;
} vocabulary;

void vocabulary_dispose(vocabulary *v);
/* Appends a token. STATUS_TOO_LARGE, STATUS_OUT_OF_MEMORY. */
status vocabulary_add(vocabulary *v, const void *text, size_t bytes, uint32_t id) MUST_CHECK;
/* Builds the lookups. With `is_byte_level`, the trie has the bytes that the tokens' characters
 * stand for, and leaves out tokens with other characters. */
status vocabulary_finish(vocabulary *v, bool is_byte_level) MUST_CHECK;

/* The text of a token; NULL: no such id. Borrowed from `v`. */
const uint8_t *vocabulary_token(const vocabulary *v, uint32_t id, size_t *bytes);
/* The id of a text as it stands in the file, also of a byte-level vocabulary; TRIE_NONE. */
uint32_t vocabulary_find(const vocabulary *v, const void *text, size_t bytes);

/* The bytes that characters of the byte alphabet stand for, to `out` (room for `bytes`). False:
 * there is another character. */
bool vocabulary_spell_bytes(const uint8_t *text, size_t bytes, uint8_t *out, size_t *out_bytes);

#endif
