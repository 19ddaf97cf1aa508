#ifndef MODELS_START_DEFERRED_BUCKETS_H
#define MODELS_START_DEFERRED_BUCKETS_H

#include "models/model.h"

/* Buckets without which a model is ready: the loading thread makes their programs on the CPU when
 * traffic wants them, or right after ready where an earlier start has run them; batches use smaller
 * buckets until then. */

typedef enum deferred_state {
    DEFERRED_NOT,     /* made before ready, or on other devices only */
    DEFERRED_PENDING, /* nobody has wanted it */
    DEFERRED_WANTED,
    DEFERRED_MADE,
    DEFERRED_FAILED, /* not tried again */
    DEFERRED_STATES
} deferred_state;

/* "made_at_start", "pending", "wanted", "made", "failed". Static. */
const char *deferred_state_name(deferred_state state);

typedef struct deferred_buckets {
    _Atomic int states[MODEL_BUCKETS_MAX]; /* deferred_state, by index of model->buckets */
    _Atomic(device_program *) programs[MODEL_BUCKETS_MAX]; /* of the CPU; NULL until made */
    _Atomic uint32_t made;                                 /* how many; changes after a program */
    _Atomic bool wants_run; /* a model that runs whole, which an earlier start has run: once more,
                               so that its weights are there before the first request */
    /* Told on the thread that first wants a bucket. Set before anybody else has the model; NULL:
     * buckets stay as they are. */
    void (*on_wanted)(void *owner);
    void *owner;
} deferred_buckets;

/* NULL when memory is out. */
deferred_buckets *deferred_buckets_create(void);
/* Releases the programs made. Accepts a model without any. */
void deferred_buckets_dispose(model *m);

/* Any thread, while it holds a reference on `m`. */

/* The program of bucket `bucket` on that device, also when it was made after ready; NULL: none. */
device_program *deferred_buckets_program(const model *m, int bucket, int device_index);
/* Changes after programs were made after ready; they are visible once it is read. */
uint32_t deferred_buckets_made(const model *m);
/* The smallest bucket of `sequence` tokens that is still to be made, with more than `above` rows,
 * and room for `rows` where there is one; -1: there is none. */
int deferred_buckets_find(const model *m, int64_t sequence, int64_t above, int64_t rows);
/* Asks for a bucket. Nothing happens if it is not pending. */
void deferred_buckets_want(const model *m, int bucket);
deferred_state deferred_buckets_state(const model *m, int bucket);

/* The loading thread. */

/* A bucket that is wanted, or -1. */
int deferred_buckets_next(const model *m);
/* Its program was made: taken. NULL: it could not be made. */
void deferred_buckets_finish(const model *m, int bucket, device_program *program);

#endif
