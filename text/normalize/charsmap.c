#include "text/normalize/charsmap.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text/unicode/utf8.h"

#define REPLACEMENT_BYTES_MAX                                                                      \
    256 /* no more than this for a character: the file may have others                             \
         */

struct charsmap {
    uint32_t unit_count;
    size_t text_bytes;
    const uint8_t *text; /* behind the units; a zero byte follows it */
    uint32_t units[];
};

static uint32_t unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

static uint32_t unit_label(uint32_t unit)
{
    return unit & ((1u << 31) | 0xFF);
}

status charsmap_create(const uint8_t *data, size_t bytes, charsmap **out)
{
    uint32_t trie_bytes;
    assert(data != NULL || bytes == 0);
    if (bytes < sizeof trie_bytes)
        return status_fail(STATUS_CORRUPT, "precompiled_charsmap has %zu bytes", bytes);
    memcpy(&trie_bytes, data, sizeof trie_bytes);
    size_t unit_count = trie_bytes / 4, units_bytes = unit_count * sizeof(uint32_t);
    if (unit_count == 0 || units_bytes > bytes - 4)
        return status_fail(STATUS_CORRUPT, "precompiled_charsmap: %u bytes of trie in %zu bytes",
                           trie_bytes, bytes);
    const uint8_t *text = data + 4 + units_bytes;
    size_t text_bytes = bytes - 4 - units_bytes;
    if (utf8_valid_bytes(text, text_bytes) != text_bytes)
        return status_fail(STATUS_CORRUPT, "precompiled_charsmap: replacements are not UTF-8");
    charsmap *m = malloc(sizeof *m + units_bytes + text_bytes + 1);
    if (m == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for precompiled_charsmap");
    memcpy(m->units, data + 4, units_bytes);
    uint8_t *copy = (uint8_t *)m->units + units_bytes;
    memcpy(copy, text, text_bytes);
    copy[text_bytes] = 0;
    m->text = copy;
    m->text_bytes = text_bytes;
    m->unit_count = (uint32_t)unit_count;
    *out = m;
    return STATUS_OK;
}

void charsmap_destroy(charsmap *m)
{
    free(m);
}

/* A replacement begins with a character: the file may say otherwise. NULL then. */
static const uint8_t *replacement_at(const charsmap *m, uint32_t unit, size_t *replacement_bytes)
{
    uint32_t value = m->units[unit] & ((1u << 31) - 1);
    if (value > m->text_bytes || !utf8_is_first(m->text[value]))
        return NULL;
    *replacement_bytes = strnlen((const char *)m->text + value, REPLACEMENT_BYTES_MAX + 1);
    return *replacement_bytes <= REPLACEMENT_BYTES_MAX ? m->text + value : NULL;
}

/* The shortest prefix, or the longest. */
static const uint8_t *find(const charsmap *m, const uint8_t *key, size_t bytes, bool is_longest,
                           size_t *found_bytes, size_t *replacement_bytes)
{
    const uint8_t *found = NULL;
    uint32_t at = unit_offset(m->units[0]);
    for (size_t i = 0; i < bytes && key[i] != 0; i++) {
        at ^= key[i];
        if (at >= m->unit_count)
            break;
        uint32_t unit = m->units[at];
        if (unit_label(unit) != key[i])
            break;
        at ^= unit_offset(unit);
        if (at >= m->unit_count)
            break;
        if (!(unit >> 8 & 1))
            continue;
        size_t length = 0;
        const uint8_t *here = replacement_at(m, at, &length);
        if (here != NULL) {
            found = here;
            *found_bytes = i + 1;
            *replacement_bytes = length;
        }
        if (!is_longest)
            break;
    }
    return found;
}

const uint8_t *charsmap_find(const charsmap *m, const uint8_t *key, size_t bytes,
                             size_t *replacement_bytes)
{
    size_t ignored;
    return find(m, key, bytes, false, &ignored, replacement_bytes);
}

const uint8_t *charsmap_find_longest(const charsmap *m, const uint8_t *key, size_t bytes,
                                     size_t *found_bytes, size_t *replacement_bytes)
{
    return find(m, key, bytes, true, found_bytes, replacement_bytes);
}
