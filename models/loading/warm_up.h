#ifndef MODELS_LOADING_WARM_UP_H
#define MODELS_LOADING_WARM_UP_H

#include "models/model.h"

/* Compiles every bucket for every device and executes it once, so that nothing is left to do when
 * the model is ready; several at once when there is a device that compiles. Says "NAME: warming
 * bucket 7 of 30" through `say` before each, on one thread at a time. A device other than the CPU
 * that fails loses that program (the CPU has it, a warning says so); the CPU must succeed, and so
 * must a device that may not compile (--cache-only). */
status warm_up_model(model *m, void (*say)(void *context, const char *text),
                     void *context) MUST_CHECK;
/* Releases all programs. */
void warm_up_undo(model *m);

#endif
