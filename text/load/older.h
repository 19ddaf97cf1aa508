#ifndef TEXT_LOAD_OLDER_H
#define TEXT_LOAD_OLDER_H

#include <jansson.h>

#include "base/status.h"

/* What a folder without tokenizer.json has instead, as the contents of a tokenizer.json: vocab.txt
 * (BERT), or vocab.json with merges.txt (RoBERTa, GPT-2); tokenizer_config.json where it is there.
 * The caller releases *out. STATUS_NOT_FOUND: neither, and the message has all names;
 * STATUS_CORRUPT names the file. */
status text_load_older(const char *folder, json_t **out) MUST_CHECK;

#endif
