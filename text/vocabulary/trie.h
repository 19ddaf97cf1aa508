#ifndef TEXT_VOCABULARY_TRIE_H
#define TEXT_VOCABULARY_TRIE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A double array (Aoe 1989, with XOR instead of addition as in Darts-clone): strings of bytes to
 * numbers, in one allocation. Constant after trie_create(); any thread. */

#define TRIE_NONE UINT32_MAX
#define TRIE_ROOT 0
#define TRIE_UNITS_MAX (1u << 24)

typedef struct trie_unit {
    uint32_t base_label; /* base << 8 | label: child c is unit base ^ c, whose label is c */
    uint32_t value;      /* of the string that ends here, or TRIE_NONE */
} trie_unit;

typedef struct trie {
    size_t unit_count;
    trie_unit units[];
} trie;

typedef struct trie_key {
    const uint8_t *data; /* borrowed during trie_create() */
    size_t bytes;
    uint32_t value; /* not TRIE_NONE */
} trie_key;

/* Sorts `keys`. Of equal ones the last in their order before counts. STATUS_TOO_LARGE over
 * TRIE_UNITS_MAX units; STATUS_OUT_OF_MEMORY. */
status trie_create(trie_key *keys, size_t count, trie **out) MUST_CHECK;
void trie_destroy(trie *t);

/* The node behind `byte`; TRIE_ROOT: none. */
static inline uint32_t trie_step(const trie *t, uint32_t node, uint8_t byte)
{
    uint32_t child = t->units[node].base_label >> 8 ^ byte;
    return (t->units[child].base_label & 0xFF) == byte ? child : TRIE_ROOT;
}

static inline uint32_t trie_value(const trie *t, uint32_t node)
{
    return t->units[node].value;
}

/* The node behind several bytes from `node`; TRIE_ROOT: none, or no bytes from the root. */
uint32_t trie_walk(const trie *t, uint32_t node, const void *data, size_t bytes);
/* The value of a whole string, or TRIE_NONE. */
uint32_t trie_find(const trie *t, const void *data, size_t bytes);

#endif
