/* The model of a tokenizer: vocabulary, merges, settings. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/load/fields.h"
#include "text/load/load.h"
#include "text/load/score.h"

#define UNKNOWN_PENALTY 10.0 /* SentencePiece's kUnkPenalty */

/* {"token": id, ...} */
static status read_vocabulary(const json_t *c, model *m)
{
    const json_t *vocab = NULL, *value;
    const char *token;
    size_t bytes;
    status s = field_required(c, "vocab", JSON_OBJECT, &vocab);
    if (s)
        return s;
    json_object_keylen_foreach((json_t *)vocab, token, bytes, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > UINT32_MAX)
            return status_fail(STATUS_CORRUPT, "\"vocab\": \"%.64s\": expected a token id", token);
        s = vocabulary_add(&m->vocabulary, token, bytes, (uint32_t)json_integer_value(value));
        if (s)
            return status_prefix(s, "\"vocab\"");
    }
    return STATUS_OK;
}

/* [["token", score], ...]; the place is the id. */
static status read_scored_vocabulary(const json_t *c, model *m)
{
    const json_t *vocab = NULL;
    double lowest = INFINITY;
    status s = field_required(c, "vocab", JSON_ARRAY, &vocab);
    if (s)
        return s;
    size_t count = json_array_size(vocab);
    m->scores = calloc(count + 1, sizeof *m->scores);
    if (m->scores == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu scores", count);
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(vocab, i);
        const json_t *token = json_array_get(entry, 0), *score = json_array_get(entry, 1);
        if (!json_is_string(token) || !json_is_number(score))
            return status_fail(STATUS_CORRUPT, "\"vocab\"[%zu]: expected a token and its score", i);
        s = vocabulary_add(&m->vocabulary, json_string_value(token), json_string_length(token),
                           (uint32_t)i);
        if (s)
            return status_prefix(s, "\"vocab\"[%zu]", i);
        double exact = json_number_value(score);
        m->scores[i] = m->has_exact_scores ? exact : score_as_read(exact);
        lowest = m->scores[i] < lowest ? m->scores[i] : lowest;
    }
    m->unknown_score = lowest - UNKNOWN_PENALTY;
    return STATUS_OK;
}

/* <0x00> to <0xFF>. */
static void find_byte_tokens(model *m)
{
    char name[8];
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(name, sizeof name, "<0x%02X>", byte);
        m->byte_ids[byte] = vocabulary_find(&m->vocabulary, name, 6);
    }
}

static status read_unknown(const json_t *c, model *m)
{
    const json_t *value = json_object_get(c, "unk_token");
    m->unknown = TRIE_NONE;
    if (!field_is_there(value))
        return STATUS_OK;
    if (!json_is_string(value))
        return status_fail(STATUS_CORRUPT, "\"unk_token\": expected a string");
    m->has_unknown = true;
    m->unknown =
        vocabulary_find(&m->vocabulary, json_string_value(value), json_string_length(value));
    return STATUS_OK;
}

static status read_wordpiece(const json_t *c, model *m)
{
    m->word_characters_max = 100;
    status s = read_vocabulary(c, m);
    if (!s)
        s = field_text(c, "continuing_subword_prefix", &m->prefix, &m->prefix_bytes);
    if (!s && m->prefix == NULL) {
        m->prefix_bytes = 2;
        s = field_copy("##", 2, &m->prefix);
    }
    if (!s)
        s = field_size(c, "max_input_chars_per_word", &m->word_characters_max);
    if (!s)
        s = vocabulary_finish(&m->vocabulary, false);
    if (s)
        return s;
    m->continuing = trie_walk(m->vocabulary.trie, TRIE_ROOT, m->prefix, m->prefix_bytes);
    return read_unknown(c, m);
}

/* "a b" or ["a", "b"]. */
static status read_pair(const json_t *merge, const char *texts[2], size_t bytes[2])
{
    if (json_is_array(merge) && json_array_size(merge) == 2) {
        for (size_t i = 0; i < 2; i++) {
            texts[i] = json_string_value(json_array_get(merge, i));
            bytes[i] = json_string_length(json_array_get(merge, i));
        }
        if (texts[0] != NULL && texts[1] != NULL)
            return STATUS_OK;
    }
    const char *text = json_string_value(merge);
    const char *space = text ? strchr(text, ' ') : NULL;
    size_t length = json_string_length(merge);
    if (space == NULL || memchr(space + 1, ' ', length - (size_t)(space + 1 - text)) != NULL)
        return status_fail(STATUS_CORRUPT, "expected two tokens");
    texts[0] = text;
    bytes[0] = (size_t)(space - text);
    texts[1] = space + 1;
    bytes[1] = length - bytes[0] - 1;
    return STATUS_OK;
}

