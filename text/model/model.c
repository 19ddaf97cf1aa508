#include "text/model/model.h"

#include <assert.h>
#include <stdlib.h>

#include "text/aligned/grow.h"
#include "text/unicode/utf8.h"

void model_dispose(model *m)
{
    vocabulary_dispose(&m->vocabulary);
    free(m->prefix);
    free(m->suffix);
    free(m->merges);
    free(m->scores);
    *m = (model){0};
}

void model_memory_dispose(model_memory *m)
{
    free(m->tokens);
    free(m->work);
    free(m->cache);
    *m = (model_memory){0};
}

void *model_memory_work(model_memory *m, size_t bytes)
{
    if (m->work_bytes < bytes) {
        size_t larger = grow_capacity(m->work_bytes, bytes);
        free(m->work);
        m->work = malloc(larger);
        m->work_bytes = m->work != NULL ? larger : 0;
    }
    return m->work;
}

bool model_memory_reserve(model_memory *m, size_t tokens)
{
    if (m->token_capacity - m->token_count >= tokens)
        return true;
    size_t capacity = grow_capacity(m->token_capacity, m->token_count + tokens);
    if (!grow(&m->tokens, capacity, sizeof *m->tokens)) {
        m->is_broken = true;
        return false;
    }
    m->token_capacity = capacity;
    return true;
}

static status unknown_word(const uint8_t *data, size_t bytes)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "\"%.*s\" is not in the vocabulary, and the tokenizer has no unknown token",
                       (int)(bytes < 64 ? bytes : 64), (const char *)data);
}

static status add_unknown(const model *m, const uint8_t *data, size_t bytes, model_memory *memory)
{
    if (m->unknown == TRIE_NONE)
        return unknown_word(data, bytes);
    model_memory_add(memory, m->unknown, 0, bytes);
    return STATUS_OK;
}

static status tokenize_whole(const model *m, const uint8_t *data, size_t bytes,
                             model_memory *memory)
{
    uint32_t id = trie_find(m->vocabulary.trie, data, bytes);
    if (id == TRIE_NONE)
        return add_unknown(m, data, bytes, memory);
    model_memory_add(memory, id, 0, bytes);
    return STATUS_OK;
}

/* Greedy: the longest token from each place; a word with a place where none fits is unknown. */
status model_wordpiece(const model *m, const uint8_t *data, size_t bytes, model_memory *memory)
{
    const trie *t = m->vocabulary.trie;
    size_t first = memory->token_count;
    if (bytes > m->word_characters_max && utf8_count(data, bytes) > m->word_characters_max)
        return add_unknown(m, data, bytes, memory);
    for (size_t begin = 0; begin < bytes;) {
        uint32_t node = begin == 0 ? TRIE_ROOT : m->continuing, found = TRIE_NONE;
        size_t end = begin;
        if (begin > 0 && m->prefix_bytes > 0 && node == TRIE_ROOT)
            break;
        for (size_t at = begin; at < bytes; at++) {
            node = trie_step(t, node, data[at]);
            if (node == TRIE_ROOT)
                break;
            uint32_t value = trie_value(t, node);
            if (value != TRIE_NONE) {
                found = value;
                end = at + 1;
            }
        }
        if (found == TRIE_NONE)
            break;
        model_memory_add(memory, found, begin, end);
        begin = end;
    }
    if (memory->token_count > first && memory->tokens[memory->token_count - 1].end == bytes)
        return STATUS_OK;
    memory->token_count = first;
    return add_unknown(m, data, bytes, memory);
}

static status run_kind(const model *m, const uint8_t *data, size_t bytes, model_memory *memory)
{
    switch (m->kind) {
    case MODEL_WORDPIECE:
        return model_wordpiece(m, data, bytes, memory);
    case MODEL_BPE:
        return model_bpe(m, data, bytes, memory);
    case MODEL_UNIGRAM:
        return model_unigram(m, data, bytes, memory);
    default:
        return tokenize_whole(m, data, bytes, memory);
    }
}

/* Where tokens were dropped, what the model says of the word counts for nothing. */
static status run(const model *m, const uint8_t *data, size_t bytes, model_memory *memory)
{
    memory->is_broken = false;
    status s = run_kind(m, data, bytes, memory);
    return memory->is_broken ? grow_fail() : s;
}

/* The tokens of a word that is in its place of the cache. */
static status recall(const cached_word *place, model_memory *memory)
{
    uint32_t begin = 0;
    if (!model_memory_reserve(memory, WORD_TOKENS_MAX))
        return grow_fail();
    for (size_t i = 0; i < place->token_count; i++) {
        memory->tokens[i] = (model_token){place->ids[i], begin, place->ends[i]};
        begin = place->ends[i];
    }
    memory->token_count = place->token_count;
    return STATUS_OK;
}

/* A token's begin is the end of the one before; byte tokens of Unigram share one span. */
static bool can_keep(const model_memory *memory, size_t bytes)
{
    if (memory->token_count > WORD_TOKENS_MAX || memory->token_count == 0)
        return false;
    uint32_t end = 0;
    for (size_t i = 0; i < memory->token_count; i++) {
        if (memory->tokens[i].begin != end)
            return false;
        end = memory->tokens[i].end;
    }
    return end == bytes;
}

static void keep(cached_word *place, uint64_t key, const uint8_t *data, size_t bytes,
                 const model_memory *memory)
{
    place->key = key;
    place->bytes = (uint8_t)bytes;
    memcpy(place->word, data, bytes);
    place->token_count = (uint8_t)memory->token_count;
    for (size_t i = 0; i < memory->token_count; i++) {
        place->ids[i] = memory->tokens[i].id;
        place->ends[i] = (uint8_t)memory->tokens[i].end;
    }
}

status model_tokenize(const model *m, uint64_t serial, const uint8_t *data, size_t bytes,
                      model_memory *memory)
{
    assert(bytes > 0);
    memory->token_count = 0;
    if (bytes > WORD_BYTES_MAX)
        return run(m, data, bytes, memory);
    if (memory->cache == NULL)
        memory->cache = calloc(1, sizeof *memory->cache);
    if (memory->cache == NULL)
        return grow_fail();
    uint64_t key = word_cache_key(serial, data, bytes);
    cached_word *place = word_cache_place(memory->cache, key);
    if (word_cache_has(place, key, data, bytes))
        return recall(place, memory);
    status s = run(m, data, bytes, memory);
    if (!s && can_keep(memory, bytes))
        keep(place, key, data, bytes, memory);
    return s;
}
