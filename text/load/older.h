#ifndef TEXT_LOAD_OLDER_H
#define TEXT_LOAD_OLDER_H

#include <jansson.h>

#include "base/status.h"

/* What a folder without tokenizer.json has instead, as the contents of a tokenizer.json: vocab.txt
 * (BERT), a SentencePiece model, or vocab.json with merges.txt (RoBERTa, GPT-2). Where they are
 * there, tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json count.
 * The caller releases *out. STATUS_NOT_FOUND: none of them, and the message has all names;
 * STATUS_CORRUPT and STATUS_UNSUPPORTED name the file. */
status text_load_older(const char *folder, json_t **out) MUST_CHECK;

#endif