/* A merge's parts as the trie has them. False: a byte-level word never has such characters. */
static bool spell_pair(const model *m, const char *texts[2], size_t bytes[2], uint8_t *room)
{
    for (int i = 0; i < 2 && m->is_byte_level; i++) {
        uint8_t *to = room + (i ? bytes[0] : 0);
        if (!vocabulary_spell_bytes((const uint8_t *)texts[i], bytes[i], to, &bytes[i]))
            return false;
        texts[i] = (const char *)to;
    }
    return true;
}

static status add_merge(model *m, const json_t *merge, uint32_t rank, uint8_t *room)
{
    const trie *t = m->vocabulary.trie;
    const char *texts[2];
    size_t bytes[2];
    status s = read_pair(merge, texts, bytes);
    if (s)
        return s;
    if (bytes[0] + bytes[1] > 2 * VOCABULARY_TOKEN_BYTES_MAX || bytes[1] < m->prefix_bytes)
        return status_fail(STATUS_CORRUPT, "tokens of %zu and %zu bytes", bytes[0], bytes[1]);
    if (!spell_pair(m, texts, bytes, room))
        return STATUS_OK;
    uint32_t left = trie_find(t, texts[0], bytes[0]), right = trie_find(t, texts[1], bytes[1]);
    uint32_t node = trie_walk(t, TRIE_ROOT, texts[0], bytes[0]);
    if (node != TRIE_ROOT || bytes[0] == 0)
        node = trie_walk(t, node, texts[1] + m->prefix_bytes, bytes[1] - m->prefix_bytes);
    uint32_t joined = node == TRIE_ROOT ? TRIE_NONE : trie_value(t, node);
    if (left == TRIE_NONE || right == TRIE_NONE || joined == TRIE_NONE)
        return status_fail(STATUS_CORRUPT,
                           "\"%.*s\" and \"%.*s\", or both together, are not in "
                           "\"vocab\"",
                           (int)bytes[0], texts[0], (int)bytes[1], texts[1]);
    bpe_add_merge(m, left, right, rank, joined);
    return STATUS_OK;
}

static status read_merges(const json_t *c, model *m)
{
    const json_t *merges = NULL;
    status s = field_required(c, "merges", JSON_ARRAY, &merges);
    if (s)
        return s;
    size_t count = json_array_size(merges);
    if (count > VOCABULARY_IDS_MAX)
        return status_fail(STATUS_TOO_LARGE, "\"merges\": %zu; at most %u are supported", count,
                           VOCABULARY_IDS_MAX);
    s = bpe_create_merges(m, count);
    uint8_t *room = malloc(2 * VOCABULARY_TOKEN_BYTES_MAX + 2);
    if (!s && room == NULL)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for merges");
    for (size_t i = 0; i < count && !s; i++) {
        s = add_merge(m, json_array_get(merges, i), (uint32_t)i, room);
        if (s)
            s = status_prefix(s, "\"merges\"[%zu]", i);
    }
    free(room);
    return s;
}

static status check_dropout(const json_t *c)
{
    const json_t *dropout = json_object_get(c, "dropout");
    if (field_is_there(dropout) && json_number_value(dropout) != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "\"dropout\" is not supported: the same text would get other tokens "
                           "each time");
    return STATUS_OK;
}

static bool is_spellable(const char *text, size_t bytes)
{
    uint8_t room[VOCABULARY_TOKEN_BYTES_MAX];
    return bytes <= sizeof room &&
           (bytes == 0 || vocabulary_spell_bytes((const uint8_t *)text, bytes, room, &bytes));
}

/* Prefix and suffix as the trie has them. */
static void spell_affixes(model *m)
{
    char *texts[] = {m->prefix, m->suffix};
    size_t *bytes[] = {&m->prefix_bytes, &m->suffix_bytes};
    for (int i = 0; i < 2; i++) {
        if (*bytes[i] > 0 &&
            !vocabulary_spell_bytes((uint8_t *)texts[i], *bytes[i], (uint8_t *)texts[i], bytes[i]))
            assert(!"is_spellable() says otherwise");
    }
}

