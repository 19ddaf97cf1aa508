#ifndef MODELS_TEXT_ROLES_H
#define MODELS_TEXT_ROLES_H

#include "models/text/files.h"

/* Which input takes which tokens, and what each output is, by names and shapes. STATUS_UNSUPPORTED:
 * the model has no input for ids, or one that tokens do not fill. */
status text_roles_find(model_text *t, const model *m, text_head head) MUST_CHECK;

#endif
