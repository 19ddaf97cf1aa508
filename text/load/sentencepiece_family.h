#ifndef TEXT_LOAD_SENTENCEPIECE_FAMILY_H
#define TEXT_LOAD_SENTENCEPIECE_FAMILY_H

#include "text/load/sentencepiece.h"

/* What the classes of `transformers` (5.23) make of a SentencePiece model. */

typedef enum family {
    FAMILY_NONE, /* as SentencePiece itself */
    FAMILY_XLM_ROBERTA,
    FAMILY_CAMEMBERT,
    FAMILY_T5,
    FAMILY_ALBERT,
    FAMILY_DEBERTA_V2,
    FAMILY_LLAMA,
    FAMILY_GEMMA
} family;

/* STATUS_UNSUPPORTED: another class, and which ones are supported. */
status family_find(const char *tokenizer_class, family *out) MUST_CHECK;

/* What of the model's file the parts depend on. */
typedef struct family_traits {
    const char *charsmap; /* base64, or NULL */
    bool adds_prefix, removes_spaces, falls_back_to_bytes, splits_at_spaces;
} family_traits;

/* Tokens before and behind the model's own: those of its first `dropped` ids are left out. */
typedef struct family_frame {
    const char *before[5];
    int before_count, dropped;
    const char *behind;  /* or NULL */
    int numbered_behind; /* T5: <extra_id_N-1> to <extra_id_0> */
    int unknown;         /* id of the unknown token; -1: the model's own */
} family_frame;
family_frame family_frame_of(family f, const special_files *files);

/* New references; NULL: there is none, or no memory. */
json_t *family_normalizer(family f, const special_files *files, const family_traits *t);
json_t *family_splitter(family f, const special_files *files, const family_traits *t);
json_t *family_decoder(family f, const special_files *files, const family_traits *t);
/* `ids`: {"token": id}. */
json_t *family_processor(family f, const special_files *files, const json_t *ids);

/* The named tokens of the class, which its vocabulary need not have. */
status family_add_tokens(family f, const special_files *files, json_t *added) MUST_CHECK;

#endif
