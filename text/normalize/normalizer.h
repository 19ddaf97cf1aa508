#ifndef TEXT_NORMALIZE_NORMALIZER_H
#define TEXT_NORMALIZE_NORMALIZER_H

#include "base/status.h"
#include "text/aligned/aligned_text.h"
#include "text/normalize/charsmap.h"
#include "text/pattern/pattern.h"

/* Normalisation: a list of steps, each rewrites text. The steps and their order are those of
 * tokenizer.json, where Sequences are flat lists. */

typedef enum normalizer_kind {
    NORMALIZER_BERT,
    NORMALIZER_NFC,
    NORMALIZER_NFD,
    NORMALIZER_NFKC,
    NORMALIZER_NFKD,
    NORMALIZER_LOWERCASE,
    NORMALIZER_STRIP,
    NORMALIZER_STRIP_ACCENTS,
    NORMALIZER_REPLACE,
    NORMALIZER_PREPEND,
    NORMALIZER_CHARSMAP,
    NORMALIZER_NMT,
    NORMALIZER_BYTE_LEVEL
} normalizer_kind;

typedef struct normalizer {
    normalizer_kind kind;
    bool cleans, handles_ideographs, strips_accents, lowers; /* BERT */
    bool strips_left, strips_right;                          /* strip */
    pattern *pattern;                                        /* replace; owned */
    char *content;                                           /* replace, prepend; owned */
    size_t content_bytes;
    charsmap *charsmap; /* owned */
    bool takes_longest; /* CHARSMAP: as SentencePiece, not as the library */
} normalizer;

void normalizer_dispose(normalizer *n);

/* Appends bytes [begin, end) of `from`, normalised, to `to`, which keeps spans. STATUS_UNSUPPORTED
 * when a regular expression gives up; STATUS_TOO_LARGE when `to` has more than `bytes_max` bytes;
 * STATUS_OUT_OF_MEMORY. Any thread. */
status normalizer_apply(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                        pattern_memory *memory, size_t bytes_max, aligned_text *to) MUST_CHECK;

/* What the steps make of an ASCII character where that depends on nothing else: a character, or
 * NORMALIZER_SLOW. */
#define NORMALIZER_SLOW 0x80
void normalizer_ascii_table(const normalizer *steps, size_t count, uint8_t table[128]);

/* The parts; each appends [begin, end) of `from`, rewritten, to `to`, which is
 * broken where there is no memory. */
void normalize_bert(const normalizer *n, const aligned_text *from, size_t begin, size_t end,
                    aligned_text *to);
/* The normalisation forms, of Unicode 9 as the library has them. */
void normalize_decompose(const aligned_text *from, size_t begin, size_t end, bool is_compatible,
                         aligned_text *to);
void normalize_compose(const aligned_text *from, size_t begin, size_t end, bool is_compatible,
                       aligned_text *to);

#endif
