#ifndef TEXT_LOAD_BASE64_H
#define TEXT_LOAD_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* RFC 4648, section 4, with padding. The caller frees *out. STATUS_CORRUPT: another character, or a
 * wrong length. */
status text_base64_decode(const char *text, size_t text_bytes, uint8_t **out,
                          size_t *bytes) MUST_CHECK;
/* The other way, with a zero byte behind it. The caller frees *out. STATUS_OUT_OF_MEMORY. */
status text_base64_encode(const uint8_t *data, size_t bytes, char **out) MUST_CHECK;

#endif
