#ifndef TEXT_LOAD_LOAD_H
#define TEXT_LOAD_LOAD_H

#include <jansson.h>

#include "text/process/tokenizer_parts.h"

/* The parts of tokenizer.json become those of a tokenizer. What failed halfway is disposed of with
 * the tokenizer. Each takes the whole file's object. */

status text_load_normalizers(const json_t *file, struct tokenizer *t) MUST_CHECK;
status text_load_splitters(const json_t *file, struct tokenizer *t) MUST_CHECK;
status text_load_model(const json_t *file,
                       struct tokenizer *t) MUST_CHECK; /* after the splitters */
status text_load_added_tokens(const json_t *file,
                              struct tokenizer *t) MUST_CHECK; /* after the model */
status text_load_processor(const json_t *file, struct tokenizer *t) MUST_CHECK;
status text_load_decoders(const json_t *file, struct tokenizer *t) MUST_CHECK;

#endif
