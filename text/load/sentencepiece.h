#ifndef TEXT_LOAD_SENTENCEPIECE_H
#define TEXT_LOAD_SENTENCEPIECE_H

#include "text/load/special.h"

/* Names of SentencePiece models in the folders of `transformers`; NULL ends the list. */
extern const char *const sentencepiece_file_names[];

/* A SentencePiece model as the contents of a tokenizer.json. `tokenizer_class` says what
 * `transformers` puts around it; NULL, or a class of no model: what SentencePiece itself does. The
 * caller releases *out. Scores are exact: not as a tokenizer.json would have them. Errors:
 * STATUS_CORRUPT, STATUS_UNSUPPORTED (the class, or the model's type), STATUS_OUT_OF_MEMORY. */
status sentencepiece_convert(const void *data, size_t bytes, const char *tokenizer_class,
                             const special_files *files, json_t **out) MUST_CHECK;

#endif
