#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/text_buffer.h"

/* Text to token ids and back, as the Hugging Face `tokenizers` library does it: the same ids, type
 * ids, spans and text for the same tokenizer.json. A tokenizer is constant: any number of threads
 * use it, each with a scratch of its own. */
typedef struct tokenizer tokenizer;
typedef struct tokenizer_scratch tokenizer_scratch;

#define TOKENIZER_TEXT_BYTES_MAX (16u << 20)
#define TOKENIZER_FILE_BYTES_MAX (256u << 20)

/* Loads the tokenizer of a model's folder: tokenizer.json, else vocab.txt, else a SentencePiece
 * model, else vocab.json with merges.txt; with the latter three, tokenizer_config.json and its
 * companions count. The caller destroys *out. Errors:
 * STATUS_NOT_FOUND (none of them; the message names them), STATUS_CORRUPT (file and field),
 * STATUS_UNSUPPORTED (a component, and which ones are supported), STATUS_TOO_LARGE, STATUS_IO,
 * STATUS_OUT_OF_MEMORY. */
status tokenizer_load(const char *folder, tokenizer **out) MUST_CHECK;
/* The same from the contents of a tokenizer.json; `name` is for messages. */
status tokenizer_parse(const char *json, size_t bytes, const char *name,
                       tokenizer **out) MUST_CHECK;
/* Accepts NULL. Scratches do not depend on it. */
void tokenizer_destroy(tokenizer *t);

/* What one thread needs, for any number of tokenizers: buffers that grow to the largest text, and a
 * cache of words of 1 MB at most. NULL: there is no memory. The caller destroys it. */
tokenizer_scratch *tokenizer_scratch_create(void);
void tokenizer_scratch_destroy(tokenizer_scratch *s);

/* UTF-8; borrowed. */
typedef struct tokenizer_text {
    const char *data;
    size_t bytes;
} tokenizer_text;

/* Which sequence of a pair is shortened: the longer one, until both fit; the first; the second. */
typedef enum tokenizer_strategy {
    TOKENIZER_LONGEST_FIRST,
    TOKENIZER_ONLY_FIRST,
    TOKENIZER_ONLY_SECOND
} tokenizer_strategy;

/* A zeroed one: special tokens are added, nothing is truncated. */
typedef struct tokenizer_options {
    bool omits_special_tokens;
    size_t tokens_max; /* of the result, special tokens included; 0: not truncated */
    tokenizer_strategy strategy;
    bool truncates_left; /* the front goes */
} tokenizer_options;

/* Characters (code points) [begin, end) of the text; {0, 0} for special tokens. */
typedef struct tokenizer_span {
    uint32_t begin, end;
} tokenizer_span;

#define TOKENIZER_NO_SEQUENCE UINT8_MAX

/* Arrays of `count` items, borrowed from the scratch until its next call. The attention mask is 1
 * everywhere. */
typedef struct tokenizer_tokens {
    size_t count;
    const uint32_t *ids, *type_ids;
    const tokenizer_span *spans;
    const uint8_t *sequences; /* 0 or 1: the text it comes from; TOKENIZER_NO_SEQUENCE: a special
                                 token, added */
    bool is_truncated;
} tokenizer_tokens;

/* Encodes a text, or a pair where `second` is not NULL. The file's own truncation and padding are
 * not applied. Errors, which leave *out untouched:
 * STATUS_INVALID_ARGUMENT (not UTF-8: the message has the position; tokens_max has no room for the
 * special tokens; the strategy cannot shorten as much; a word that the vocabulary lacks, without an
 * unknown token), STATUS_TOO_LARGE (over TOKENIZER_TEXT_BYTES_MAX), STATUS_UNSUPPORTED (a regular
 * expression gave up), STATUS_OUT_OF_MEMORY (the next text may fit). */
status tokenizer_encode(const tokenizer *t, tokenizer_scratch *s, tokenizer_text first,
                        const tokenizer_text *second, const tokenizer_options *options,
                        tokenizer_tokens *out) MUST_CHECK;

/* Appends the text of tokens to `out`. Ids that are not in the vocabulary are left out, as the
 * library does. Any thread. STATUS_UNSUPPORTED (a regular expression gave up),
 * STATUS_OUT_OF_MEMORY. */
status tokenizer_decode(const tokenizer *t, const uint32_t *ids, size_t count,
                        bool skips_special_tokens, text_buffer *out) MUST_CHECK;

/* A token's text as the vocabulary has it; NULL: no such id. Borrowed from `t`; not
 * zero-terminated. */
const char *tokenizer_token(const tokenizer *t, uint32_t id, size_t *bytes);
/* One more than the largest id. */
uint32_t tokenizer_id_count(const tokenizer *t);
/* How many special tokens a text or a pair gets. */
size_t tokenizer_special_count(const tokenizer *t, bool is_pair);

#endif
