#ifndef SERVER_PROTOCOL_TEXT_BASE64_H
#define SERVER_PROTOCOL_TEXT_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 4648, standard alphabet (the URL-safe one is read too), with or without padding. `out` has
 * room for bytes / 4 * 3 + 3. False: a character outside the alphabet, or a cut group. */
bool base64_decode(const char *text, size_t bytes, uint8_t *out, size_t *out_bytes);

/* Writes (bytes + 2) / 3 * 4 characters; returns the first free one. */
char *base64_encode(char *out, const uint8_t *data, size_t bytes);

#endif
