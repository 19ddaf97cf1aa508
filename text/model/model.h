#ifndef TEXT_MODEL_MODEL_H
#define TEXT_MODEL_MODEL_H

#include "text/model/word_cache.h"
#include "text/vocabulary/vocabulary.h"

/* Models: a piece of text becomes tokens. Constant after loading; any thread, each with its own
 * memory. */

typedef enum model_kind { MODEL_WORDPIECE, MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDLEVEL } model_kind;

/* A pair of tokens that BPE joins. */
typedef struct bpe_merge {
    uint64_t pair; /* left << 32 | right; BPE_NO_PAIR: an empty place */
    uint32_t rank, joined;
} bpe_merge;
#define BPE_NO_PAIR UINT64_MAX

typedef struct model {
    model_kind kind;
    vocabulary vocabulary;
    uint32_t unknown;   /* id of the unknown token, or TRIE_NONE */
    bool has_unknown;   /* the file names one, though its vocabulary may not have it */
    bool is_byte_level; /* pieces are bytes, not characters */
    /* WordPiece, BPE: */
    char *prefix, *suffix; /* continuing_subword_prefix, end_of_word_suffix; owned, or NULL */
    size_t prefix_bytes, suffix_bytes;
    size_t word_characters_max; /* WordPiece */
    uint32_t
        continuing; /* WordPiece: the trie's node behind the prefix; TRIE_ROOT: no token has it */
    /* BPE: */
    bpe_merge *merges; /* hash table of merge_mask + 1 places; owned */
    uint32_t merge_mask;
    bool ignores_merges, fuses_unknown;
    /* BPE, Unigram: */
    bool falls_back_to_bytes;
    uint32_t byte_ids[256]; /* of <0x00> to <0xFF>, or TRIE_NONE */
    /* Unigram: */
    bool has_exact_scores; /* false: as the library reads them from text (load/score.h) */
    double *scores;        /* by id; owned */
    double unknown_score;
} model;

void model_dispose(model *m);

/* A token, and its bytes in the piece. */
typedef struct model_token {
    uint32_t id, begin, end;
} model_token;

/* What a thread needs to run models, reused from call to call. A zeroed one is empty. */
typedef struct model_memory {
    model_token *tokens; /* of the last piece */
    size_t token_count, token_capacity;
    void *work; /* the model's own */
    size_t work_bytes;
    word_cache *cache; /* created at the first use */
    bool is_broken;    /* there was no memory for tokens of the last piece: some were dropped */
} model_memory;

void model_memory_dispose(model_memory *m);
/* At least `bytes` bytes, uninitialised; what was there is lost. NULL: there is no memory. */
void *model_memory_work(model_memory *m, size_t bytes);
/* False: there is no memory, and it is broken. */
bool model_memory_reserve(model_memory *m, size_t tokens);

static inline void model_memory_add(model_memory *m, uint32_t id, size_t begin, size_t end)
{
    if (m->token_count == m->token_capacity && !model_memory_reserve(m, 1))
        return;
    m->tokens[m->token_count++] = (model_token){id, (uint32_t)begin, (uint32_t)end};
}

/* Makes memory->tokens those of a piece of at least one byte. `serial` is the tokenizer's, for the
 * cache. STATUS_INVALID_ARGUMENT: an unknown word, and the model has no token for it;
 * STATUS_OUT_OF_MEMORY. */
status model_tokenize(const model *m, uint64_t serial, const uint8_t *data, size_t bytes,
                      model_memory *memory) MUST_CHECK;

/* The models; each appends to memory->tokens. */
status model_wordpiece(const model *m, const uint8_t *data, size_t bytes,
                       model_memory *memory) MUST_CHECK;
status model_bpe(const model *m, const uint8_t *data, size_t bytes,
                 model_memory *memory) MUST_CHECK;
status model_unigram(const model *m, const uint8_t *data, size_t bytes,
                     model_memory *memory) MUST_CHECK;

/* Makes room for `count` merges. */
status bpe_create_merges(model *m, size_t count) MUST_CHECK;
/* Adds one; of equal pairs the last counts. */
void bpe_add_merge(model *m, uint32_t left, uint32_t right, uint32_t rank, uint32_t joined);

#endif
