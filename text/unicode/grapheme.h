#ifndef TEXT_UNICODE_GRAPHEME_H
#define TEXT_UNICODE_GRAPHEME_H

#include <stddef.h>
#include <stdint.h>

/* The length in bytes of the extended grapheme cluster (Unicode Standard Annex 29) at the front of
 * valid text of at least one byte. Any thread. */
size_t grapheme_bytes(const uint8_t *data, size_t bytes);

#endif
