#ifndef TEXT_DECODE_DECODER_H
#define TEXT_DECODE_DECODER_H

#include "base/status.h"
#include "text/pattern/pattern.h"

/* Decoders: a list of steps, each rewrites the texts of tokens; in the end they are joined. The
 * steps and their order are those of tokenizer.json, where Sequences are flat lists. */

typedef enum decoder_kind {
    DECODER_WORDPIECE,
    DECODER_BYTE_LEVEL,
    DECODER_METASPACE,
    DECODER_BPE,
    DECODER_BYTE_FALLBACK,
    DECODER_FUSE,
    DECODER_REPLACE,
    DECODER_STRIP,
    DECODER_CTC
} decoder_kind;

typedef struct decoder {
    decoder_kind kind;
    bool cleans_up;   /* WordPiece, CTC */
    bool keeps_first; /* Metaspace with prepend_scheme "never" */
    char *text;       /* prefix, suffix, pad token, content of replace; owned */
    size_t text_bytes;
    char *delimiter; /* CTC's word_delimiter_token; owned */
    size_t delimiter_bytes;
    pattern *pattern;   /* replace; owned */
    uint32_t character; /* Metaspace, strip */
    size_t start, stop; /* strip */
} decoder;

void decoder_dispose(decoder *d);

/* Texts one after the other. Without memory they are broken, for good: what is added is dropped. */
typedef struct token_texts {
    char *data;
    size_t bytes, capacity;
    size_t *ends; /* of each text */
    size_t count, ends_capacity;
    bool is_broken;
} token_texts;

void token_texts_dispose(token_texts *t);
void token_texts_clear(token_texts *t);
/* Appends bytes to the text that is open, and ends it. */
void token_texts_append(token_texts *t, const void *data, size_t bytes);
void token_texts_end(token_texts *t);

/* Runs a step: `from` becomes `to`, which is empty. STATUS_UNSUPPORTED when a regular expression
 * gives up; STATUS_OUT_OF_MEMORY. */
status decoder_apply(const decoder *d, const token_texts *from, token_texts *to) MUST_CHECK;

#endif
