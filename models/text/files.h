#ifndef MODELS_TEXT_FILES_H
#define MODELS_TEXT_FILES_H

#include "models/text/model_text.h"

/* What stands beside a tokenizer: config.json, config_sentence_transformers.json,
 * sentence_bert_config.json, tokenizer_config.json. Strings are copied into the model's memory. */

/* What a model was trained for, by `architectures` of config.json. */
typedef enum text_head {
    TEXT_HEAD_NONE,
    TEXT_HEAD_SEQUENCE, /* ...ForSequenceClassification */
    TEXT_HEAD_TOKENS,   /* ...ForTokenClassification */
    TEXT_HEAD_ANSWER,   /* ...ForQuestionAnswering */
    TEXT_HEAD_WORDS,    /* ...ForMaskedLM */
} text_head;

/* Fills prompts, labels, dimensions and `tokens_max`, which the caller has set to the model's own
 * limit. Files that are not there change nothing. STATUS_CORRUPT: one is no JSON, or has a value of
 * a wrong type; STATUS_OUT_OF_MEMORY. */
status text_files_read(model_text *t, arena *memory, const char *folder,
                       text_head *head) MUST_CHECK;

#endif
