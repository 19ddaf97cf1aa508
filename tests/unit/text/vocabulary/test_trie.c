#include "text/vocabulary/trie.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/xorshift.h"

#define KEYS 3000
#define KEY_BYTES_MAX 6

/* Few different bytes, zero among them: many keys share their beginnings. */
static size_t make_key(uint64_t *state, uint8_t key[KEY_BYTES_MAX])
{
    size_t bytes = xorshift_next(state) % (KEY_BYTES_MAX + 1);
    for (size_t i = 0; i < bytes; i++)
        key[i] = (uint8_t)(xorshift_next(state) % 7 * 40);
    return bytes;
}

static uint32_t find_slowly(const trie_key *keys, const uint8_t *key, size_t bytes)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (keys[i].data != NULL && keys[i].bytes == bytes && memcmp(keys[i].data, key, bytes) == 0)
            return keys[i].value;
    }
    return TRIE_NONE;
}

Test(trie, finds_what_it_has_and_nothing_else)
{
    static uint8_t texts[KEYS][KEY_BYTES_MAX];
    static trie_key keys[KEYS];
    uint64_t state = 5;
    trie *t = NULL;
    for (size_t i = 0; i < KEYS; i++) {
        size_t bytes = make_key(&state, texts[i]);
        uint32_t known = i ? find_slowly(keys, texts[i], bytes) : TRIE_NONE;
        keys[i] = (trie_key){texts[i], bytes, known == TRIE_NONE ? (uint32_t)i + 1 : known};
    }
    cr_assert_eq(trie_create(keys, KEYS, &t), STATUS_OK);
    for (int round = 0; round < 20000; round++) {
        uint8_t key[KEY_BYTES_MAX];
        size_t bytes = make_key(&state, key);
        cr_assert_eq(trie_find(t, key, bytes), find_slowly(keys, key, bytes));
    }

    for (size_t i = 0; i < KEYS; i++)
        cr_assert_eq(trie_find(t, keys[i].data, keys[i].bytes), keys[i].value);
    trie_destroy(t);
}

Test(trie, may_be_empty)
{
    trie *t = NULL;
    cr_assert_eq(trie_create(NULL, 0, &t), STATUS_OK);
    cr_assert_eq(trie_find(t, "a", 1), TRIE_NONE);
    cr_assert_eq(trie_find(t, "", 0), TRIE_NONE);
    trie_destroy(t);
}
