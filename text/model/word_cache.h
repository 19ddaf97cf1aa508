#ifndef TEXT_MODEL_WORD_CACHE_H
#define TEXT_MODEL_WORD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The tokens of words that a thread has seen: a table of one size, where a word replaces another
 * one of its place. It serves several tokenizers, told apart by serial numbers. One thread. */

#define WORD_CACHE_PLACES 8192
#define WORD_BYTES_MAX 32
#define WORD_TOKENS_MAX 8

typedef struct cached_word {
    uint64_t key; /* hash of the word and the serial; 0: empty */
    uint8_t word[WORD_BYTES_MAX];
    uint8_t bytes, token_count;
    uint8_t ends[WORD_TOKENS_MAX]; /* of each token, in the word */
    uint32_t ids[WORD_TOKENS_MAX];
} cached_word;

typedef struct word_cache {
    cached_word places[WORD_CACHE_PLACES];
} word_cache;

/* Of at most WORD_BYTES_MAX bytes; never 0. */
static inline uint64_t word_cache_key(uint64_t serial, const uint8_t *word, size_t bytes)
{
    uint64_t hash = serial * UINT64_C(0x9E3779B97F4A7C15) + bytes, part;
    size_t i = 0;
    for (; i + sizeof part <= bytes; i += sizeof part) {
        memcpy(&part, word + i, sizeof part);
        hash = (hash ^ part) * UINT64_C(0xFF51AFD7ED558CCD);
        hash ^= hash >> 32;
    }
    part = 0;
    for (; i < bytes; i++)
        part = part << 8 | word[i];
    hash = (hash ^ part) * UINT64_C(0xFF51AFD7ED558CCD);
    hash ^= hash >> 29;
    return hash | 1;
}

static inline cached_word *word_cache_place(word_cache *c, uint64_t key)
{
    return c->places + (key >> 1) % WORD_CACHE_PLACES;
}

static inline bool word_cache_has(const cached_word *place, uint64_t key, const uint8_t *word,
                                  size_t bytes)
{
    return place->key == key && place->bytes == bytes && memcmp(place->word, word, bytes) == 0;
}

#endif
