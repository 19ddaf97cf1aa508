#ifndef TEXT_UNICODE_PROPERTIES_H
#define TEXT_UNICODE_PROPERTIES_H

#include <stdint.h>

#include "base/status.h"

/* Properties of characters, as the `tokenizers` library sees them: its tables are of several ages,
 * so what it sees differs from utf8proc. differences.inc has what differs;
 * tools/unicode_differences.py writes it. */

enum {
    UNICODE_SPACE = 1 << 0,       /* White_Space */
    UNICODE_OTHER = 1 << 1,       /* C*, without what is unassigned */
    UNICODE_PUNCTUATION = 1 << 2, /* P*, and all ASCII punctuation */
    UNICODE_NONSPACING = 1 << 3,  /* Mn */
    UNICODE_MARK = 1 << 4,        /* M* */
    UNICODE_NUMERIC = 1 << 5,     /* N* */
    UNICODE_WORD = 1 << 6,        /* \w of the regex crate */
    UNICODE_LETTER = 1 << 7,      /* \p{L} of Oniguruma */
    UNICODE_NUMBER = 1 << 8,      /* \p{N} of Oniguruma */
    UNICODE_LOWERS = 1 << 9,      /* lowercase is another character */
    UNICODE_DECOMPOSES = 1 << 10, /* canonically */
    UNICODE_DECOMPOSES_COMPATIBLY = 1 << 11,
    UNICODE_REORDERS = 1 << 12,  /* has a combining class */
    UNICODE_IDEOGRAPH = 1 << 13, /* BERT's "Chinese characters" */
    UNICODE_SECOND = 1 << 14,    /* composes with some character before it */
    UNICODE_EXCLUDED = 1 << 15   /* decomposes, and is never composed */
};

/* Pages of 256 characters; equal pages are shared. Constant after unicode_initialise(). */
#define UNICODE_PAGE 256
extern const uint16_t *unicode_pages[0x110000 / UNICODE_PAGE];

/* Builds the table, once; any thread, any number of times. Everything else in text/ needs it.
 * STATUS_OUT_OF_MEMORY: the next call tries again. */
status unicode_initialise(void) MUST_CHECK;

/* The properties of a code point up to U+10FFFF. */
static inline unsigned unicode_properties(uint32_t code)
{
    return unicode_pages[code / UNICODE_PAGE][code % UNICODE_PAGE];
}

/* The lowercase of a code point that has UNICODE_LOWERS, without U+0130, whose lowercase is two
 * characters: i and U+0307. */
uint32_t unicode_lowercase(uint32_t code);

#endif