static status read_bpe(const json_t *c, model *m, splitter *last)
{
    status s = check_dropout(c);
    if (!s)
        s = read_vocabulary(c, m);
    if (!s)
        s = field_text(c, "continuing_subword_prefix", &m->prefix, &m->prefix_bytes);
    if (!s)
        s = field_text(c, "end_of_word_suffix", &m->suffix, &m->suffix_bytes);
    if (!s)
        s = field_bool(c, "fuse_unk", &m->fuses_unknown);
    if (!s)
        s = field_bool(c, "byte_fallback", &m->falls_back_to_bytes);
    if (!s)
        s = field_bool(c, "ignore_merges", &m->ignores_merges);
    if (s)
        return s;
    /* Words that end as bytes need not be spelled with characters: the vocabulary is spelled with
     * bytes instead, once. */
    m->is_byte_level = last != NULL && last->kind == SPLITTER_BYTE_LEVEL &&
                       !m->falls_back_to_bytes && is_spellable(m->prefix, m->prefix_bytes) &&
                       is_spellable(m->suffix, m->suffix_bytes);
    if (m->is_byte_level) {
        last->keeps_bytes = true;
        spell_affixes(m);
    }
    s = vocabulary_finish(&m->vocabulary, m->is_byte_level);
    if (s)
        return s;
    find_byte_tokens(m);
    s = read_unknown(c, m);
    return s ? s : read_merges(c, m);
}

static status read_unigram(const json_t *c, model *m)
{
    size_t unknown = TRIE_NONE;
    status s = read_scored_vocabulary(c, m);
    if (!s)
        s = field_size(c, "unk_id", &unknown);
    if (!s)
        s = field_bool(c, "byte_fallback", &m->falls_back_to_bytes);
    if (s)
        return s;
    if (unknown != TRIE_NONE && unknown >= m->vocabulary.id_count)
        return status_fail(STATUS_CORRUPT, "\"unk_id\" is %zu, and \"vocab\" has %u tokens",
                           unknown, m->vocabulary.id_count);
    m->unknown = (uint32_t)unknown;
    s = vocabulary_finish(&m->vocabulary, false);
    if (!s)
        find_byte_tokens(m);
    return s;
}

static status read_wordlevel(const json_t *c, model *m)
{
    status s = read_vocabulary(c, m);
    if (!s)
        s = vocabulary_finish(&m->vocabulary, false);
    return s ? s : read_unknown(c, m);
}

/* Old files have no "type". */
static const char *guess_type(const json_t *c)
{
    if (json_object_get(c, "merges") != NULL)
        return "BPE";
    if (json_is_array(json_object_get(c, "vocab")))
        return "Unigram";
    return json_object_get(c, "max_input_chars_per_word") != NULL ? "WordPiece" : "WordLevel";
}

static status read_model(const json_t *c, struct tokenizer *t)
{
    const json_t *named = json_object_get(c, "type");
    const char *type = named ? json_string_value(named) : guess_type(c);
    splitter *last = t->splitter_count > 0 ? t->splitters + t->splitter_count - 1 : NULL;
    model *m = &t->model;
    if (type == NULL)
        return status_fail(STATUS_CORRUPT, "\"type\": expected a string");
    if (strcmp(type, "WordPiece") == 0) {
        m->kind = MODEL_WORDPIECE;
        return read_wordpiece(c, m);
    }
    if (strcmp(type, "BPE") == 0) {
        m->kind = MODEL_BPE;
        return read_bpe(c, m, last);
    }
    if (strcmp(type, "Unigram") == 0) {
        m->kind = MODEL_UNIGRAM;
        return read_unigram(c, m);
    }
    if (strcmp(type, "WordLevel") == 0) {
        m->kind = MODEL_WORDLEVEL;
        return read_wordlevel(c, m);
    }
    return field_unknown_type("model", type, "WordPiece, BPE, Unigram, WordLevel");
}

status text_load_model(const json_t *file, struct tokenizer *t)
{
    const json_t *c = NULL;
    status s = field_required(file, "model", JSON_OBJECT, &c);
    if (s)
        return s;
    s = read_model(c, t);
    return s ? status_prefix(s, "\"model\"") : STATUS_OK;
}
