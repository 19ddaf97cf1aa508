#ifndef TEXT_SCRATCH_H
#define TEXT_SCRATCH_H

#include "text/process/tokenizer_parts.h"
#include "text/tokenizer.h"

/* Between the files of text/ only. */

/* The tokens of one text, before special tokens are added. */
typedef struct sequence_tokens {
    uint32_t *ids;
    tokenizer_span *spans;
    uint32_t *spaces; /* at the front << 16 | at the end of each token, where spans are trimmed */
    size_t count, capacity;
    size_t first; /* after truncation: tokens [first, first + count) are left */
    bool is_cut;  /* some of the text was not looked at: it would be truncated */
} sequence_tokens;

struct tokenizer_scratch {
    aligned_text texts[3];
    pieces pieces[2];
    pattern_memory pattern;
    model_memory model;
    sequence_tokens sequences[2];
    /* The result: */
    uint32_t *ids, *type_ids;
    tokenizer_span *spans;
    uint8_t *sequence_of;
    size_t count, capacity;
};

/* Fills s->sequences[index]. Stops once there are tokens_max tokens; 0: never. */
status text_encode_sequence(const tokenizer *t, tokenizer_scratch *s, int index,
                            tokenizer_text text, size_t tokens_max) MUST_CHECK;
/* Truncates the sequences, adds special tokens, and makes the result. */
status text_assemble(const tokenizer *t, tokenizer_scratch *s, bool is_pair,
                     const tokenizer_options *options, tokenizer_tokens *out) MUST_CHECK;

#endif
