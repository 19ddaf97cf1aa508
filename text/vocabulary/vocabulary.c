#include "text/vocabulary/vocabulary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "text/unicode/byte_alphabet.h"
#include "text/unicode/utf8.h"

void vocabulary_dispose(vocabulary *v)
{
    trie_destroy(v->trie);
    free(v->text);
    free(v->entries);
    free(v->by_id);
    *v = (vocabulary){0};
}

static status out_of_memory(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a vocabulary");
}

status vocabulary_add(vocabulary *v, const void *text, size_t bytes, uint32_t id)
{
    if (bytes > VOCABULARY_TOKEN_BYTES_MAX || v->text_bytes + bytes > UINT32_MAX)
        return status_fail(STATUS_TOO_LARGE, "a token of %zu bytes; at most %d are supported",
                           bytes, VOCABULARY_TOKEN_BYTES_MAX);
    if (id >= VOCABULARY_IDS_MAX)
        return status_fail(STATUS_TOO_LARGE, "token id %u; ids below %u are supported", id,
                           VOCABULARY_IDS_MAX);
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? 2 * v->capacity : 1024;
        vocabulary_entry *entries = realloc(v->entries, capacity * sizeof *entries);
        if (entries == NULL)
            return out_of_memory();
        v->entries = entries;
        v->capacity = capacity;
    }
    if (v->text_bytes + bytes > v->text_capacity) {
        size_t capacity = 2 * (v->text_bytes + bytes) + 4096;
        uint8_t *moved = realloc(v->text, capacity);
        if (moved == NULL)
            return out_of_memory();
        v->text = moved;
        v->text_capacity = capacity;
    }
    if (bytes > 0)
        memcpy(v->text + v->text_bytes, text, bytes);
    v->entries[v->count++] = (vocabulary_entry){(uint32_t)v->text_bytes, (uint32_t)bytes, id};
    v->text_bytes += bytes;
    if (id >= v->id_count)
        v->id_count = id + 1;
    return STATUS_OK;
}

bool vocabulary_spell_bytes(const uint8_t *text, size_t bytes, uint8_t *out, size_t *out_bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i += utf8_length(text[i])) {
        int byte = byte_alphabet_byte(utf8_decode(text + i));
        if (byte < 0)
            return false;
        out[count++] = (uint8_t)byte;
    }
    *out_bytes = count;
    return true;
}

static status build_ids(vocabulary *v)
{
    v->by_id = malloc((v->id_count ? v->id_count : 1) * sizeof *v->by_id);
    if (v->by_id == NULL)
        return out_of_memory();
    for (uint32_t id = 0; id < v->id_count; id++)
        v->by_id[id] = TRIE_NONE;
    for (size_t i = 0; i < v->count; i++)
        v->by_id[v->entries[i].id] = (uint32_t)i;
    return STATUS_OK;
}

status vocabulary_finish(vocabulary *v, bool is_byte_level)
{
    assert(v->trie == NULL);
    v->is_byte_level = is_byte_level;
    status s = build_ids(v);
    if (s)
        return s;
    trie_key *keys = malloc((v->count ? v->count : 1) * sizeof *keys);
    uint8_t *spelled = malloc(is_byte_level && v->text_bytes ? v->text_bytes : 1);
    size_t count = 0, used = 0;
    if (keys == NULL || spelled == NULL) {
        s = out_of_memory();
        goto end;
    }
    for (size_t i = 0; i < v->count; i++) {
        const vocabulary_entry *e = v->entries + i;
        trie_key key = {v->text + e->begin, e->bytes, e->id};
        if (is_byte_level) {
            if (!vocabulary_spell_bytes(key.data, e->bytes, spelled + used, &key.bytes))
                continue;
            key.data = spelled + used;
            used += key.bytes;
        }
        keys[count++] = key;
    }
    s = trie_create(keys, count, &v->trie);
end:
    free(keys);
    free(spelled);
    return s;
}

const uint8_t *vocabulary_token(const vocabulary *v, uint32_t id, size_t *bytes)
{
    if (id >= v->id_count || v->by_id[id] == TRIE_NONE)
        return NULL;
    const vocabulary_entry *e = v->entries + v->by_id[id];
    *bytes = e->bytes;
    return v->text + e->begin;
}

uint32_t vocabulary_find(const vocabulary *v, const void *text, size_t bytes)
{
    uint8_t spelled[256];
    size_t spelled_bytes = 0;
    if (!v->is_byte_level)
        return trie_find(v->trie, text, bytes);
    if (bytes <= sizeof spelled && vocabulary_spell_bytes(text, bytes, spelled, &spelled_bytes))
        return trie_find(v->trie, spelled, spelled_bytes);
    for (size_t i = v->count; i-- > 0;) {
        const vocabulary_entry *e = v->entries + i;
        if (e->bytes == bytes && memcmp(v->text + e->begin, text, bytes) == 0)
            return e->id;
    }
    return TRIE_NONE;
}
