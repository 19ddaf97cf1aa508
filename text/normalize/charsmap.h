#ifndef TEXT_NORMALIZE_CHARSMAP_H
#define TEXT_NORMALIZE_CHARSMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* SentencePiece's precompiled_charsmap (src/normalizer.cc): a double array of Darts-clone, then the
 * replacements, each with a zero byte at its end. Constant after charsmap_create(). */
typedef struct charsmap charsmap;

/* Copies `data`. STATUS_CORRUPT: sizes do not match, or the replacements are not UTF-8. */
status charsmap_create(const uint8_t *data, size_t bytes, charsmap **out) MUST_CHECK;
void charsmap_destroy(charsmap *m);

/* The replacement of the shortest prefix of `key` that has one. NULL: none. Borrowed from `m`. */
const uint8_t *charsmap_find(const charsmap *m, const uint8_t *key, size_t bytes,
                             size_t *replacement_bytes);
/* The same of the longest prefix, which has *found_bytes. */
const uint8_t *charsmap_find_longest(const charsmap *m, const uint8_t *key, size_t bytes,
                                     size_t *found_bytes, size_t *replacement_bytes);

#endif
