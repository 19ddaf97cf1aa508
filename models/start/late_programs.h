#ifndef MODELS_START_LATE_PROGRAMS_H
#define MODELS_START_LATE_PROGRAMS_H

#include "models/model.h"

/* Programs of devices that came after the model was ready: the loading thread makes them, beside
 * those that the buckets have had since the start. */

typedef struct late_programs {
    int device_count;
    _Atomic uint32_t published;           /* how often; changes after the programs */
    _Atomic(device_program *) programs[]; /* by bucket, then device; NULL: none */
} late_programs;

/* For all buckets of the model. NULL when memory is out. */
late_programs *late_programs_create(const model *m);
/* Releases them. Accepts a model without any. */
void late_programs_dispose(model *m);

/* Any thread, while it holds a reference on `m`. */

/* NULL: none. */
device_program *late_programs_get(const model *m, int bucket, int device_index);
/* How often programs were published; they are visible once the count is read. */
uint32_t late_programs_published(const model *m);

/* The loading thread. */

/* Taken. There is none of that bucket and device yet. */
void late_programs_put(const model *m, int bucket, int device_index, device_program *program);
/* Releases those of devices [first, end), which were not published. */
void late_programs_drop(const model *m, int first, int end);
/* A device has all its programs: queues take over what was put. */
void late_programs_publish(const model *m);

#endif
