#ifndef MODELS_TEXT_MODEL_TEXT_H
#define MODELS_TEXT_MODEL_TEXT_H

#include "models/model.h"
#include "text/tokenizer.h"

/* What lets a model take text: the tokenizer in its folder, where its tokens go, and what
 * sentence-transformers and transformers keep beside it: prompts, limits, names of classes.
 * Constant once it is loaded; any thread may use it, each with a scratch of its own. */

typedef struct model_prompt {
    const char *name, *text; /* "query", "query: " */
    size_t bytes;            /* of `text` */
    int64_t tokens;          /* that pooling leaves out, from the start of a row */
} model_prompt;

#define MODEL_DIMENSIONS_MAX 32

struct model_text {
    tokenizer *tokenizer;
    const char *file; /* "tokenizer.json" */
    /* Inputs of the model; -1: it has none. */
    int ids, mask, types;
    int64_t tokens_max; /* of a row, special ones included */
    model_prompt *prompts;
    int prompt_count;
    const model_prompt *default_prompt; /* or NULL */
    /* Outputs by what they are; -1: there is none. */
    int sentence; /* [batch, width]: a vector for each row */
    int tokens;   /* [batch, sequence, width]: a vector for each token; without `sentence` their
                     mean, or the first one, is the row's */
    bool pools_first;
    bool excludes_prompt;         /* pooling leaves out tokens whose mask is 2 */
    int logits;                   /* [batch, labels] */
    int token_logits;             /* [batch, sequence, labels] */
    int start_logits, end_logits; /* [batch, sequence]: where the answer begins and ends */
    int words;                    /* [batch, sequence, vocabulary] or [batch, vocabulary] */
    const char *const *labels;    /* id2label of config.json */
    int label_count;              /* 0: there are none */
    bool is_multi_label;          /* classes do not exclude each other */
    /* Sizes to which a vector may be cut (Matryoshka); -1 alone: to any. */
    int64_t dimensions[MODEL_DIMENSIONS_MAX];
    int dimension_count; /* 0: it may not be cut */
};

/* The prompt of that name; NULL: there is none. */
const model_prompt *model_text_prompt(const model_text *t, const char *name, size_t bytes);

typedef struct model_text_input {
    const char *prompt; /* goes before the text; NULL: none */
    size_t prompt_bytes;
    const char *text, *pair; /* pair NULL: there is none */
    size_t text_bytes, pair_bytes;
    bool without_special; /* no [CLS], [SEP] and the like */
    bool truncates, cuts_left;
    int64_t tokens_max;
} model_text_input;

/* `out` is borrowed from the scratch until its next use. STATUS_TOO_LARGE: more tokens than
 * `tokens_max`, and it does not truncate; else the errors of tokenizer_encode(). */
status model_text_encode(const model_text *t, tokenizer_scratch *s, const model_text_input *in,
                         tokenizer_tokens *out) MUST_CHECK;

#endif
