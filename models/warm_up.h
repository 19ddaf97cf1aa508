#ifndef MODELS_WARM_UP_H
#define MODELS_WARM_UP_H

#include "models/model.h"

/* Compiles every bucket for every device and executes it once, so that nothing is left to do when
 * the model is ready. Says "NAME: warming bucket 7 of 30" through `say` before each. A device other
 * than the CPU that fails loses that program (the CPU has it, a warning says so); the CPU must
 * succeed. */
status warm_up_model(model *m, void (*say)(void *context, const char *text),
                     void *context) MUST_CHECK;
/* Releases all programs. */
void warm_up_undo(model *m);

#endif
