#ifndef MODELS_TEXT_LOAD_TEXT_H
#define MODELS_TEXT_LOAD_TEXT_H

#include "models/text/model_text.h"

/* The note of a model that no text could go into. */
#define LOAD_TEXT_NO_TOKENS "its inputs are not tokens"

/* Finds and reads the files in `folder`, and sets m->text, or m->text_note, which says what is
 * missing. A tokenizer that cannot be read does not stop the model: the note says why. The model is
 * described already (its inputs, outputs and longest row). STATUS_OUT_OF_MEMORY. */
status model_text_load(model *m, const char *folder) MUST_CHECK;
void model_text_dispose(model *m);

#endif
