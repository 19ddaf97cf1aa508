#ifndef DEVICES_PJRT_ANSWERS_H
#define DEVICES_PJRT_ANSWERS_H

#include "devices/accuracy.h"
#include "devices/pjrt/choice.h"
#include "devices/pjrt/plugin/session.h"

/* Whether a way to compute a model gives its results: the program runs on a plugin that has a
 * device, beside the model in FP32 on the same device. It may be another device than the one that
 * programs are compiled for: forms differ in what they compute, not in where. For `penstock compile
 * --tune`, which loads plugins into its own process. One thread. */

typedef struct pjrt_answers pjrt_answers;

/* Opens the devices of the plugin, which is borrowed. Errors: those of pjrt_session_open(). */
status pjrt_answers_create(const pjrt_plugin *plugin, pjrt_answers **out) MUST_CHECK;
void pjrt_answers_destroy(pjrt_answers *a); /* accepts NULL */

/* Cosines to FP32, sequence by sequence, of the bucket, or of as many of its rows as hold
 * PJRT_ANSWERS_TOKENS_MAX tokens. `candidate`: with all that emitting it needs. Token ids are the
 * model's samples, or generated. Errors: those of compiling and executing. */
#define PJRT_ANSWERS_TOKENS_MAX 1024
status pjrt_answers_compare(pjrt_answers *a, const device_model *model, device_bucket bucket,
                            const pjrt_candidate *candidate, device_accuracy *out) MUST_CHECK;

#endif
