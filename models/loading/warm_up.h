#ifndef MODELS_LOADING_WARM_UP_H
#define MODELS_LOADING_WARM_UP_H

#include "models/model.h"

/* Compiles every bucket for every device and executes it once, so that nothing is left to compile
 * when the model is ready; except for the buckets that cost more than m->start has left, which are
 * deferred (models/start/deferred_buckets.h). Several threads work at once when a device
 * compiles. Calls `report` with "NAME: warming bucket 7 of 30" before each bucket, on one thread at
 * a time. Where a device other than the CPU fails, it does without that program, and a warning is
 * logged; a failure of the CPU, or of a device that may not compile (--cache-only), fails the
 * warm-up. */
status warm_up_model(model *m, void (*report)(void *context, const char *text),
                     void *context) MUST_CHECK;
/* The loading thread, after ready: makes a deferred bucket that is wanted, and executes it in an
 * execution slot of the CPU. False: none is wanted. */
bool warm_up_make_wanted(const model *m);
/* The loading thread, after ready: makes the programs of devices [first, first + count), which were
 * absent when the model was loaded, and executes each once. A program that cannot be made is left
 * out, with a warning; after `cancel` none is begun. */
void warm_up_join(const model *m, int first, int count, const cancel_token *cancel);
/* Releases all programs. */
void warm_up_undo(model *m);

#endif
