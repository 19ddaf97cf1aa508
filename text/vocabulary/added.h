#ifndef TEXT_VOCABULARY_ADDED_H
#define TEXT_VOCABULARY_ADDED_H

#include <stdbool.h>

#include "text/aligned/aligned_text.h"
#include "text/vocabulary/trie.h"

/* Tokens that were added to a vocabulary: they are found in the text before anything else is done
 * with it, those with `normalized` once it is normalised. Constant after loading; any thread. */

#define ADDED_TOKEN_BYTES_MAX 1024

typedef struct added_token {
    char *content, *looked_for; /* owned; looked_for: normalised where `normalized` says so */
    size_t content_bytes, looked_for_bytes;
    uint32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} added_token;

typedef struct added_tokens {
    added_token *items;
    size_t count;
    trie *before,
        *after; /* what is looked for before and after normalisation, to index; NULL: nothing */
    bool begins_before[256], begins_after[256]; /* by first byte */
    uint32_t *by_id;                            /* id to index, or TRIE_NONE; id_count of them */
    uint32_t id_count;
} added_tokens;

void added_tokens_dispose(added_tokens *a);
/* Builds the lookups, once all items are there. */
status added_tokens_finish(added_tokens *a) MUST_CHECK;

/* Appends bytes [begin, end) of `text` to `out`: the tokens that are found, and the text between
 * them. */
void added_tokens_split(const added_tokens *a, bool is_normalized, const aligned_text *text,
                        size_t begin, size_t end, pieces *out);

/* NULL: no such id was added. */
const added_token *added_tokens_find(const added_tokens *a, uint32_t id);

#endif
