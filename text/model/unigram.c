/* Unigram (Kudo 2018): of all ways to cut a piece into tokens, the one whose scores have the
 * largest sum, by Viterbi's algorithm over places in bytes. Ties go to the way found first, as in
 * SentencePiece's EncodeOptimized. */
#include <assert.h>
#include <math.h>

#include "text/aligned/grow.h"
#include "text/model/model.h"
#include "text/unicode/utf8.h"

#define NOWHERE UINT32_MAX

/* The best way to a place. */
typedef struct place {
    double score;
    uint32_t begin; /* of the last token of that way, or NOWHERE */
    uint32_t id;
} place;

static void offer(place *to, double score, size_t begin, uint32_t id)
{
    if (to->begin == NOWHERE || score > to->score)
        *to = (place){score, (uint32_t)begin, id};
}

static status find_best(const model *m, const uint8_t *data, size_t bytes, place *places)
{
    const trie *t = m->vocabulary.trie;
    for (size_t i = 0; i <= bytes; i++)
        places[i] = (place){0, NOWHERE, 0};
    for (size_t begin = 0; begin < bytes;) {
        size_t length = utf8_length(data[begin]);
        double score = places[begin].score;
        uint32_t node = TRIE_ROOT;
        bool has_character = false;
        for (size_t at = begin; at < bytes; at++) {
            node = trie_step(t, node, data[at]);
            if (node == TRIE_ROOT)
                break;
            uint32_t id = trie_value(t, node);
            if (id == TRIE_NONE)
                continue;
            offer(places + at + 1, m->scores[id] + score, begin, id);
            has_character |= at + 1 - begin == length;
        }
        if (!has_character) {
            if (m->unknown == TRIE_NONE)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "a character is not in the vocabulary, and the tokenizer has "
                                   "no unknown token");
            offer(places + begin + length, m->unknown_score + score, begin, m->unknown);
        }
        begin += length;
    }
    return STATUS_OK;
}

/* What is not in the vocabulary: bytes, if there are tokens for all of them. */
static void add_unknown(const model *m, const uint8_t *data, size_t begin, size_t end,
                        model_memory *memory)
{
    uint32_t id = trie_find(m->vocabulary.trie, data + begin, end - begin);
    bool has_bytes = id == TRIE_NONE && m->falls_back_to_bytes;
    for (size_t i = begin; i < end && has_bytes; i++)
        has_bytes = m->byte_ids[data[i]] != TRIE_NONE;
    if (!has_bytes) {
        model_memory_add(memory, id == TRIE_NONE ? m->unknown : id, begin, end);
        return;
    }
    for (size_t i = begin; i < end; i++)
        model_memory_add(memory, m->byte_ids[data[i]], begin, end);
}

status model_unigram(const model *m, const uint8_t *data, size_t bytes, model_memory *memory)
{
    place *places = model_memory_work(memory, (bytes + 1) * sizeof *places);
    if (places == NULL)
        return grow_fail();
    status s = find_best(m, data, bytes, places);
    if (s)
        return s;
    /* The way is read backwards; each place learns where its token ends. */
    size_t end = bytes;
    uint32_t next = NOWHERE;
    while (end > 0) {
        uint32_t begin = places[end].begin;
        assert(begin < end);
        uint32_t id = places[end].id;
        /* places[begin] keeps its own begin; the forward link goes where the score was. */
        places[end].score = (double)next;
        places[end].id = id;
        next = (uint32_t)end;
        end = begin;
    }
    for (size_t at = next; at != NOWHERE;) {
        size_t begin = places[at].begin, stop = at;
        uint32_t id = places[at].id;
        at = (size_t)places[at].score;
        if (id != m->unknown) {
            model_memory_add(memory, id, begin, stop);
            continue;
        }
        for (; at != NOWHERE && places[at].id == m->unknown; at = (size_t)places[at].score)
            stop = at;
        add_unknown(m, data, begin, stop, memory);
    }
    return STATUS_OK;
}
